"""Words and spans of dictionaries, such as JSON objects and rows of stored tables.

With "words", spans count words; with "text" alone, characters. A span is [start, end], or [start,
end, "label"], or an object with these; an end is the first word, or character, after the span.
"""

import json
from typing import NamedTuple

from keras_bert.base.formatting import counted, listed
from keras_bert.readers.examples import Missing
from keras_bert.readers.sources import is_text


class LabelledSpan(NamedTuple):
    """A span from `start` to before `end`, in words or characters, and its label or None."""

    start: int
    end: int
    label: str | None = None


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


def check_tag_per_word(words, tags, line, source):
    """Raises InputError where there are more tags than words, or fewer."""
    if len(tags) != len(words):
        counts = f"{counted(len(words), 'word')} and {counted(len(tags), 'tag')}"
        raise source.error(line, f"{counts}; every word needs one tag.")


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
