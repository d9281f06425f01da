"""Settings that all task types share, without Keras: the command line reads them.

The settings of a task type are in the package of its family.
"""

import dataclasses
import inspect
import typing
from collections.abc import Sequence

from keras_bert.base.errors import InputError, argument
from keras_bert.base.settings import Settings, about, described, setting

MAX_LENGTH = 128
# Defaults of fine-tuning; `keras_bert.tasks.training_defaults` has those of the learning rate.
WARMUP, WEIGHT_DECAY = 0.1, 0.01


def max_length_setting(default, *, at_least, help):
    """The setting for the length of a sequence; `help` says what it contains."""
    return setting(
        None,
        help=f"maximum tokens per sequence{help}",
        unit="TOKENS",
        default_help=f"{default}, or the positions of the model if it has fewer",
        at_least=at_least,
        stored=True,
    )


def dropout_setting(default_help):
    """The setting for the dropout rate of the head's input."""
    return setting(
        None,
        help="dropout rate of the head's input",
        unit="RATE",
        default_help=default_help,
        at_least=0,
        below=1,
    )


class TaskSettings(Settings):
    """Settings of a task type, in addition to those of the training run.

    A model folder stores the `stored` ones; those with `reads` control how a file is read (with
    both, a model's own value counts). A task is made with all but those that are `reads` alone (see
    `argument_fields`), and holds an instance in which these have their defaults.
    EXAMPLE_FIELDS names the parts of an example that is given instead of a file: `read` takes a
    sequence of texts or, with several names, of tuples. MAX_LENGTH is the default of `max_length`,
    at most the positions of the model.
    """

    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ("text",)
    MAX_LENGTH: typing.ClassVar[int] = MAX_LENGTH

    max_length: int | None = max_length_setting(
        MAX_LENGTH, at_least=3, help=", including [CLS] and [SEP]"
    )
    dropout: float | None = dropout_setting("from the model's config")
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


def argument_fields(settings):
    """The fields of a settings class that a task is made with, by name: not those of a reader."""
    return {
        field.name: field
        for field in dataclasses.fields(settings)
        if about(field).stored or not about(field).reads
    }


def made_with(settings, arguments):
    """The settings of a class from a task's arguments by name; InputError for unknown ones."""
    names = argument_fields(settings)
    for name in arguments:
        if name in settings.names() and name not in names:
            raise InputError.naming(
                "{} says how a file is read. Pass it with the file, as to `task.dataset`.",
                argument(name),
            )
    return settings.of(arguments)


def show_arguments(cls):
    """Gives a class of task the signature of its constructor and its settings in `help`.

    They are the parameters of its constructor and of those of its bases, and the `argument_fields`
    of its SETTINGS.
    """
    parameters, later = {}, {}
    for base in reversed(cls.__mro__):
        if "__init__" in vars(base) and base.__module__.split(".")[0] not in ("keras", "builtins"):
            arguments = inspect.signature(base.__init__).parameters
            parameters = {**parameters, **arguments} if "settings" in arguments else dict(arguments)
    for name in ("self", "settings", *(() if cls.MIN_LABELS else ("labels",))):
        parameters.pop(name, None)
    for name in ("layers", "layer_mix", "static_vectors", "name"):
        if name in parameters:
            later[name] = parameters.pop(name)
    if cls.MIN_LABELS:
        parameters["labels"] = parameters["labels"].replace(
            default=inspect.Parameter.empty, annotation=Sequence[str]
        )
    fields = argument_fields(cls.SETTINGS)
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING
        parameters[name] = inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if required else field.default,
            annotation=field.type,
        )
    cls.__signature__ = inspect.Signature([*parameters.values(), *later.values()])
    if cls.__doc__ is not None and fields:  # python -OO leaves docstrings out
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__)}\n\nSettings:\n{described(fields.values())}"
