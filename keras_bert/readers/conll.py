"""CoNLL and CoNLL-U: one word per line, in columns; sentences are separated by empty lines.

Columns of CoNLL are separated by tabs or spaces. A line of white space alone is empty, too;
`-DOCSTART-` in any column, or a line `#begin document`, begins a document, and a line that begins a
sentence with a bare "#" and does not have the file's columns is a comment. The first line is a
header if it names a column of words and one of tags.

CoNLL-U has ten columns (universaldependencies.org/format). Its words are the syntactic ones: the
line of a multi-word token ("1-2") only names what the next lines hold, and that of an empty node
("5.1") is not a word of the sentence.
"""

import re
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from keras_bert.base.errors import InputError, argument
from keras_bert.base.formatting import counted, quoted
from keras_bert.readers.columns import usual_columns
from keras_bert.readers.labels import is_number
from keras_bert.readers.schemes import BRACKETS, canonical_names
from keras_bert.readers.table import Table

_DOCUMENT = "-DOCSTART-"
_BEGIN_OF_2012, _END_OF_2012 = "#begin document", "#end document"
# The usual names of columns of words and of tags, in lower case.
WORD_NAMES = ("word", "words", "token", "tokens", "form")
_TAG, _POS = ("tag", "tags"), ("pos", "pos_tag", "pos_tags", "upos")
TAG_NAMES = (*_TAG, "label", "labels", "ner", "ner_tag", "ner_tags", "chunk", "chunk_tags", *_POS)
_NO_TAG = ({"_"}, {"-"}, {"*"})  # columns that hold nothing

CONLLU_COLUMNS = (
    *("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"),
)
_CONLLU_ID = re.compile(r"[0-9]+([-.][0-9]+)?")


# What a line is that has no words: the end of a sentence, or the beginning of a document.
END, DOCUMENT = [], ["-DOCSTART-"]
_ROWS_AT_ONCE = 4096


def tag_columns(names):
    """The names that are usual for tags, in order; without parts of speech beside a "tag"."""
    matches = [name for name in names if name.strip().casefold() in TAG_NAMES]
    if any(name.strip().casefold() in _TAG for name in matches):
        matches = [name for name in matches if name.strip().casefold() not in _POS]
    return matches


def grouped(lines, cells_of):
    """Yields (line of the first word, (number of the document, rows)) of every sentence.

    The rows are (line number, columns of the word). `lines` are (line number, line), and `cells_of`
    makes of these, and of whether a sentence begins, the columns of a word, END, DOCUMENT, or None
    of a line that is left out.
    """
    document, rows, has_sentences = 0, [], False
    for number, line in lines:
        cells = cells_of(number, line, not rows)
        if cells is None:
            continue
        if cells is not END and cells is not DOCUMENT:
            rows.append((number, cells))
            continue
        if rows:
            yield rows[0][0], (document, rows)
            rows, has_sentences = [], True
        if cells is DOCUMENT and has_sentences:
            document, has_sentences = document + 1, False
    if rows:
        yield rows[0][0], (document, rows)


def column_index(source, column, names, *, has_names=True):
    """The index from 0 of a column that the user gave by its name or its number from 1.

    Raises InputError if there is no such column.
    """
    table = Table(source.name, source.kind, "", (), names, has_names=has_names)
    return names.index(table.existing(column))


@dataclass(frozen=True, kw_only=True)
class ConllColumns:
    """How the lines of a CoNLL file are read."""

    word: int  # from 0
    tag: int | None  # None in a file without tags
    width: int  # how many columns there are
    tabs: bool  # single tabs separate them, or else any run of spaces and tabs
    header: int | None  # the line that names the columns
    has_brackets: bool  # the tags are (ORG*, *, *)

    def describe(self):
        split = "tabs" if self.tabs else "spaces"
        header = "" if self.header is None else " and a header line"
        tag = "no tags" if self.tag is None else f"tag in column {self.tag + 1}"
        return f"CoNLL with {split}{header}, word in column {self.word + 1}, {tag}"

    @property
    def schema(self):
        """The columns, from 1, as a model folder stores them; None without tags."""
        if self.tag is None:
            return None
        return {"word": [self.word + 1], "tag": [self.tag + 1], "width": [self.width]}


def looks_like_conll(lines, *, labels):
    """Whether lines without a tab, of (line number, line), are CoNLL rather than plain text.

    They are if a document begins, if every line has one word, with empty lines between, or if
    several have the same number of columns and one of those has tags. If a model's
    `labels` are not known, a column with the same value in all lines has none: sentences begin with
    "I" or "E-mail", too.
    """
    lines = [line.strip() for _, line in lines]
    rows = [cells for line in lines if (cells := _cells(line, tabs=False))]
    if rows and {*map(len, rows)} == {1}:
        return "" in lines[lines.index(rows[0][0]) : -1]
    return has_conll_tags(enumerate(lines, start=1), labels=labels)


