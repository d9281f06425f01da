"""Texts with a marked word, and pairs of them: the senses of words, and their similarity as rated.

A word is marked as in `the **bank** of the river`, or by <strong> and </strong> as in CoSimLex.
"""

import re
from pathlib import Path
from typing import NamedTuple

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed
from keras_bert.readers.sources import is_file, open_records
from keras_bert.readers.texts import PAIR, TextSource, score

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
        """What is before the % of its sense; without one its form."""
        word, mark, _ = (self.sense or "").partition(_AFTER_WORD)
        return word.casefold() if mark else self.form


class RatedPair(NamedTuple):
    """Two `MarkedWord`s and their similarity as rated, None where nobody did."""

    first: MarkedWord
    second: MarkedWord
    rating: float | None


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


def read_marked_words(data, *, need_senses=True, **columns):
    """-> (a line on how the data are read or None, an iterator over the `MarkedWord` of each text).

    Args:
        data: a TSV, CSV or JSON Lines with a text and the sense of its word, or a sequence of
            (text, sense); see `TextSource`.
        need_senses: whether a text without a sense is an error.
        columns: the columns, see `TextSource`.
    """
    source = TextSource(data, need_labels=need_senses, **columns)
    words = (
        _single(example.text, example.line, source.error)._replace(sense=example.label)
        for example in source
    )
    return source.description, words


def _single(text, line, error):
    found = marked_words(text, line)
    if len(found) != 1:
        raise error(
            line,
            f"{counted(len(found), 'marked word')}. Expected one, marked as in "
            '"the **bank** of the river".',
        )
    return found[0]


def read_rated_pairs(data):
    """The `RatedPair`s of a file or a sequence, as (description, list, their name or None).

    Args:
        data: a file in the layout of CoSimLex, whose rows have two pairs each, one in each context;
            in that of WiC (`NAME.data.txt` next to `NAME.gold.txt`) or of SuperGLUE's WiC; or a
            TSV, CSV or JSON Lines with two texts and a score.

    Returns:
        The name is "cosimlex", "wic" or None; of CoSimLex, pairs 2n and 2n + 1 are of one row.
    """
    if not is_file(data):
        return None, [_of_texts(*pair) for pair in _numbered(data)], None
    table = open_records(
        data,
        item="pair",
        as_record=None,
        tables=True,
        may_be_csv=True,
        header_names=(*_COSIMLEX, "text_a"),
    )
    _, first = table.sample[0]
    if set(_COSIMLEX) <= {str(cell).strip().casefold() for cell in first}:
        pairs = [pair for row in _dictionaries(table, first) for pair in _of_cosimlex(*row, table)]
        return f"{table.name}: {table.format}, CoSimLex", pairs, "cosimlex"
    if table.width is None and set(_WIC[:-1]) <= first.keys():
        pairs = [_of_superglue(line, record, table) for line, record in table]
        return f"{table.name}: {table.format}, SuperGLUE's WiC", pairs, "wic"
    if table.width == _WIC_WIDTH and re.fullmatch(r"\d+-\d+", first[2]):
        return f"{table.name}: {table.format}, WiC", _of_wic(table), "wic"
    source = TextSource(data, texts=PAIR, form=score)
    pairs = []
    for example in source:
        words = (_single(text, example.line, source.error) for text in example.texts)
        pairs.append(RatedPair(*words, example.label))
    return source.description, pairs, None


def _numbered(pairs):
    for number, pair in enumerate(pairs, start=1):
        if not isinstance(pair, tuple | list) or len(pair) not in (2, 3):
            raise InputError(
                f"Pair {number} of those given must be two texts, or two texts and a rating. "
                f"Received: {pair!r}."
            )
        yield number, *pair


def _of_texts(number, text_a, text_b, rating=None):
    def error(line, message):
        return InputError(f"Pair {line} of those given: {message}")

    return RatedPair(*(_single(text, number, error) for text in (text_a, text_b)), rating)


def _dictionaries(table, header):
    """Yields (line, dictionary) of a table's rows; a table without names has them in its header."""
    for line, row in table:
        if row != header or table.width is None:
            cells = row if table.width is None else dict(zip(header, row, strict=True))
            yield line, {name.strip().casefold(): cell for name, cell in cells.items()}


def _of_cosimlex(line, row, table):
    """Two `RatedPair`s: of the same two words, in the one and in the other context."""
    for number in (1, 2):
        found = marked_words(str(row[f"context{number}"]), line)
        # A context may have the same word twice; the columns say which words are meant.
        forms = [row.get(f"word{word}_context{number}") for word in (1, 2)]
        if len(found) != 2 and all(forms):
            by_form = {each.form: each for each in reversed(found)}
            found = [by_form[f.casefold()] for f in forms if f.casefold() in by_form]
        if len(found) != 2:
            raise table.error(
                line,
                f"context{number} has {counted(len(found), 'marked word')}. Expected two, marked "
                "by <strong> and </strong>.",
            )
        yield RatedPair(*found, _rating(row[f"sim{number}"], line, table))


def _rating(value, line, table):
    try:
        return score(value)
    except ValueError as error:
        raise table.error(line, f"{error}.") from None


def _of_superglue(line, record, table):
    words = []
    for number in (1, 2):
        text = record.get(f"sentence{number}")
        start, end = (record.get(f"{side}{number}") for side in ("start", "end"))
        is_span = all(isinstance(each, int) for each in (start, end))
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


def _of_wic(table):
    """The pairs of NAME.data.txt, with the labels of NAME.gold.txt where that is there."""
    pairs = []
    for line, (_, _, numbers, *texts) in table:
        words = []
        for number, text in zip(numbers.split("-"), texts, strict=False):
            places = [place.span() for place in re.finditer(r"\S+", text)]
            if not number.isdigit() or int(number) >= len(places):
                raise table.error(
                    line,
                    f'"{numbers}" should be the numbers, from 0, of a word in each sentence. The '
                    f"sentence {listed([text])} has {counted(len(places), 'word')}.",
                )
            words.append(MarkedWord(line, text, *places[int(number)]))
        pairs.append(RatedPair(*words, None))
    gold = Path(str(table.name).replace(".data.", ".gold."))
    if str(gold) == str(table.name) or not gold.exists():
        return pairs
    labels = [cells[0].strip() for _, cells in open_records(gold, item="label", as_record=None)]
    wrong = next((n for n, label in enumerate(labels, start=1) if label not in ("T", "F")), None)
    if wrong is not None:
        raise InputError(f'{gold}, line {wrong}: "{labels[wrong - 1]}". Expected T or F.')
    if len(labels) != len(pairs):
        raise InputError(
            f"{gold} has {counted(len(labels), 'label')}, and {table.name} "
            f"{counted(len(pairs), 'pair')}. Expected one label per pair."
        )
    return [pair._replace(rating=_SAME[label]) for pair, label in zip(pairs, labels, strict=True)]
