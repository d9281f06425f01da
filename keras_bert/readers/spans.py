"""One text with labelled spans, which may lie in one another."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class LabelledSpan(NamedTuple):
    """A span from `start` to before `end`, in words or characters, and its label or None."""

    start: int
    end: int
    label: str | None = None


@dataclass(frozen=True, slots=True)
class SpannedWords:
    """An example: a text, its words, and the spans that a person labelled in it.

    Attributes:
        line: where it begins in its `source`, from 1.
        text: the text; of words that came without one, the words joined by single spaces.
        words: the words; None where a tokenizer is still to split the text.
        starts: where each word begins in the text, in characters; None without words.
        spans: `LabelledSpan`s in words, or in characters of the text where `words` is None; None
            where nobody gave them.
        document: the number of its document in the source, from 0.
    """

    line: int
    text: str
    words: tuple[str, ...] | None = None
    starts: tuple[int, ...] | None = None
    spans: tuple[LabelledSpan, ...] | None = None
    document: int = 0
    source: Any = field(default=None, compare=False, repr=False)

    @property
    def ends(self):
        """The first character after each word; None without words."""
        if self.words is None:
            return None
        return tuple(start + len(word) for start, word in zip(self.starts, self.words, strict=True))

    def error(self, message):
        """The InputError that names the example's place."""
        return self.source.error(self.line, message)


def ends_of(words, starts):
    """The first character after each of the words that begin at `starts`; None for None."""
    if words is None:
        return None
    return tuple(start + len(word) for start, word in zip(starts, words, strict=True))


def joined(words):
    """Words -> the text that joins them by spaces, and where each begins in it."""
    starts, at = [], 0
    for word in words:
        starts.append(at)
        at += len(word) + 1
    return " ".join(words), tuple(starts)


def found_in(text, words):
    """Where each of some words begins in the text, one after the other; None if one is missing."""
    starts, at = [], 0
    for word in words:
        start = text.find(word, at)
        if start < 0:
            return None
        starts.append(start)
        at = start + len(word)
    return tuple(starts)
