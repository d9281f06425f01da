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
from keras_bert.readers.columns import column_index

_DOCUMENT = "-DOCSTART-"
_BLANKS = re.compile(r"[ \t]+")  # not what Unicode calls white space: a word may hold it
# B-PER, I-NP, S-LOC, … or O: what tags of chunks look like, in any of their schemes.
_CHUNK_TAG = re.compile(r"O|[BIOESLUMW]-.+|[BIES]")

CONLLU_COLUMNS = (
    *("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"),
)
_CONLLU_ID = re.compile(r"[0-9]+([-.][0-9]+)?")


@dataclass(frozen=True, kw_only=True)
class ConllColumns:
    """How the lines of a CoNLL file are read.

    `word` and `tag` count from 0; `tag` is None in a file without tags. `width` is the number of
    columns, `tabs` whether single tabs separate them or else any run of spaces and tabs.
    `has_predictions` says that the last column has predictions, as in the input of conlleval.
    """

    word: int
    tag: int | None
    width: int
    tabs: bool
    has_predictions: bool = False

    def describe(self):
        """A part of a line for the user."""
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


def choose_conll_columns(file, source, *, word, tag, labels, remembered, need_tags):
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
    word, tag = (
        None if column is None else column_index(source, column, width=width)
        for column in (word, tag)
    )
    if word is None and tag is None:
        word, tag = _remembered(columns, remembered, labels)
    has_predictions = False
    if tag is None:
        tag, has_predictions = _tag_column(
            columns, source, taken=word, labels=labels, need_tags=need_tags
        )
    if word is None:
        word = _word_column(columns, taken=tag)
    if word is None or (need_tags and tag is None):
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
    first, columns = None, []
    for number, line in file.lines():
        if not tabs and "\t" in line and "\t" in line.strip():
            return None
        cells = _cells(line, tabs=tabs)
        if not cells or _is_comment(cells) or (_DOCUMENT in line and _begins_document(cells)):
            continue
        if first is None:
            first, columns = number, [Counter() for _ in cells]
        if len(cells) == len(columns):  # another number is an error when it is reached
            for counts, cell in zip(columns, cells, strict=True):
                counts[cell] += 1
    return first, columns, tabs


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
    for number, line in file.lines():
        cells = _cells(line, tabs=tabs)
        if len(cells) > word and " " in cells[word] and not _is_comment(cells):
            raise source.error(
                number,
                f"the word {quoted([cells[word]])} contains spaces, as most do, and CoNLL has one "
                "word per line; a file with one text per line is for another task, such as "
                "classifier.",
            )


class _Sentences:
    """Collects the words of a sentence, and counts the documents.

    `untagged` is the tag of every word in a sentence without tags.
    """

    def __init__(self, untagged):
        self._untagged = untagged
        self.document, self.words, self.tags, self.lines = 0, [], [], []
        self._has_sentences = False

    def add(self, word, tag, number):
        self.words.append(word)
        self.tags.append(tag)
        self.lines.append(number)

    def finish(self):
        """Yields the sentence, as `conll_sentences` does, if it has words."""
        if self.words:
            tags = None if set(self.tags) == {self._untagged} else tuple(self.tags)
            yield tuple(self.words), tags, tuple(self.lines), self.document
            self.words, self.tags, self.lines, self._has_sentences = [], [], [], True

    def begin_document(self):
        if self._has_sentences:
            self.document, self._has_sentences = self.document + 1, False


def conll_sentences(lines, source, columns):
    """Yields (words, tags or None, line of each word, number of the document) of every sentence.

    `source` makes the InputErrors for lines, which are (line number, line).
    """
    sentences = _Sentences(untagged=None)
    for number, line in lines:
        cells = _cells(line, tabs=columns.tabs)
        if not cells or (_DOCUMENT in line and _begins_document(cells)):
            yield from sentences.finish()
            if cells:
                sentences.begin_document()
            continue
        if len(cells) != columns.width:
            if not sentences.words and _is_comment(cells):
                continue
            split = "single tabs" if columns.tabs else "spaces"
            raise source.error(
                number,
                f"{counted(len(cells), 'column')}, but the first word's line has {columns.width}; "
                f"every line needs the same number of columns, separated by {split}.",
            )
        for part, column in (("word", columns.word), ("tag", columns.tag)):
            if column is not None and not cells[column]:
                raise source.error(number, f"no {part} in column {column + 1}.")
        tag = None if columns.tag is None else cells[columns.tag]
        sentences.add(cells[columns.word], tag, number)
    yield from sentences.finish()


def _cells(line, *, tabs):
    """The columns of a line; [] where it is empty."""
    if not line.strip(" \t"):
        return []
    if tabs:
        return [cell.strip(" ") for cell in line.split("\t")]
    return _BLANKS.split(line.strip(" \t"))


def _begins_document(cells):
    # In whichever column the words are; some files name the document behind it.
    return any(cell.partition(" ")[0] == _DOCUMENT for cell in cells)


def _is_comment(cells):
    return cells[0] == "#" or cells[0].startswith("# ")


def _tag_column(columns, source, *, taken, labels, need_tags):
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
    if labels is not None and not need_tags:
        return None, False  # other columns than those that the model was trained on
    # A tag is repeated; the words are those with the most values.
    words = taken if taken is not None else _word_column(columns, taken=None)
    rest = [number for number in others if number != words]
    few = [number for number in rest if 2 * len(columns[number]) <= columns[number].total()]
    return (few or rest or [None])[-1], False


def _kinds(counts):
    """The kinds of chunks that the tags of a column name."""
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


def conllu_sentences(lines, source, *, word, tag, need_tags=True):
    """As `conll_sentences`; `word` and `tag` are indices of columns.

    Unless `need_tags`, a sentence that is yet to be tagged, with `_` at every word, has None.
    """
    sentences = _Sentences(untagged=None if need_tags else "_")
    for number, line in lines:
        if not line.strip():
            yield from sentences.finish()
            continue
        if line.startswith("#") and not sentences.words:
            if line[1:].split()[:1] == ["newdoc"]:
                sentences.begin_document()
            continue
        cells = conllu_cells(line, number, source)
        id = _CONLLU_ID.fullmatch(cells[0])
        if id is None:
            raise source.error(
                number, f'the ID is "{cells[0]}". It should be a number such as 3, 3-4 or 3.1.'
            )
        if id[1]:
            continue
        for column in (word, tag):
            if not cells[column]:
                raise source.error(
                    number, f"{CONLLU_COLUMNS[column]} is empty; write _ for nothing."
                )
        sentences.add(cells[word], cells[tag], number)
    yield from sentences.finish()
