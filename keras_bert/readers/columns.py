"""Settings of how labelled files are read, and which columns of a table hold texts and labels."""

import math
import re
from dataclasses import dataclass
from statistics import fmean

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed, quoted
from keras_bert.base.settings import Settings, setting

# What is done with tags that break their scheme, and with labels that the model does not have.
REPAIR, ERROR, COUNT = "repair", "error", "count"
TEXT_NAMES = ("text", "sentence", "message", "content", "review", "document")
LABEL_NAMES = ("label", "class", "category", "target", "quality", "sentiment", "labels", "sense")
SCORE_NAMES = ("score", "similarity", "rating", "relatedness", "relatedness_score")
# A part of an example -> the kind of task that has it.
_KINDS_WITH = {
    **dict.fromkeys(("text_a", "text_b"), "pair-classifier"),
    **dict.fromkeys(("question", "answers"), "question-answering"),
    **dict.fromkeys(("head", "tail"), "relation-classifier"),
    "choices": "multiple-choice",
}
# The names of a pair's two texts and, where they are used with no other, of its label.
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
# Names by which the first line of a CSV is detected.
HEADER_NAMES = (*TEXT_NAMES, *(name for pair in PAIR_NAMES for name in pair))
PAIR_LABEL_NAMES = ("gold_label", "is_duplicate", "entailment")
# A header of unknown names is detected only where this many rows follow it.
_MIN_ROWS_FOR_A_HEADER = 10
# A first line with one of these in place of a score, or a number in another form, is no header.
_NO_SCORES = ("na", "n/a", "nan", "null", "none", "inf", "-", "?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# With fewer rows than this, a column of different values may still be the label.
_MIN_ROWS_TO_DOUBT_A_LABEL = 20


def column_setting(what):
    """The setting for the column of a table that holds something."""
    return setting(
        None,
        help=f"the column (from 1) or key of the {what}",
        unit="NAME|NUMBER",
        default_help="detected from names and content",
        reads=True,
    )


def fields_setting(example):
    """The setting for all columns, keys or tfds features in one."""
    return setting(
        None,
        help="the column (its name, or its number from 1), key or tfds feature of each part: "
        f"{example}",
        unit="NAME=COLUMN,…",
        default_help="detected from names and content",
        reads=True,
    )


def invalid_tags_setting():
    """The setting for tags that break their scheme."""
    return setting(
        REPAIR,
        help="what to do with tags that break their scheme: read the chunks as conlleval does, or "
        "raise an error",
        choices=(REPAIR, ERROR),
        reads=True,
    )


def unknown_labels_setting():
    """The setting for labels that the model does not have."""
    return setting(
        COUNT,
        help="what to do with a label or tag that the model does not have: count it as an error of "
        "the model, or raise an error",
        choices=(COUNT, ERROR),
        reads=True,
    )


def header_setting():
    """The setting for whether a table begins with the names of its columns."""
    return setting(
        None,
        help="whether the first line of a TSV names its columns",
        default_help="detected from the content",
        reads=True,
    )


def glue_setting():
    """The setting for the task of GLUE to which a file belongs."""
    return setting(
        None,
        help="the file is of this GLUE task, whose columns are known (MNLI-mm: the mismatched dev "
        "file)",
        unit="NAME",
        default_help="not a file of GLUE",
        reads=True,
    )


@dataclass(frozen=True, kw_only=True)
class TextFileSettings(Settings):
    """Settings of a file with one text per record."""

    text_column: str | None = column_setting("text")
    header: bool | None = header_setting()


def parse_fields(text, *, known):
    """`a=x,b=y` as a dictionary; {} for None.

    Raises InputError where a part is not NAME=COLUMN, or its name is not one of `known`.
    """
    fields = {}
    for part in text.split(",") if text is not None else ():
        name, equals, column = (word.strip() for word in part.partition("="))
        if not (name and equals and column):
            raise InputError(
                f'`fields` has the part "{part}". It should be NAME=COLUMN, as in '
                f"{','.join(f'{one}=…' for one in known)}."
            )
        if name not in known:
            kind = _KINDS_WITH.get(name)
            of = f', a part of the examples of another task (`task="{kind}"`)' if kind else ""
            raise InputError(f'`fields` names "{name}"{of}. It should be {listed(known)}.')
        if name in fields:
            raise InputError(f'`fields` names "{name}" twice.')
        fields[name] = column
    return fields


def column_index(source, column, *, names=None, width):
    """The index from 0 of a column that the user gave by its name or its number from 1.

    Raises InputError where the table of `width` columns does not have it.
    """
    if names and str(column) in names:
        return names.index(str(column))
    if str(column).isdigit() and 1 <= int(column) <= width:
        return int(column) - 1
    known = quoted(names) if names else f"1 to {width}"
    raise InputError(f'{source.name} has no column "{column}". Its columns are {known}.')


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Where the texts and the label are in the records of a source.

    `texts` (one or two) and `label` are keys of dictionaries, or indices from 0 of cells; `label`
    is None in an unlabelled source. `names` are the header's, None without one.
    """

    texts: tuple[int | str, ...]
    label: int | str | None
    names: tuple[str, ...] | None = None

    def describe(self, column):
        """A column by its name, or by its number from 1."""
        if isinstance(column, str):
            return f'"{column}"'
        return f'"{self.names[column]}"' if self.names else f"column {column + 1}"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is looked for in a table, and the columns that the user has given.

    Attributes:
        texts: the names of the texts: ("text",), or ("text_a", "text_b").
        given: {one of those names, or "label": column}, a name or a number from 1.
        arguments: {its name: the argument by which the user gives its column}, for messages.
        header: whether there is one; None leaves it to the content.
        labels: those that a model knows, or None.
        need_labels: whether a table without labels is an error.
        scores: labels are numbers.
        several: a record may have several labels.
    """

    texts: tuple[str, ...]
    given: dict[str, str]
    arguments: dict[str, str]
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

    def argument(self, name):
        """How the user gives the column of a text or the label."""
        argument = self.arguments[name]
        return f"`{argument}`" if argument != "fields" else f"`fields`, {name}=…"


def choose_columns(table, wanted):
    """The `Columns` of `table`, by the header's names and else by the content of its sample.

    Raises InputError where they cannot be detected, or are not those that the user has given.
    """
    if table.width is None:
        return _keys(table, wanted)
    line, first = table.sample[0]
    several = len(wanted.texts) > 1
    if table.width < len(wanted.texts) + wanted.need_labels and (wanted.need_labels or several):
        what, texts = ("pairs of texts", "two texts") if several else ("labelled text", "a text")
        raise InputError(
            f"Could not read {table.name} as {what}: line {line} has "
            f"{counted(table.width, 'column')}. Expected CSV, TSV or JSON Lines with "
            f"{texts} and a label."
        )
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
            raise InputError(f"{table.name} has a header line and nothing else.")
    lower = [name.casefold() for name in names or ()]
    given = {
        name: column_index(table, column, names=names, width=table.width)
        for name, column in wanted.given.items()
    }
    taken = {given[name] for name in wanted.texts if name in given}
    label = given.get("label")
    if label is None:
        label = _label_column(table, body, lower, wanted, taken=taken)
    find_texts = _pair_columns if several else _text_column
    texts = find_texts(table, body, names, wanted, given, label)
    if label in texts or len(set(texts)) < len(texts):
        what = "two texts and label" if several else "text and label"
        raise InputError(f"{table.name}: {what} cannot be the same column.")
    return Columns(texts=texts, label=label, names=names)


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
                f"give the one with the {name} as {wanted.argument(name)}.",
            )
    texts = tuple(keys[name] for name in wanted.texts)
    return Columns(texts=texts, label=keys["label"] if keys["label"] in first else None)


