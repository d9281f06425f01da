"""The span of a text that answers a question; the settings of the task."""

import typing

from keras_bert.base.settings import setting
from keras_bert.readers import RowSettings, fields_setting
from keras_bert.readers.squad import WRONG_OFFSETS
from keras_bert.tasks import TaskSettings, dropout_setting, max_length_setting


class QuestionSettings(RowSettings, TaskSettings):
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ("question", "context")
    MAX_LENGTH: typing.ClassVar[int] = 384

    max_length: int | None = max_length_setting(
        MAX_LENGTH,
        at_least=5,
        help=": question, a window of the context, [CLS] and two [SEP]",
    )
    dropout: float | None = dropout_setting("from the model's config; BERT has none")
    stride: int | None = setting(
        None,
        help="tokens from the start of a window of a long context to the start of the next",
        unit="TOKENS",
        default_help="a third of `max_length`",
        at_least=1,
        stored=True,
        common=True,
    )
    max_question_length: int = setting(
        64,
        help="maximum tokens of a question; at least half of a sequence is left for the context",
        unit="TOKENS",
        at_least=1,
        stored=True,
    )
    max_answer_length: int = setting(
        30,
        help="maximum tokens of an answer",
        unit="TOKENS",
        at_least=1,
        stored=True,
    )
    n_best: int = setting(
        1, help="number of candidate spans per answer", unit="N", at_least=1, stored=True
    )
    null_threshold: float | None = setting(
        None,
        help="the null score above which a question has no answer",
        unit="SCORE",
        default_help="tuned on the dev data; if every question there has an answer, one is always "
        "predicted",
        stored=True,
    )
    fields: str | None = fields_setting("question=query,context=passage,answers=answers,id=id")
    wrong_offsets: str = setting(
        "move",
        help="what to do with an answer that is not at its offset: move it to the nearest "
        "occurrence, or drop it (not trained on)",
        choices=WRONG_OFFSETS,
        reads=True,
    )
