"""Texts with labelled spans, which may be nested, and pairs of spans with a label each.

JSON objects are `{"words": […], "spans": [[0, 2, "label"], …]}`, and of pairs `{"words": […],
"head": [0, 2], "tail": [4, 5], "label": …}`. With "words", spans count words; with "text" alone,
characters; see `keras_bert.readers.objects`.
"""

import re
from dataclasses import dataclass
from functools import partial
from itertools import islice

from keras_bert.base.errors import InputError, Naming
from keras_bert.base.formatting import listed
from keras_bert.readers import ERROR, REPAIR
from keras_bert.readers.columns import given_or_remembered, parse_fields
from keras_bert.readers.examples import Example, ExampleSource, Missing
from keras_bert.readers.labels import one_label
from keras_bert.readers.objects import (
    LabelledSpan,
    joined,
    labelled_span,
    words_of,
)
from keras_bert.readers.offsets import span_key
from keras_bert.readers.schemes import InvalidTags, read_chunks, spans_of
from keras_bert.readers.sentences import TaggedSource
from keras_bert.readers.sources import records_of_columns

_PARTS = ("words", "text", "head", "tail", "label")
_TAG = re.compile(r"O|[BIESLUMW](-.+)?")


class _Spanned(Example):
    __slots__ = ()

    @property
    def unit(self):
        return self.text

    @property
    def ends(self):
        """The first character after each word; None without words."""
        if self.words is None:
            return None
        return tuple(start + len(word) for start, word in zip(self.starts, self.words, strict=True))


@dataclass(slots=True)
class SpannedWords(_Spanned):
    """A text, its words, and the spans that a person labelled in it."""

    text: str  # of words that came without one, the words joined by single spaces
    words: tuple[str, ...] | None = None  # None if a tokenizer is still to split the text
    starts: tuple[int, ...] | None = None  # where each word begins in the text, in characters
    # In words, or in characters of the text if `words` is None; None if nobody gave them.
    spans: tuple[LabelledSpan, ...] | None = None
    document: int | str = 0  # the number of its document in the source from 0, or its file


@dataclass(slots=True)
class SpanPair(_Spanned):
    """A text with two marked spans, and how they are related or None.

    `head` and `tail` count words, or characters if `words` is None; see `SpannedWords`, which
    has the other attributes.
    """

    text: str
    words: tuple[str, ...] | None
    starts: tuple[int, ...] | None
    head: LabelledSpan
    tail: LabelledSpan
    label: str | None = None


def _span_text(example, span):
    """The text of a span of a `SpannedWords` or `SpanPair`."""
    if example.words is None:
        return example.text[span.start : span.end]
    return " ".join(example.words[span.start : span.end])


class SpanSource(TaggedSource):
    """The `SpannedWords` of a source.

    Tags of CoNLL, or of objects with "words" and "tags", are those of spans that do not overlap
    (`spans_of_tags`); plain lines have no spans and are split by a tokenizer later. The items of a
    sequence are strings, lists of words, or dictionaries like the objects of JSON Lines.

    Tags that break their scheme are looked for in the whole file before its first example if
    they are an error (`invalid_tags`) or spans are needed.

    Attributes are those of `TaggedSource`.
    """

    ITEM, ROW = "text", "row"
    SHOWN = 10
    ITEMS = (
        "A text must be a string, a list of words, or a dictionary with one of these and its spans"
    )
    STRINGS = WORDS = True
    _as_record = classmethod(ExampleSource._as_record.__func__)

    def __init__(self, data, *, invalid_tags=REPAIR, **common):
        self._invalid_tags = InvalidTags(reject=invalid_tags == ERROR)
        self._rejects_tags, self._has_tags = invalid_tags == ERROR, True
        self._spelling, self._spans = None, "spans"
        super().__init__(data, **common)

    def notes(self):
        spelling = [self._spelling] if self._spelling else []
        return [*super().notes(), *spelling, *self._invalid_tags.notes()]

    def _has_word_per_row(self, table):
        # Without words, a "label" has spans: doccano, JSON-MIN of Label Studio.
        has_words = any(self._given.values()) or self._column(table, "word") is not None
        self._spans = span_key(table.names, has_words=has_words) or "spans"
        self.labelled = not {self._spans, "spans/start"}.isdisjoint(table.names)
        return not self.labelled and super()._has_word_per_row(table)

    def first_examples(self, examples):
        spans = ((e, span) for e in examples for span in e.spans or ())
        shown = [f'"{_span_text(e, span)}" ({span.label})' for e, span in islice(spans, 3)]
        return f"First spans: {', '.join(shown)}" if shown else ""

    def _read_objects(self, records):
        keys = {*records.names}
        if self.kind == "given":
            self.labelled = any(record.get("spans") is not None for _, record in records)
        else:
            has_tags = not self.labelled and self._column(records, "tag", is_list=True) is not None
            if has_tags or (records.are_cells and not self.labelled):
                return super()._read_objects(records)
            for name in ("word", "tag"):
                if self._given[name] is not None:
                    raise InputError(
                        f'`{name}_column` is for files with tags. Spans have "words" or "text", '
                        'and "spans".'
                    )
            words = "words" if "words" in keys else "text, split by the tokenizer"
            spans = "no spans" if not self.labelled else "spans"
            spans += "" if self._spans == "spans" else f' in "{self._spans}"'
            self.how = f"{records.format}, {words}, {spans}"
        self._has_tags = False
        return self._each(records, self._spanned)

    def _spanned(self, number, record):
        if "spans/start" in record:  # of tfds
            parts = (part for part in ("start", "end", "label") if f"spans/{part}" in record)
            spans = records_of_columns({part: record[f"spans/{part}"] for part in parts})
            if spans is None:
                raise self.error(number, "its spans do not have as many starts as ends.")
            record = {**record, "spans": spans}
        if self._spans != "spans":
            record = {**record, "spans": record.get(self._spans)}
        if self._need_labels and record.get("spans") is None and self.may_lack(self._spans):
            raise Missing("spans", place=f'"{self._spans}"')
        return spanned_words(record, number, source=self, need_labels=self._need_labels)

    def _examples_of(self, records):
        return self._checked(super()._examples_of(records))

    def _checked(self, examples):
        for example in self._spans_of_tags(examples) if self._has_tags else examples:
            labels = [span.label for span in example.spans or () if span.label is not None]
            self._check_labels(labels, example.error)
            yield example

    def _spans_of_tags(self, examples):
        if self._need_labels or self._rejects_tags:
            examples = list(examples)  # all tags of a file together tell its scheme
            scheme, self._spelling = read_chunks(
                examples, name=self.name, need_scheme=self._need_labels
            )
            for example in examples if scheme is not None else ():
                self._invalid_tags.count(example, scheme)
        for example in examples:
            spans, text, starts = None, example.text, example.starts
            if example.tags is not None:
                spans = spans_of_tags(
                    example.tags, error=lambda message, word, e=example: e.error(message, word=word)
                )
            if text is None:
                text, starts = joined(example.words)
            place = {"document": example.document, "source": self}
            yield SpannedWords(example.line, text, example.words, starts, spans, **place)


