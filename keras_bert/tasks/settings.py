"""What every task that reads labelled files is made with."""

import dataclasses
import typing

from keras_bert.base.settings import Settings, setting

MAX_LENGTH = 128


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskSettings(Settings):
    """Settings of a kind of task, beside those of the run that trains it.

    What is `stored` is kept in the model folder and is an attribute of the task by the same name;
    what `reads` tells how a file is read (where it is both, a model's files are read as it says).
    EXAMPLE_FIELDS names the parts of an example that is given instead of a file: `read` takes a
    sequence of texts or, with several names, of tuples.
    MAX_LENGTH is the default of `max_length`, where the model has so many positions.
    """

    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ("text",)
    MAX_LENGTH: typing.ClassVar[int] = MAX_LENGTH

    max_length: int | None = setting(
        None,
        help="tokens in a row, [CLS] and [SEP] counted in",
        unit="TOKENS",
        default_help=f"{MAX_LENGTH}, or all positions of a model that has fewer",
        at_least=3,
        stored=True,
    )
    dropout: float | None = setting(
        None,
        help="share of what the head reads that is dropped in training",
        unit="SHARE",
        default_help="the model's own",
        at_least=0,
        below=1,
    )
    bilstm: int | None = setting(
        None,
        help="a bidirectional LSTM of two layers over the encoder, of so many units each way",
        unit="UNITS",
        default_help="none",
        at_least=1,
        stored=True,
    )
