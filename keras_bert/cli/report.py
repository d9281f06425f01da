"""How commands talk to the user: beside their result, and with colours and tables."""

import json
import shlex
import sys

from keras_bert.base.terminal import drawn_on, escaped


def report(line):
    """Tells the user something beside the result, which has standard output to itself."""
    print(line, file=sys.stderr, flush=True)


def console(*, stderr=False):
    """A Rich console for results; what it prints is `escaped`, but for its own colours.

    A `[` in a text is no markup.
    """
    from rich.console import Console

    file = drawn_on(sys.stderr if stderr else sys.stdout)
    made = Console(file=file, highlight=False, markup=False)
    made.push_render_hook(_EscapingHook())
    return made


class _EscapingHook:
    """What a Rich console calls for the renderables that it is about to print."""

    def process_renderables(self, renderables):
        return [_Escaped(renderable) for renderable in renderables]


class _Escaped:
    """A renderable with the text of another, `escaped`."""

    def __init__(self, renderable):
        self._renderable = renderable

    def __rich_console__(self, console, options):
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else segment._replace(text=escaped(segment.text))


def one_liner(program, *paths):
    """`python -c` of a program, quoted for a shell; each `{}` in it becomes a path's literal.

    The program has double quotes alone, as the literals do, so that a plain path needs no escapes.
    """
    literals = (json.dumps(str(path), ensure_ascii=False) for path in paths)
    return f"python -c {shlex.quote(program.format(*literals))}"
