"""One labelled text."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class LabelledText:
    """An example: a text, and its label or None where nobody gave it one.

    `line` is where it stands in its `source`, from 1.
    """

    line: int
    text: str
    label: str | None
    source: Any = field(default=None, compare=False, repr=False)

    def error(self, message):
        """The InputError that names the example's place."""
        return self.source.error(self.line, message)
