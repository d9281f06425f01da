"""One labelled text, or pair of texts."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class LabelledText:
    """An example: a text, or two with `text_b`, and the label or None where nobody gave one.

    A label is a word; where a row may have several of them, a tuple of words; and where it is a
    score, a float. `line` is where the example stands in its `source`, from 1.
    """

    line: int
    text: str
    label: str | tuple | float | None
    text_b: str | None = None
    source: Any = field(default=None, compare=False, repr=False)

    @property
    def texts(self):
        """The one or two texts."""
        return (self.text,) if self.text_b is None else (self.text, self.text_b)

    def error(self, message):
        """The InputError that names the example's place."""
        return self.source.error(self.line, message)