def spans_of_tags(tags, *, error):
    """The `LabelledSpan`s of tags of whatever scheme (see `schemes`), by conlleval's rules.

    `error` makes the error for a tag of another form, from a message and the number of the word.
    """
    for number, tag in enumerate(tags):
        if not _TAG.fullmatch(tag):
            raise error(f'the tag "{tag}" should be O, B-…, I-…, E-… or S-….', number)
    return tuple(LabelledSpan(start, end, label or None) for start, end, label in spans_of(tags))


def spanned_words(record, line, *, source, need_labels):
    """The `SpannedWords` of a dictionary; InputError of `source` if it is invalid."""
    text, words, starts = words_of(record, line, source)
    spans = record.get("spans")
    if spans is None and need_labels:
        raise source.error(
            line,
            f'no "spans" among the keys ({listed(record)}); a text without any has an empty list.',
        )
    if spans is not None and not isinstance(spans, list | tuple):
        raise source.error(line, '"spans" should be a list.')
    if spans is not None:
        spans = tuple(labelled_span(span, line, source, text=text, words=words) for span in spans)
    document = line - 1 if isinstance(line, int) else line  # the name of a file
    return SpannedWords(line, text, words, starts, spans, document=document, source=source)


class SpanPairSource(ExampleSource):
    """The `SpanPair`s of a source, which is not a text file.

    Args:
        data, common: see `ExampleSource`.
        fields: `words=tokens,head=subject,tail=object,label=relation`, the key or feature of each;
            a span whose start and end have a key each is `head=START|END`.
    """

    ITEM, SHOWN = "pair", 3
    ITEMS = "Pairs of spans must be dictionaries"
    UNIT = "pairs of spans"

    def __init__(self, data, *, fields=None, **common):
        self._given = parse_fields(fields, parts=_PARTS)
        super().__init__(data, file_settings={"fields": fields}, **common)

    def first_examples(self, examples):
        shown = [
            f'"{_span_text(e, e.head)}" and "{_span_text(e, e.tail)}" ({e.label})' for e in examples
        ]
        return f"First pairs: {'; '.join(shown)}"

    def _read_file(self, file):
        raise InputError(
            f"Could not read {file.name} as pairs of spans: line {file.first[0]} is not a JSON "
            'object. Expected JSON Lines with {"words": […], "head": [start, end], "tail": [start, '
            'end], "label": "…"}.'
        )

    def _read_objects(self, records):
        self._columns = given_or_remembered(self._given, self._schema, records.names)
        self.schema = self._columns or None
        return super()._read_objects(records)

    def may_lack(self, key):
        return key in self._columns or super().may_lack(key)

    def _named(self, record, line):
        """A record with its parts under their usual names."""
        names, parts = self._records.names, {}
        for name, columns in self._columns.items():
            for column in columns:
                if column not in names and (name != "label" or self._need_labels):
                    raise self.error(
                        line,
                        Naming(
                            'no "{}" (from {fields}) among the {} ({}).',
                            column,
                            self._records.calls_columns,
                            listed(record),
                        ),
                    )
            cells = [record.get(column) for column in columns]
            parts[name] = cells if len(cells) > 1 and None not in cells else cells[0]
        return {**record, **parts}

    def _example(self, line, record):
        record = self._named(record, line)
        text, words, starts = words_of(record, line, self)
        spans = []
        for name in ("head", "tail"):
            span = self.value(line, record, name, f"a {name}", more="; it is [start, end]")
            spans.append(labelled_span(span, line, self, text=text, words=words, noun=name))
        try:
            label = one_label(record.get("label"))
        except ValueError as error:
            raise self.error(line, error) from None
        if label is None and self._need_labels:
            self.value(line, {**record, "label": None}, "label", "a label")
        self._check_labels([label], partial(self.error, line))
        return SpanPair(line, text, words, starts, *spans, label, source=self)
