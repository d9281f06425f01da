"""Sentences whose words have a tag each: from CoNLL, CoNLL-U, JSON Lines, tfds or Python."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, parse_json
from keras_bert.base.formatting import counted, listed
from keras_bert.readers.conll import (
    choose_conll_columns,
    conll_sentences,
    looks_like_conll,
)
from keras_bert.readers.conllu import (
    COLUMNS,
    choose_conllu_column,
    conllu_sentences,
    looks_like_conllu,
)
from keras_bert.readers.tables import SAMPLE_LINES
from keras_bert.readers.text_file import TextFile
from keras_bert.readers.tfds import PREFIX, TfdsTable

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


WORD_KEYS = ("words", "tokens")
TAG_KEYS = ("tags", "ner_tags", "pos_tags", "labels", "ner", "upos")
TEXT_KEY, DOCUMENT_KEY = "text", "document"


class TaggedObjects:
    """The `TaggedWords` of rows, each a dictionary with a list of words and one of tags.

    Where there are no words, a text that a tokenizer splits stands under "text". Sentences with the
    same "document" are of one document; one that names none is one of its own.

    Args:
        rows: an iterable of (line number, dictionary).
        first: the first of them, by whose keys words and tags are found.
        source: what the examples are of; its `error` names a line.
        word, tag: keys, or None for the usual ones.
        need_tags, pretokenized: see `TaggedFile`.

    Attributes: `labelled`, whether there are tags; `description`, a part of a line for the user.

    Raises:
        InputError: the keys are not there; or while it is iterated, a row is none of this form.
    """

    def __init__(self, rows, first, source, *, word, tag, need_tags, pretokenized):
        number, keys = first
        word = word or next((key for key in WORD_KEYS if key in keys), WORD_KEYS[0])
        tag = tag or next((key for key in TAG_KEYS if key in keys), TAG_KEYS[0])
        for what, key in (("word", word), ("tag", tag)):
            if need_tags and key not in keys:
                raise source.error(
                    number,
                    f'no "{key}" among the keys ({listed(keys)}); say which key holds the {what}s '
                    f"with `{what}_column`.",
                )
        if word not in keys and TEXT_KEY not in keys:
            raise source.error(
                number,
                f'no "{word}" and no "{TEXT_KEY}" among the keys ({listed(keys)}); give either.',
            )
        self.labelled = tag in keys
        words = f'words in "{word}"' if word in keys else f'text in "{TEXT_KEY}"'
        tags = f'tags in "{tag}"' if self.labelled else "no tags"
        self.description = f"{words}, {tags}"
        self._rows, self._source = rows, source
        self._word, self._tag = word, tag
        self._need_tags, self._pretokenized = need_tags, pretokenized

    def __iter__(self):
        documents = {}
        for number, row in self._rows:
            name = row.get(DOCUMENT_KEY)
            key = (number,) if name is None else str(name)
            document = documents.setdefault(key, len(documents))
            if self._word in row or self._need_tags:
                yield self._of_words(row, number, document)
            else:
                yield self._of_text(row, number, document)

    def _of_text(self, row, number, document):
        text = row.get(TEXT_KEY)
        if not isinstance(text, str):
            raise self._error(
                number, f'no text under "{TEXT_KEY}"; every object needs a string there.'
            )
        if not is_text(text):
            raise self._error(
                number, f'a NUL or half a surrogate pair under "{TEXT_KEY}"; this is not text.'
            )
        return sentence_of_text(
            text, number, document, self._source, pretokenized=self._pretokenized
        )

    def _of_words(self, row, number, document):
        words, tags = self._strings(number, row, self._word), None
        if self._tag in row or self._need_tags:
            tags = self._strings(number, row, self._tag)
            if len(tags) != len(words):
                raise self._error(
                    number,
                    f"{counted(len(words), 'word')} and {counted(len(tags), 'tag')}; every word "
                    "needs one tag.",
                )
        if self._need_tags and not words:
            raise self._error(number, "a sentence without a word.")
        return TaggedWords(number, words, tags, document=document, source=self._source)

    def _strings(self, number, row, key):
        """A list of words or tags as a tuple; numbers are taken as they are written."""
        values = row.get(key)
        if isinstance(values, list) and all(type(value) in (str, int) for value in values):
            values = tuple(map(str, values))
            if all(value and is_text(value) for value in values):
                return values
        raise self._error(
            number,
            f'"{key}" should be a list of strings, none of them empty, without a NUL or half a '
            "surrogate pair.",
        )

    def _error(self, number, message):
        return self._source.error(number, message)


class TaggedTfds(TfdsTable):
    """The `TaggedWords` of `tfds:NAME/CONFIG:SPLIT`, with the interface of `TaggedFile`.

    Args:
        name: see `TfdsTable`.
        word_column, tag_column: the names of features, or None for "tokens" and "ner" or other
            usual ones.
        need_tags, pretokenized: see `TaggedFile`.

    Raises InputError: see `TfdsTable` and `TaggedObjects`.
    """

    columns = None

    def __init__(
        self, name, *, word_column=None, tag_column=None, need_tags=True, pretokenized=False
    ):
        super().__init__(name)
        self._objects = self._open(
            super().__iter__(),
            word=word_column,
            tag=tag_column,
            need_tags=need_tags,
            pretokenized=pretokenized,
        )
        self.labelled = self._objects.labelled
        self.description = f"{name}: a prepared dataset, {self._objects.description}"

    def __iter__(self):
        """Yields the sentences; may be called once."""
        return iter(self._objects)

    def _open(self, rows, **options):
        return TaggedObjects(rows, self.sample[0], self, **options)


class GivenSentences:
    """A sequence of sentences, with the interface of `TaggedFile`.

    A sentence is a string, a list of words, a pair (words, tags), or a dictionary with "words" (and
    "tags"). Each is a document of its own. What a file calls a line is the place in the sequence,
    from 1.

    Raises:
        ValueError: an item is nothing of these.
        InputError: a sentence has other numbers of words and tags, or lacks tags that are needed.
    """

    name = "the given sentences"
    kind = "given"
    description = ""
    columns = None

    def __init__(self, sentences, *, need_tags=True, pretokenized=False):
        self._examples = [
            self._example(place, sentence, pretokenized=pretokenized)
            for place, sentence in enumerate(sentences, start=1)
        ]
        self.labelled = any(example.tags is not None for example in self._examples)
        for example in self._examples:
            if need_tags and example.tags is None:
                raise example.error("no tags; give a pair of the words and their tags.")
            if need_tags and not example.words:
                raise example.error("a sentence without a word.")

    def __iter__(self):
        return iter(self._examples)

    def error(self, line, message):
        """The InputError that says which sentence is meant."""
        return InputError(f"Sentence {line} of those given: {message}")

    def _example(self, place, sentence, *, pretokenized):
        if isinstance(sentence, str):
            return sentence_of_text(sentence, place, place - 1, self, pretokenized=pretokenized)
        words, tags = _words_and_tags(sentence)
        if tags is not None and len(tags) != len(words):
            raise self.error(
                place,
                f"{counted(len(words), 'word')} and {counted(len(tags), 'tag')}; every word needs "
                "one tag.",
            )
        return TaggedWords(place, words, tags, document=place - 1, source=self)


def _words_and_tags(sentence):
    parts = [sentence]
    if isinstance(sentence, dict):
        parts = [sentence[key] for key in ("words", "tags") if key in sentence]
    elif len(sentence) == 2 and not any(isinstance(part, str) for part in sentence):
        parts = list(sentence)
    if not parts or not all(map(_is_strings, parts)):
        raise ValueError(
            "A sentence must be a string, a list of words, a pair of words and tags, or a "
            f'dictionary with "words". Received: {sentence!r}'
        )
    words, *tags = map(tuple, parts)
    return words, tags[0] if tags else None


def _is_strings(values):
    return isinstance(values, list | tuple) and all(
        isinstance(value, str) and value for value in values
    )


def open_tagged_words(data, **options):
    """`TaggedFile` of a path (or `-`), `TaggedTfds` of `tfds:…`, `GivenSentences` of a sequence.

    `options` are those of `TaggedFile`; columns can be said of a file only.

    Raises InputError: see there.
    """
    if isinstance(data, str) and data.startswith(PREFIX):
        names = ("word_column", "tag_column", "need_tags", "pretokenized")
        return TaggedTfds(data, **{name: options[name] for name in names if name in options})
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        return TaggedFile(data, **options)
    for name in ("word_column", "tag_column"):
        if options.get(name) is not None:
            raise InputError(f"`{name}` is for files; the given sentences have no columns.")
    return GivenSentences(
        data,
        need_tags=options.get("need_tags", True),
        pretokenized=options.get("pretokenized", False),
    )


class TaggedFile(TextFile):
    """One pass over the `TaggedWords` of a file, or of standard input (`-`), streaming.

    What it is is told by its content: CoNLL, CoNLL-U, JSON Lines with "words" and "tags", or plain
    lines, which have no tags and are split by a tokenizer later.

    Args:
        path: a path, or `-`.
        word_column, tag_column: a number from 1, a key of JSON objects, or a name of CoNLL-U's
            columns (FORM and UPOS there, where they are None); None leaves it to the content.
        labels: the tags that a model knows, by which its column is recognised.
        schema: a file read before; a file of the same form has the same columns.
        need_tags: whether a file without tags is an error.
        pretokenized: plain lines are words parted by spaces.

    Attributes: `name`, `kind` ("conll", "conllu", "jsonl" or "lines"), `labelled` (whether it has
    tags), `columns` (of CoNLL), and `description`, a line for the user.

    Raises InputError at opening, or when a bad line is reached, which it names.
    """

    def __init__(
        self,
        path,
        *,
        word_column=None,
        tag_column=None,
        labels=None,
        schema=None,
        need_tags=True,
        pretokenized=False,
    ):
        super().__init__(path)
        self._need_tags = need_tags
        self._pretokenized = pretokenized
        self.columns = None
        with self.closed_on_error():
            lines = self._lines()
            head = self._head(lines)
            told = word_column is not None or tag_column is not None
            self.kind = self._kind(head, lines, labels=labels, is_table=need_tags or told)
            if self.kind == "conll":
                head += islice(lines, max(0, SAMPLE_LINES - len(head)))
            self._rest = chain(head, lines)
            columns = {"word": word_column, "tag": tag_column}
            if self.kind == "conll":
                self._examples = self._conll(head, **columns, labels=labels, schema=schema)
            elif self.kind == "conllu":
                self._examples = self._conllu(**columns)
            elif self.kind == "jsonl":
                self._examples = self._json_lines(head[-1], **columns)
            else:
                self._examples = self._plain_lines()

    def __iter__(self) -> Iterator[TaggedWords]:
        """Yields the sentences; may be called once."""
        with self._closer:
            yield from self._examples

    def _head(self, lines):
        """The lines up to the first that holds something and is no comment of CoNLL-U."""
        head = []
        for number, line in lines:
            head.append((number, line))
            if line.strip() and not line.startswith("#"):
                return head
        if not any(line.strip() for _, line in head):
            raise InputError(f"{self.name} is empty; at least one sentence is needed.")
        return head

    def _kind(self, head, lines, *, labels, is_table):
        _, line = head[-1]
        if _is_json_object(line):
            return "jsonl"
        if looks_like_conllu(line):
            return "conllu"
        if is_table or "\t" in line.strip():
            return "conll"
        if self.name != "standard input":  # a pipe is answered line by line
            head += islice(lines, SAMPLE_LINES)
            if looks_like_conll(head, labels=labels):
                return "conll"
        return "lines"

    def _conll(self, head, *, word, tag, labels, schema):
        self.columns = choose_conll_columns(
            head, self, word=word, tag=tag, labels=labels, need_tags=self._need_tags
        )
        theirs = getattr(schema, "columns", None)
        form = (self.columns.width, self.columns.tabs)
        if theirs is not None and word is tag is None and form == (theirs.width, theirs.tabs):
            self.columns = theirs
        self.labelled = self.columns.tag is not None
        self.description = f"{self.name}: {self.columns.describe()}"
        return self._of_table(conll_sentences(self._rest, self, self.columns))

    def _conllu(self, *, word, tag):
        word = choose_conllu_column(word, default="FORM", source=self)
        tag = choose_conllu_column(tag, default="UPOS", source=self)
        self.labelled = True
        self.description = f"{self.name}: CoNLL-U, word in {COLUMNS[word]}, tag in {COLUMNS[tag]}"
        return self._of_table(
            conllu_sentences(self._rest, self, word=word, tag=tag, need_tags=self._need_tags)
        )

    def _of_table(self, sentences):
        for words, tags, lines, document in sentences:
            yield TaggedWords(lines[0], words, tags, lines, document, source=self)

    def _plain_lines(self):
        self.labelled = False
        how = "words parted by spaces" if self._pretokenized else "split by the tokenizer"
        self.description = f"{self.name}: plain lines, one sentence a line, {how}"
        return self._of_lines()

    def _of_lines(self):
        for document, (number, line) in enumerate(self._rest):
            yield sentence_of_text(line, number, document, self, pretokenized=self._pretokenized)

    def _json_lines(self, first, *, word, tag):
        number, line = first
        objects = TaggedObjects(
            ((n, self._json_object(n, text)) for n, text in self._rest if text.strip()),
            (number, self._json_object(number, line)),
            self,
            word=word,
            tag=tag,
            need_tags=self._need_tags,
            pretokenized=self._pretokenized,
        )
        self.labelled = objects.labelled
        self.description = f"{self.name}: JSON Lines, {objects.description}"
        return objects


def _is_json_object(line):
    if not line.lstrip().startswith("{"):
        return False
    try:
        return isinstance(parse_json(line), dict)
    except NotJson:
        # A brace and quotes at the start can only be meant as JSON; anything else is text.
        return line.lstrip("{ ").startswith('"')
