"""Sentences whose words have a tag each: from CoNLL, CoNLL-U, tables, JSON Lines or Python."""

import re
from dataclasses import dataclass

from keras_bert.base.errors import InputError, Naming, argument
from keras_bert.base.formatting import quoted
from keras_bert.readers.columns import given_or_remembered, usual_columns
from keras_bert.readers.conll import (
    CONLLU_COLUMNS,
    END,
    TAG_NAMES,
    WORD_NAMES,
    choose_conll_columns,
    column_index,
    conll_sentences,
    conllu_sentences,
    grouped,
    has_conll_tags,
    looks_like_conll,
    looks_like_conllu,
    tag_columns,
)
from keras_bert.readers.examples import Example, ExampleSource, Missing
from keras_bert.readers.labels import is_missing, list_of
from keras_bert.readers.objects import check_tag_per_word
from keras_bert.readers.offsets import SpanTagger, span_key
from keras_bert.readers.schemes import tags_of_brackets
from keras_bert.readers.sources import CSV, STANDARD_INPUT_NAME, TSV, TXT, TextFile, is_text
from keras_bert.readers.tables import open_objects, open_table

WORDS, TAGS = "words", "tags"  # the keys of items of a sequence
TEXT_KEY, DOCUMENT_KEY = "text", "document"
# The usual names of the sentence's number, in lower case, in a table with one word per row.
_SENTENCE_NAMES = (
    *("sentence_id", "sentence", "sentence #", "sentence_number", "sentence number"),
    *("sentence id", "sentence_idx", "sent_id", "sent"),
)
_SHOWN_WORDS = 8
_NAMES = {*WORD_NAMES, *TAG_NAMES, *_SENTENCE_NAMES}
_NO_LABEL = "-100"
_WORDS = re.compile(r"\S+")


@dataclass(slots=True)
class TaggedWords(Example):
    """The words of a sentence, and a tag for each or None if nobody gave them."""

    words: tuple[str, ...] | None  # None if a `text` is still to be split by a tokenizer
    tags: tuple[str, ...] | None = None
    lines: tuple[int, ...] | None = None  # of each word; None if all are on one
    document: int = 0  # the number of its document in the source, from 0
    text: str | None = None  # if the sentence was given as a string
    starts: tuple[int, ...] | None = None  # where each word begins in `text`, in characters

    @property
    def unit(self):
        return self.text if self.words is None else self.words

    def line_of(self, word):
        return self.line if self.lines is None else self.lines[word]

    def error(self, message, *, word=None):
        """The InputError that names the location of the sentence, or of one of its words."""
        return self.source.error(self.line if word is None else self.line_of(word), message)


