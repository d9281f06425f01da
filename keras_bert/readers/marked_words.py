"""Texts with a marked word, and pairs of them: the senses of words, and their similarity as rated.

A word is marked as in `the **bank** of the river`, or by <strong> and </strong> as in CoSimLex.
"""

import re
from functools import partial
from pathlib import Path
from typing import NamedTuple

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed
from keras_bert.readers.examples import report_notes, report_source
from keras_bert.readers.labels import score
from keras_bert.readers.sources import TextFile, is_file, rows_in_memory
from keras_bert.readers.tables import open_table
from keras_bert.readers.texts import PAIR, TextSource

_MARK = re.compile(r"\*\*(.+?)\*\*|<strong>(.+?)</strong>")
# Separates the word from its sense, as in the sense keys of WordNet.
_AFTER_WORD = "%"
# The columns of CoSimLex (Armendariz et al. 2020) that are needed, and those of WiC (Pilehvar and
# Camacho-Collados 2019) as SuperGLUE has it.
_COSIMLEX = ("context1", "context2", "sim1", "sim2")
_WIC = ("sentence1", "sentence2", "start1", "end1", "start2", "end2", "label")
_WIC_WIDTH = 5  # word, part of speech, the numbers of the words, and two sentences
_SAME = {"T": 1.0, "F": 0.0, "true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}


class MarkedWord(NamedTuple):
    """A word in a text without marks: its characters are `text[start:end]`."""

    line: int
    text: str
    start: int
    end: int
    sense: str | None = None

    @property
    def form(self):
        """The word as it is in the text, in lower case."""
        return self.text[self.start : self.end].strip().casefold()

    @property
    def word(self):
        """The part before the % of its sense; without one its form."""
        word, mark, _ = (self.sense or "").partition(_AFTER_WORD)
        return word.casefold() if mark else self.form


class RatedPair(NamedTuple):
    """Two `MarkedWord`s and their similarity as rated, None if nobody did."""

    first: MarkedWord
    second: MarkedWord
    rating: float | None = None


def marked_words(text, line=0):
    """(the text without marks, the `MarkedWord`s in it) of a text with any number of them."""
    plain, places, end = "", [], 0
    for mark in _MARK.finditer(text):
        plain += text[end : mark.start()]
        word = mark[1] or mark[2]
        places.append((len(plain), len(plain) + len(word)))
        plain, end = plain + word, mark.end()
    plain += text[end:]
    return [MarkedWord(line, plain, *place) for place in places]


def read_marked_words(data, *, need_senses=True, report=None, **columns):
    """Yields the `MarkedWord` of each text, in order.

    Args:
        data: a TSV, CSV or JSON Lines with a text and the sense of its word, or a sequence of
            (text, sense); see `TextSource`.
        need_senses: whether a text without a sense is left out.
        report: called with a line on how the data are read, now, and with notes at the end.
        columns: the columns, see `TextSource`.
    """
    source = TextSource(data, need_labels=need_senses, **columns)
    report_source(source, report)
    source.at_end = partial(report_notes, source, report)
    return (
        _single(example.text, example.line, source.error)._replace(sense=example.label)
        for example in source
    )


def _single(text, line, error):
    marked = marked_words(text, line)
    if len(marked) != 1:
        raise error(
            line,
            f"{counted(len(marked), 'marked word')}. Expected one, marked as in "
            '"the **bank** of the river".',
        )
    return marked[0]


def read_rated_pairs(data, *, report=None):
    """The `RatedPair`s of a file or a sequence, as (description, list, their name or None).

    Args:
        data: a file in the layout of CoSimLex, whose rows have two pairs each, one in each context;
            in that of WiC (`NAME.data.txt` next to `NAME.gold.txt`) or of SuperGLUE's WiC; or a
            TSV, CSV or JSON Lines with two texts and a score.
        report: called with a line on how the file is read, and one per note.

    Returns:
        The name is "cosimlex", "wic" or None; of CoSimLex, pairs 2n and 2n + 1 are of one row.
    """
    if not is_file(data):
        return None, [*_given_pairs(data)], None
    description, pairs, layout, source = _read_file_of_pairs(data)
    if report is not None:
        report(description)
    if source is not None:
        report_notes(source, report)
    return description, pairs, layout


def _read_file_of_pairs(data):
    """The result of `read_rated_pairs`, and the `TextSource` of another layout than its own."""
    wic = _rows_of_wic(data)
    if wic is not None:
        return f"{data}: TSV, WiC", _read_wic(*wic), "wic", None
    table = open_table(
        data,
        item="pair",
        as_record=None,
        noun="pairs of texts",
        header_names=(*_COSIMLEX, *PAIR, "sentence1"),
    )
    lower = {name.casefold(): name for name in table.names}
    if {*_COSIMLEX} <= {*lower}:
        rows = (
            (line, {name.strip().casefold(): cell for name, cell in row.items()})
            for line, row in table
        )
        pairs = [pair for line, row in rows for pair in _read_cosimlex(line, row, table)]
        return f"{table.name}: {table.format}, CoSimLex", pairs, "cosimlex", None
    if not table.are_cells and {*_WIC[:-1]} <= {*table.names}:
        pairs = [_read_superglue(line, record, table) for line, record in table]
        return f"{table.name}: {table.format}, SuperGLUE's WiC", pairs, "wic", None
    source = TextSource(table.file or data, texts=PAIR, form=score)
    pairs = []
    for example in source:
        words = (_single(text, example.line, source.error) for text in example.texts)
        pairs.append(RatedPair(*words, example.label))
    return source.description, pairs, None, source


def _given_pairs(data):
    for number, pair in enumerate(rows_in_memory(data)[1], start=1):
        is_list = isinstance(pair, tuple | list) and len(pair) in (2, 3)
        if not is_list or not all(isinstance(text, str) for text in pair[:2]):
            raise InputError(
                f"Pair {number} of those given must be two texts, or two texts and a rating. "
                f"Received: {pair!r}."
            )
        error = lambda line, message: InputError(f"Pair {line} of those given: {message}")  # noqa: E731
        yield RatedPair(*(_single(text, number, error) for text in pair[:2]), *pair[2:])


def _rows_of_wic(data):
    """-> (the file, its rows of cells) of WiC's `NAME.data.txt`; None of any other file."""
    if not str(data).endswith(".txt"):
        return None
    file = TextFile(data)
    rows = [(number, line.split("\t")) for number, line in file.lines() if line]
    is_wic = rows and len(rows[0][1]) == _WIC_WIDTH and re.fullmatch(r"\d+-\d+", rows[0][1][2])
    return (file, rows) if is_wic else None


def _read_cosimlex(line, row, table):
    """Two `RatedPair`s: of the same two words, in the one and in the other context."""
    for number in (1, 2):
        marked = marked_words(str(row[f"context{number}"]), line)
        # A context may have the same word twice; the columns say which words are meant.
        forms = [row.get(f"word{word}_context{number}") for word in (1, 2)]
        if len(marked) != 2 and all(forms):
            by_form = {word.form: word for word in reversed(marked)}
            marked = [by_form[f.casefold()] for f in forms if f.casefold() in by_form]
        if len(marked) != 2:
            raise table.error(
                line,
                f"context{number} has {counted(len(marked), 'marked word')}. Expected two, marked "
                "by <strong> and </strong>.",
            )
        try:
            yield RatedPair(*marked, score(row[f"sim{number}"]))
        except ValueError as error:
            raise table.error(line, error) from None


def _read_superglue(line, record, table):
    words = []
    for number in (1, 2):
        text = record.get(f"sentence{number}")
        start, end = (record.get(f"{side}{number}") for side in ("start", "end"))
        is_span = all(isinstance(offset, int) for offset in (start, end))
        if not isinstance(text, str) or not is_span or not 0 <= start < end <= len(text):
            raise table.error(
                line,
                f'"start{number}" and "end{number}" should be the characters of a word in '
                f'"sentence{number}".',
            )
        words.append(MarkedWord(line, text, start, end))
    label = record.get("label")
    rating = None if label in (None, -1) else _SAME.get(str(label).casefold())
    if rating is None and label not in (None, -1):
        raise table.error(line, f'"label" is {label!r}. Expected true or false.')
    return RatedPair(*words, rating)


def _read_wic(file, rows):
    """The pairs of NAME.data.txt, with the labels of NAME.gold.txt if that is there."""
    pairs = []
    for line, cells in rows:
        if len(cells) != _WIC_WIDTH:
            raise file.error(
                line, f"{counted(len(cells), 'column')}. Expected the {_WIC_WIDTH} of WiC."
            )
        _, _, numbers, *texts = cells
        words = []
        for number, text in zip(numbers.split("-"), texts, strict=False):
            places = [place.span() for place in re.finditer(r"\S+", text)]
            if not number.isdigit() or int(number) >= len(places):
                raise file.error(
                    line,
                    f'"{numbers}" should be the numbers, from 0, of a word in each sentence. The '
                    f"sentence {listed([text])} has {counted(len(places), 'word')}.",
                )
            words.append(MarkedWord(line, text, *places[int(number)]))
        pairs.append(RatedPair(*words))
    gold = Path(file.name.replace(".data.", ".gold."))
    if str(gold) == file.name or not gold.exists():
        return pairs
    labels = [line.strip() for _, line in TextFile(gold).lines()]
    wrong = next((n for n, label in enumerate(labels, start=1) if label not in ("T", "F")), None)
    if wrong is not None:
        raise InputError(f'{gold}, line {wrong}: "{labels[wrong - 1]}". Expected T or F.')
    if len(labels) != len(pairs):
        raise InputError(
            f"{gold} has {counted(len(labels), 'label')}, and {file.name} "
            f"{counted(len(pairs), 'pair')}. Expected one label per pair."
        )
    return [pair._replace(rating=_SAME[label]) for pair, label in zip(pairs, labels, strict=True)]
