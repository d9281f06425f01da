"""Sentences whose words have a tag each: from CoNLL, CoNLL-U, tables, JSON Lines or Python."""

import re
from dataclasses import dataclass

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed, quoted
from keras_bert.readers.columns import column_index
from keras_bert.readers.conll import (
    CONLLU_COLUMNS,
    choose_conll_columns,
    conll_sentences,
    conllu_sentences,
    has_conll_tags,
    looks_like_conll,
    looks_like_conllu,
)
from keras_bert.readers.labels import is_missing, list_of
from keras_bert.readers.sources import (
    CSV,
    TSV,
    TXT,
    Example,
    ExampleSource,
    TextFile,
    form_of,
    is_text,
)
from keras_bert.readers.tables import open_objects, open_table

WORD_KEYS = ("words", "tokens")
TAG_KEYS = ("tags", "ner_tags", "pos_tags", "labels", "ner", "upos")
TEXT_KEY, DOCUMENT_KEY = "text", "document"
# The columns, in lower case, of a table with one word per row; names of an earlier group win.
_SENTENCES = (
    ("sentence_id", "sentence", "sentence #", "sentence_number", "sentence number", "sentence id")
    + ("sentence_idx", "sent_id", "sent"),
)
_WORDS_OF_ROWS = (("word", "words", "token", "tokens", "form"),)
_TAGS_OF_ROWS = (
    ("tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags"),
    ("pos", "pos_tag", "upos"),
)
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

    A `.txt` file is CoNLL where tags are needed, and otherwise has one sentence per line, which a
    tokenizer splits into words later; `.conll` and `.tsv` are CoNLL or CoNLL-U, `.jsonl` and
    `.json` have "words" and "tags". A CSV, and a TSV whose header names them, has one word per row
    and the number of its sentence, which may be missing in all rows but the first of a sentence; or
    a list of words and of tags in each row. Standard input and other files are recognised by their
    content.

    Objects with the same "document" are of one document; one without is a document of its own. The
    items of a sequence are strings, lists of words, pairs (words, tags), or dictionaries with the
    keys of JSON Lines, such as the rows of a table in memory.

    Args:
        data: see `ExampleSource`.
        word_column, tag_column: a number from 1, a key of JSON objects, the name of a feature, or
            a name of CoNLL-U's columns (FORM and UPOS there, where they are None); None is by the
            content of the whole file.
        sentence_column: of a table with one word per row, the column of the sentence's number.
        labels: the tags that a model knows, by which their column is recognised.
        schema: the columns of the data that a model was trained on, as another source has them.
        need_tags: whether a sentence without tags is an error.
        pretokenized: plain texts are words separated by white space.

    Attributes: `labelled` (whether there are tags), and those of `ExampleSource`; of a file, `kind`
    may also be "conll" and "conllu".
    """

    ITEM = "sentence"  # what messages call one of a sequence

    def __init__(
        self,
        data,
        *,
        word_column=None,
        tag_column=None,
        sentence_column=None,
        labels=None,
        schema=None,
        need_tags=True,
        pretokenized=False,
    ):
        self._sentence_column = sentence_column
        records = open_objects(
            data,
            item=self.ITEM,
            as_record=self._as_record,
            comment="#",
            is_row=self._has_word_per_row,
        )
        self._form = form_of(data) if isinstance(records, TextFile) else None
        if isinstance(records, TextFile) and self._is_table(records):
            names = {
                name for group in _SENTENCES + _WORDS_OF_ROWS + _TAGS_OF_ROWS for name in group
            }
            records = open_table(
                data, item=self.ITEM, as_record=None, noun="tagged words", header_names=names
            )
        super().__init__(records, word_column=word_column, tag_column=tag_column)
        self._need_tags = need_tags
        self._pretokenized = pretokenized
        columns, schema = {"word": word_column, "tag": tag_column}, schema or {}
        if isinstance(records, TextFile):
            examples = self._of_file(records, columns, labels=labels, schema=schema)
            self._set_examples(examples)
            return
        columns = _with_remembered(columns, schema, names=records.names)
        if self._has_rows_of_words(records):
            examples = self._of_rows(records, **columns)
        else:
            examples = self._of_objects(records, **columns)
        self._set_examples(examples)

    def _has_word_per_row(self, row):
        """Whether a row of a table has one word, and the number of its sentence."""
        lower = {str(name).strip().casefold(): value for name, value in row.items()}
        word = next((lower[name] for name in _WORDS_OF_ROWS[0] if name in lower), None)
        has_sentence = self._sentence_column is not None or not lower.keys().isdisjoint(
            _SENTENCES[0]
        )
        return isinstance(word, str) and has_sentence

    def _has_rows_of_words(self, table):
        if table.kind == "given" or not self._has_word_per_row(dict.fromkeys(table.names, "")):
            return False
        return self._has_word_per_row((table.peek() or (0, {}))[1])

    def _is_table(self, file):
        if self._form == CSV or self._sentence_column is not None:
            return True
        line = file.head[-1][1]
        is_row = any(
            self._has_word_per_row(dict.fromkeys(line.split(delimiter), "")) for delimiter in "\t,;"
        )
        return self._form in (TSV, None) and is_row

    def _of_file(self, file, columns, *, labels, schema):
        is_given = any(column is not None for column in columns.values())
        self.kind = self._kind_of(file, labels=labels, is_table=self._need_tags or is_given)
        if self.kind == "conll":
            return self._of_conll(file, **columns, labels=labels, schema=schema)
        if self.kind == "conllu":
            columns = _with_remembered(columns, schema, names=CONLLU_COLUMNS)
            return self._of_conllu(file.lines(), **columns)
        self.labelled = False
        how = "words separated by spaces" if self._pretokenized else "split by the tokenizer"
        self.description = f"{self.name}: plain lines, one sentence per line, {how}"
        return (
            self._of_text(line, number, document)
            for document, (number, line) in enumerate(file.lines())
        )

    def _kind_of(self, file, *, labels, is_table):
        line = file.head[-1][1]
        if looks_like_conllu(line) and (is_table or self._form != TXT):
            return "conllu"
        if self._form == TXT and not is_table:
            if has_conll_tags(file.lines(), labels=labels):
                raise InputError.naming(
                    "{} could be CoNLL or plain text: its lines have words and tags, and a .txt "
                    "file has one sentence per line. Name it .conll, or give {word_column}.",
                    self.name,
                )
            return "lines"
        if is_table or self._form is not None or "\t" in line.strip():
            return "conll"
        if self.name != "standard input":  # a pipe is answered line by line
            file.hold()
            if looks_like_conll(file.lines(), labels=labels):
                return "conll"
        return "lines"

    def _of_conll(self, file, *, word, tag, labels, schema):
        file.hold()
        columns = choose_conll_columns(
            file,
            self,
            word=word,
            tag=tag,
            labels=labels,
            remembered=schema,
            need_tags=self._need_tags,
        )
        self.labelled = columns.tag is not None
        self.schema = columns.schema
        self.description = f"{self.name}: {columns.describe()}"
        return self._of_sentences(conll_sentences(file.lines(), self, columns))

    def _of_conllu(self, lines, *, word, tag):
        names = CONLLU_COLUMNS
        given = (word or "FORM", tag or "UPOS")
        given = [str(name).upper() if str(name).upper() in names else name for name in given]
        word, tag = (column_index(self, name, names=names, width=len(names)) for name in given)
        self.labelled = True
        self.schema = {"word": [names[word]], "tag": [names[tag]]}
        self.description = f"{self.name}: CoNLL-U, word in {names[word]}, tag in {names[tag]}"
        return self._of_sentences(
            conllu_sentences(lines, self, word=word, tag=tag, need_tags=self._need_tags)
        )

    def _of_sentences(self, sentences):
        for words, tags, lines, document in sentences:
            yield TaggedWords(lines[0], words, tags, lines, document, source=self)

    def _of_rows(self, table, *, word, tag):
        """The sentences of a table with one word per row."""
        names = {"word": word, "tag": tag, "sentence": self._sentence_column}
        groups = {"word": _WORDS_OF_ROWS, "tag": _TAGS_OF_ROWS, "sentence": _SENTENCES}
        for role, given in names.items():
            names[role] = self._column(table, role, given, groups[role])
        self.labelled = names["tag"] is not None
        tags = f'tag in "{names["tag"]}"' if self.labelled else "no tags"
        self.description = (
            f'{self.name}: {table.format}, one word per row in "{names["word"]}", {tags}, number '
            f'of the sentence in "{names["sentence"]}"'
        )
        self.schema = {role: [name] for role, name in names.items() if name is not None}
        return self._of_sentences(self._sentences_of_rows(table, **names))

    def _column(self, table, role, given, groups):
        if given is not None:
            column_index(table, given, names=table.names, width=len(table.names))
            return table.column(given)
        for group in groups:
            names = [name for name in table.names if name.strip().casefold() in group]
            if len(names) > 1:
                raise InputError(
                    f"{table.name}: the {role} could be in {quoted(names)}. Give the right "
                    f"one as `{role}_column`."
                )
            if names:
                return names[0]
        if role == "tag" and not self._need_tags:
            return None
        raise self.error(
            1,
            f"no column with the {role} among {quoted(table.names)}; give it as `{role}_column`.",
        )

    def _sentences_of_rows(self, table, *, word, tag, sentence):
        """Yields (words, tags or None, line of each word, number of the document)."""
        number, begun, words, tags, lines = None, set(), [], [], []
        for line, row in table:
            of_row = row.get(sentence)
            if not is_missing(of_row, na=table.are_cells) and of_row != number:
                if words:
                    yield tuple(words), tuple(tags) if tag else None, tuple(lines), 0
                number, words, tags, lines = of_row, [], [], []
                if number in begun:
                    raise self.error(
                        line,
                        f"sentence {number} comes again after other sentences. Sort the rows by "
                        f'"{sentence}".',
                    )
                begun.add(number)
            for role, column in (("word", word), ("tag", tag)):
                value = row.get(column) if column else ""
                # A word may be the text NA; a tag that is NA is missing.
                if column and (value is None or not str(value).strip()):
                    raise self.error(line, f'no {role} in "{column}".')
            words.append(str(row[word]).strip())
            tags.append(str(row[tag]).strip() if tag else None)
            lines.append(line)
        if words:
            yield tuple(words), tuple(tags) if tag else None, tuple(lines), 0

    def _of_objects(self, records, *, word, tag):
        """The examples of dictionaries, whose keys are chosen by the first of them."""
        if self.kind == "given":
            self.labelled = any("tags" in record for _, record in records)
            return self._of_keys(records, WORD_KEYS[0], TAG_KEYS[0])
        number, keys = 1, records.names
        word = word or next((key for key in WORD_KEYS if key in keys), WORD_KEYS[0])
        tag = tag or next((key for key in TAG_KEYS if key in keys), TAG_KEYS[0])
        for role, key in (("word", word), ("tag", tag)):
            if self._need_tags and key not in keys:
                raise self.error(
                    number,
                    f'no "{key}" among the keys ({listed(keys)}); give the key of the {role}s as '
                    f"`{role}_column`.",
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
        self.schema = {"word": [word], "tag": [tag]} if self.labelled else None
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
        strings = record.get(key)
        if isinstance(strings, str) and self.kind in (CSV, TSV):
            strings = list_of(strings)
        if isinstance(strings, list) and all(type(value) in (str, int) for value in strings):
            strings = tuple(map(str, strings))
            if all(value and is_text(value) for value in strings):
                return strings
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
                next((k for k in names if k in sentence), None) for names in (WORD_KEYS, TAG_KEYS)
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


def _with_remembered(columns, schema, *, names):
    """The given columns, with those of training in place of None where a source has them."""
    remembered = {role: name for role, (name, *_) in schema.items() if name in names}
    return {
        role: remembered.get(role) if column is None else column for role, column in columns.items()
    }


def _is_strings(items):
    return isinstance(items, list | tuple) and all(
        isinstance(value, str) and value for value in items
    )