def has_conll_tags(lines, *, labels):
    """Whether lines have the marks of CoNLL's documents, or the same number of columns and tags."""
    rows = [cells for _, line in lines if (cells := _cells(line, tabs=False))]
    if any(row[0] == _DOCUMENT for row in rows):
        return True
    if len({*map(len, rows)}) != 1 or len(rows) < 2:
        return False
    columns = [
        counts for counts in map(Counter, zip(*rows, strict=True)) if _is_tags(counts, labels)
    ]
    return any(labels is not None or len(counts) > 1 for counts in columns)


def choose_conll_columns(file, source, *, word, tag, labels, remembered, need_labels):
    """The `ConllColumns` of a file, from all its lines if the user has not given them.

    Tags are in the column of the data that the model was trained on; else in that which a header
    names; else in the only column with tags of chunks, or with a model's `labels`; else in the only
    one that is left over besides the words, numbers and empty columns. Words are in the column with
    most values.

    Raises InputError if tags could be in several columns.
    """
    lines = _columns(file, tabs=False) or _columns(file, tabs=True)
    columns = lines.columns
    if lines.first is None:
        raise InputError(f"{source.name} has no words. CoNLL has one word per line.")
    width = len(columns)
    names = lines.names or [*map(str, range(1, width + 1))]
    word, tag = (
        None if column is None else column_index(source, column, names, has_names=bool(lines.names))
        for column in (word, tag)
    )
    if word is None and tag is None:
        word, tag = _remembered(columns, remembered, labels)
    possible = []
    if lines.names and word is None:
        word = names.index(usual_columns(names, (WORD_NAMES,))[0])
    if tag is None and lines.names:
        possible = [names.index(name) for name in tag_columns(names)]
    elif tag is None:
        possible = _tag_columns(columns, taken=word, labels=labels, need_labels=need_labels)
    if len(possible) > 1 and need_labels:
        raise _question(source, possible, columns)
    if len(possible) == 1:
        (tag,) = possible
    if word is None:
        word = _word_column(columns, taken=tag)
    if word is None or (need_labels and tag is None):
        raise InputError(
            f"Could not read {source.name} as tagged words: line {lines.first} has "
            f"{'one column' if width == 1 else 'no column of tags'}. Expected a word and its tag "
            'per line, separated by a tab or spaces, or JSON Lines with "words" and "tags".'
        )
    if word == tag:
        raise InputError(f"{source.name}: word and tag cannot be the same column.")
    _reject_texts(columns[word], file, source, word=word, tabs=lines.tabs)
    return ConllColumns(
        word=word,
        tag=tag,
        width=width,
        tabs=lines.tabs,
        header=lines.header,
        has_brackets=tag is not None and _are_brackets(columns[tag]),
    )


def _question(source, possible, columns):
    """The InputError for tags that could be in several columns."""
    shown = " or in ".join(
        f"column {number + 1} ({quoted(sorted(columns[number]), most=3)})" for number in possible
    )
    return InputError.naming(
        "{}: the tag could be in {}. Give the right one, such as {}.",
        source.name,
        shown,
        argument("tag_column", possible[-1] + 1),
    )


class _Lines(NamedTuple):
    """The columns of a file: how often each value comes in each of them."""

    first: int | None  # the first line with words
    columns: list
    tabs: bool
    header: int | None  # the line of the header
    names: list  # in the header; empty without one


def _columns(file, *, tabs):
    """The `_Lines` of a file; None if a tab is found in a file of spaces."""
    first, columns, rows, header, names = None, [], [], None, []
    for number, line in file.lines(keep=True):
        if not tabs and "\t" in line.strip() and not line.startswith("#"):
            return None
        cells = _cells(line, tabs=tabs)
        is_word = cells and not line.startswith(_END_OF_2012)
        if not is_word or _begins_document(line, cells) or _has_tab(line, tabs=tabs):
            continue
        if first is None and not _is_comment(cells):
            if header is None and usual_columns(cells, (WORD_NAMES,)) and tag_columns(cells):
                header, names = number, cells
                continue
            first, columns = number, [Counter() for _ in cells]
        if len(cells) == len(columns):  # another number is an error when it is reached
            rows.append(cells)
        if len(rows) == _ROWS_AT_ONCE:
            _count(columns, rows)
            rows = []
    _count(columns, rows)
    return _Lines(first, columns, tabs, header, names)


def _count(columns, rows):
    for counts, cells in zip(columns, zip(*rows, strict=True), strict=False):
        counts.update(cells)


def _remembered(columns, remembered, labels):
    """The columns of word and tag in the data that a model was trained on, or (None, None)."""
    numbers = [remembered.get(name, [None])[0] for name in ("word", "tag")]
    if not all(isinstance(number, int) and number <= len(columns) for number in numbers):
        return None, None
    word, tag = (number - 1 for number in numbers)
    is_same = remembered.get("width") == [len(columns)]
    return (word, tag) if is_same or _is_tags(columns[tag], labels) else (None, None)


