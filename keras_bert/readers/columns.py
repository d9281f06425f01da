"""Which columns of a table hold texts and labels.

They are those that the user names, then those that the model was trained on, then the usual names,
then the only possible ones. Where two columns could be meant, it is an error that names both.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, islice

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import listed, quoted
from keras_bert.readers.labels import (
    LISTS,
    bit,
    is_missing,
    is_number,
    label_or_none,
    one_label,
    score,
    several_labels,
)
from keras_bert.readers.memory import is_unnamed
from keras_bert.readers.sources import JSON

LABEL = "label"
# The usual names, in lower case, in groups of which an earlier one wins; two of one group are a
# question. Of a pair each has two.
_TEXTS = (
    (("text",),),
    (("sentence",), ("message",), ("content",), ("review",), ("document",)),
)
_PAIRS = (
    (
        *(("text_a", "text_b"), ("text1", "text2"), ("sentence1", "sentence2")),
        *(("sentence_1", "sentence_2"), ("sentence_a", "sentence_b"), ("premise", "hypothesis")),
        *(("question1", "question2"), ("question", "sentence"), ("#1 string", "#2 string")),
    ),
)
_LABELS = (
    ("label",),
    ("class", "category", "target", "quality", "sentiment", "labels", "sense"),
)
_PAIR_LABELS = (("gold_label",), ("is_duplicate", "entailment"))
_SCORES = (("score",), ("similarity", "rating", "relatedness", "relatedness_score"))
# A part of an example -> the task type that has it.
_TASKS_WITH = {
    **dict.fromkeys(("text_a", "text_b"), "pair-classifier"),
    **dict.fromkeys(("question", "answers"), "question-answering"),
    **dict.fromkeys(("head", "tail"), "relation-classifier"),
    "choices": "multiple-choice",
}
JOINED = "+"  # between the columns of one text
BETWEEN = "|"  # between several columns of another part
# A space, or a character of a script that writes none.
_HAS_WORDS = re.compile(r"\s|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( .*)?|\d\d?:\d\d.*"
)
_LEAST_NUMBERS = 0.5
_ROWS_AT_ONCE = 4096
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


def given_or_remembered(given, remembered, names):
    """{part: its columns}: those that the user gives, else those of training among the names.

    Several columns that are given have | between them.
    """
    remembered = remembered or {}
    columns = {part: [*names_] for part, names_ in remembered.items() if {*names_} <= {*names}}
    given = {
        part: str(column).split(BETWEEN) for part, column in given.items() if column is not None
    }
    return columns | {part: [name.strip() for name in given[part]] for part in given}


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
        form: the type of label: `one_label`, `several_labels` or `score`.
        given: {one of those names, or "label": column}, a name, a number from 1, or several names
            with + between them; of "label" also a list, of a column for each label.
        remembered: {its name: columns} of the table that the model was trained on.
        labels: those that a model has, or None.
        need_labels: whether a table without labels is an error.
        na: cells such as NA are missing.
    """

    texts: tuple[str, ...]
    form: object = one_label
    given: dict[str, str]
    remembered: dict[str, list[str]] = field(default_factory=dict)
    labels: tuple[str, ...] | None = None
    need_labels: bool = True
    na: bool = True

    @property
    def is_score(self):
        return self.form is score

    @property
    def has_several(self):
        return self.form is several_labels

    @property
    def usual_texts(self):
        """The usual names of the texts, in groups of tuples with a name for each."""
        return _PAIRS if len(self.texts) > 1 else _TEXTS

    @property
    def usual_labels(self):
        """The usual names of a label column, likewise."""
        first = _SCORES if self.is_score else (("labels",),) if self.has_several else ()
        groups = (*first, *(_PAIR_LABELS if len(self.texts) > 1 else ()), *_LABELS)
        return [[(name,) for name in group] for group in groups]

    @property
    def given_names(self):
        """The names that the user gives, and what is around their +."""
        columns = [c if isinstance(c, list) else [c] for c in self.given.values()]
        return {part.strip() for c in columns for name in c for part in str(name).split(JOINED)}

    @property
    def header_names(self):
        """The names, in lower case, by which the first line of a table is its header."""
        groups = (*_PAIRS, *_TEXTS, *self.usual_labels)
        usual = {name for group in groups for names in group for name in names}
        others = self.given_names.union(*self.remembered.values())
        return usual | {name.casefold() for name in others if not name.isdigit()}

    def argument(self, name):
        """How the user gives the column of a text or the label."""
        return f"`{name}_column`" if len(self.texts) == 1 else f"`fields`, {name}=…"

    def is_label(self, value):
        """Whether a value is a label of the model."""
        return value in (self.labels or ()) or label_or_none(value) in (self.labels or ())


