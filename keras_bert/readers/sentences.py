"""Sentences whose words have a tag each: from CoNLL, CoNLL-U, JSON Lines, tfds or Python."""

import re
from dataclasses import dataclass
from itertools import chain, islice

from keras_bert.base.formatting import counted, listed
from keras_bert.readers.columns import column_index
from keras_bert.readers.conll import (
    CONLLU_COLUMNS,
    choose_conll_columns,
    conll_sentences,
    conllu_sentences,
    looks_like_conll,
    looks_like_conllu,
)
from keras_bert.readers.sources import (
    SAMPLE_LINES,
    Example,
    ExampleSource,
    is_text,
    open_objects,
)

WORD_KEYS = ("words", "tokens")
TAG_KEYS = ("tags", "ner_tags", "pos_tags", "labels", "ner", "upos")
TEXT_KEY, DOCUMENT_KEY = "text", "document"
_WORDS = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class TaggedWords(Example):
    """The words of a sentence, and a tag for each or None where nobody gave them.

    Attributes:
        line: where it begins in its `source`, from 1.
        words: the words; None where a `text` is still to be split by a tokenizer.
        tags: as many as words, or None.
        lines: the line of each word, or None where all are on one.
        document: the number of its document in the source, from 0.
        text: the sentence as it was given, where it was given as a string.
        starts: where each word begins in `text`, in characters; None where there is no text.
    """

    words: tuple[str, ...] | None
    tags: tuple[str, ...] | None = None
    lines: tuple[int, ...] | None = None
    document: int = 0
    text: str | None = None
    starts: tuple[int, ...] | None = None

    def line_of(self, word):
        """The line of a word, given by its number."""
        return self.line if self.lines is None else self.lines[word]

    def error(self, message, *, word=None):
        """The InputError that names the location of the sentence, or of one of its words."""
        return self.source.error(self.line if word is None else self.line_of(word), message)