class TaggedSource(ExampleSource):
    """The `TaggedWords` of a source.

    A `.txt` file is CoNLL if tags are needed, and otherwise has one sentence per line, which a
    tokenizer splits into words later; `.conll` and `.tsv` are CoNLL or CoNLL-U, `.jsonl` and
    `.json` have "words" and "tags". A CSV, and a TSV whose header names them, has one word per row
    and the number of its sentence, which may be missing in all rows but the first of a sentence; or
    a list of words and of tags in each row. Standard input and other files are recognised by their
    content.

    Objects with a "text", without words, and with its spans of characters in "label", "labels",
    "spans" or "entities", have the words and tags of `SpanTagger`.

    Objects with the same "document" are of one document; one without is a document of its own. The
    items of a sequence are strings, lists of words, pairs (words, tags), or dictionaries with the
    keys of JSON Lines, such as the rows of a table in memory.

    Args:
        data, common: see `ExampleSource`.
        word_column, tag_column: a number from 1, a key of JSON objects, the name of a feature, or
            a name of CoNLL-U's columns (FORM and UPOS there, if they are None); None is by the
            content of the whole file.
        sentence_column: of a table with one word per row, the column of the sentence's number.
        pretokenized: plain texts are words separated by white space.

    Attributes: `labelled` (whether there are tags), and those of `ExampleSource`; of a file, `kind`
    may also be "conll" and "conllu".
    """

    ITEM = ROW = "sentence"
    _has_brackets = False

    def __init__(
        self,
        data,
        *,
        word_column=None,
        tag_column=None,
        sentence_column=None,
        pretokenized=False,
        **common,
    ):
        self._given = {"word": word_column, "tag": tag_column, "sentence": sentence_column}
        self._pretokenized, self._documents = pretokenized, {}
        self._tags_of_spans, self._span_key = SpanTagger(self), None
        columns = {"word_column": word_column, "tag_column": tag_column}
        super().__init__(data, file_settings=columns, **common)

    def _open(self, data):
        item_options = {"item": self.ITEM, "as_record": self._as_record}
        records = open_objects(data, comment="#", **item_options)
        if isinstance(records, TextFile) and self._is_table(records):
            about = {"least": 1, "noun": "tagged words", "header_names": _NAMES}
            records = open_table(records, **about, **item_options)
        return records

    def _examples_of(self, records):
        if not isinstance(records, TextFile) and self._has_word_per_row(records):
            return self._read_rows(records)
        return super()._examples_of(records)

    def first_examples(self, examples):
        (sentence,) = examples
        if sentence.tags is None:
            return ""
        pairs = [*zip(sentence.words, sentence.tags, strict=True)][:_SHOWN_WORDS]
        shown = " ".join(f"{word} ({tag})" for word, tag in pairs)
        return f"First example: {shown}{' …' if len(sentence.words) > len(pairs) else ''}"

    # What it is.

    def _column(self, table, role, *, is_list=False):
        """The column of "word", "tag" or "sentence": given, that of training, or a usual name.

        None without one; a "label" is not usual for a list. Raises InputError if several could be
        meant.
        """
        given = given_or_remembered(self._given, self._schema, table.names).get(role)
        if given is not None:
            return table.existing(given[0])
        if role == "tag":
            names = tag_columns(name for name in table.names if not (is_list and name == "label"))
        else:
            groups = (WORD_NAMES if role == "word" else _SENTENCE_NAMES,)
            names = sorted(usual_columns(table.names, groups), key=table.names.index)
        if len(names) > 1 and (role != "tag" or self._need_labels):
            raise InputError.naming(
                "{}: the {} could be in {}. Give the right one as {}.",
                table.name,
                role,
                quoted(names),
                argument(f"{role}_column"),
            )
        return names[0] if len(names) == 1 else None

    def _has_word_per_row(self, table):
        """Whether a table has one word per row, and not a list; InputError without sentences."""
        if table.kind == "given":
            return False
        word = self._column(table, "word")
        cell = (table.peek() or (0, {}))[1].get(word)
        if not isinstance(cell, str) or cell.strip()[:1] in ("[", "("):
            return False
        if self._column(table, "sentence") is None:
            raise InputError.naming(
                "{} has one word per row in {}, and no column with the number of its sentence "
                "(sentence_id). Name that as {sentence_column}; if empty lines separate sentences, "
                "it is CoNLL: name the file .conll and separate columns by tabs or spaces.",
                table.name,
                table.describe(word),
            )
        return True

    def _is_table(self, file):
        if file.form == CSV or self._given["sentence"] is not None:
            return True
        rows = (file.first[1].split(delimiter) for delimiter in "\t,;")
        return file.form in (TSV, None) and any(
            usual_columns(row, (WORD_NAMES,)) and usual_columns(row, (_SENTENCE_NAMES,))
            for row in rows
        )

    def _kind_of(self, file):
        (_, line), labels = file.first, self._labels
        is_table = self._need_labels or any(column is not None for column in self._given.values())
        if looks_like_conllu(line) and (is_table or file.form != TXT):
            return "conllu"
        if file.form == TXT and not is_table:
            if has_conll_tags(file.lines(keep=True), labels=labels):
                raise InputError.naming(
                    "{} could be CoNLL or plain text: its lines have words and tags, and a .txt "
                    "file has one sentence per line. Name it .conll, or give {word_column}.",
                    self.name,
                )
            return "lines"
        if is_table or file.form is not None or "\t" in line.strip():
            return "conll"
        # A pipe is answered line by line.
        is_pipe = self.name == STANDARD_INPUT_NAME
        is_conll = not is_pipe and looks_like_conll(file.lines(keep=True), labels=labels)
        return "conll" if is_conll else "lines"

    # Files with one word per line.

    def _read_file(self, file):
        self.kind = self._kind_of(file)
        if self.kind == "lines":
            self.labelled = False
            words = "words separated by spaces" if self._pretokenized else "split by the tokenizer"
            self.how = f"plain lines, one sentence per line, {words}"
            return (self._tagged_text(line, number, number - 1) for number, line in file.lines())
        if self.kind == "conllu":
            names = CONLLU_COLUMNS
            columns = given_or_remembered(self._given, self._schema, names)
            given = (columns.get("word", ["FORM"])[0], columns.get("tag", ["UPOS"])[0])
            given = [name.upper() if name.upper() in names else name for name in given]
            word, tag = (column_index(self, name, names) for name in given)
            self.schema = {"word": [names[word]], "tag": [names[tag]]}
            self.how = f"CoNLL-U, word in {names[word]}, tag in {names[tag]}"
            self._set_columns(word, tag, (names[word], names[tag]), empty={"", "_"})
            return self._each(conllu_sentences(file.lines(), self), self._tagged_words)
        columns = choose_conll_columns(
            file,
            self,
            word=self._given["word"],
            tag=self._given["tag"],
            labels=self._labels,
            remembered=self._schema,
            need_labels=self._need_labels,
        )
        self.schema, self.how = columns.schema, columns.describe()
        numbers = (f"column {n + 1}" for n in (columns.word, columns.tag) if n is not None)
        self._set_columns(columns.word, columns.tag, tuple(numbers))
        self._has_brackets = columns.has_brackets
        return self._each(conll_sentences(file.lines(), self, columns), self._tagged_words)

    def _set_columns(self, word, tag, names, *, empty=frozenset([""])):
        """Sets the numbers of the cells of words and tags in a row, and the names of both."""
        self._word, self._tag, self._names, self._empty = word, tag, names, empty
        self.labelled = tag is not None

    def _tagged_words(self, line, sentence):
        """The `TaggedWords` of the number of a document and rows, (line, cells) of each word."""
        document, rows = sentence
        lines, cells = zip(*rows, strict=True)
        words, tags = tuple([row[self._word] for row in cells]), None
        self._check_filled("word", words, lines)
        if self._tag is not None:
            tags = tuple([row[self._tag] for row in cells])
            if self._has_brackets:
                tags = self._tags_of_brackets(tags, lines)
            if {*tags} <= self._empty:
                tags = self._no_tags(self._names[1])
            else:
                self._check_filled("tag", tags, lines)
        return TaggedWords(line, words, tags, lines, document, source=self)

    def _tags_of_brackets(self, cells, lines):
        try:
            return tags_of_brackets(cells)
        except ValueError as error:
            word, message = error.args
            raise self.error(lines[word], message) from None

    def _no_tags(self, place):
        """None, the tags of a sentence that has none; Missing if they are needed."""
        if self._need_labels:
            raise Missing("tags", place=place)

    def _check_filled(self, role, cells, lines):
        if "" in cells:
            name = self._names[role == "tag"]
            message = f"no {role} in {name}."
            if self.kind == "conllu":
                message = f"{name} is empty; write _ for nothing."
            raise self.error(lines[cells.index("")], message)

    def _read_rows(self, table):
        names = {role: self._column(table, role) for role in ("word", "tag", "sentence")}
        if names["tag"] is None and self._need_labels:
            raise self._no_column("tag", table)
        tags = f'tag in "{names["tag"]}"' if names["tag"] else "no tags"
        self.how = (
            f'{table.format}, one word per row in "{names["word"]}", {tags}, number of the '
            f'sentence in "{names["sentence"]}"'
        )
        self.schema = {role: [name] for role, name in names.items() if name is not None}
        shown = tuple(f'"{names[role]}"' for role in ("word", "tag"))
        self._set_columns(0, 1 if names["tag"] else None, shown)
        sentences = grouped(self._cells_of_rows(table, **names), lambda line, cells, first: cells)
        return self._each(sentences, self._tagged_words)

    def _no_column(self, role, table):
        """The InputError for a table without a column of words or tags."""
        return self.error(
            1,
            Naming(
                "no {}s among the {} ({}); give them as {}{}.",
                role,
                table.calls_columns,
                quoted(table.names),
                argument(f"{role}_column"),
                ', or a "text" and its spans as "label": [[start, end, "NAME"], …]'
                if role == "word"
                else "",
            ),
        )

    def _cells_of_rows(self, table, *, word, tag, sentence):
        """Yields (line, [the word, its tag]) of each row, and (line, END) between sentences."""
        number, begun = None, set()
        for line, row in table:
            given_id = row.get(sentence)
            if not is_missing(given_id, na=table.are_cells) and given_id != number:
                yield line, END
                if given_id in begun:
                    raise self.error(
                        line,
                        f"sentence {given_id} comes again after other sentences. Sort the rows by "
                        f'"{sentence}".',
                    )
                begun.add(number := given_id)
            cells = (row.get(name) for name in (word, tag))
            yield line, ["" if cell is None else str(cell).strip() for cell in cells]

    # Objects with lists of words and tags.

    def _read_objects(self, records):
        """The examples of dictionaries, whose keys are chosen by their names."""
        if self.kind == "given":
            self._word, self._tag = WORDS, TAGS
            self.labelled = any(self._tag in record for _, record in records)
            return self._each(records, self._read_keys)
        word = self._column(records, "word")
        if word is None and self._given["tag"] is None and TEXT_KEY in records.names:
            self._span_key = span_key(records.names, has_words=False)
        if self._span_key is not None:
            self.labelled = True
            self.how = f'{records.format}, text in "{TEXT_KEY}", spans in "{self._span_key}"'
            return self._each(records, self._read_spans)
        tag = self._column(records, "tag", is_list=True)
        for role, name in (("word", word), ("tag", tag)):
            if name is None and self._need_labels:
                raise self._no_column(role, records)
        if word is None and TEXT_KEY not in records.names:
            raise self.error(
                1,
                f'no column with the words and no "{TEXT_KEY}" among {quoted(records.names)}; give '
                "either.",
            )
        self._word, self._tag, self.labelled = word or WORDS, tag or TAGS, tag is not None
        words = f'words in "{word}"' if word is not None else f'text in "{TEXT_KEY}"'
        tags = f'tags in "{tag}"' if self.labelled else "no tags"
        self.how = f"{records.format}, {words}, {tags}"
        self.schema = {"word": [word], "tag": [tag]} if self.labelled and word else None
        return self._each(records, self._read_keys)

    def _read_keys(self, number, record):
        name = record.get(DOCUMENT_KEY)
        key = (number,) if name is None else str(name)
        document = self._documents.setdefault(key, len(self._documents))
        if self.kind == "given" and self._need_labels and self._tag not in record:
            raise self.error(number, "no tags. Give a pair of the words and their tags.")
        if record.get(self._word) is None and not self._need_labels:
            text = record.get(TEXT_KEY)
            text = text if self.kind == "given" else self._text(number, record, TEXT_KEY)
            return self._tagged_text(text, number, document)
        words = self._strings(number, record, self._word)
        if not words and self._need_labels:
            raise Missing("a word", place=f'"{self._word}"')
        tags = self._strings(number, record, self._tag)
        if tags is None:
            tags = self._no_tags(f'"{self._tag}"')
        else:
            check_tag_per_word(words, tags, number, self)
        return TaggedWords(number, words or (), tags, document=document, source=self)

    def _read_spans(self, number, record):
        """The `TaggedWords` of a text and its spans of characters."""
        name = record.get(DOCUMENT_KEY)
        key = (number,) if name is None else str(name)
        document = self._documents.setdefault(key, len(self._documents))
        spans = record.get(self._span_key)
        if spans is None and self._need_labels:
            raise Missing("spans", place=f'"{self._span_key}"')
        text = self._text(number, record, TEXT_KEY)
        if spans is None:
            return self._tagged_text(text, number, document)
        words, starts, tags = self._tags_of_spans(text, spans, number)
        if not words and self._need_labels:
            raise Missing("a word", place=f'"{TEXT_KEY}"')
        place = {"document": document, "text": text, "starts": starts, "source": self}
        return TaggedWords(number, words, tags, **place)

    def _more_notes(self):
        return self._tags_of_spans.notes()

    def _tagged_text(self, text, number, document):
        """The `TaggedWords` of a string: split at white space now, or by a tokenizer later."""
        words = starts = None
        if self._pretokenized:
            matches = list(_WORDS.finditer(text))
            words = tuple(match[0] for match in matches)
            starts = tuple(match.start() for match in matches)
        return TaggedWords(number, words, document=document, text=text, starts=starts, source=self)

    def _strings(self, number, record, key):
        """A list of words or tags as a tuple, None for none; numbers are as they are written."""
        strings = record.get(key)
        if strings is None:
            return None
        if isinstance(strings, str) and self.kind in (CSV, TSV):
            strings = list_of(strings)
        if isinstance(strings, list | tuple) and all(type(x) in (str, int) for x in strings):
            strings = tuple(map(str, strings))
            if key == self._tag and _NO_LABEL in strings:
                raise self.error(
                    number,
                    f'"{key}" has {_NO_LABEL}, by which transformers marks tokens that are not '
                    "trained on. Give the words, and one tag for each.",
                )
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
            parts = [sentence[key] for key in (WORDS, TAGS) if key in sentence]
            if isinstance(sentence.get(TEXT_KEY), str) and not parts:
                return {TEXT_KEY: sentence[TEXT_KEY]}
        elif isinstance(sentence, list | tuple) and len(sentence) == 2:
            if not any(isinstance(part, str) for part in sentence):
                parts = list(sentence)
        if not parts or not all(map(_is_strings, parts)):
            raise ValueError(
                "A sentence must be a string, a list of words, a pair of words and tags, or a "
                f'dictionary with "words". Received: {sentence!r}.'
            )
        return dict(zip((WORDS, TAGS), map(list, parts), strict=False))


def _is_strings(items):
    return isinstance(items, list | tuple) and all(
        isinstance(value, str) and value for value in items
    )
