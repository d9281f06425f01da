"""CoNLL: a word a line, its columns parted by tabs or spaces, sentences parted by empty lines.

A line that holds nothing but white space is empty, too; `-DOCSTART-` in any column begins a
document, and a line that begins a sentence with a bare "#" and has not the file's columns is a
comment.
"""

import re
from dataclasses import dataclass

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, quoted

_DOCUMENT = "-DOCSTART-"
_BLANKS = re.compile(r"[ \t]+")  # not what Unicode calls white space: a word may hold it
# B-PER, I-NP, S-LOC, … or O: what tags of chunks look like, in any of their schemes.
_CHUNK_TAG = re.compile(r"O|[BIOESLUMW]-.+|[BIES]")


@dataclass(frozen=True, kw_only=True)
class ConllColumns:
    """How the lines of a CoNLL file are read.

    `word` and `tag` count from 0; `tag` is None in a file without tags. `width` is how many there
    are, `tabs` whether single tabs part them or else any run of spaces and tabs.
    """

    word: int
    tag: int | None
    width: int
    tabs: bool

    def describe(self):
        """A part of a line for the user."""
        split = "tabs" if self.tabs else "spaces"
        tag = "no tags" if self.tag is None else f"tag in column {self.tag + 1}"
        return f"CoNLL with {split}, word in column {self.word + 1}, {tag}"


def looks_like_conll(sample, *, labels):
    """Whether lines without a tab, of which nothing is known, are CoNLL rather than plain text.

    They are where a document begins; where every line holds one word, sentences apart; or where
    several have the same number of columns and one of those holds tags. Where no tags are known,
    one that is the same in all lines is none: sentences begin with "I" or "E-mail", too.

    Args:
        sample: a list of (line number, line).
        labels: the tags that a model knows, or None.
    """
    rows = [cells for _, line in sample if (cells := _cells(line, tabs=False))]
    if any(row[0] == _DOCUMENT for row in rows):
        return True
    widths = {len(row) for row in rows}
    if len(widths) != 1:
        return False
    if widths == {1}:
        inside = [line.strip() for _, line in sample]
        return "" in inside[inside.index(rows[0][0]) : -1]
    columns = [column for column in zip(*rows, strict=True) if _is_tags(column, labels)]
    if labels is None:
        columns = [column for column in columns if len(set(column)) > 1]
    return len(rows) > 1 and bool(columns)


def choose_conll_columns(sample, source, *, word, tag, labels, need_tags):
    """The `ConllColumns` of a file, by its content where the user does not say.

    Tags are in the column that holds tags of chunks or those that a model knows, in the last of
    several, and else in the last column of few values; words are in the one with most values.

    Args:
        sample: a list of (line number, line).
        source: the `TextFile`, for messages.
        word, tag: numbers of columns from 1, or None.
        labels: the tags that a model knows, or None.
        need_tags: whether a file without tags is an error.
    """
    tabs = any("\t" in line.strip() for _, line in sample)
    found = [(number, _cells(line, tabs=tabs)) for number, line in sample]
    found = [(number, cells) for number, cells in found if cells and not _is_comment(cells)]
    found = [(number, cells) for number, cells in found if not _begins_document(cells)]
    if not found:
        raise InputError(f"{source.name} holds no word; CoNLL has a word a line.")
    first, width = found[0][0], len(found[0][1])
    columns = list(zip(*(cells for _, cells in found if len(cells) == width), strict=True))
    word, tag = (_given(source, column, width) for column in (word, tag))
    if tag is None:
        tag = _tag_column(columns, taken=word, labels=labels, need_tags=need_tags)
    if word is None:
        word = _word_column(columns, taken=tag)
    if word is None or (need_tags and tag is None):
        raise source.error(
            first,
            "one column; a labelled file has a word and its tag on each line, parted by a tab or "
            'by spaces, or is JSON Lines with "words" and "tags".',
        )
    if word == tag:
        raise InputError(f"{source.name}: word and tag cannot be the same column.")
    _reject_texts(found, source, word=word, width=width)
    return ConllColumns(word=word, tag=tag, width=width, tabs=tabs)


