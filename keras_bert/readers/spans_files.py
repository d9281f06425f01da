"""Texts with spans, from JSON Lines, CoNLL or (without spans) plain lines, or from Python."""

from keras_bert.base.errors import InputError
from keras_bert.readers.broken_tags import BrokenTags
from keras_bert.readers.settings import REFUSE, REPAIR
from keras_bert.readers.spans_json import spanned_words
from keras_bert.readers.spans_tags import of_tagged
from keras_bert.readers.tagged_files import TaggedFile
from keras_bert.readers.tagged_objects import TAG_KEYS
from keras_bert.readers.tagged_tfds import TaggedTfds
from keras_bert.readers.tfds import PREFIX


def open_spanned_words(data, *, need_spans=True, **options):
    """`SpanFile` of a path (or `-`), `SpanTfds` of `tfds:…`, `GivenSpans` of a sequence.

    `options` are those of `SpanFile`; columns can be said of a file only.

    Raises InputError: see there.
    """
    if isinstance(data, str) and data.startswith(PREFIX):
        names = ("word_column", "tag_column", "broken_tags")
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
        word_column, tag_column, like: as in `TaggedFile`.
        broken_tags: "repair" or "refuse", what becomes of tags that break their scheme. They are
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
        like=None,
        broken_tags=REPAIR,
    ):
        self._broken = BrokenTags(refuse=broken_tags == REFUSE)
        self._looks = need_spans or broken_tags == REFUSE
        self._has_tags = True
        super().__init__(
            path, word_column=word_column, tag_column=tag_column, like=like, need_tags=need_spans
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
        _refuse_columns(word, tag)
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

    def __init__(self, name, *, need_spans=True, broken_tags=REPAIR, **columns):
        self._broken = BrokenTags(refuse=broken_tags == REFUSE)
        self._looks = need_spans or broken_tags == REFUSE
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
        _refuse_columns(word, tag)
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


def _refuse_columns(word, tag):
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
