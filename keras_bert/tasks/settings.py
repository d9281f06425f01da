"""Settings of every task that reads labelled files."""

import dataclasses
import typing

from keras_bert.base.settings import Settings, setting

MAX_LENGTH = 128


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskSettings(Settings):
    """Settings of a kind of task, in addition to those of the training run.

    A model folder stores the `stored` ones, which are attributes of the task by the same names;
    those with `reads` control how a file is read (with both, a model's own value counts).
    EXAMPLE_FIELDS names the parts of an example that is given instead of a file: `read` takes a
    sequence of texts or, with several names, of tuples. MAX_LENGTH is the default of `max_length`,
    at most the positions of the model.
    """

    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ("text",)
    MAX_LENGTH: typing.ClassVar[int] = MAX_LENGTH

    max_length: int | None = setting(
        None,
        help="maximum tokens per sequence, including [CLS] and [SEP]",
        unit="TOKENS",
        default_help=f"{MAX_LENGTH}, or the positions of the model if it has fewer",
        at_least=3,
        stored=True,
    )
    dropout: float | None = setting(
        None,
        help="dropout rate of the head's input",
        unit="RATE",
        default_help="from the model's config",
        at_least=0,
        below=1,
    )
    bilstm: int | None = setting(
        None,
        help="units per direction of a two-layer bidirectional LSTM over the encoder",
        unit="UNITS",
        default_help="none",
        at_least=1,
        stored=True,
    )
    lm_loss_weight: float = setting(
        0.0,
        help="with a causal encoder, weight of an additional next-token loss on the same texts "
        "(0.5 in OpenAI GPT)",
        unit="WEIGHT",
        at_least=0,
    )
