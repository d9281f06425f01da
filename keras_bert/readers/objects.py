"""Words and spans of dictionaries, such as JSON objects and rows of stored tables.

With "words", spans count words; with "text" alone, characters. A span is [start, end], or [start,
end, "label"], or an object with these; an end is the first word, or character, after the span. A
span that has a "text" must be that text.
"""

import json
from functools import partial
from typing import NamedTuple

from keras_bert.base.formatting import counted, listed, quoted
from keras_bert.readers.examples import Missing
from keras_bert.readers.sources import is_text

# The keys of a span's label: ours, that of Label Studio, and that of transformers' pipeline.
_LABEL_KEYS = ("label", "labels", "entity_group")
_OFFSET = "_offset"  # after start and end, as doccano has them
_SPAN_KEYS = {"start", "end", "text", "words", "score", "id", "start_offset", "end_offset"}


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
    """Raises InputError if there are more tags than words, or fewer."""
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
    label = own = None
    if isinstance(span, dict):
        label, own = _label_of(span, shown, partial(source.error, line)), span.get("text")
        within_words = words is not None and span.get("words")
        ends = [span.get(f"{side}{_OFFSET}", span.get(side)) for side in ("start", "end")]
        span = within_words or ends
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
    if isinstance(own, str) and not _is_at(own, start, end, text=text, words=words):
        at, own_shown = (
            json.dumps(some, ensure_ascii=False)
            for some in (text[start:end] if words is None else " ".join(words[start:end]), own)
        )
        advice = _advice(own, start, end, text=text, words=words)
        raise source.error(
            line,
            f"{shown} is {at} in the {unit}s from {start} to before {end}, and not its text "
            f"{own_shown}. {advice}",
        )
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


def _label_of(span, shown, error):
    """The label of a span's dictionary, or None.

    Raises `error` of a message for several labels, and for keys of which none is known as a label.
    """
    key = next((key for key in _LABEL_KEYS if key in span), None)
    if key is None:
        others = span.keys() - _SPAN_KEYS
        if others:
            raise error(
                f"{shown} has no label among its keys ({listed(span)}). Expected one of "
                f"{quoted(_LABEL_KEYS)}."
            )
        return None
    label = span[key]
    if isinstance(label, list | tuple):
        if len(label) > 1:
            raise error(f"{shown} has several labels. Give a span for each.")
        label = label[0] if label else None
    return label


def _is_at(own, start, end, *, text, words):
    if words is None:
        return text[start:end] == own
    return "".join("".join(words[start:end]).split()) == "".join(own.split())


def _advice(own, start, end, *, text, words):
    """Suggests what would fit the text of a span: another way to count, or another place."""
    expected = "Expected characters of the text from 0, and the end after the last one."
    if words is not None:
        expected = "Expected the numbers of its words from 0, and the end after the last one."
        at = {"ends are included": words[start : end + 1], "counted from 1": words[start - 1 : end]}
        fits = [way for way, some in at.items() if _is_at(own, 0, len(some), text="", words=some)]
        return f"It would be if {' or if '.join(fits)}. {expected}" if fits else expected
    ways = {
        "ends are included": text[start : end + 1],
        "they count from 1": text[start - 1 : end - 1] if start else "",
        "they count from 1 and ends are included": text[start - 1 : end] if start else "",
        "they count bytes of UTF-8": text.encode()[start:end].decode(errors="replace"),
        "they count units of UTF-16": text.encode("utf-16-le")[2 * start : 2 * end].decode(
            "utf-16-le", errors="replace"
        ),
        "lines end with CRLF": text.replace("\n", "\r\n")[start:end].replace("\r\n", "\n"),
    }
    fits = [way for way, at in ways.items() if at == own]
    if not fits and text.count(own) == 1:
        begin = text.index(own)
        return f"The text has it from {begin} to before {begin + len(own)}. {expected}"
    return f"It would be if {' or if '.join(fits)}. {expected}" if fits else expected
