"""Which columns of a table hold the texts and which the label."""

import math
from dataclasses import dataclass
from statistics import fmean

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import listed, quoted
from keras_bert.readers.labels import parsed_number

TEXT_NAMES = ("text", "sentence", "message", "content", "review", "document")
LABEL_NAMES = ("label", "class", "category", "target", "quality", "sentiment", "labels")
SCORE_NAMES = ("score", "similarity", "rating", "relatedness", "relatedness_score")
# The names of a pair's two texts and, where they go with no other, of its label.
PAIR_NAMES = (
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("sentence1", "sentence2"),
    ("sentence_1", "sentence_2"),
    ("sentence_a", "sentence_b"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("#1 string", "#2 string"),
)
PAIR_LABEL_NAMES = ("gold_label", "is_duplicate", "entailment")
# A header of unknown names is believed in only where this many rows follow it.
_ROWS_TO_TELL_A_HEADER = 10
# A first line with one of these in place of a score, or a number in another form, is no header.
_NO_SCORES = ("na", "n/a", "nan", "null", "none", "inf", "-", "?")
# With fewer rows than this, a column of different values may still be the label.
_ROWS_TO_DOUBT_A_LABEL = 20


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Where texts and label stand in the rows of a file.

    `texts` (one or two) and `label` are keys of JSON objects, or indices from 0 of cells; `label`
    is None in an unlabelled file. `names` are the header's, None without one.
    """

    texts: tuple[int | str, ...]
    label: int | str | None
    names: tuple[str, ...] | None = None

    @property
    def text(self):
        """The column of the only or the first text."""
        return self.texts[0]

    def describe(self, column):
        """A column as a person finds it: by its name, or by its number from 1."""
        if isinstance(column, str):
            return f'"{column}"'
        return f'"{self.names[column]}"' if self.names else f"column {column + 1}"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is looked for in a table, and what the user has said of it.

    Attributes:
        texts: the names of the texts: ("text",), or ("text_a", "text_b").
        given: {one of those names, or "label": column}, a name or a number from 1.
        said_with: how the user says a column: {its name: the argument}, for messages.
        header: whether there is one; None leaves it to the content.
        labels: those that a model knows, or None.
        need_labels: whether a table without labels is an error.
        scores: labels are numbers.
        several: a row may have several labels.
    """

    texts: tuple[str, ...]
    given: dict[str, str]
    said_with: dict[str, str]
    header: bool | None = None
    labels: tuple[str, ...] | None = None
    need_labels: bool = True
    scores: bool = False
    several: bool = False

    @property
    def label_names(self):
        """The names of a label column, in lower case, the most probable first."""
        first = SCORE_NAMES if self.scores else ("labels",) if self.several else ()
        return (*first, *(PAIR_LABEL_NAMES if len(self.texts) > 1 else ()), *LABEL_NAMES)

    def text_names(self, lower):
        """The names that the texts have among those of a table, in lower case, or None."""
        groups = PAIR_NAMES if len(self.texts) > 1 else [(name,) for name in TEXT_NAMES]
        return next((group for group in groups if set(group) <= set(lower)), None)


def choose_columns(table, wanted):
    """The `Columns` of `table`, by the header's names and else by the content of its sample.

    Raises InputError where they cannot be told, or are not as the user says.
    """
    if table.kind in ("jsonl", "tfds"):
        return _keys(table, wanted)
    line, first = table.sample[0]
    several = len(wanted.texts) > 1
    if table.width < len(wanted.texts) + wanted.need_labels and (wanted.need_labels or several):
        raise table.error(line, _TOO_NARROW[several])
    if table.kind == "lines":
        return Columns(texts=(0,), label=None)
    body = [row for _, row in table.sample]
    names = None
    if _has_header(first, body[1:], wanted):
        names = tuple(cell.strip() for cell in first)
        body = body[1:]
        if len(set(names)) < len(names):
            raise table.error(line, "two columns of the header have the same name.")
        if not body:
            raise InputError(f"{table.name} holds a header line and nothing else.")
    lower = [name.casefold() for name in names or ()]
    given = {name: _given(table, column, names) for name, column in wanted.given.items()}
    taken = {given[name] for name in wanted.texts if name in given}
    label = given.get("label")
    if label is None:
        label = _label_column(table, body, lower, wanted, taken=taken)
    texts = _text_columns(table, body, names, wanted, given, label)
    if label in texts or len(set(texts)) < len(texts):
        what = "two texts and label" if several else "text and label"
        raise InputError(f"{table.name}: {what} cannot be the same column.")
    return Columns(texts=texts, label=label, names=names)


# By whether there are two texts.
_TOO_NARROW = (
    "no TAB; a labelled file has a text and its label parted by a TAB, "
    'or JSON Lines with "text" and "label".',
    "too few columns; a file of pairs has two texts and their label parted by TABs, "
    'or JSON Lines with "text_a", "text_b" and "label".',
)


def _keys(table, wanted):
    line, first = table.sample[0]
    lower = {key.casefold(): key for key in first}
    found = dict(zip(wanted.texts, wanted.text_names(lower) or wanted.texts, strict=True))
    label = next((name for name in wanted.label_names if name in lower), wanted.label_names[0])
    found["label"] = label
    keys = {name: wanted.given.get(name) or lower.get(key, key) for name, key in found.items()}
    needed = (*wanted.texts, *(("label",) if wanted.need_labels or "label" in wanted.given else ()))
    for name in needed:
        if keys[name] not in first:
            raise table.error(
                line,
                f'no "{keys[name]}" among the {table.calls_columns} ({listed(first)}); '
                f"say which one holds the {name} with {_said(name, wanted)}.",
            )
    texts = tuple(keys[name] for name in wanted.texts)
    return Columns(texts=texts, label=keys["label"] if keys["label"] in first else None)


def _said(name, wanted):
    argument = wanted.said_with[name]
    return f"`{argument}`" if argument != "fields" else f"`fields`, {name}=…"


def _has_header(first, rest, wanted):
    """True where the first line names the columns instead of being a row."""
    if wanted.header is not None:
        return wanted.header
    if any(not str(column).isdigit() for column in wanted.given.values()):
        return True  # a column given by name can only stand in a header
    rest = [row for row in rest if row != first]  # a header may stand there twice
    below = [{row[column] for row in rest} for column in range(len(first))]
    if any(cell in values for cell, values in zip(first, below, strict=True) if cell):
        return False
    lower = [cell.strip().casefold() for cell in first]
    if wanted.text_names(lower) or {*wanted.label_names} & {*lower}:
        return True
    # A name is no number and no label of the model's, which may be a rare one.
    names = [
        bool(cell)
        and not _is_number(cell)
        and cell not in (wanted.labels or ())
        and not (wanted.scores and _replaces_score(cell))
        for cell in map(str.strip, first)
    ]
    below = [values for is_name, values in zip(names, below, strict=True) if is_name]
    if wanted.scores:
        return any(_fraction_of_numbers(values) > 0.5 for values in below)
    # A label column: few values, each of them again and again, but never the first line's.
    return len(rest) >= _ROWS_TO_TELL_A_HEADER and any(
        2 <= len(values) <= len(rest) / 4 for values in below
    )


def _given(table, column, names):
    """The index of a column that the user gave by name or by number from 1."""
    if names and str(column) in names:
        return names.index(str(column))
    if str(column).isdigit() and 1 <= int(column) <= table.width:
        return int(column) - 1
    known = quoted(names) if names else f"1 to {table.width}"
    raise InputError(f'{table.name} has no column "{column}"; its columns are {known}.')


def _label_column(table, body, lower, wanted, *, taken):
    """The index of the label's column; None where there is none and none is needed."""
    named = (lower.index(name) for name in wanted.label_names if name in lower)
    label = next((column for column in named if column not in taken), None)
    free = [column for column in range(table.width) if column not in taken]
    if label is None and wanted.labels is not None:
        label = _column_of_known_labels(free, body, wanted.labels)
    if label is None and (wanted.need_labels or wanted.scores):
        # Labels that the model does not know are told when they are reached, by their lines.
        # So are those few that are no scores; where none are needed, such a column is not one.
        least = 0.5 if wanted.need_labels else 1
        label = (
            _column_of_numbers(free, body, least=least)
            if wanted.scores
            else _column_of_few_values(free, body)
        )
    if label is None and wanted.need_labels:
        known = f" and none holds the model's ({quoted(wanted.labels)})" if wanted.labels else ""
        looks = (
            "a score (numbers)"
            if wanted.scores
            else "a label (few different values, each many times)"
        )
        raise InputError(
            f"{table.name}: no column looks like {looks}{known}; say which one it is with "
            f"{_said('label', wanted)}."
        )
    return label


def _column_of_known_labels(free, body, labels):
    """The column most of whose values are labels that the model knows, or None."""
    fractions = {column: fmean(row[column].strip() in labels for row in body) for column in free}
    best = max(fractions, key=fractions.get, default=None)
    return best if best is not None and fractions[best] > 0.5 else None


def _column_of_few_values(free, body):
    """The column with the fewest values; of two alike the shorter, then the later one."""
    distinct = {column: len({row[column] for row in body}) for column in free}

    def order(column):
        # A label comes back. A column of a single value ("en") tells nothing, but is more like one
        # than a column whose values are all different.
        unlike = 2 if distinct[column] == len(body) > 1 else int(distinct[column] == 1)
        return unlike, distinct[column], _length(body, column), -column

    best = min(distinct, key=order, default=None)
    if best is None or len(body) >= _ROWS_TO_DOUBT_A_LABEL and distinct[best] > len(body) / 2:
        return None
    return best


def _column_of_numbers(free, body, *, least):
    """The column of numbers that come back most often, or None.

    At least so many of its different cells that are not empty are numbers, a fraction.
    """
    found = {column: {row[column] for row in body} for column in free}
    numbers = {
        column: len(cells)
        for column, cells in found.items()
        if _fraction_of_numbers(cells) >= least
    }
    return min(numbers, key=numbers.get, default=None)


def _text_columns(table, body, names, wanted, given, label):
    """The indices of the texts' columns, in order."""
    lower = [name.casefold() for name in names or ()]
    if len(wanted.texts) == 1:
        (role,) = wanted.texts
        if role in given:
            return (given[role],)
        named = (lower.index(name) for name in TEXT_NAMES if name in lower)
        column = next((column for column in named if column != label), None)
        if column is None:
            column = _column_of_texts(table, body, names, wanted, taken=label)
        return (column,)
    found = [given.get(role) for role in wanted.texts]
    pair = wanted.text_names(lower)
    if pair is not None and not given.keys() & set(wanted.texts):
        return tuple(lower.index(name) for name in pair)
    free = [c for c in range(table.width) if c != label and c not in found]
    longest = sorted(free, key=lambda column: -_length(body, column))[: found.count(None)]
    rest = iter(sorted(longest))
    if len(longest) < found.count(None):
        raise InputError(
            f"{table.name} has no two columns of texts; say which they are with `fields`, "
            "text_a=…,text_b=…."
        )
    return tuple(next(rest) if column is None else column for column in found)


def _column_of_texts(table, body, names, wanted, *, taken):
    """The column with the longest texts; of two about as long the user tells which is meant."""
    lengths = {column: _length(body, column) for column in range(table.width) if column != taken}
    best = max(lengths, key=lengths.get)
    for column, length in lengths.items():
        of_words = fmean(" " in row[column] for row in body) > 0.5
        if column != best and of_words and length > lengths[best] / 2:
            found = Columns(texts=(best,), label=None, names=names)
            raise InputError(
                f"{table.name} has text in {found.describe(min(best, column))} and in "
                f"{found.describe(max(best, column))}; say which one is meant with "
                f"{_said('text', wanted)}."
            )
    return best


def _length(body, column):
    return fmean(len(row[column]) for row in body)


def _fraction_of_numbers(cells):
    """How many of the cells that are not empty are numbers; 0 where all are empty."""
    filled = [cell for cell in cells if cell.strip()]
    return fmean(map(_is_number, filled)) if filled else 0


def _replaces_score(cell):
    """Whether a cell that is no number is where somebody meant one."""
    return cell.casefold() in _NO_SCORES or cell[:1].isdecimal()


def _is_number(cell):
    return math.isfinite(parsed_number(cell))
