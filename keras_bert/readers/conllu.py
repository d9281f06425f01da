"""CoNLL-U: ten columns a word (universaldependencies.org/format).

Words are the syntactic ones: the line of a multi-word token ("1-2") only names what the next lines
hold, and that of an empty node ("5.1") no word of the sentence.
"""

import re

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
_NUMBER = re.compile(r"[0-9]+([-.][0-9]+)?")


def looks_like_conllu(line):
    """Whether the first line that is no comment is one of CoNLL-U."""
    cells = line.split("\t")
    return len(cells) == len(COLUMNS) and _NUMBER.fullmatch(cells[0]) is not None


def choose_conllu_column(column, *, default, source):
    """The place of a column that the user gave by its name or its number from 1."""
    if column is None:
        return COLUMNS.index(default)
    if str(column).upper() in COLUMNS:
        return COLUMNS.index(str(column).upper())
    if str(column).isdigit() and 1 <= int(column) <= len(COLUMNS):
        return int(column) - 1
    raise InputError(
        f'{source.name} has no column "{column}"; the columns of CoNLL-U are {", ".join(COLUMNS)}.'
    )


def conllu_sentences(lines, source, *, word, tag, need_tags=True):
    """Yields (words, tags or None, line of each word, number of the document) a sentence.

    Args:
        lines: an iterable of (line number, line).
        source: the `TextFile`, for messages.
        word, tag: places of columns from 0.
        need_tags: False: a sentence that is yet to be tagged, with `_` at every word, has None.

    Raises:
        InputError: a line that is none of CoNLL-U.
    """
    document, has_sentences = 0, False
    words, tags, places = [], [], []

    def sentence():
        labels = tuple(tags) if need_tags or set(tags) != {"_"} else None
        return tuple(words), labels, tuple(places), document

    for number, line in lines:
        if not line.strip():
            if words:
                yield sentence()
                words, tags, places, has_sentences = [], [], [], True
            continue
        if line.startswith("#") and not words:
            if line[1:].split()[:1] == ["newdoc"] and has_sentences:
                document, has_sentences = document + 1, False
            continue
        cells = line.split("\t")
        if len(cells) != len(COLUMNS):
            raise source.error(
                number,
                f"{counted(len(cells), 'column')}; a word of CoNLL-U has {len(COLUMNS)}, parted by "
                "single tabs.",
            )
        kind = _NUMBER.fullmatch(cells[0])
        if kind is None:
            raise source.error(
                number, f'the ID is "{cells[0]}"; it should be a number such as 3, 3-4 or 3.1.'
            )
        if kind[1]:
            continue
        for column in (word, tag):
            if not cells[column]:
                raise source.error(number, f"{COLUMNS[column]} is empty; nothing is written as _.")
        words.append(cells[word])
        tags.append(cells[tag])
        places.append(number)
    if words:
        yield sentence()
