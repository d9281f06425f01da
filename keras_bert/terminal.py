"""What reaches a person's terminal: text without what a terminal would obey, and bars."""

import re
import sys

# Control characters but for the tab and the line feed, the controls of bidirectional text, and
# surrogates, which stand for the bytes of a name that is not UTF-8 and which UTF-8 cannot hold.
_UNSAFE = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def shows_bars():
    """Whether standard error draws what moves: a terminal, or the output of a notebook's cell."""
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel.")


def escaped(text):
    r"""A text with `\u001b` in place of what could move the cursor or turn the text around.

    JSON writes such characters the same way, so that a JSON text keeps its value.
    """
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
