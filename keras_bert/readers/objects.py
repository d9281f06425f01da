"""Examples of dictionaries: JSON objects, rows of stored tables, and items with a text and spans.

With "words", spans count words; with "text" alone, characters. A span is [start, end], or [start,
end, "label"], or an object with these; an end is the first word, or character, after the span.
"""

import json
from typing import NamedTuple

from keras_bert.base.formatting import counted, listed
from keras_bert.readers.settings import SKIP
from keras_bert.readers.sources import ExampleSource, Missing, TextFile, is_text
from keras_bert.readers.tables import open_objects


class LabelledSpan(NamedTuple):
    """A span from `start` to before `end`, in words or characters, and its label or None."""

    start: int
    end: int
    label: str | None = None


class ObjectItems:
    """Items of a sequence that are dictionaries, or also STRINGS or lists of words.

    ITEMS is a sentence on what they may be.
    """

    ITEMS, STRINGS, WORDS = "", False, False

    @classmethod
    def _as_record(cls, item):
        if isinstance(item, dict):
            return item
        if cls.STRINGS and isinstance(item, str):
            return {"text": item}
        is_list = cls.WORDS and isinstance(item, list | tuple)
        if is_list and all(isinstance(word, str) for word in item):
            return {"words": item}
        raise ValueError(f"{cls.ITEMS}. Received: {item!r}.")


class ObjectSource(ObjectItems, ExampleSource):
    """The examples of dictionaries, or of a text file whose lines `_of_file` reads.

    A subclass sets ITEM, what messages call an item of a sequence, COMMENT, how a line begins by
    which a file is not recognised, and UNIT, what its objects are. `_example` makes an example of
    the location of a dictionary and the dictionary.
    """

    ITEM = UNIT = ""
    COMMENT = None

    def __init__(self, data, *, missing=SKIP, need_all=True, **columns):
        records = open_objects(
            data, item=self.ITEM, as_record=self._as_record, comment=self.COMMENT
        )
        super().__init__(records, missing=missing, need_all=need_all, **columns)
        is_text_file = isinstance(records, TextFile)
        self._set_examples((self._of_file if is_text_file else self._of_objects)(records))

    def _of_objects(self, records):
        if self.kind != "given":
            unit = self.UNIT or f"one {self.ITEM} per {records.location}"
            self.description = f"{self.name}: {records.format}, {unit}"
        return self._each(records, self._example)


def words_of(record, line, source):
    """(text, words or None, where each begins in the text or None) of a dictionary."""
    words, text = record.get("words"), record.get("text")
    if text is not None and not is_text(text):
        raise source.error(line, '"text" should be a string, without NUL or half a surrogate pair.')
    if words is None:
        if text is None and (source.may_lack("words") or source.may_lack("text")):
            raise Missing("a text")
        if text is None:
            raise source.error(
                line, f'no "words" and no "text" among the keys ({listed(record)}); give either.'
            )
        return text, None, None
    if not isinstance(words, list | tuple) or not all(is_text(word) and word for word in words):
        raise source.error(line, '"words" should be a list of strings, none of them empty.')
    words = tuple(words)
    if text is None:
        text, starts = joined(words)
        return text, words, starts
    starts, end = [], 0
    for word in words:
        start = text.find(word, end)
        if start < 0:
            raise source.error(line, 'the "words" are not in the "text" in this order.')
        starts.append(start)
        end = start + len(word)
    return text, words, tuple(starts)


def joined(words):
    """Words -> the text that joins them by spaces, and where each begins in it."""
    starts, end = [], 0
    for word in words:
        starts.append(end)
        end += len(word) + 1
    return " ".join(words), tuple(starts)


def labelled_span(span, line, source, *, text, words, noun="the span"):
    """The `LabelledSpan` of [start, end], [start, end, label], or an object of these, in a text.

    One with "words", [start, end], counts words by these, as our own predictions do.
    """
    shown = f"{noun} {json.dumps(span, ensure_ascii=False, default=str)}"
    label = None
    if isinstance(span, dict):
        label = span.get("label")
        within_words = words is not None and span.get("words")
        span = within_words or [span.get("start"), span.get("end")]
    if isinstance(span, list | tuple) and len(span) == 3:
        *span, label = span
    is_pair = isinstance(span, list | tuple) and len(span) == 2
    if not is_pair or not all(type(number) is int for number in span):
        raise source.error(
            line, f'{shown} should be [start, end, "label"], with start and end whole numbers.'
        )
    if not (label is None or is_text(label) and label.strip()):
        raise source.error(line, f"{shown} has a label that is not a text.")
    start, end = span
    unit, count = ("character", len(text)) if words is None else ("word", len(words))
    if end <= start:
        raise source.error(
            line,
            f"{shown} ends before it begins or is empty; its end is the first {unit} after it, and "
            "counts from 0 as its start does.",
        )
    if start < 0 or end > count:
        raise source.error(
            line,
            f"{shown} is beyond the text, which has {counted(count, unit)}, counted from 0.",
        )
    return LabelledSpan(start, end, label.strip() if label else None)
