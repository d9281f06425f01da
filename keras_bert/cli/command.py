"""What a command is, and how commands print: results with colours and tables, notes beside them."""

import dataclasses
import inspect
import json
import shlex
import sys
from collections.abc import Callable

from keras_bert.base import terminal
from keras_bert.base.terminal import drawn_on, escaped
from keras_bert.cli import flags


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
    backends: tuple = ()  # the Keras backends that it can run on; () if it needs none

    @property
    def description(self):
        return inspect.cleandoc(self.function.__doc__ or "")  # none with python -OO

    def add_flags(self, parser, first):
        """Adds the flags to the command's parser; some depend on the `first_arguments`."""
        if self.settings is not None:
            cls = self.settings if isinstance(self.settings, type) else self.settings(first)
            name = self.name if self.repeats_runs else None
            flags.add(parser, cls, command=name, is_short=first.help and not first.help_all)
        if self.more_flags is not None:
            self.more_flags(parser)

    def run(self, arguments):
        """Runs the command with parsed arguments, and prints the next step."""
        if self.takes_beam_options:
            flags.reject_unknown(arguments.beam_options)
        if self.prepare is not None:
            self.prepare(arguments)
        settings = {} if self.settings is None else flags.read(arguments)
        next_step = self.function(settings, arguments)
        if next_step is not None and not terminal.is_quiet():
            print(f"Next: {next_step}")


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
    report(f"Next: {step}")


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
