"""Figures that a notebook's text states, and whether its run comes to them.

A sentence binds a figure to an expression of the notebook and gives the range it must lie in, so
that a reader sees both:

    The share of test messages that it gets right (`accuracy`) is between 80 % and 95 %.
    `loss` is below 5. And `same` is true.

The expression is evaluated where the sentence stands: after the cells above it. A percentage or a
decimal number that no such sentence binds is refused, since nothing would tell when it is wrong.
"""

import json
import re
from typing import NamedTuple

_NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?:\s?%)?"
_STATED = re.compile(
    rf"`(?P<expression>[^`]+)`\)?,?\s+(?:which\s+)?(?:is|are|was|were|lies|lie)\s+"
    rf"(?:between\s+(?P<low>{_NUMBER})\s+and\s+(?P<high>{_NUMBER})"
    rf"|above\s+(?P<above>{_NUMBER})|below\s+(?P<below>{_NUMBER})|(?P<true>true))"
)
# What a figure that was measured looks like: a percentage or a decimal number.
_MEASURED = re.compile(r"\d[\d,]*(?:\.\d+)?\s?%|\d+\.\d+")
_CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)", re.DOTALL)


class Figure(NamedTuple):
    """An expression, the range that its value lies in, and the words that say so."""

    expression: str
    low: float
    high: float
    said: str

    def trouble(self, value):
        """A sentence on a value that is out of range; None where all is well."""
        if self.low <= value <= self.high:  # never so for what is not a number
            return None
        return f'the text says "{self.said}", and the run came to {value:.4g}.'


def stated(markdown):
    """The `Figure`s of a text, in order."""
    return [_figure(found) for found in _STATED.finditer(markdown)]


def unbound(markdown):
    """The percentages and decimal numbers of a text that no run is asked for."""
    return _MEASURED.findall(_CODE.sub(" ", _STATED.sub(" ", markdown)))


def question(figures):
    """The line of Python that prints the values of some figures, and leaves no name behind."""
    values = "".join(f"float({figure.expression}), " for figure in figures)
    return f'print(__import__("json").dumps([{values.rstrip(", ")}]))'


def troubles(figures, printed):
    """Sentences on the figures that are out of range; `printed` is what `question` printed."""
    values = json.loads(printed)
    checked = (figure.trouble(value) for figure, value in zip(figures, values, strict=True))
    return [trouble for trouble in checked if trouble is not None]


def _figure(found):
    low, high = found["low"] or found["above"], found["high"] or found["below"]
    if found["true"]:
        low = high = "1"
    return Figure(
        expression=found["expression"],
        low=_value(low) if low else float("-inf"),
        high=_value(high) if high else float("inf"),
        said=" ".join(found[0].split()),
    )


def _value(number):
    value = float(number.rstrip("% \u00a0").replace(",", ""))
    return value / 100 if number.endswith("%") else value