def _reject_texts(found, source, *, word, width):
    """Raises `InputError` where most words have spaces: a file of labelled texts looks like CoNLL.

    A few words of some treebanks have them.
    """
    rows = [(number, cells[word]) for number, cells in found if len(cells) == width]
    texts = [(number, text) for number, text in rows if " " in text]
    if 2 * len(texts) > len(rows):
        number, text = texts[0]
        raise source.error(
            number,
            f"the word {quoted([text])} contains spaces, as most do, and CoNLL has one word per "
            "line; a file with one text per line is for another task, such as classifier.",
        )


def conll_sentences(lines, source, columns):
    """Yields (words, tags or None, line of each word, number of the document) a sentence.

    Args:
        lines: an iterable of (line number, line).
        source: the `TextFile`, for messages.
        columns: `ConllColumns`.

    Raises:
        InputError: a line has another number of columns, or an empty word or tag.
    """
    document, has_sentences = 0, False
    words, tags, places = [], [], []

    def sentence():
        labels = None if columns.tag is None else tuple(tags)
        return tuple(words), labels, tuple(places), document

    for number, line in lines:
        cells = _cells(line, tabs=columns.tabs)
        begins_document = _begins_document(cells)
        if not cells or begins_document:
            if words:
                yield sentence()
                words, tags, places, has_sentences = [], [], [], True
            if begins_document and has_sentences:
                document, has_sentences = document + 1, False
            continue
        if not words and _is_comment(cells) and len(cells) != columns.width:
            continue
        if len(cells) != columns.width:
            split = "single tabs" if columns.tabs else "spaces"
            raise source.error(
                number,
                f"{counted(len(cells), 'column')}, but the first word's line has {columns.width}; "
                f"every line needs the same number of columns, parted by {split}.",
            )
        for what, column in (("word", columns.word), ("tag", columns.tag)):
            if column is not None and not cells[column]:
                raise source.error(number, f"no {what} in column {column + 1}.")
        words.append(cells[columns.word])
        if columns.tag is not None:
            tags.append(cells[columns.tag])
        places.append(number)
    if words:
        yield sentence()


def _cells(line, *, tabs):
    """The columns of a line; [] where it is empty."""
    if not line.strip(" \t"):
        return []
    if tabs:
        return [cell.strip(" ") for cell in line.split("\t")]
    return _BLANKS.split(line.strip(" \t"))


def _begins_document(cells):
    # In whichever column words stand; some files name the document behind it.
    return any(cell.partition(" ")[0] == _DOCUMENT for cell in cells)


def _is_comment(cells):
    return cells[0] == "#" or cells[0].startswith("# ")


def _given(source, column, width):
    """The place of a column that the user gave by its number from 1; None for None."""
    if column is None:
        return None
    if str(column).isdigit() and 1 <= int(column) <= width:
        return int(column) - 1
    raise InputError(
        f'{source.name} has no column "{column}"; its columns have no names and are 1 to {width}.'
    )


def _tag_column(columns, *, taken, labels, need_tags):
    others = [number for number in range(len(columns)) if number != taken]
    tags = [number for number in others if _is_tags(columns[number], labels)]
    if tags:
        return tags[-1]
    if labels is not None and not need_tags:
        return None  # other columns than those that the model was trained on
    # A tag comes back; the words are those with the most values.
    words = taken if taken is not None else _word_column(columns, taken=None)
    rest = [number for number in others if number != words]
    few = [number for number in rest if 2 * len(set(columns[number])) <= len(columns[number])]
    return (few or rest or [None])[-1]


def _is_tags(column, labels):
    """Whether the values of a column are tags of chunks, or mostly those that a model knows."""
    if labels is not None:
        return 2 * sum(tag in labels for tag in column) > len(column)
    return all(map(_CHUNK_TAG.fullmatch, column)) and any(tag != "O" for tag in column)


def _word_column(columns, *, taken):
    """The column with the most values that are no numbers; the first of several."""
    others = [number for number in range(len(columns)) if number != taken]
    values = {
        number: len({value for value in columns[number] if not value.isdecimal()})
        for number in others
    }
    return max(values, key=values.get, default=None)
