"""Commands: a function, its flags from a `Settings` class, and how it prints.

Results with colours and tables go to standard output, notes to standard error.
"""

import argparse
import contextlib
import dataclasses
import inspect
import json
import re
import shlex
import shutil
import sys
import typing
from collections.abc import Callable
from pathlib import Path

from keras_bert.base import terminal
from keras_bert.base.errors import InputError, argument
from keras_bert.base.settings import HELP_GROUPS, about, help_group, value_type
from keras_bert.base.terminal import drawn_on, escaped
from keras_bert.cli.cpu import import_large
from keras_bert.inference.settings import export_version


@dataclasses.dataclass
class Command:
    """A command of `keras-bert`: a function, and what the command line has to know of it.

    The function gets the settings that were given (a dictionary) and the parsed arguments, imports
    heavy modules itself, and returns the next step or None. Its docstring is the description.
    """

    function: Callable
    name: str
    summary: str
    # A `Settings` class whose fields are the flags, or a function from `first_arguments` to one.
    settings: Callable | None = None
    repeats_runs: bool = False  # with `--settings run.json`
    more_flags: Callable | None = None  # adds flags that are not settings to a parser
    prepare: Callable | None = None  # gets the parsed arguments before the settings are read
    takes_beam_options: bool = False
    is_job_with_runner: bool = False  # takes Beam's options if --runner is one of them
    backends: tuple = ()  # the Keras backends that it can run on; () if it needs none

    @property
    def description(self):
        return inspect.cleandoc(self.function.__doc__ or "")  # none with python -OO

    def add_flags(self, parser, first):
        """Adds the flags to the command's parser; some depend on the `first_arguments`."""
        if self.settings is not None:
            cls = self.settings if isinstance(self.settings, type) else self.settings(first)
            name = self.name if self.repeats_runs else None
            add_flags(parser, cls, command=name, is_short=first.help and not first.help_all)
        if self.more_flags is not None:
            self.more_flags(parser)

    def accepts(self, beam_options):
        """Whether the command takes options that are not its flags, which are for Apache Beam."""
        has_runner = any(option.split("=")[0] == "--runner" for option in beam_options)
        return self.takes_beam_options or (self.is_job_with_runner and has_runner)

    def run(self, arguments):
        """Runs the command with parsed arguments, and prints the next step."""
        if arguments.beam_options:
            reject_unknown(arguments.beam_options)
        if self.prepare is not None:
            self.prepare(arguments)
        settings = {} if self.settings is None else read_flags(arguments)
        if self.backends:
            import_large("keras")
        next_step = self.function(settings, arguments)
        if next_step is not None and not terminal.is_quiet():
            print(f"Next: {as_run_here(next_step)}")


def command(name, summary, **options):
    """A decorator that makes a function a `Command`."""
    return lambda function: Command(function, name, summary, **options)


def report(line):
    """Prints a line to standard error, unless `--quiet`: standard output is for the result."""
    if not terminal.is_quiet():
        print(line, file=sys.stderr, flush=True)


def report_next(step):
    """Reports the next step of a command whose standard output is JSON or another file's content.

    Any other command returns it.
    """
    report(f"Next: {as_run_here(step)}")


_PROGRAM = re.compile(r"(?<![\w./-])(keras-bert|python|tensorboard|pip)(?= )")


def as_run_here(step):
    """A next step with the programs as this process was started, such as `.venv/bin/keras-bert`.

    Programs on the PATH are named, and others have the path that the user gave, or that of the
    environment of this process.
    """
    return _PROGRAM.sub(lambda match: _program(match[1]), step)


def _program(name):
    started, folder = Path(sys.argv[0]), Path(sys.executable).parent
    is_module = started.parts[-2:] == ("keras_bert", "__main__.py")
    if started.name != "keras-bert" and not is_module:  # a test, or a program with `main`
        return name
    here = folder / name
    if started.name == "keras-bert" and started.parent.resolve() == folder.resolve():
        here = started.with_name(name)
    found = shutil.which(name)
    if found is not None and Path(found).parent.resolve() == folder.resolve():
        return name
    if name == "keras-bert" and is_module:
        return f"{_program('python')} -m keras_bert"
    with contextlib.suppress(ValueError):
        here = here.relative_to(Path.cwd())
    return shlex.quote(str(here))


