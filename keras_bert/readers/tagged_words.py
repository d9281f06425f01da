"""One sentence whose words have a tag each."""

import re
from dataclasses import dataclass, field
from typing import Any

# JSON's escapes can write what UTF-8 and TensorFlow's strings cannot hold.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_WORDS = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class TaggedWords:
    """An example: the words of a sentence, and a tag for each or None where nobody gave them.

    Attributes:
        line: where it begins in its `source`, from 1.
        words: the words; None where a `text` is still to be split by a tokenizer.
        tags: as many as words, or None.
        lines: the line of each word, or None where all are on one.
        document: the number of its document in the source, from 0.
        text: the sentence as it was given, where it was given as a string.
        starts: where each word begins in `text`, in characters; None where there is no text.
    """

    line: int
    words: tuple[str, ...] | None
    tags: tuple[str, ...] | None = None
    lines: tuple[int, ...] | None = None
    document: int = 0
    text: str | None = None
    starts: tuple[int, ...] | None = None
    source: Any = field(default=None, compare=False, repr=False)

    def line_of(self, word):
        """The line of a word, given by its number."""
        return self.line if self.lines is None else self.lines[word]

    def error(self, message, *, word=None):
        """The InputError that names the place of the sentence, or of one of its words."""
        return self.source.error(self.line if word is None else self.line_of(word), message)


def sentence_of_text(text, line, document, source, *, pretokenized):
    """The `TaggedWords` of a string: split at white space now, or by a tokenizer later."""
    words = starts = None
    if pretokenized:
        found = list(_WORDS.finditer(text))
        words = tuple(match[0] for match in found)
        starts = tuple(match.start() for match in found)
    return TaggedWords(line, words, document=document, text=text, starts=starts, source=source)


def is_text(string):
    """Whether a string holds neither a NUL nor half of a surrogate pair."""
    return _NO_TEXT.search(string) is None
