"""Spans of texts in JSON: `{"words": […], "spans": [[0, 2, "label"], …]}`.

With "words", spans count words; with "text" alone, characters. A span may also be an object with
"start", "end" and "label". An end is the first word, or character, after the span.
"""

import json

from keras_bert.base.formatting import counted, listed
from keras_bert.readers.spans import LabelledSpan, SpannedWords, found_in, joined
from keras_bert.readers.tagged_words import is_text


def spanned_words(row, line, *, source, need_spans):
    """The `SpannedWords` of a JSON object.

    Args:
        row: the object, as a dictionary.
        line: where it stands in `source`, which makes the errors.
        need_spans: whether an object without "spans" is an error.

    Raises:
        InputError: the object has no words and no text, or a span cannot be in it.
    """
    text, words, starts = words_of(row, line, source=source)
    spans = row.get("spans")
    if spans is None and need_spans:
        raise source.error(
            line,
            f'no "spans" among the keys ({listed(row)}); a text without any has an empty list.',
        )
    if spans is not None and not isinstance(spans, list | tuple):
        raise source.error(line, '"spans" should be a list.')
    if spans is not None:
        spans = tuple(
            labelled_span(span, line, source=source, text=text, words=words) for span in spans
        )
    return SpannedWords(line, text, words, starts, spans, document=line - 1, source=source)


def words_of(row, line, *, source):
    """(text, words, where each word begins in the text) of a JSON object; None, None without words.

    Raises:
        InputError: it has neither words nor text, or they do not belong together.
    """
    words, text = row.get("words"), row.get("text")
    if text is not None and not _is_text(text):
        raise source.error(line, '"text" should be a string, without NUL or half a surrogate pair.')
    if words is None:
        if text is None:
            raise source.error(
                line, f'no "words" and no "text" among the keys ({listed(row)}); give either.'
            )
        return text, None, None
    if not isinstance(words, list | tuple) or not all(_is_text(word) and word for word in words):
        raise source.error(line, '"words" should be a list of strings, none of them empty.')
    words = tuple(words)
    if text is None:
        text, starts = joined(words)
        return text, words, starts
    starts = found_in(text, words)
    if starts is None:
        raise source.error(line, 'the "words" do not stand in the "text" in this order.')
    return text, words, starts


def labelled_span(span, line, *, source, text, words, what="the span"):
    """The `LabelledSpan` of a JSON list, or of an object, in a text.

    Args:
        span: [start, end], [start, end, label], or an object of these; one with "words", [start,
            end], counts words by these, as our own answers do.
        text, words: of the example; `words` may be None.
        what: what messages call it.
    """
    shown = f"{what} {json.dumps(span, ensure_ascii=False, default=str)}"
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
    if not (label is None or _is_text(label) and label.strip()):
        raise source.error(line, f"{shown} has a label that is no text.")
    start, end = span
    unit, count = ("character", len(text)) if words is None else ("word", len(words))
    if end <= start:
        raise source.error(
            line,
            f"{shown} ends before it begins or is empty; its end is the first {unit} after it, and "
            f"counts from 0 as its start does.",
        )
    if start < 0 or end > count:
        raise source.error(
            line, f"{shown} goes beyond the text, which has {counted(count, unit)}, counted from 0."
        )
    return LabelledSpan(start, end, label.strip() if label else None)


def _is_text(value):
    # JSON's escapes can write what UTF-8 and TensorFlow's strings cannot hold.
    return isinstance(value, str) and is_text(value)
