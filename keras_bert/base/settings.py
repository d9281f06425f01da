"""Settings: one frozen dataclass per command.

Its fields are the arguments of the Python call, the flags and the help of the command line, what
run.json records and what `--settings` reads back. Each default is here, and each value is checked
here.

    class FinetuneSettings(Settings):
        train: Paths = required(help="the examples to train on")
        epochs: int = setting(3, help="passes over the training data", at_least=1)

A type checker and an editor read the same fields: `takes` makes them the arguments of the call.
"""

import dataclasses
import functools
import inspect
import math
import os
import re
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from keras_bert.base.errors import InputError, Naming, argument, arguments
from keras_bert.base.files import possible_path

# What Python makes of bytes that are not UTF-8, in a command line or the name of a file.
_SURROGATES = re.compile("[\ud800-\udfff]")

# The types of arguments. A setting of these is text, or a list of text.
PathText = str | os.PathLike[str]
Paths = PathText | Sequence[PathText]
# Called with each line of what a command reports, such as `print`.
Report = Callable[[str], None] | None

_INT32_MAX = 2**31 - 1
_FLOAT32_MAX, _FLOAT32_TINY = float(2**128 - 2**104), 2.0**-126

_TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class About:
    """A setting's description, in addition to its name, type and default.

    Attributes:
        help: one line; the default is added if there is one.
        unit: placeholder of its value in the help ("STEPS").
        choices: the only values.
        words: texts that are values, too, of a number.
        at_least, above, below, at_most: the bounds of a number. A whole number without `at_most` is
            at most that of an int32, and any other number is in the range of a float32.
        is_path: whether one of the types `PathText`, `Paths` and `object` is a path; `-`
            is standard input. One of the type `object` may have data or a model in memory instead.
        default_help: the meaning of the default None.
        recorded: the result depends on it, so that a run records it.
        recorded_as: a function from a value to the one that is recorded, if JSON cannot hold it.
        stored: a model folder keeps it, since the task is made with it.
        reads: how a labelled file is read depends on it.
        positional: on the command line it has no flag.
        several: a list of values is allowed, too; a list of one is its value.
        instead_of: the setting that it excludes, and that excludes it.
        flag: the name of its flag, if that is not the setting's.
        group: the group of `HELP_GROUPS` that its flag is in. None is "data" with
            `reads`, "task and model" with `stored`, and otherwise "options".
        common: whether --help shows its flag; --help-all shows all.
    """

    help: str
    unit: str | None = None
    choices: tuple | None = None
    words: tuple[str, ...] = ()
    at_least: float | None = None
    above: float | None = None
    below: float | None = None
    at_most: float | None = None
    is_path: bool = True
    default_help: str | None = None
    recorded: bool = True
    recorded_as: Callable | None = None
    stored: bool = False
    reads: bool = False
    positional: bool = False
    several: bool = False
    instead_of: str | None = None
    flag: str | None = None
    group: str | None = None
    common: bool = False


def setting(default: Any, **about: Any) -> Any:
    """A field of a `Settings` class with a default; `about` are the attributes of `About`."""
    return dataclasses.field(default=default, metadata={"about": About(**about)})


# The groups of flags in the help, in their order, and `setting` for the fields of some.
HELP_GROUPS = (
    *("required", "task and model", "options", "data"),
    *("optimisation", "checkpoints", "hardware", "advanced"),
)
model_setting = functools.partial(setting, group="task and model")
data_setting = functools.partial(setting, group="data")
optimisation_setting = functools.partial(setting, group="optimisation")
checkpoint_setting = functools.partial(setting, group="checkpoints")
hardware_setting = functools.partial(setting, group="hardware")
advanced_setting = functools.partial(setting, group="advanced")


def required(*, kw_only: bool = True, default: Any = dataclasses.MISSING, **about: Any) -> Any:
    """A field without a default; of a call it may also be a positional argument.

    With `kw_only=False` one after it may have a `default`.
    """
    return dataclasses.field(kw_only=kw_only, default=default, metadata={"about": About(**about)})


def about(field):
    """The `About` of a field that `setting` made."""
    return field.metadata["about"]


def is_path(field):
    """Whether a setting is the path of a file or folder (see `About`)."""
    options = _options(field)
    return about(field).is_path and (object in options or os.PathLike[str] in options)