def export_command(model):
    """The command that exports a model, the next step after many others; an export is served."""
    if (version := export_version(model)) is not None:
        return f"keras-bert serve --models {shlex.quote(str(version.parent))}"
    return f"keras-bert export --model {shlex.quote(model)} --output savedmodels/NAME"


def finetune_command(model, task="classifier"):
    """The command that fine-tunes a model, likewise."""
    start = f"keras-bert finetune --task {task} --model {shlex.quote(model)}"
    return f"{start} --train FILE --output DIR"


def after_pretraining(model, metrics):
    """The next step after pre-training or its evaluation, by the names of the model's `metrics`."""
    if metrics.keys() & {"skip_gram_loss", "cbow_loss"}:
        first = f"keras-bert nearest --model {shlex.quote(model)} --word WORD, or "
    elif "causal_lm_loss" in metrics and "masked_lm_loss" not in metrics:
        first = f'keras-bert generate --model {shlex.quote(model)} --prompt "…", or '
    else:
        first = ""
    return first + finetune_command(model)


def console(*, stderr=False):
    """A Rich console for results: it escapes what it prints, except its own colours.

    A `[` in a text is not markup.
    """
    from rich.console import Console

    file = drawn_on(sys.stderr if stderr else sys.stdout)
    rich_console = Console(file=file, highlight=False, markup=False)
    rich_console.push_render_hook(_EscapingHook())
    return rich_console


class _EscapingHook:
    """Called by a Rich console with the renderables that it is about to print."""

    def process_renderables(self, renderables):
        return [_Escaped(renderable) for renderable in renderables]


class _Escaped:
    """Another renderable with its text `escaped`."""

    def __init__(self, renderable):
        self._renderable = renderable

    def __rich_console__(self, console, options):
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else segment._replace(text=escaped(segment.text))


def one_liner(program, *paths):
    """`python -c` of a program, quoted for a shell; each `{}` in it becomes a path's literal.

    The program has only double quotes, as the literals do, so that a plain path needs no escapes.
    """
    literals = (json.dumps(str(path), ensure_ascii=False) for path in paths)
    return f"python -c {shlex.quote(program.format(*literals))}"


_LONGEST_CHOICES = 60  # in the help, which fits into 80 columns
_YES_OR_NO = {"yes": True, "no": False}


def add_flags(parser, cls, *, command=None, is_short=False):
    """Adds a flag for each setting; with `command`, also `--settings` with a run.json of it.

    With `is_short` the help has only the common flags.

    Settings that are not given are not in the parsed arguments: a settings file is overridden by
    the flags, wherever it is given, and overrides the defaults. `read_flags` checks required
    settings, since the file may have them.
    """
    groups = {title: parser.add_argument_group(title) for title in HELP_GROUPS}
    for field in dataclasses.fields(cls):
        group = groups[help_group(field)]
        options = {"default": argparse.SUPPRESS, **_options(field)}
        if is_short and group is not groups["required"] and not about(field).common:
            options["help"] = argparse.SUPPRESS
        if about(field).positional:
            group.add_argument(field.name, **options, nargs="?")
        else:
            group.add_argument(_flag(field), **options, dest=field.name)
    if command is not None:
        groups["checkpoints"].add_argument(
            "--settings",
            dest="settings_file",
            metavar="run.json",
            help="take the settings of an earlier run from its run.json; flags override the file",
        )
    parser.set_defaults(settings_class=cls, settings_of=command)


def read_flags(arguments):
    """The settings in the flags and the settings file, as a dictionary.

    Raises:
        InputError: the file is not one of this command or has an unknown setting, or a setting is
            missing or invalid.
    """
    cls = arguments.settings_class
    names = {field.name for field in dataclasses.fields(cls)}
    flags = {name: value for name, value in vars(arguments).items() if name in names}
    from_file = {}
    path = getattr(arguments, "settings_file", None)
    if path is not None:
        from keras_bert.training.run_folder import read_settings

        from_file = cls.without_removed(read_settings(path, command=arguments.settings_of))
        for name in from_file:
            if name not in names and name not in cls.removed():
                raise InputError(f"Unknown setting {name} of {arguments.settings_of} in {path}.")
        # The file has every setting, also those that another one excludes, with their defaults.
        fields = dataclasses.fields(cls)
        is_default = {field.name for field in fields if from_file.get(field.name) == field.default}
        excluded = _excluded(cls, flags) | _excluded(cls, from_file) & is_default
        from_file = {name: value for name, value in from_file.items() if name not in excluded}
    settings = from_file | flags
    cls.of(settings)  # before anything heavy is loaded
    return settings