def choose_columns(table, wanted):
    """The `Columns` of a table.

    Raises InputError where two columns, or none, could be meant, or the table lacks a given one.
    """
    if table.are_cells and table.peek() is None:
        raise InputError(f"{table.name} has a header line and nothing else.")
    columns, needed = {}, {*wanted.texts, *((LABEL,) if wanted.need_labels else ())}
    if table.kind != JSON or wanted.given_names <= {*table.names}:
        columns = _by_name(table, wanted)
    if table.kind == JSON and not needed <= columns.keys():  # the first object may lack a key
        table.names = [*dict.fromkeys(name for _, row in table.survey() for name in row)]
        columns = _by_name(table, wanted)
    may_have_label = wanted.is_score or wanted.labels is not None
    if not wanted.need_labels:  # then a pipe is not read to its end
        may_have_label &= not table.is_stream and len(table.names) > len(wanted.texts)
    lacks_label = LABEL not in columns and (wanted.need_labels or may_have_label)
    named, profiles = {name for names in columns.values() for name in names}, {}
    if lacks_label or not {*wanted.texts} <= columns.keys():
        profiles = {n: p for n, p in _profiles(table, wanted).items() if n not in named}
        possible = _possible_texts(profiles)
        if lacks_label:
            others = {name: p for name, p in profiles.items() if name not in possible}
            columns[LABEL] = _only_label(table, others, wanted)
        missing = [name for name in wanted.texts if name not in columns]
        if missing:
            free = {n: p for n, p in profiles.items() if n not in columns.get(LABEL, ())}
            texts = _only_texts(table, possible, free, wanted, missing=len(missing))
            columns |= {name: (text,) for name, text in zip(missing, texts, strict=True)}
    chosen = [name for names in columns.values() for name in names]
    if len({*chosen}) < len(chosen):
        roles = "two texts and label" if len(wanted.texts) > 1 else "text and label"
        raise InputError(f"{table.name}: {roles} cannot be the same column.")
    label, by_content = columns.get(LABEL, ()), frozenset(chosen) - named
    if len(label) == 1 and table.kind != JSON:
        _check_header(table, label[0], wanted, profiles if label[0] in by_content else {})
    texts = tuple(columns[name] for name in wanted.texts)
    return Columns(texts=texts, label=label, by_content=by_content)


# By their names.


def _by_name(table, wanted):
    """{a text or the label: the names of its columns}, without those that have no such name."""
    label = _given(table, wanted, LABEL) or _usual(table, wanted.usual_labels, wanted, (LABEL,))
    texts = [_given(table, wanted, name) for name in wanted.texts]
    if not any(texts):
        usual = _usual(table, wanted.usual_texts, wanted, wanted.texts) or ()
        texts = [(name,) for name in usual if len(wanted.texts) > 1 or usual != label]
    columns = dict(zip(wanted.texts, texts, strict=False)) | {LABEL: label}
    return {name: names for name, names in columns.items() if names}


def _given(table, wanted, role):
    """The columns that the user, or the training of the model, names for a text or the label."""
    given = wanted.given.get(role)
    if given is None:
        remembered = tuple(wanted.remembered.get(role, ()))
        return remembered if {*remembered} <= {*table.names} else ()
    names = given if isinstance(given, list) else [given]
    if role != LABEL and table.column(given) is None:
        names = [name.strip() for name in str(given).split(JOINED)]
    return tuple(table.existing(name) for name in names)


def _usual(table, groups, wanted, roles):
    """The columns with usual names for some texts or the label; None without any."""
    by_lower = {}
    for name in table.names if table.has_names else ():
        by_lower.setdefault(name.strip().casefold(), []).append(name)
    for group in groups:
        present = [names for names in group if {*names} <= by_lower.keys()]
        matches = [name for names in present for lower in names for name in by_lower[lower]]
        if len(matches) > len(roles):
            raise _question(table, matches, wanted, roles[0])
        if matches:
            return tuple(map(table.column, matches))
    return None


def _question(table, names, wanted, role):
    """The InputError for several columns that a text or the label could be in."""
    described, argument = [*map(table.describe, names)], wanted.argument(role)
    if role != LABEL:
        return InputError(
            f"{table.name} has text in {' and in '.join(described)}. Give the right one as "
            f"{argument}."
        )
    several = ", or all of them as `label_columns` with `multi_label=True`"
    if len(names) < 3 or wanted.is_score or wanted.has_several:
        several = ""
    return InputError(
        f"{table.name}: the {'score' if wanted.is_score else 'label'} could be in "
        f"{' or in '.join(described)}. Give the right one as {argument}{several}."
    )


# By their content.


class _Profile:
    """How often each value of a column comes, those without a value left out."""

    def __init__(self, counts):
        self.counts, self.filled = counts, counts.total()

    def most(self, holds):
        """Whether a condition holds for more than half of the cells."""
        count = 0
        for value, times in self.counts.items():
            count += times if holds(value) else 0
            if 2 * count > self.filled:
                return True
        return False

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
        return sum(map(is_number, self.counts))

    @property
    def is_id(self):
        """Whether its values are whole numbers, all different."""
        return len(self.counts) == self.filled and all(str(v).isdecimal() for v in self.counts)


def _has_words(text):
    text = text.strip()
    return " " in text or _HAS_WORDS.search(text) is not None


def _is_date(value):
    return _DATE.fullmatch(str(value).strip()) is not None