def _reject_texts(words, file, source, *, word, tabs):
    """Raises InputError if most words have spaces: a file of labelled texts looks like CoNLL.

    A few words of some treebanks have them.
    """
    if 2 * sum(count for text, count in words.items() if " " in text) <= words.total():
        return
    for number, line in file.lines(keep=True):
        cells = _cells(line, tabs=tabs)
        if len(cells) > word and " " in cells[word] and not _is_comment(cells):
            raise source.error(
                number,
                f"the word {quoted([cells[word]])} contains spaces, as most do, and CoNLL has one "
                "word per line; a file with one text per line is for another task, such as "
                "classifier.",
            )


def conll_sentences(lines, source, columns):
    """The sentences of CoNLL, as `grouped`; `source` makes the InputErrors for lines."""
    width, tabs = columns.width, columns.tabs

    def cells_of(number, line, is_first):
        cells = _cells(line, tabs=tabs)
        if not cells or line.startswith(_END_OF_2012):
            return END
        if _begins_document(line, cells):
            return DOCUMENT
        if number == columns.header or (is_first and _has_tab(line, tabs=tabs)):
            return None
        if len(cells) != width:
            if is_first and _is_comment(cells):
                return None
            raise source.error(
                number,
                f"{counted(len(cells), 'column')}, but the first word's line has {width}; every "
                f"line needs the same number of columns, separated by "
                f"{'single tabs' if tabs else 'spaces'}.",
            )
        return cells

    return grouped(lines, cells_of)


def _cells(line, *, tabs):
    """The columns of a line; [] if it is empty."""
    if tabs:
        return [cell.strip(" ") for cell in line.split("\t")] if line.strip(" \t") else []
    # Not at what Unicode calls white space: a word may hold it.
    cells = line.replace("\t", " ").split(" ")
    return [cell for cell in cells if cell] if "" in cells else cells


def _begins_document(line, cells):
    # In whichever column the words are; some files name the document behind it.
    if line.startswith(_BEGIN_OF_2012):
        return True
    return _DOCUMENT in line and any(cell.partition(" ")[0] == _DOCUMENT for cell in cells)


def _is_comment(cells):
    return cells[0] == "#" or cells[0].startswith("# ")


def _has_tab(line, *, tabs):
    """Whether a line of a file of spaces is a comment with a tab, as those of MultiCoNER."""
    return not tabs and line.startswith("#") and "\t" in line.strip()


def _tag_columns(columns, *, taken, labels, need_labels):
    """The numbers of the columns that could have tags."""
    others = [number for number in range(len(columns)) if number != taken]
    tags = [number for number in others if _is_tags(columns[number], labels)]
    if tags or (labels is not None and not need_labels):
        return tags  # none: other columns than those that the model was trained on
    words = taken if taken is not None else _word_column(columns, taken=None)
    return [
        number
        for number in others
        if number != words
        and {*columns[number]} not in _NO_TAG
        and not all(map(is_number, columns[number]))
    ]


def _is_tags(counts, labels):
    """Whether the values of a column are tags of chunks, or mostly those that a model knows."""
    if labels is not None:
        return 2 * sum(n for tag, n in counts.items() if tag in labels) > counts.total()
    return canonical_names(counts) is not None or _are_brackets(counts)


def _are_brackets(counts):
    return any(cell.startswith("(") for cell in counts) and all(map(BRACKETS.fullmatch, counts))


def _word_column(columns, *, taken):
    """The column with the most values that are not numbers; the first of several."""
    different = {
        number: sum(not value.isdecimal() for value in counts)
        for number, counts in enumerate(columns)
        if number != taken
    }
    return max(different, key=different.get, default=None)


def looks_like_conllu(line):
    """Whether the first line that is not a comment is one of CoNLL-U."""
    cells = line.split("\t")
    return len(cells) == len(CONLLU_COLUMNS) and _CONLLU_ID.fullmatch(cells[0]) is not None


def conllu_cells(line, number, source):
    """The columns of a word of CoNLL-U; InputError of `source` if there are not ten."""
    cells = line.split("\t")
    if len(cells) != len(CONLLU_COLUMNS):
        raise source.error(
            number,
            f"{counted(len(cells), 'column')}; a word of CoNLL-U has {len(CONLLU_COLUMNS)}, "
            "separated by single tabs.",
        )
    return cells


def conllu_sentences(lines, source):
    """The sentences of CoNLL-U, as `grouped`."""

    def cells_of(number, line, is_first):
        if not line.strip():
            return END
        if is_first and line.startswith("#"):
            return DOCUMENT if line[1:].split()[:1] == ["newdoc"] else None
        cells = conllu_cells(line, number, source)
        id = _CONLLU_ID.fullmatch(cells[0])
        if id is None:
            raise source.error(
                number, f'the ID is "{cells[0]}". It should be a number such as 3, 3-4 or 3.1.'
            )
        return None if id[1] else cells

    return grouped(lines, cells_of)