def _has_header(first, rest, wanted):
    """True where the first line names the columns instead of being a record."""
    if wanted.header is not None:
        return wanted.header
    if any(not str(column).isdigit() for column in wanted.given.values()):
        return True  # a column given by name can only be in a header
    rest = [row for row in rest if row != first]  # a header may be repeated
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
    # A label column: few values, each of them many times, but never the first line's.
    return len(rest) >= _MIN_ROWS_FOR_A_HEADER and any(
        2 <= len(values) <= len(rest) / 4 for values in below
    )


def _label_column(table, body, lower, wanted, *, taken):
    """The index of the label's column; None where there is none and none is needed."""
    named = (lower.index(name) for name in wanted.label_names if name in lower)
    label = next((column for column in named if column not in taken), None)
    free = [column for column in range(table.width) if column not in taken]
    if label is None and wanted.labels is not None:
        label = _column_of_known_labels(free, body, wanted.labels)
    if label is None and wanted.scores:
        # The few cells that are no scores are reported by their lines when they are reached. Where
        # scores are not needed, a column with such cells is not the score.
        label = _column_of_numbers(free, body, least=0.5 if wanted.need_labels else 1)
    elif label is None and wanted.need_labels:
        # Labels that the model does not know are reported by their lines, too.
        label = _column_of_few_values(free, body)
    if label is None and wanted.need_labels:
        known = f" and none holds the model's ({quoted(wanted.labels)})" if wanted.labels else ""
        looks = (
            "a score (numbers)"
            if wanted.scores
            else "a label (few different values, each many times)"
        )
        raise InputError(
            f"{table.name}: no column looks like {looks}{known}. Give it as "
            f"{wanted.argument('label')}."
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
        # A label is repeated. A column of a single value ("en") is more like one than a column
        # whose values are all different, and less than any other.
        unlike = 2 if distinct[column] == len(body) > 1 else int(distinct[column] == 1)
        return unlike, distinct[column], _length(body, column), -column

    best = min(distinct, key=order, default=None)
    if best is None or len(body) >= _MIN_ROWS_TO_DOUBT_A_LABEL and distinct[best] > len(body) / 2:
        return None
    return best


def _column_of_numbers(free, body, *, least):
    """The column of numbers with the fewest values, or None.

    At least the fraction `least` of its different non-empty cells are numbers.
    """
    cells = {column: {row[column] for row in body} for column in free}
    numbers = {
        column: len(values)
        for column, values in cells.items()
        if _fraction_of_numbers(values) >= least
    }
    return min(numbers, key=numbers.get, default=None)


def _text_column(table, body, names, wanted, given, label):
    """A tuple of the index of the only text's column."""
    (role,) = wanted.texts
    if role in given:
        return (given[role],)
    lower = [name.casefold() for name in names or ()]
    named = (lower.index(name) for name in TEXT_NAMES if name in lower)
    column = next((column for column in named if column != label), None)
    if column is not None:
        return (column,)
    lengths = {column: _length(body, column) for column in range(table.width) if column != label}
    best = max(lengths, key=lengths.get)
    for column, length in lengths.items():
        has_words = fmean(" " in row[column] for row in body) > 0.5
        if column != best and has_words and length > lengths[best] / 2:
            describe = Columns(texts=(best,), label=None, names=names).describe
            raise InputError(
                f"{table.name} has text in {describe(min(best, column))} and in "
                f"{describe(max(best, column))}. Give the right one as {wanted.argument('text')}."
            )
    return (best,)


def _pair_columns(table, body, names, wanted, given, label):
    """The indices of the columns of two texts."""
    lower = [name.casefold() for name in names or ()]
    pair = wanted.text_names(lower)
    if pair is not None and not given.keys() & set(wanted.texts):
        return tuple(lower.index(name) for name in pair)
    found = [given.get(role) for role in wanted.texts]
    free = [c for c in range(table.width) if c != label and c not in found]
    longest = sorted(free, key=lambda column: -_length(body, column))[: found.count(None)]
    rest = iter(sorted(longest))
    if len(longest) < found.count(None):
        raise InputError(
            f"{table.name} does not have two columns of texts. Give them as `fields`, "
            "text_a=…,text_b=…."
        )
    return tuple(next(rest) if column is None else column for column in found)


def _length(body, column):
    return fmean(len(row[column]) for row in body)


def _fraction_of_numbers(cells):
    """The fraction of the non-empty cells that are numbers; 0 where all are empty."""
    filled = [cell for cell in cells if cell.strip()]
    return fmean(map(_is_number, filled)) if filled else 0


def _replaces_score(cell):
    """Whether a cell that is no number is in place of one."""
    return cell.casefold() in _NO_SCORES or cell[:1].isdecimal()


def _is_number(cell):
    return math.isfinite(parsed_number(cell))


def parsed_number(text):
    """The number in a cell, as JSON would write it; nan if it is not a number.

    Python's own `float` also reads 1_000 and digits of other scripts.
    """
    return float(text) if _NUMBER.fullmatch(text.strip()) else math.nan
