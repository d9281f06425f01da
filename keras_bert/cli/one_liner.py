"""Commands of a line that run a line of Python, for a user to paste."""

import json
import shlex


def one_liner(program, *paths):
    """`python -c` of a program, quoted for a shell; each `{}` in it becomes a path's literal.

    The program has double quotes alone, as the literals do, so that a plain path needs no escapes.
    """
    literals = (json.dumps(str(path), ensure_ascii=False) for path in paths)
    return f"python -c {shlex.quote(program.format(*literals))}"