def _excluded(cls, settings):
    """The settings that are excluded by others that are not None."""
    present = {name for name, value in settings.items() if value is not None}
    pairs = [(f.name, about(f).instead_of) for f in dataclasses.fields(cls) if about(f).instead_of]
    return {other for pair in pairs for one, other in (pair, pair[::-1]) if one in present}


def spelled_as_flag(cls):
    """How the arguments in a message are written on the command line of a settings class.

    `steps` is --steps, `objective="mlm"` --objective mlm, and `header=False` --header no. What is
    not a flag of the class is written as in Python.
    """
    fields = {field.name: field for field in dataclasses.fields(cls)}

    def spelled(name, value):
        if name not in fields:
            return str(argument(name, value))
        if about(fields[name]).positional:
            return about(fields[name]).unit
        if value_type(fields[name]) == (bool, True):  # a flag that takes yes or no
            value = {"True": "yes", "False": "no"}.get(value, value)
        if value is None or value == "True":
            return _flag(fields[name])
        return f"{_flag(fields[name])} {shlex.quote(value.strip(chr(34)))}"

    return spelled


def _flag(field):
    return f"--{(about(field).flag or field.name).replace('_', '-')}"


def _options(field):
    """The options of `add_argument`, without the name."""
    description = about(field)
    kind, optional = value_type(field)
    options = {"help": _help(field)}
    if kind is bool and not optional:
        # A model that a run continues with may have the setting on: --no-crf turns it off.
        action = argparse.BooleanOptionalAction if description.stored else "store_true"
        return {**options, "action": action}
    if kind is bool:
        return {**options, "type": _yes_or_no, "metavar": "{yes,no}"}
    if typing.get_origin(kind) is list:
        (kind,) = typing.get_args(kind)
        repeats = optional and kind not in (int, float)
        options |= {"action": "append"} if repeats else {"nargs": "+"}
        return {**options, "type": _converter(kind), "metavar": description.unit}
    if description.several:
        options |= {"nargs": "+", "action": _OneOrSeveral}
    unit = description.unit
    if description.choices:
        choices = "{" + ",".join(map(str, description.choices)) + "}"
        if len(choices) <= _LONGEST_CHOICES:
            unit = choices
        else:  # argparse breaks the line of a help text, but not this
            options["help"] += f"; one of {', '.join(map(str, description.choices))}"
    convert = _converter(kind, description.words)
    return {**options, "type": convert, "metavar": unit or field.name.upper()}


class _OneOrSeveral(argparse.Action):
    """A flag that takes one value, or a list."""

    def __call__(self, parser, namespace, given, option_string=None):
        setattr(namespace, self.dest, given if len(given) > 1 else given[0])


def _help(field):
    default = about(field).default_help if field.default is None else field.default
    if isinstance(default, tuple):
        default = " ".join(map(str, default))
    has_default = field.default is not dataclasses.MISSING
    is_switch = value_type(field)[0] is bool and field.default is False
    text = about(field).help
    if has_default and not is_switch:
        text += f" (default: {default})"
    return text.replace("%", "%%")


def _converter(kind, words=()):
    """The function that makes a value of the text on a command line, or of one of `words`."""
    names = {int: "a whole number", float: "a number"}
    if kind not in names:
        return str

    def convert(text):
        if text in words:
            return text
        try:
            return kind(text)
        except ValueError:
            expected = " or ".join([names[kind], *words])
            raise argparse.ArgumentTypeError(f"{text!r} is not {expected}") from None

    return convert


def _yes_or_no(text):
    if text not in _YES_OR_NO:
        raise argparse.ArgumentTypeError(f"{text!r} is neither yes nor no")
    return _YES_OR_NO[text]


_WITH_A_HYPHEN = {"--job-server-timeout"}  # all other options of Beam have underscores


def reject_unknown(options):
    """Raises `InputError` for options that Beam does not have."""
    for option in options:
        name = option.split("=")[0]
        if "-" in name.removeprefix("--") and name.startswith("--") and name not in _WITH_A_HYPHEN:
            raise InputError(
                f"Unknown option {name}: neither this command nor Apache Beam has it. See --help."
            )
    from data_gen.runner import options as check

    check(options)
