"""Flags from the fields of a `Settings` class, and settings from what was given."""

import argparse
import dataclasses
import re
import typing

from keras_bert.base.errors import InputError
from keras_bert.base.settings import about, value_type

_YES_OR_NO = {"yes": True, "no": False}


def add(parser, cls, *, command=None):
    """Adds a flag for each setting; with `command`, also `--settings` with a run.json of it.

    What is not given is not in the parsed arguments, so that a settings file can stand below the
    flags, wherever it is given, and the defaults below both. Required settings are checked by
    `read`, since the file may have them.
    """
    for field in dataclasses.fields(cls):
        if about(field).positional:
            options = {**_options(field), "nargs": "?", "default": argparse.SUPPRESS}
            parser.add_argument(options.pop("dest"), **options)
        else:
            parser.add_argument(_flag(field.name), **_options(field), default=argparse.SUPPRESS)
    if command is not None:
        parser.add_argument(
            "--settings",
            dest="settings_file",
            metavar="run.json",
            help="take the settings of a former run from its run.json; flags win over the file",
        )
    parser.set_defaults(settings_class=cls, settings_of=command)


def read(arguments):
    """A dictionary of what the flags and the settings file say.

    Raises:
        InputError: the file is not one of this command, or holds a setting that it does not know; a
            setting is missing or cannot be.
    """
    cls = arguments.settings_class
    names = {field.name for field in dataclasses.fields(cls)}
    given = {name: value for name, value in vars(arguments).items() if name in names}
    values = {}
    path = getattr(arguments, "settings_file", None)
    if path is not None:
        from keras_bert.training.run_folder import read_settings

        values = read_settings(path, command=arguments.settings_of)
        for name in values:
            if name not in names:
                raise InputError(
                    f"{path} has the setting {name}, which {arguments.settings_of} does not know."
                )
        # The file has every setting, also the default of one that another was given instead of.
        ousted = _ousted(cls, given) | _ousted(cls, values) & _defaults(cls, values)
        values = {name: value for name, value in values.items() if name not in ousted}
    values |= given
    cls.of(values)  # now, before anything heavy is loaded
    return values


def _ousted(cls, given):
    """The settings that those given, which are not None, stand in place of."""
    given = {name for name, value in given.items() if value is not None}
    either = [(f.name, about(f).instead_of) for f in dataclasses.fields(cls) if about(f).instead_of]
    return {other for pair in either for one, other in (pair, pair[::-1]) if one in given}


def _defaults(cls, values):
    """The names of those values that are their settings' defaults."""
    return {f.name for f in dataclasses.fields(cls) if values.get(f.name, f) == f.default}


def with_flags(message, cls):
    """A message of the library, with the arguments that it names as flags.

    `` `max_length` `` becomes --max-length, `` `objective="mlm"` `` --objective mlm, and
    `` `header=False` `` --header no.
    """
    fields = {field.name: field for field in dataclasses.fields(cls)} if cls is not None else {}

    def flag(found):
        name, value = found[1], found[2]
        if name not in fields:
            return found[0]
        if about(fields[name]).positional:
            return about(fields[name]).unit
        if value_type(fields[name]) == (bool, True):  # a flag that takes yes or no
            value = {"True": "yes", "False": "no"}.get(value, value)
        if value is None or value == "True":
            return _flag(name)
        return f"{_flag(name)} {value.strip(chr(34))}"

    return re.sub(r'`(\w+)(?:=(True|"[^"`]*"|[\w.]+))?`', flag, message)


def _flag(name):
    return f"--{name.replace('_', '-')}"


def _options(field):
    known = about(field)
    kind, optional = value_type(field)
    options = {"dest": field.name, "help": _help(field)}
    if kind is bool and not optional:
        # A model that a run continues with may have the setting on: --no-crf turns it off.
        action = argparse.BooleanOptionalAction if known.stored else "store_true"
        return {**options, "action": action}
    if kind is bool:
        return {**options, "type": _yes_or_no, "metavar": "{yes,no}"}
    if typing.get_origin(kind) is list:
        action = "append" if optional else None
        more = {"action": action} if action else {"nargs": "+"}
        return {**options, **more, "type": _reader(*typing.get_args(kind)), "metavar": known.unit}
    if known.several:
        options |= {"nargs": "+", "action": _OneOrSeveral}
    unit = "{" + ",".join(map(str, known.choices)) + "}" if known.choices else known.unit
    return {**options, "type": _reader(kind), "metavar": unit or field.name.upper()}


class _OneOrSeveral(argparse.Action):
    """A flag that takes one value, or a list."""

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values if len(values) > 1 else values[0])


def _help(field):
    known = about(field)
    text = known.help.replace("%", "%%")
    if field.default is dataclasses.MISSING:
        return text
    default = known.default_help if field.default is None else field.default
    if isinstance(default, tuple):
        default = " ".join(map(str, default))
    if value_type(field)[0] is bool and field.default is False:
        return text
    return f"{text} (default: {str(default).replace('%', '%%')})"


def _reader(kind):
    if kind is int:
        return _whole_number
    return _number if kind is float else str


def _whole_number(text):
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def _number(text):
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _yes_or_no(text):
    if text not in _YES_OR_NO:
        raise argparse.ArgumentTypeError(f"{text!r} is neither yes nor no")
    return _YES_OR_NO[text]


_WITH_A_HYPHEN = {"--job-server-timeout"}  # all other options of Beam's have underscores


def reject_unknown(options):
    """Raises `InputError` for what is not an option of Beam's, which is loaded where it may be."""
    for option in options:
        name = option.split("=")[0]
        if "-" in name.removeprefix("--") and name.startswith("--") and name not in _WITH_A_HYPHEN:
            raise InputError(
                f"There is no option {name}, neither of this command nor of Apache Beam; see "
                "--help for this command's own."
            )
    if options:
        from data_gen.runner import options as check

        check(options)