class TaggedSource(ExampleSource):
    """The `TaggedWords` of a source.

    The format of a file is detected from its content: CoNLL, CoNLL-U, JSON Lines with "words" and
    "tags", or plain lines, which have no tags and are split by a tokenizer later. Objects with the
    same "document" are of one document; one without is a document of its own. The items of a
    sequence are strings, lists of words, pairs (words, tags), or dictionaries with the keys of JSON
    Lines, such as the rows of a table in memory.

    Args:
        data: see `ExampleSource`.
        word_column, tag_column: a number from 1, a key of JSON objects, the name of a feature, or
            a name of CoNLL-U's columns (FORM and UPOS there, where they are None); None is by the
            content.
        labels: the tags that a model knows, by which their column is recognised.
        schema: the source of a file that was read before: where this one has the same form, it has
            the same columns.
        need_tags: whether a sentence without tags is an error.
        pretokenized: plain texts are words separated by white space.

    Attributes: `labelled` (whether there are tags), `columns` (of CoNLL, else None) and those of
    `ExampleSource`; of a file, `kind` may also be "conll" and "conllu".
    """

    ITEM = "sentence"  # what messages call one of a sequence
    columns = None

    def __init__(
        self,
        data,
        *,
        word_column=None,
        tag_column=None,
        labels=None,
        schema=None,
        need_tags=True,
        pretokenized=False,
    ):
        records = open_objects(data, item=self.ITEM, as_record=self._as_record, comment="#")
        super().__init__(records, word_column=word_column, tag_column=tag_column)
        self._need_tags = need_tags
        self._pretokenized = pretokenized
        columns = {"word": word_column, "tag": tag_column}
        if self.kind is None:
            examples = self._of_file(records, columns, labels=labels, schema=schema)
        else:
            examples = self._of_objects(records, **columns)
        self._set_examples(examples)

    def _of_file(self, file, columns, *, labels, schema):
        head, lines = file.head, file.rest
        is_table = self._need_tags or any(column is not None for column in columns.values())
        self.kind = self._kind_of(head, lines, labels=labels, is_table=is_table)
        if self.kind == "conll":
            head += islice(lines, max(0, SAMPLE_LINES - len(head)))
            return self._of_conll(head, chain(head, lines), **columns, labels=labels, schema=schema)
        lines = chain(head, lines)
        if self.kind == "conllu":
            return self._of_conllu(lines, **columns)
        self.labelled = False
        how = "words separated by spaces" if self._pretokenized else "split by the tokenizer"
        self.description = f"{self.name}: plain lines, one sentence per line, {how}"
        return (
            self._of_text(line, number, document) for document, (number, line) in enumerate(lines)
        )

    def _kind_of(self, head, lines, *, labels, is_table):
        _, line = head[-1]
        if looks_like_conllu(line):
            return "conllu"
        if is_table or "\t" in line.strip():
            return "conll"
        if self.name != "standard input":  # a pipe is answered line by line
            head += islice(lines, SAMPLE_LINES)
            if looks_like_conll(head, labels=labels):
                return "conll"
        return "lines"

    def _of_conll(self, sample, lines, *, word, tag, labels, schema):
        self.columns = choose_conll_columns(
            sample, self, word=word, tag=tag, labels=labels, need_tags=self._need_tags
        )
        theirs = getattr(schema, "columns", None)
        form = (self.columns.width, self.columns.tabs)
        if theirs is not None and word is tag is None and form == (theirs.width, theirs.tabs):
            self.columns = theirs
        self.labelled = self.columns.tag is not None
        self.description = f"{self.name}: {self.columns.describe()}"
        return self._of_sentences(conll_sentences(lines, self, self.columns))

    def _of_conllu(self, lines, *, word, tag):
        names = CONLLU_COLUMNS
        given = (word or "FORM", tag or "UPOS")
        given = [str(name).upper() if str(name).upper() in names else name for name in given]
        word, tag = (column_index(self, name, names=names, width=len(names)) for name in given)
        self.labelled = True
        self.description = f"{self.name}: CoNLL-U, word in {names[word]}, tag in {names[tag]}"
        return self._of_sentences(
            conllu_sentences(lines, self, word=word, tag=tag, need_tags=self._need_tags)
        )

    def _of_sentences(self, sentences):
        for words, tags, lines, document in sentences:
            yield TaggedWords(lines[0], words, tags, lines, document, source=self)

    def _of_objects(self, records, *, word, tag):
        """The examples of dictionaries, whose keys are chosen by the first of them."""
        if self.kind == "given":
            self.labelled = any("tags" in record for _, record in records.sample)
            return self._of_keys(records, WORD_KEYS[0], TAG_KEYS[0])
        number, keys = records.sample[0]
        word = word or next((key for key in WORD_KEYS if key in keys), WORD_KEYS[0])
        tag = tag or next((key for key in TAG_KEYS if key in keys), TAG_KEYS[0])
        for what, key in (("word", word), ("tag", tag)):
            if self._need_tags and key not in keys:
                raise self.error(
                    number,
                    f'no "{key}" among the keys ({listed(keys)}); give the key of the {what}s as '
                    f"`{what}_column`.",
                )
        if word not in keys and TEXT_KEY not in keys:
            raise self.error(
                number,
                f'no "{word}" and no "{TEXT_KEY}" among the keys ({listed(keys)}); give either.',
            )
        self.labelled = tag in keys
        words = f'words in "{word}"' if word in keys else f'text in "{TEXT_KEY}"'
        tags = f'tags in "{tag}"' if self.labelled else "no tags"
        self.description = f"{self.name}: {records.format}, {words}, {tags}"
        return self._of_keys(records, word, tag)

    def _of_keys(self, records, word, tag):
        documents = {}
        for number, record in records:
            name = record.get(DOCUMENT_KEY)
            key = (number,) if name is None else str(name)
            document = documents.setdefault(key, len(documents))
            if self.kind == "given" and self._need_tags and tag not in record:
                raise self.error(number, "no tags. Give a pair of the words and their tags.")
            if word not in record and not self._need_tags:
                is_given = self.kind == "given"
                text = record[TEXT_KEY] if is_given else self._text(number, record, TEXT_KEY)
                yield self._of_text(text, number, document)
                continue
            words, tags = self._strings(number, record, word), None
            if tag in record or self._need_tags:
                tags = self._strings(number, record, tag)
                if len(tags) != len(words):
                    raise self.error(
                        number,
                        f"{counted(len(words), 'word')} and {counted(len(tags), 'tag')}; every "
                        "word needs one tag.",
                    )
            if self._need_tags and not words:
                raise self.error(number, "a sentence without a word.")
            yield TaggedWords(number, words, tags, document=document, source=self)

    def _of_text(self, text, number, document):
        """The `TaggedWords` of a string: split at white space now, or by a tokenizer later."""
        words = starts = None
        if self._pretokenized:
            matches = list(_WORDS.finditer(text))
            words = tuple(match[0] for match in matches)
            starts = tuple(match.start() for match in matches)
        return TaggedWords(number, words, document=document, text=text, starts=starts, source=self)

    def _strings(self, number, record, key):
        """A list of words or tags as a tuple; numbers are taken as they are written."""
        values = record.get(key)
        if isinstance(values, list) and all(type(value) in (str, int) for value in values):
            values = tuple(map(str, values))
            if all(value and is_text(value) for value in values):
                return values
        raise self.error(
            number,
            f'"{key}" should be a list of strings, none of them empty, without a NUL or half a '
            "surrogate pair.",
        )

    @staticmethod
    def _as_record(sentence):
        if isinstance(sentence, str):
            return {TEXT_KEY: sentence}
        parts = [sentence]
        if isinstance(sentence, dict):
            keys = (
                next((k for k in each if k in sentence), None) for each in (WORD_KEYS, TAG_KEYS)
            )
            parts = [sentence[key] for key in keys if key is not None]
            if isinstance(sentence.get(TEXT_KEY), str) and not parts:
                return {TEXT_KEY: sentence[TEXT_KEY]}
        elif len(sentence) == 2 and not any(isinstance(part, str) for part in sentence):
            parts = list(sentence)
        if not parts or not all(map(_is_strings, parts)):
            raise ValueError(
                "A sentence must be a string, a list of words, a pair of words and tags, or a "
                f'dictionary with "words". Received: {sentence!r}.'
            )
        return dict(zip(("words", "tags"), map(list, parts), strict=False))


def _is_strings(values):
    return isinstance(values, list | tuple) and all(
        isinstance(value, str) and value for value in values
    )