def _profiles(table, wanted):
    """The `_Profile` of each column that has a name and values, from all rows."""
    names = [name for name in table.names if not (table.has_names and is_unnamed(name))]
    counters, rows = {name: Counter() for name in names}, table.survey()
    while batch := list(islice(rows, _ROWS_AT_ONCE)):
        for name, counts in counters.items():
            values = [row.get(name) for _, row in batch]
            if not {*map(type, values)}.isdisjoint(LISTS):
                lists = [value if isinstance(value, LISTS) else [value] for value in values]
                lists = (label_or_none(value, several_labels) or () for value in lists)
                values = chain.from_iterable(lists if wanted.has_several else ())
            counts.update(values)
    na = wanted.na and table.are_cells
    for counts in counters.values():
        for value in [value for value in counts if is_missing(value, na=na)]:
            del counts[value]
    return {name: _Profile(counts) for name, counts in counters.items() if counts}


def _possible_texts(profiles):
    """The columns of strings of which most differ and most hold a space.

    Strings in a script without spaces count as holding one. If no column qualifies, those whose
    strings hold a space, whether or not they differ.
    """
    texts = [name for name, profile in profiles.items() if profile.is_text]
    return [name for name in texts if profiles[name].mostly_differs] or texts


def _possible_labels(profiles, wanted):
    """The columns of numbers, those of the model's labels, or those that could be labels.

    In a table of few rows, in which labels need not repeat, it is the only column that is left.
    """
    if wanted.is_score:
        least = _LEAST_NUMBERS if wanted.need_labels else 1
        scores = [name for name, p in profiles.items() if p.numbers >= least * len(p.counts)]
        return [n for n in scores if not profiles[n].is_id] if len(scores) > 1 else scores
    labels = [n for n, p in profiles.items() if wanted.labels and p.most(wanted.is_label)]
    if not labels and (wanted.need_labels or not wanted.labels):
        labels = [name for name, profile in profiles.items() if profile.is_label]
    if labels or not wanted.need_labels:
        return labels
    left = [
        name
        for name, profile in profiles.items()
        if profile.filled < _MANY_ROWS and not profile.is_id and not profile.most(_is_date)
    ]
    return left if len(left) == 1 else []


def _only_label(table, profiles, wanted):
    """The only column that could be the label, as a tuple; () where none is needed."""
    names = tuple(_possible_labels(profiles, wanted))
    if len(names) == 1 or not wanted.need_labels:
        return names if len(names) == 1 else ()
    if names and wanted.has_several and all(profiles[name].is_bits for name in names):
        return names  # a 0 or 1 for each label
    if names:
        raise _question(table, names, wanted, LABEL)
    of_model = f" and none holds the model's ({quoted(wanted.labels)})" if wanted.labels else ""
    expected = "score (numbers)" if wanted.is_score else "label (two or more values that repeat)"
    raise _nothing(table, f"a {expected}{of_model}", wanted.argument(LABEL))


def _only_texts(table, possible, profiles, wanted, *, missing):
    """The only columns that could be the `missing` texts, in order."""
    possible = [name for name in possible if name in profiles]
    if len(possible) == missing:
        return possible
    left = [name for name, p in profiles.items() if p.numbers < len(p.counts)]
    if len(possible) < missing == len(left):
        return left
    if len(possible) > missing:
        raise _question(table, possible, wanted, wanted.texts[0])
    if len(wanted.texts) > 1:
        raise InputError(
            f"{table.name} does not have two columns of texts. Give them as `fields`, "
            "text_a=…,text_b=…."
        )
    expected = "a text (most values differ and hold a space)"
    raise _nothing(table, expected, wanted.argument(wanted.texts[0]))


def _nothing(table, expected, argument):
    return InputError(
        f"{table.name}: no column looks like {expected}. The {table.calls_columns} are "
        f"{quoted(table.names)}. Give it as {argument}."
    )


# The header.


def _check_header(table, name, wanted, profiles):
    """Raises InputError where the first line could be a header or an example.

    It is so where a table without a header has a label in its first line that comes nowhere else,
    and where the name of a label column, chosen by its content, is one of its labels.
    """
    if table.is_undecided and not table.has_names:
        rows = table.survey()
        cell = next(rows)[1][name].strip()
        if not _is_label(cell, wanted) and all(row[name].strip() != cell for _, row in rows):
            raise table.error(
                table.first,
                f'"{cell}" in {table.describe(name)} could be the name of the column, or a label '
                "that comes only once. Set `header=True` or `header=False`.",
            )
    labels = map(label_or_none, profiles[name].counts) if name in profiles else ()
    if table.has_names and one_label(name) in labels:
        raise InputError(
            f'{table.name}: "{name}" is the name of a column and one of its labels. If the first '
            "line is an example, read it with `header=False` (in pandas header=None)."
        )


def _is_label(cell, wanted):
    """Whether the cell of a first line is a label and not a name, whatever the other lines have."""
    if is_missing(cell, na=wanted.na) or wanted.is_label(cell):
        return True
    if wanted.is_score:
        return cell[:1].isdecimal() or is_number(cell)
    return wanted.has_several and (cell[:1] in "[({" or "|" in cell)
