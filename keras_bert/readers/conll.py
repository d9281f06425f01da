"""CoNLL and CoNLL-U: one word per line, in columns; sentences are separated by empty lines.

Columns of CoNLL are separated by tabs or spaces. A line of white space alone is empty, too;
`-DOCSTART-` in any column begins a document, and a line that begins a sentence with a bare "#" and
does not have the file's columns is a comment.

CoNLL-U has ten columns (universaldependencies.org/format). Its words are the syntactic ones: the
line of a multi-word token ("1-2") only names what the next lines hold, and that of an empty node
("5.1") is not a word of the sentence.
"""

import re
from collections import Counter
from dataclasses import dataclass

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, quoted
from keras_bert.readers.tables import Table

_DOCUMENT = "-DOCSTART-"
# B-PER, I-NP, S-LOC, … or O: what tags of chunks look like, in any of their schemes.
_CHUNK_TAG = re.compile(r"O|[BIOESLUMW]-.+|[BIES]")

CONLLU_COLUMNS = (
    *("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"),
)
_CONLLU_ID = re.compile(r"[0-9]+([-.][0-9]+)?")


# What a line is that has no words: the end of a sentence, or the beginning of a document.
END, DOCUMENT = [], ["-DOCSTART-"]
_ROWS_AT_ONCE = 4096


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

    Raises InputError where there is no such column.
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
    has_predictions: bool = False  # in the last column, as in the input of conlleval

    def describe(self):
        split = "tabs" if self.tabs else "spaces"
        tag = "no tags" if self.tag is None else f"tag in column {self.tag + 1}"
        more = f" (not the predictions in column {self.width})" if self.has_predictions else ""
        return f"CoNLL with {split}, word in column {self.word + 1}, {tag}{more}"

    @property
    def schema(self):
        """The columns, from 1, as a model folder stores them; None without tags."""
        if self.tag is None:
            return None
        return {"word": [self.word + 1], "tag": [self.tag + 1], "width": [self.width]}


def looks_like_conll(lines, *, labels):
    """Whether lines without a tab, of (line number, line), are CoNLL rather than plain text.

    They are where a document begins; where every line has one word, with empty lines between; or
    where several have the same number of columns and one of those has tags. Where a model's
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
    """The `ConllColumns` of a file, from all its lines where the user has not given them.

    Tags are in the column of the data that the model was trained on; else in the column with tags
    of chunks or with a model's `labels`, in the last of several, and else in the last column of few
    values. Where the last two columns have the same kinds of tags, the last one has predictions, as
    in the input of conlleval. Words are in the column with most values.
    """
    first, columns, tabs = _columns(file, tabs=False) or _columns(file, tabs=True)
    if first is None:
        raise InputError(f"{source.name} has no words. CoNLL has one word per line.")
    width = len(columns)
    numbers = [*map(str, range(1, width + 1))]
    word, tag = (
        None if column is None else column_index(source, column, numbers, has_names=False)
        for column in (word, tag)
    )
    if word is None and tag is None:
        word, tag = _remembered(columns, remembered, labels)
    has_predictions = False
    if tag is None:
        tag, has_predictions = _tag_column(
            columns, source, taken=word, labels=labels, need_labels=need_labels
        )
    if word is None:
        word = _word_column(columns, taken=tag)
    if word is None or (need_labels and tag is None):
        raise InputError(
            f"Could not read {source.name} as tagged words: line {first} has one column. Expected "
            'a word and its tag per line, separated by a tab or spaces, or JSON Lines with "words" '
            'and "tags".'
        )
    if word == tag:
        raise InputError(f"{source.name}: word and tag cannot be the same column.")
    _reject_texts(columns[word], file, source, word=word, tabs=tabs)
    return ConllColumns(word=word, tag=tag, width=width, tabs=tabs, has_predictions=has_predictions)


def _columns(file, *, tabs):
    """-> (the first line with words, how often each value of each column comes, `tabs`).

    None where a tab is found in a file of spaces.
    """
    first, columns, rows = None, [], []
    for number, line in file.lines(keep=True):
        if not tabs and "\t" in line and "\t" in line.strip():
            return None
        cells = _cells(line, tabs=tabs)
        if not cells or (_DOCUMENT in line and _begins_document(cells)):
            continue
        if first is None and not _is_comment(cells):
            first, columns = number, [Counter() for _ in cells]
        if len(cells) == len(columns):  # another number is an error when it is reached
            rows.append(cells)
        if len(rows) == _ROWS_AT_ONCE:
            _count(columns, rows)
            rows = []
    _count(columns, rows)
    return first, columns, tabs


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
    """Raises InputError where most words have spaces: a file of labelled texts looks like CoNLL.

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
        if not cells:
            return END
        if _DOCUMENT in line and _begins_document(cells):
            return DOCUMENT
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
    """The columns of a line; [] where it is empty."""
    if tabs:
        return [cell.strip(" ") for cell in line.split("\t")] if line.strip(" \t") else []
    # Not at what Unicode calls white space: a word may hold it.
    cells = line.replace("\t", " ").split(" ")
    return [cell for cell in cells if cell] if "" in cells else cells


def _begins_document(cells):
    # In whichever column the words are; some files name the document behind it.
    return any(cell.partition(" ")[0] == _DOCUMENT for cell in cells)


def _is_comment(cells):
    return cells[0] == "#" or cells[0].startswith("# ")


def _tag_column(columns, source, *, taken, labels, need_labels):
    """-> (the number of the column with tags or None, whether the last one has predictions)."""
    others = [number for number in range(len(columns)) if number != taken]
    tags = [number for number in others if _is_tags(columns[number], labels)]
    last = len(columns) - 1
    if tags and last - 1 in tags and last in others:
        before, kinds = _kinds(columns[last - 1]), _kinds(columns[last])
        is_known = labels is not None and last in tags
        if is_known or (labels is None and last in tags and kinds <= before):
            return last - 1, True
        if labels is None and {*columns[last]} == {"O"}:
            raise InputError.naming(
                "{}: the tag could be in column {}, or in column {}, which has O for all words. "
                "Give the right one as {tag_column}.",
                source.name,
                last,
                last + 1,
            )
    if tags:
        return tags[-1], False
    if labels is not None and not need_labels:
        return None, False  # other columns than those that the model was trained on
    # A tag is repeated; the words are those with the most values.
    words = taken if taken is not None else _word_column(columns, taken=None)
    rest = [number for number in others if number != words]
    few = [number for number in rest if 2 * len(columns[number]) <= columns[number].total()]
    return (few or rest or [None])[-1], False


def _kinds(counts):
    return {tag[2:] for tag in counts if tag != "O"}


def _is_tags(counts, labels):
    """Whether the values of a column are tags of chunks, or mostly those that a model knows."""
    if labels is not None:
        return 2 * sum(n for tag, n in counts.items() if tag in labels) > counts.total()
    return all(map(_CHUNK_TAG.fullmatch, counts)) and any(tag != "O" for tag in counts)


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
    """The columns of a word of CoNLL-U; InputError of `source` where there are not ten."""
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
