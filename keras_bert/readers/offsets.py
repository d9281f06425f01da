"""Spans of characters as tags of words, as annotation tools write labels of a text.

    {"text": "Is the X200 back?", "label": [[7, 11, "PRODUCT"]]}

Words are cut as BERT's tokenizer cuts a text: at white space, and around every punctuation mark and
CJK character. A word of which a span has a part only gets the span's tag, and is counted.
"""

import json
import unicodedata
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from keras_bert.base.errors import Naming
from keras_bert.base.formatting import counted, quoted
from keras_bert.readers.examples import located
from keras_bert.readers.objects import labelled_span

# Keys with spans, of which an earlier one wins; a "label" only if there are no words.
SPAN_KEYS, SPAN_KEYS_OF_TEXTS = ("spans", "entities"), ("label", "labels")
# Blocks of CJK characters as google-research/bert's `_is_chinese_char` has them.
_CJK = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


def span_key(names: Sequence[str], *, has_words: bool) -> str | None:
    """The key of the spans among the names of a table, or None."""
    keys = SPAN_KEYS if has_words else SPAN_KEYS + SPAN_KEYS_OF_TEXTS
    return next((key for key in keys if key in names), None)


def words_of_text(text: str) -> list[tuple[int, int]]:
    """The (start, end) of each word of a text, in characters."""
    edges = [0]  # of what may be words, and of the spaces between them
    for place, character in enumerate(text):
        if _is_space(character) or _stands_alone(character):
            edges += [place, place + 1]
    edges.append(len(text))
    return [word for word in map(partial(_stripped, text), edges, edges[1:]) if word[0] < word[1]]


def _stripped(text, start, end):
    """A part of a text without spaces and control characters at its ends, which no word has."""
    while start < end and _is_dropped(text[start]):
        start += 1
    while start < end and _is_dropped(text[end - 1]):
        end -= 1
    return start, end


def _is_space(character):
    return character in "\t\n\r" or unicodedata.category(character).startswith("Z")


def _is_dropped(character):
    return _is_space(character) or unicodedata.category(character) in ("Cc", "Cf")


def _stands_alone(character):
    if character.isascii():
        return character.isprintable() and not character.isalnum()
    if unicodedata.category(character).startswith("P"):
        return True
    return any(first <= ord(character) <= last for first, last in _CJK)


class OfText(NamedTuple):
    """The words of a text with their tags: strings, where each begins, and BIO."""

    words: tuple[str, ...]
    starts: tuple[int, ...]
    tags: tuple[str, ...]


class SpanTagger:
    """Makes tags of the spans of texts, and counts the spans that begin or end inside a word.

    Args:
        source: an `ExampleSource`, which makes the errors.
    """

    def __init__(self, source):
        self._source, self._inside = source, []

    def __call__(self, text, spans, line):
        """The `OfText` of a text and the spans of a record.

        Raises InputError for spans that are invalid, that have no label or no word, or that share a
        word with another one.
        """
        source, words = self._source, words_of_text(text)
        if not isinstance(spans, list | tuple):
            raise source.error(line, 'the spans should be a list of [start, end, "label"].')
        tags, owners = ["O"] * len(words), {}
        for given in spans:
            span, shown = labelled_span(given, line, source, text=text, words=None), _shown(given)
            if span.label is None:
                raise source.error(line, f'the span {shown} has no label: [start, end, "label"].')
            inside = [n for n, (s, e) in enumerate(words) if s < span.end and e > span.start]
            if not inside:
                raise source.error(line, f"the span {shown} has no word in it.")
            for number in inside:
                if number in owners:
                    start, end = words[number]
                    raise source.error(
                        line,
                        Naming(
                            'the spans {} and {} share the word "{}", and a tagger gives a word '
                            "one tag. Leave one out, or train spans that overlap with "
                            '{task="span-classifier"}.',
                            owners[number],
                            shown,
                            text[start:end],
                        ),
                    )
                owners[number] = shown
                tags[number] = f"{'B' if number == inside[0] else 'I'}-{span.label}"
            first, last = words[inside[0]][0], words[inside[-1]][1]
            part = text[span.start : span.end]
            begin = span.start + len(part) - len(part.lstrip())
            if first < begin or last > span.start + len(part.rstrip()):
                self._inside.append((line, part, text[first:last]))
        strings = tuple(text[start:end] for start, end in words)
        return OfText(strings, tuple(start for start, _ in words), tuple(tags))

    def notes(self):
        """A line on the spans so far that begin or end inside a word."""
        if not self._inside:
            return []
        where = located([line for line, _, _ in self._inside], self._source)
        _, part, whole = self._inside[0]
        begin = "begins or ends" if len(self._inside) == 1 else "begin or end"
        return [
            f"{where}: {counted(len(self._inside), 'span')} {begin} inside a word, and the whole "
            f"word is tagged: {quoted([part])} is a part of {quoted([whole])}."
        ]


def _shown(span):
    return json.dumps(span, ensure_ascii=False, default=str)
