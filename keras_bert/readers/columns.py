"""Which columns of a table hold texts and labels.

They are those that the user names, then those that the model was trained on, then the usual names,
then the only possible ones. Where two columns could be meant, it is an error that names both.
"""

import contextlib
import re
from collections import Counter
from dataclasses import dataclass, field

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import listed, quoted
from keras_bert.readers.labels import bit, is_missing, one_label, parsed_number, several_labels
from keras_bert.readers.sources import JSON
from keras_bert.readers.tables import is_unnamed

# The usual names, in lower case. A name in an earlier group wins over later ones; two of one group
# are a question.
_TEXTS = (("text",), ("sentence", "message", "content", "review", "document"))
_LABELS = (
    ("label",),
    ("class", "category", "target", "quality", "sentiment", "labels", "sense"),
)
_PAIR_LABELS = (("gold_label",), ("is_duplicate", "entailment"))
_SCORES = (("score",), ("similarity", "rating", "relatedness", "relatedness_score"))
# The names of a pair's two texts.
_PAIRS = (
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
# A part of an example -> the task type that has it.
_TASKS_WITH = {
    **dict.fromkeys(("text_a", "text_b"), "pair-classifier"),
    **dict.fromkeys(("question", "answers"), "question-answering"),
    **dict.fromkeys(("head", "tail"), "relation-classifier"),
    "choices": "multiple-choice",
}
JOINED = "+"  # between the columns of one text
# A space, or a character of a script that writes none.
_HAS_WORDS = re.compile(r"\s|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( .*)?|\d\d?:\d\d.*"
)
_LEAST_NUMBERS = 0.5
_MANY_ROWS = 20  # in which labels repeat


def parse_fields(text, *, parts):
    """`a=x,b=y` as a dictionary; {} for None.

    Raises InputError where a part is not NAME=COLUMN, or its name is not one of `parts`.
    """
    fields = {}
    for part in text.split(",") if text is not None else ():
        name, equals, column = (word.strip() for word in part.partition("="))
        if not (name and equals and column):
            raise InputError(
                f'`fields` has the part "{part}". It should be NAME=COLUMN, as in '
                f"{','.join(f'{one}=…' for one in parts)}."
            )
        if name not in parts:
            task = _TASKS_WITH.get(name)
            of = f', a part of the examples of another task (`task="{task}"`)' if task else ""
            raise InputError(f'`fields` names "{name}"{of}. It should be {listed(parts)}.')
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
    available = quoted(names) if names else f"1 to {width}"
    raise InputError(f'{source.name} has no column "{column}". Its columns are {available}.')


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The names of the columns of each text (joined where they are several), and of the label.

    `label` is () in an unlabelled table. Several columns have a 0 or 1 for one label each.
    `by_content` are the columns that were chosen by what they hold.
    """

    texts: tuple[tuple[str, ...], ...]
    label: tuple[str, ...] = ()
    by_content: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is looked for in a table, and the columns that are given.

    Attributes:
        texts: the names of the texts: ("text",), or ("text_a", "text_b").
        given: {one of those names, or "label": column}, a name, a number from 1, or several names
            with + between them; of "label" also a list, of a column for each label.
        arguments: {its name: the argument by which the user gives its column}, for messages.
        remembered: {its name: columns} of the table that the model was trained on.
        labels: those that a model knows, or None.
        need_labels: whether a table without labels is an error.
        scores: labels are numbers.
        several: a row may have several labels.
        na: cells such as NA are missing.
    """

    texts: tuple[str, ...]
    given: dict[str, str]
    arguments: dict[str, str]
    remembered: dict[str, list[str]] = field(default_factory=dict)
    labels: tuple[str, ...] | None = None
    need_labels: bool = True
    scores: bool = False
    several: bool = False
    na: bool = True

    @property
    def label_groups(self):
        """The usual names of a label column, the most probable group first."""
        first = _SCORES if self.scores else (("labels",),) if self.several else ()
        return (*first, *(_PAIR_LABELS if len(self.texts) > 1 else ()), *_LABELS)

    @property
    def given_names(self):
        """The names that the user gives, and what is around their +."""
        columns = [[c] if isinstance(c, str | int) else c for c in self.given.values()]
        names = {str(name) for of_part in columns for name in of_part}
        return {part.strip() for name in names for part in name.split(JOINED)}

    @property
    def header_names(self):
        """The names, in lower case, by which the first line of a table is its header."""
        groups = (*_PAIRS, *_TEXTS, *self.label_groups)
        others = {name for names in self.remembered.values() for name in names} | self.given_names
        names = {name.casefold() for name in others if not name.isdigit()}
        return names.union(*groups)

    def argument(self, name):
        """How the user gives the column of a text or the label."""
        argument = self.arguments[name]
        return f"`{argument}`" if argument != "fields" else f"`fields`, {name}=…"


def choose_columns(table, wanted):
    """The `Columns` of a table.

    Raises InputError where two columns, or none, could be meant, or the table lacks a given one.
    """
    if table.are_cells and table.peek() is None:
        raise InputError(f"{table.name} has a header line and nothing else.")
    label, texts = (), [None]
    if table.kind != JSON or wanted.given_names <= {*table.names}:
        label, texts = _by_name(table, wanted)
    if table.kind == JSON and (None in texts or (wanted.need_labels and not label)):
        # The first object may lack a key.
        table.names = [*dict.fromkeys(name for _, row in table.survey() for name in row)]
        label, texts = _by_name(table, wanted)
    may_have_label = wanted.scores or wanted.labels is not None
    if not wanted.need_labels:  # then a pipe is not read to its end
        may_have_label &= not table.is_stream and len(table.names) > len(texts)
    lacks_label = not label and (wanted.need_labels or may_have_label)
    by_content = []
    if lacks_label or not all(texts):
        profiles = _profiles(table, wanted)
        taken = {name for columns in (*texts, label) for name in columns or ()}
        free = {name: profile for name, profile in profiles.items() if name not in taken}
        possible = _possible_texts(free)
        if lacks_label:
            others = {name: p for name, p in free.items() if name not in possible}
            label = _only_label(table, others, wanted)
            by_content += label
        if not all(texts):
            possible = [name for name in possible if name not in label]
            rest = {name: profile for name, profile in free.items() if name not in label}
            chosen = iter(_only_texts(table, possible, rest, wanted, missing=texts.count(None)))
            texts = [columns or (next(chosen),) for columns in texts]
            by_content += [name for columns in texts for name in columns if name not in taken]
    columns = Columns(texts=tuple(texts), label=tuple(label), by_content=frozenset(by_content))
    chosen = [name for group in (*columns.texts, columns.label) for name in group]
    if len({*chosen}) < len(chosen):
        roles = "two texts and label" if len(wanted.texts) > 1 else "text and label"
        raise InputError(f"{table.name}: {roles} cannot be the same column.")
    _check_header(table, columns, wanted)
    return columns


def _by_name(table, wanted):
    """-> (the columns of the label, those of each text) that have a name; () or None for others."""
    label = _given(table, wanted, "label")
    label = label or _usual(table, wanted.label_groups, wanted, "label") or ()
    texts = [_given(table, wanted, name) for name in wanted.texts]
    return label, texts if any(texts) else _usual_texts(table, wanted, label) or texts


def _given(table, wanted, role):
    """The columns that the user, or the training of the model, names for a text or the label."""
    column = wanted.given.get(role)
    if column is None:
        remembered = tuple(wanted.remembered.get(role, ()))
        return remembered if {*remembered} <= {*table.names} and remembered else None
    names = [column] if isinstance(column, str | int) else list(column)
    whole = table.column(column) if len(names) == 1 and isinstance(column, str | int) else None
    if whole is None and len(names) == 1 and role != "label":
        names = [name.strip() for name in str(names[0]).split(JOINED)]
    columns = (whole,) if whole is not None else tuple(map(table.column, names))
    for name, column in zip(names, columns, strict=False):
        if column is None:
            available = quoted(table.names) if table.has_names else f"1 to {len(table.names)}"
            raise InputError(f'{table.name} has no column "{name}". Its columns are {available}.')
    return columns


def _usual(table, groups, wanted, role):
    """The column with a usual name of a text or the label, as a tuple, or None."""
    for group in groups if table.has_names else ():
        names = [name for name in table.names if name.strip().casefold() in group]
        if len(names) > 1:
            raise _question(table, names, wanted, role)
        if names:
            return (table.column(names[0]),)
    return None


def _usual_texts(table, wanted, label):
    if len(wanted.texts) == 1:
        columns = _usual(table, _TEXTS, wanted, wanted.texts[0])
        return None if columns is None or columns == label else [columns]
    lower = {name.strip().casefold(): name for name in table.names} if table.has_names else {}
    pairs = [pair for pair in _PAIRS if {*pair} <= {*lower}]
    if len(pairs) > 1:
        names = [lower[name] for pair in pairs for name in pair]
        raise _question(table, names, wanted, wanted.texts[0])
    return [(table.column(lower[name]),) for pair in pairs for name in pair] or None


def _question(table, names, wanted, role):
    """The InputError for several columns that a text or the label could be in."""
    described = [*map(table.describe, names)]
    if role == "label":
        noun = "score" if wanted.scores else "label"
        several = (
            ", or all of them as `label_columns` with `multi_label=True`"
            if not (wanted.scores or wanted.several)
            else ""
        )
        return InputError(
            f"{table.name}: the {noun} could be in {' or in '.join(described)}. Give the right one "
            f"as {wanted.argument(role)}{several if len(names) > 2 else ''}."
        )
    return InputError(
        f"{table.name} has text in {' and in '.join(described)}. Give the right one as "
        f"{wanted.argument(role)}."
    )


class _Profile:
    """How often each value of a column comes, those without a value left out."""

    def __init__(self, counts):
        self.counts = counts
        self.filled = counts.total()

    def most(self, holds):
        """Whether a condition holds for more than half of the cells."""
        return 2 * sum(n for value, n in self.counts.items() if holds(value)) > self.filled

    @property
    def is_text(self):
        return all(isinstance(v, str) for v in self.counts) and self.most(_has_words)

    @property
    def mostly_differs(self):
        return 2 * len(self.counts) > self.filled

    @property
    def is_label(self):
        """Whether there are two values or more, which repeat, and which are no dates."""
        return 2 <= len(self.counts) < self.filled and not self.most(_is_date)

    @property
    def is_bits(self):
        return len(self.counts) < 9 and all(bit(value) is not None for value in self.counts)

    @property
    def numbers(self):
        return sum(parsed_number(str(v)) == parsed_number(str(v)) for v in self.counts)

    @property
    def is_numeric(self):
        return self.numbers == len(self.counts)

    @property
    def is_id(self):
        """Whether its values are whole numbers, all different."""
        return len(self.counts) == self.filled and all(str(v).isdecimal() for v in self.counts)


def _has_words(value):
    return _HAS_WORDS.search(value.strip()) is not None


def _is_date(value):
    return _DATE.fullmatch(str(value).strip()) is not None


def _profiles(table, wanted):
    """The `_Profile` of each column that has a name and values, from all rows."""
    names = [name for name in table.names if not (table.has_names and is_unnamed(name))]
    counters, na = {name: Counter() for name in names}, wanted.na and table.are_cells
    for _, row in table.survey():
        for name, counts in counters.items():
            value = row.get(name)
            if _is_list(value):
                counts.update(_labels_of(value) if wanted.several else ())
            elif not is_missing(value, na=na):
                counts[value] += 1
    return {name: _Profile(counts) for name, counts in counters.items() if counts}


def _labels_of(value):
    with contextlib.suppress(ValueError):  # raised again when its row is read
        return several_labels(value)
    return ()


def _label_or_none(value):
    with contextlib.suppress(ValueError):
        return one_label(value)


def _possible_texts(profiles):
    """The columns of strings of which most differ and most hold a space.

    Strings in a script without spaces count as holding one. If no column qualifies, those whose
    strings hold a space, whether or not they differ.
    """
    texts = [name for name, profile in profiles.items() if profile.is_text]
    return [name for name in texts if profiles[name].mostly_differs] or texts


def _possible_labels(profiles, wanted):
    """The columns most of whose values are labels of the model, or those that could be labels."""
    labels, of_model = [], {*(wanted.labels or ())}
    if of_model:
        labels = [
            name for name, p in profiles.items() if p.most(lambda value: _is_known(value, of_model))
        ]
    if not labels and (wanted.need_labels or not of_model):
        labels = [name for name, profile in profiles.items() if profile.is_label]
    return labels


def _left_over(profiles, wanted):
    """The only column that is left in a table of few rows, in which labels need not repeat."""
    if wanted.scores or not wanted.need_labels:
        return []
    names = [
        name
        for name, profile in profiles.items()
        if profile.filled < _MANY_ROWS and not profile.is_id and not profile.most(_is_date)
    ]
    return names if len(names) == 1 else []


def _is_known(value, labels):
    return value in labels or _label_or_none(value) in labels


def _possible_scores(profiles, wanted):
    """The columns of numbers; of several, those that are no ids."""
    least = _LEAST_NUMBERS if wanted.need_labels else 1
    scores = [name for name, p in profiles.items() if p.numbers >= least * len(p.counts)]
    return [n for n in scores if not profiles[n].is_id] if len(scores) > 1 else scores


def _only_label(table, profiles, wanted):
    """The only column that could be the label, as a tuple; () where none is needed."""
    find = _possible_scores if wanted.scores else _possible_labels
    names = find(profiles, wanted) or _left_over(profiles, wanted)
    bits = [name for name in names if profiles[name].is_bits]
    if wanted.several and wanted.need_labels and len(bits) == len(names) > 1:
        return tuple(names)  # a 0 or 1 for each label
    if len(names) == 1:
        return tuple(names)
    if not wanted.need_labels:
        return ()
    if names:
        raise _question(table, names, wanted, "label")
    of_model = f" and none holds the model's ({quoted(wanted.labels)})" if wanted.labels else ""
    expected = "a score (numbers)" if wanted.scores else "a label (two or more values that repeat)"
    raise InputError(
        f"{table.name}: no column looks like {expected}{of_model}. The {table.calls_columns} are "
        f"{quoted(table.names)}. Give it as {wanted.argument('label')}."
    )


def _only_texts(table, possible, profiles, wanted, *, missing):
    """The only columns that could be the `missing` texts, in order."""
    if len(possible) == missing:
        return possible
    role = wanted.texts[0]
    left = [name for name, profile in profiles.items() if not profile.is_numeric]
    if len(possible) < missing == len(left):
        return left
    if len(possible) > missing:
        raise _question(table, possible, wanted, role)
    if len(wanted.texts) > 1:
        raise InputError(
            f"{table.name} does not have two columns of texts. Give them as `fields`, "
            "text_a=…,text_b=…."
        )
    raise InputError(
        f"{table.name}: no column looks like a text (most values differ and hold a space). The "
        f"{table.calls_columns} are {quoted(table.names)}. Give it as {wanted.argument(role)}."
    )


def _check_header(table, columns, wanted):
    """Raises InputError where the first line could be a header or an example.

    It is so where a table without a header has a label in its first line that comes nowhere else,
    and where the name of a label column, chosen by its content, is one of its labels.
    """
    if len(columns.label) != 1 or table.kind == JSON:
        return
    (name,) = columns.label
    if table.is_undecided and not table.has_names:
        rows = iter(table.survey())
        _, row = next(rows, (None, {name: ""}))
        cell = row[name].strip()
        if not _is_label(cell, wanted) and all(row[name].strip() != cell for _, row in rows):
            raise table.error(
                table.first,
                f'"{cell}" in {table.describe(name)} could be the name of the column, or a label '
                "that comes only once. Set `header=True` or `header=False`.",
            )
    if table.has_names and name in columns.by_content:
        if one_label(name) in {_label_or_none(row.get(name)) for _, row in table.survey()}:
            raise InputError(
                f'{table.name}: "{name}" is the name of a column and one of its labels. If the '
                "first line is an example, read it with `header=False` (in pandas header=None)."
            )


def _is_list(value):
    return isinstance(value, list | tuple | dict | set)


def _is_label(cell, wanted):
    """Whether the cell of a first line is a label and not a name, whatever the other lines have."""
    if is_missing(cell, na=wanted.na):
        return True
    if wanted.scores:
        return cell[:1].isdecimal() or parsed_number(cell) == parsed_number(cell)
    if wanted.several and (cell[:1] in "[({" or "|" in cell):
        return True
    return wanted.labels is not None and _is_known(cell, {*wanted.labels})
