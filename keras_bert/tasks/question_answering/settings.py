"""What a question answerer is made with, and how its files are read."""

import dataclasses
import typing

from keras_bert.base.settings import setting
from keras_bert.readers.settings import fields_setting
from keras_bert.readers.squad import WRONG_OFFSETS
from keras_bert.tasks.settings import TaskSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionSettings(TaskSettings):
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ("question", "context")
    MAX_LENGTH: typing.ClassVar[int] = 384

    max_length: int | None = setting(
        None,
        help="tokens in a row: question, a window of the context, [CLS] and two [SEP]",
        unit="TOKENS",
        default_help=f"{MAX_LENGTH}, or all positions of a model that has fewer",
        at_least=5,
        stored=True,
    )
    dropout: float | None = setting(
        None,
        help="share of what the head reads that is dropped in training",
        unit="SHARE",
        default_help="none, as in BERT's own program",
        at_least=0,
        below=1,
    )
    stride: int | None = setting(
        None,
        help="tokens from the beginning of a window of a long context to that of the next",
        unit="TOKENS",
        default_help="a third of `max_length`",
        at_least=1,
        stored=True,
    )
    max_question_length: int = setting(
        64,
        help="tokens that a question is cut to; half of a row is for the context in any case",
        unit="TOKENS",
        at_least=1,
        stored=True,
    )
    max_answer_length: int = setting(
        30,
        help="tokens of the longest answer that is given",
        unit="TOKENS",
        at_least=1,
        stored=True,
    )
    n_best: int = setting(
        1, help="pieces of the context that an answer names", unit="N", at_least=1, stored=True
    )
    null_threshold: float | None = setting(
        None,
        help="the null score above which a question has no answer",
        unit="SCORE",
        default_help="tuned on the dev data; where every question there has an answer, one is "
        "always given",
        stored=True,
    )
    fields: str | None = fields_setting("question=query,context=passage,answers=answers,id=id")
    wrong_offsets: str = setting(
        "move",
        help="an answer that does not stand at its offset: move it to the nearest place that reads "
        "so, or drop it (nothing is learned from it)",
        choices=WRONG_OFFSETS,
        reads=True,
    )
