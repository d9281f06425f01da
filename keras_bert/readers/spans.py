"""Texts with labelled spans, which may lie in one another: from JSON Lines, CoNLL or tfds.

In JSON they are `{"words": […], "spans": [[0, 2, "label"], …]}`.
With "words", spans count words; with "text" alone, characters. A span may also be an object with
"start", "end" and "label". An end is the first word, or character, after the span.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed
from keras_bert.readers.schemes import BrokenTags, scheme_of, spans_of
from keras_bert.readers.sentences import TAG_KEYS, TaggedFile, TaggedTfds, is_text
from keras_bert.readers.settings import ERROR, REPAIR
from keras_bert.readers.tfds import PREFIX


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


_TAG = re.compile(r"O|[BIESLUMW](-.+)?")


def of_tagged(examples, source, *, broken, look):
    """Yields the `SpannedWords` of `TaggedWords`.

    Args:
        examples: an iterable of these.
        source: what they come from.
        broken: the `BrokenTags` that looks at their tags.
        look: whether it does; then all examples are read before the first is given, since what the
            scheme of a file is, all of its tags tell.
    """
    if look:
        examples = list(examples)
        scheme = scheme_of(example.tags or () for example in examples)
        for example in examples if scheme is not None else ():
            broken.look_at(example, scheme)
    return (_spanned(example, source) for example in examples)


def spans_of_tags(tags, *, error):
    """The `LabelledSpan`s of tags of whatever scheme (see `schemes`), by conlleval's rules.

    Args:
        tags: a sequence of tags.
        error: a function of a message and the number of a word to the error to raise for a tag of
            another form.
    """
    for place, tag in enumerate(tags):
        if not _TAG.fullmatch(tag):
            raise error(f'the tag "{tag}" is no O, B-…, I-…, E-… or S-….', place)
    return tuple(LabelledSpan(start, end, label or None) for start, end, label in spans_of(tags))


def _spanned(example, source):
    spans = None
    if example.tags is not None:
        spans = spans_of_tags(
            example.tags, error=lambda message, word: example.error(message, word=word)
        )
    text, starts = example.text, example.starts
    if text is None:
        text, starts = joined(example.words)
    return SpannedWords(
        example.line,
        text,
        example.words,
        starts,
        spans,
        document=example.document,
        source=source,
    )


def open_spanned_words(data, *, need_spans=True, **options):
    """`SpanFile` of a path (or `-`), `SpanTfds` of `tfds:…`, `GivenSpans` of a sequence.

    `options` are those of `SpanFile`; columns can be said of a file only.

    Raises InputError: see there.
    """
    if isinstance(data, str) and data.startswith(PREFIX):
        names = ("word_column", "tag_column", "invalid_tags")
        told = {name: options[name] for name in names if name in options}
        return SpanTfds(data, need_spans=need_spans, **told)
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        return SpanFile(data, need_spans=need_spans, **options)
    for name in ("word_column", "tag_column"):
        if options.get(name) is not None:
            raise InputError(f"`{name}` is for files; the given texts have no columns.")
    return GivenSpans(data, need_spans=need_spans)


class SpanFile(TaggedFile):
    """One pass over the `SpannedWords` of a file, or of standard input (`-`), streaming.

    JSON Lines are as in `spans_json`; tags of CoNLL, or of JSON Lines with "words" and "tags", are
    those of spans that do not overlap (`spans_of_tags`); plain lines have no spans and are split by
    a tokenizer later.

    Args:
        path: a path, or `-`.
        need_spans: whether a file without spans is an error.
        word_column, tag_column, schema: as in `TaggedFile`.
        invalid_tags: "repair" or "error", what becomes of tags that break their scheme. They are
            looked for, in all of the file before its first example is given, where they are refused
            or spans are needed.

    Attributes and errors are those of `TaggedFile`.
    """

    def __init__(
        self,
        path,
        *,
        need_spans=True,
        word_column=None,
        tag_column=None,
        schema=None,
        invalid_tags=REPAIR,
    ):
        self._broken = BrokenTags(reject=invalid_tags == ERROR)
        self._looks = need_spans or invalid_tags == ERROR
        self._has_tags = True
        super().__init__(
            path,
            word_column=word_column,
            tag_column=tag_column,
            schema=schema,
            need_tags=need_spans,
        )

    def __iter__(self):
        """The examples; may be called once."""
        examples = super().__iter__()
        if not self._has_tags:
            return examples
        return of_tagged(examples, self, broken=self._broken, look=self._looks)

    def notes(self):
        """Lines for the user on the tags that broke their scheme."""
        return self._broken.notes()

    def _json_lines(self, first, *, word, tag):
        number, line = first
        row = self._json_object(number, line)
        self.labelled = "spans" in row
        if not self.labelled and (tag or TAG_KEYS[0]) in row:
            return super()._json_lines(first, word=word, tag=tag)
        _reject_columns(word, tag)
        self._has_tags = False
        words = "words" if "words" in row else "text, split by the tokenizer"
        spans = "spans" if self.labelled else "no spans"
        self.description = f"{self.name}: JSON Lines, {words}, {spans}"
        return self._of_spans()

    def _of_spans(self):
        for number, line in self._rest:
            if line.strip():
                row = self._json_object(number, line)
                yield spanned_words(row, number, source=self, need_spans=self._need_tags)


class SpanTfds(TaggedTfds):
    """The `SpannedWords` of `tfds:NAME/CONFIG:SPLIT`.

    Its features are those of JSON Lines: "words" or "text", and "spans", a sequence of "start",
    "end" and "label"; or words have tags, as in `TaggedTfds`.
    """

    def __init__(self, name, *, need_spans=True, invalid_tags=REPAIR, **columns):
        self._broken = BrokenTags(reject=invalid_tags == ERROR)
        self._looks = need_spans or invalid_tags == ERROR
        self._has_tags = True
        super().__init__(name, need_tags=need_spans, **columns)

    def __iter__(self):
        """The examples; may be called once."""
        examples = super().__iter__()
        if not self._has_tags:
            return examples
        return of_tagged(examples, self, broken=self._broken, look=self._looks)

    def _open(self, rows, *, word, tag, need_tags, **options):
        if not {"spans/start", "spans/end"} <= self.sample[0][1].keys():
            return super()._open(rows, word=word, tag=tag, need_tags=need_tags, **options)
        _reject_columns(word, tag)
        self._has_tags = False
        return _SpanRows(rows, self)

    def notes(self):
        """Lines for the user on the tags that broke their scheme."""
        return self._broken.notes()


class _SpanRows:
    """The `SpannedWords` of the rows of a `SpanTfds` that has spans."""

    labelled = True
    description = "spans"

    def __init__(self, rows, source):
        self._rows, self._source = rows, source

    def __iter__(self):
        for number, row in self._rows:
            starts, ends = row["spans/start"], row["spans/end"]
            labels = row.get("spans/label", [None] * len(starts))
            if not len(starts) == len(ends) == len(labels):
                raise self._source.error(number, "its spans have not as many starts as ends.")
            spans = [list(span) for span in zip(starts, ends, labels, strict=True)]
            yield spanned_words(
                {**row, "spans": spans}, number, source=self._source, need_spans=True
            )


class GivenSpans:
    """A sequence of texts, with the interface of `SpanFile`.

    A text is a string, a list of words, or a dictionary like the objects of JSON Lines. What a file
    calls a line is the place in the sequence, from 1.

    Raises:
        ValueError: an item is nothing of these.
        InputError: a text has spans that cannot be, or lacks spans that are needed.
    """

    name = "the given texts"
    kind = "given"
    description = ""
    columns = None

    def __init__(self, texts, *, need_spans=True):
        self._examples = [
            spanned_words(_as_object(text), place, source=self, need_spans=need_spans)
            for place, text in enumerate(texts, start=1)
        ]
        self.labelled = any(example.spans is not None for example in self._examples)

    def __iter__(self):
        return iter(self._examples)

    @staticmethod
    def notes():
        """Nothing: spans have no scheme to break."""
        return []

    def error(self, line, message):
        """The InputError that says which text is meant."""
        return InputError(f"Text {line} of those given: {message}")


def _reject_columns(word, tag):
    for name, column in (("word_column", word), ("tag_column", tag)):
        if column is not None:
            raise InputError(
                f'`{name}` is for files with tags; spans have "words" or "text", and "spans".'
            )


def _as_object(text):
    if isinstance(text, dict):
        return text
    if isinstance(text, str):
        return {"text": text}
    if isinstance(text, list | tuple) and all(isinstance(word, str) for word in text):
        return {"words": text}
    raise ValueError(
        "A text must be a string, a list of words, or a dictionary with one of these and its "
        f"spans. Received: {text!r}"
    )
