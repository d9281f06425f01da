"""What a command is, and how commands print: results with colours and tables, notes beside them."""

import inspect
import json
import shlex
import sys

from keras_bert.base.terminal import drawn_on, escaped
from keras_bert.cli import flags


class Command:
    """A command of `keras-bert`: a function, and what the command line has to know of it.

    Args:
        function: called with the settings that were given (a dictionary) and the parsed arguments;
            it imports heavy modules itself, and returns the next step as a sentence, or None. Its
            docstring is the description in --help.
        name, summary: as they are in the list of commands.
        settings: the `Settings` class whose fields are the flags, or a function that returns it for
            a list of arguments; None for a command without settings.
        repeats_runs: whether `--settings run.json` takes the settings of a former run.
        more_flags: a function that adds flags that are no settings to a parser.
        prepare: a function called with the parsed arguments before the settings are read.
        takes_beam_options: whether options of Apache Beam may follow.
        backends: the Keras backends that the command can run on; () if it needs none.
    """

    def __init__(
        self,
        function,
        name,
        summary,
        *,
        settings=None,
        repeats_runs=False,
        more_flags=None,
        prepare=None,
        takes_beam_options=False,
        backends=(),
    ):
        self.name = name
        self.summary = summary
        self.description = inspect.cleandoc(function.__doc__ or "")  # none with python -OO
        self.takes_beam_options = takes_beam_options
        self.backends = backends
        self._function = function
        self._settings = settings
        self._repeats_runs = repeats_runs
        self._more_flags = more_flags
        self._prepare = prepare

    def add_flags(self, parser, argv):
        """Adds the command's flags to its parser; `argv` are all arguments of the process."""
        cls = self._settings
        if cls is not None:
            cls = cls if isinstance(cls, type) else cls(argv)
            flags.add(parser, cls, command=self.name if self._repeats_runs else None)
        if self._more_flags is not None:
            self._more_flags(parser)

    def run(self, arguments):
        """Runs the command with parsed arguments, and prints the next step."""
        if self.takes_beam_options:
            flags.reject_unknown(arguments.beam_options)
        if self._prepare is not None:
            self._prepare(arguments)
        settings = {} if self._settings is None else flags.read(arguments)
        next_step = self._function(settings, arguments)
        if next_step is not None:
            print(f"Next: {next_step}")


def command(name, summary, **options):
    """A decorator that makes a function a `Command`."""
    return lambda function: Command(function, name, summary, **options)


def report(line):
    """Prints a line to standard error: standard output is for the result."""
    print(line, file=sys.stderr, flush=True)


def console(*, stderr=False):
    """A Rich console for results: it escapes what it prints, except its own colours.

    A `[` in a text is not markup.
    """
    from rich.console import Console

    file = drawn_on(sys.stderr if stderr else sys.stdout)
    terminal = Console(file=file, highlight=False, markup=False)
    terminal.push_render_hook(_EscapingHook())
    return terminal


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
