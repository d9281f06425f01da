"""One question about a text."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class GoldAnswer(NamedTuple):
    """An answer that a person gave.

    `start` is the character of the context where it stands, None where it stands nowhere or is not
    to be moved there; `given_start` is what the file says.
    """

    text: str
    start: int | None
    given_start: int


@dataclass(frozen=True, slots=True)
class Question:
    """An example: a question and its context.

    `answers` are those that people gave: none where the context has no answer, and None where
    nobody says. `place` is where the example stands in its `source`, `id` what the source calls it,
    or None.
    """

    place: str
    question: str
    context: str
    answers: tuple[GoldAnswer, ...] | None
    id: str | None = None
    source: Any = field(default=None, compare=False, repr=False)

    @property
    def located(self):
        """The first answer that stands in the context, or None."""
        return next((answer for answer in self.answers or () if answer.start is not None), None)

    def error(self, message):
        """The InputError that names the example's place."""
        return self.source.error(self.place, message)