def _options(field):
    """The types of a field, one of which its value has."""
    is_union = isinstance(field.type, types.UnionType)
    return typing.get_args(field.type) if is_union else (field.type,)


def help_group(field):
    """The group of `HELP_GROUPS` that the flag of a field is in."""
    description = about(field)
    if field.default is dataclasses.MISSING:
        return "required"
    usual_group = (
        "data" if description.reads else "task and model" if description.stored else "options"
    )
    return description.group or usual_group


def value_type(field):
    """(the type of a field's checked values, whether None is one of them); a list is list[str]."""
    options = _options(field)
    option = next(option for option in options if option is not types.NoneType)
    lists = [typing.get_args(option) for option in options if typing.get_origin(option) is Sequence]
    if lists and not about(field).several:
        ((item,),) = lists
        option = list[typing.get_args(item)[0] if isinstance(item, types.UnionType) else item]
    return option, types.NoneType in options


@dataclasses.dataclass(frozen=True, kw_only=True)
@typing.dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(required,))
class Settings:
    """The base of every command's settings; each subclass is a frozen dataclass.

    An `InitVar` is an argument of the call alone: it has no flag, and is neither stored nor
    recorded.

    Raises:
        InputError: a value is of another type or out of its bounds; subclasses extend `check`
            for combinations of settings.
    """

    # {a setting of an earlier version: the sentence that says what to use instead}
    REMOVED: typing.ClassVar[dict[str, str]] = {}
    # {a removed setting: the value that does what is done now}; with others this is None.
    REMOVED_DEFAULTS: typing.ClassVar[dict[str, object]] = {}

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self, *arguments):
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, checked(field, getattr(self, field.name)))
        self.check()

    def check(self):
        """Raises `InputError` for invalid combinations of settings."""

    @classmethod
    def of(cls, given):
        """The settings of a dictionary.

        Raises:
            InputError: one is missing, unknown or invalid.
        """
        fields = {field.name: field for field in dataclasses.fields(cls)}
        removed = cls.removed()
        for name in given:
            if advice := removed.get(name):
                raise InputError.naming("{} was removed. {}", argument(name), Naming(advice))
            if name not in fields:
                raise InputError.naming(
                    "Unknown setting {}. Choose from {}.", argument(name), ", ".join(fields)
                )
        if missing := cls.missing_arguments(given):
            raise InputError.naming("Missing required arguments: {}.", arguments(missing))
        return cls(**given)

    @classmethod
    def missing_arguments(cls, given):
        """The required settings that a dictionary lacks, in the order of a message."""
        fields = dataclasses.fields(cls)
        required = [field.name for field in fields if field.default is dataclasses.MISSING]
        return [name for name in required if name not in given]

    def part(self, cls):
        """A dictionary of the settings that are fields of another class."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(cls)}

    def paths(self):
        """The files and folders that the result depends on, without those that are None."""
        paths = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if is_path(field) and about(field).recorded and not _in_memory(field, value):
                paths += value if isinstance(value, list) else [value]
        return [path for path in paths if path is not None]

    @classmethod
    def names(cls):
        """The names of the settings."""
        return {field.name for field in dataclasses.fields(cls)}

    @classmethod
    def removed(cls):
        """`REMOVED` of this class and of its bases."""
        return _merged_over_bases(cls, "REMOVED")

    @classmethod
    def removed_defaults(cls):
        """`REMOVED_DEFAULTS` of this class and of its bases."""
        return _merged_over_bases(cls, "REMOVED_DEFAULTS")

    @classmethod
    def without_removed(cls, recorded):
        """The settings that an earlier version recorded, without removed ones that change nothing.

        `of` raises an error for those that are left.
        """
        removed, unchanged = cls.removed(), cls.removed_defaults()
        return {
            name: value
            for name, value in recorded.items()
            if name not in removed or value != unchanged.get(name)
        }

    @classmethod
    def path_names(cls):
        """The names of the settings that are paths."""
        return {field.name for field in dataclasses.fields(cls) if is_path(field)}

    def recorded(self):
        """Returns the settings that the result depends on, as JSON holds them.

        Paths are absolute. Data in memory are there by their type, such as "DataFrame in memory".
        """
        recorded = {}
        for field in dataclasses.fields(self):
            if about(field).recorded:
                value = getattr(self, field.name)
                if is_path(field):
                    value = _recorded_path(field, value)
                elif about(field).recorded_as is not None:
                    value = about(field).recorded_as(value)
                recorded[field.name] = value
        return recorded

    @classmethod
    def defaults(cls):
        """The default of every recorded setting that has one."""
        return {
            field.name: field.default
            for field in dataclasses.fields(cls)
            if about(field).recorded and field.default is not dataclasses.MISSING
        }


def _merged_over_bases(cls, attribute):
    """A dictionary of a class with those of its bases."""
    return {
        name: value for base in cls.__mro__ for name, value in getattr(base, attribute, {}).items()
    }


def settings_type(name: str, bases: tuple, fields: dict, **attributes: Any) -> Any:
    """A settings class that is made of other ones; `fields` are {name: (type, `setting`)}."""
    annotations = {name: annotation for name, (annotation, _) in fields.items()}
    defaults = {name: default for name, (_, default) in fields.items()}
    return type(name, bases, {"__annotations__": annotations, **defaults, **attributes})


@functools.cache
def merged(*classes: type) -> Any:
    """One class with the fields of several."""
    name = "And".join(cls.__name__.removesuffix("Settings") for cls in classes) + "Settings"
    return settings_type(name, classes, {})


def as_list(value):
    """The values of a setting that may have several: a list, empty for None."""
    return [] if value is None else value if isinstance(value, list) else [value]


@functools.cache
def reader_settings(cls):
    """A class of those fields of another that a labelled file is read by.

    Without those that a model folder stores: the model has these.
    """
    return _selected(cls, "Reading", lambda field: about(field).reads and not about(field).stored)


@functools.cache
def without(cls, *names):
    """A class of the fields of another, except some; without its checks of combinations."""
    return _selected(cls, "Other", lambda field: field.name not in names)


def _selected(cls, prefix, belongs):
    fields = {
        f.name: (f.type, dataclasses.field(default=f.default, metadata=f.metadata))
        for f in dataclasses.fields(cls)
        if belongs(f)
    }
    name = cls.__name__.replace("Settings", f"{prefix}Settings")
    return settings_type(name, (Settings,), fields, REMOVED=cls.removed())


_SETTINGS_LINE = re.compile(r"^    \*\*settings: .*$", re.MULTILINE)
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result", covariant=True)


def takes(
    cls: Callable[_Arguments, Settings],
) -> Callable[[Callable[..., _Result]], Callable[_Arguments, _Result]]:
    """Gives a function of keyword arguments the signature and the "Args" of a settings class.

    The function is called with the arguments as they were given. A type checker takes them from the
    class, and so do `inspect.signature`, `help` and notebooks. The line `**settings: …` of the
    docstring becomes the fields with their help.
    """

    def decorate(function):
        parameters = [
            parameter.replace(annotation=_without_init(parameter.annotation))
            for parameter in inspect.signature(cls).parameters.values()
        ]
        # The settings first, then the arguments of the call alone.
        names = cls.names()
        parameters.sort(key=lambda p: (p.kind is p.KEYWORD_ONLY, p.name not in names))
        own_signature = inspect.signature(function)
        function.__signature__ = own_signature.replace(parameters=parameters)
        if function.__doc__ is None:  # python -OO leaves docstrings out
            return function
        text, arguments = inspect.cleandoc(function.__doc__), described(dataclasses.fields(cls))
        function.__doc__ = _SETTINGS_LINE.sub(lambda match: arguments, text)
        return function

    return decorate


def described(fields):
    """The lines of a docstring on settings: name and help of each."""
    lines = []
    for field in fields:
        line = f"    {field.name}: {about(field).help}"
        if about(field).default_help:
            line += f" (None: {about(field).default_help})"
        lines.append(textwrap.fill(f"{line}.", 100, subsequent_indent=" " * 8))
    return "\n".join(lines)


class OfTask(Protocol[_Arguments, _Result]):
    """A call whose arguments depend on its `task`: those of the default one, or any."""

    @overload
    def __call__(self, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result: ...
    @overload
    def __call__(self, *, task: str, **settings: Any) -> _Result: ...


class OfModel(Protocol[_Arguments, _Result]):
    """A call with the arguments that all tasks have, and those of the model's task."""

    @overload
    def __call__(self, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result: ...
    @overload
    def __call__(self, **settings: Any) -> _Result: ...


def takes_of_task(
    cls: Callable[_Arguments, Settings],
) -> Callable[[Callable[..., _Result]], OfTask[_Arguments, _Result]]:
    """Decorates as `takes` a function that has other arguments with another `task`."""
    return takes(cls)  # type: ignore[return-value]


def takes_of_model(
    common: Callable[_Arguments, Settings], cls: Any
) -> Callable[[Callable[..., _Result]], OfModel[_Arguments, _Result]]:
    """Decorates as `takes` a function that has the arguments of the model's task, as `cls` has."""
    return takes(cls)  # type: ignore[return-value]


def _without_init(annotation):
    """The type of an argument, also if it is an `InitVar`."""
    return annotation.type if isinstance(annotation, dataclasses.InitVar) else annotation


def _in_memory(field, value):
    """Whether the value of a path's field is not one, but data or a model."""
    return field.type is object and value is not None and not _is_path(value)


def _recorded_path(field, value):
    if _in_memory(field, value):
        return f"{type(value).__name__} in memory"
    return [*map(_absolute, value)] if isinstance(value, list) else _absolute(value)


def _is_path(value):
    """Whether a value is a path, or a list of paths."""
    paths = value if isinstance(value, list | tuple) and value else [value]
    return all(isinstance(path, str | os.PathLike) for path in paths)


def _absolute(value):
    if value is None or value == "-" or "://" in value or value.startswith("tfds:"):
        return value
    return os.path.abspath(value)


def mismatch(kind, value):
    """Says what a value of a type should be, such as "a whole number"; None if it is.

    As in JSON, `true` is not a number, and 1 is one of any type. NaN and infinity are not.
    """
    if kind not in _TYPE_NAMES:
        return None
    accepted = int | float if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        return _TYPE_NAMES[kind]
    return "a finite number" if kind is float and not abs(value) <= sys.float_info.max else None


def checked(field, value):
    """The value of a setting as it is kept; `InputError` if it is invalid."""
    kind, optional = value_type(field)
    if value is None and optional:
        return None
    is_list = isinstance(value, list | tuple)
    is_in_memory = kind is object and not _is_path(value)
    if about(field).several and is_list and value and not is_in_memory:
        items = [_checked_item(field, kind, item) for item in value]
        return items if len(items) > 1 else items[0]
    if typing.get_origin(kind) is not list:
        return _checked_item(field, kind, value)
    (kind,) = typing.get_args(kind)
    return [_checked_item(field, kind, item) for item in (value if is_list else [value])]


def _checked_item(field, kind, value):
    """One value of a setting, of a type `kind`."""
    name, description = field.name, about(field)
    if isinstance(value, str) and value in description.words:
        return value
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if kind is float and type(value) is int:
        value = float(value) if abs(value) <= sys.float_info.max else math.inf
    if expected := mismatch(kind, value):
        raise InputError.naming("{} is {!r}. It should be {}.", argument(name), value, expected)
    if is_path(field) and isinstance(value, str) and not value:
        raise InputError.naming("{} is empty. Give a path.", argument(name))
    if isinstance(value, str) and _SURROGATES.search(value):
        advice = "; rename the file or folder" if is_path(field) else ""
        raise InputError.naming("{} is {!r}. It should be UTF-8{}.", argument(name), value, advice)
    if is_path(field) and isinstance(value, str):
        try:
            possible_path(value)
        except InputError as error:
            raise InputError.naming("{}: {}", argument(name), error) from error
    if description.choices is not None and value not in description.choices:
        *others, last = map(str, description.choices)
        choices = f"{', '.join(others)} or {last}" if others else last
        raise InputError.naming("{} is {!r}. It should be {}.", argument(name), value, choices)
    if kind is float and 0 < abs(value) < _FLOAT32_TINY:
        raise InputError.naming(
            "{} is too small for a float32. Expected 0, or {:.1e} and more. Received: {}.",
            argument(name),
            _FLOAT32_TINY,
            value,
        )
    largest = {int: _INT32_MAX, float: _FLOAT32_MAX}.get(kind)
    at_most = largest if description.at_most is None else description.at_most
    for bound, holds, text in (
        (description.at_least, lambda bound: value >= bound, "at least"),
        (description.above, lambda bound: value > bound, "above"),
        (description.below, lambda bound: value < bound, "below"),
        (at_most, lambda bound: value <= bound, "at most"),
    ):
        if bound is not None and not holds(bound):
            raise InputError.naming(
                "{} must be {} {}. Received: {}.", argument(name), text, bound, value
            )
    return value
