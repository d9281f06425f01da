"""Which columns of a table hold texts and labels.

They are those that the user names, then those that the model was trained on, then the usual names,
then the only possible ones. Where two columns could be meant, it is an error that names both.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, islice

from keras_bert.base.errors import InputError, Naming, argument
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
from keras_bert.readers.sources import JSON, is_unnamed
from keras_bert.readers.tables import Table

LABEL = "label"
# The usual names, in lower case, in groups of which an earlier one wins; two of one group are a
# question. Of a pair each has two.
_TEXTS = ("text",), ("sentence", "message", "content", "review", "document")
_PAIRS = (
    *(("text_a", "text_b"), ("text1", "text2"), ("sentence1", "sentence2")),
    *(("sentence_1", "sentence_2"), ("sentence_a", "sentence_b"), ("premise", "hypothesis")),
    *(("question1", "question2"), ("question", "sentence"), ("#1 string", "#2 string")),
)
_LABELS = ("label",), ("class", "category", "target", "quality", "sentiment", "labels", "sense")
_PAIR_LABELS = ("gold_label",), ("is_duplicate", "entailment")
_SCORES = ("score",), ("similarity", "rating", "relatedness", "relatedness_score")
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
_NEARLY_ALL = 0.9


def parse_fields(text, *, parts):
    """`a=x,b=y` as a dictionary; {} for None.

    Raises InputError where a part is not NAME=COLUMN, or its name is not one of `parts`.
    """
    fields = {}
    for part in text.split(",") if text is not None else ():
        name, equals, column = (word.strip() for word in part.partition("="))
        if not (name and equals and column):
            raise InputError.naming(
                '{fields} has the part "{}". It should be NAME=COLUMN, as in {}.',
                part,
                ",".join(f"{one}=…" for one in parts),
            )
        if name not in parts:
            of_task = ""
            if name in _TASKS_WITH:
                task = argument("task", f'"{_TASKS_WITH[name]}"')
                of_task = Naming(", a part of the examples of another task ({})", task)
            raise InputError.naming(
                '{fields} names "{}"{}. It should be {}.', name, of_task, listed(parts)
            )
        if name in fields:
            raise InputError.naming('{fields} names "{}" twice.', name)
        fields[name] = column
    return fields


def given_or_remembered(given, remembered, names):
    """{part: its columns}: those that the user gives, else those of training among the names.

    Several columns that are given have | between them.
    """
    columns = {part: [*some] for part, some in remembered.items() if {*some} <= {*names}}
    given = {part: str(column) for part, column in given.items() if column is not None}
    split = {part: column.split(BETWEEN) for part, column in given.items()}
    return columns | {part: [name.strip() for name in some] for part, some in split.items()}


def usual_columns(names, groups):
    """The names that are, in any case, in the first of some groups that has any of them."""
    for group in groups:
        matches = [n for usual in group for n in names if n.strip().casefold() == usual]
        if matches:
            return matches
    return []


@dataclass(kw_only=True)
class Columns:
    """Which columns of a table have the texts and the label of an example.

    What is given is joined by `choose`, which sets the names of the columns: `texts`, of each text
    (several are joined), `label`, () in an unlabelled table (several have a 0 or 1 for one label
    each), and `by_content`, those that were chosen by what they hold.
    """

    roles: tuple[str, ...]  # of the texts: ("text",), or ("text_a", "text_b")
    form: object = one_label  # the type of label, or `several_labels` or `score`
    # {a role, or "label": a name, a number from 1, or several names with + between them; of "label"
    # also a list of columns}, and likewise {role: names} of the data that a model was trained on.
    given: dict = field(default_factory=dict)
    remembered: dict = field(default_factory=dict)
    of_model: tuple = ()  # the labels of a model
    need_labels: bool = True
    na: bool = True  # cells such as NA are missing
    texts: tuple = ()
    label: tuple = ()
    by_content: frozenset = frozenset()
    table: Table | None = None

    @property
    def is_score(self):
        return self.form is score

    @property
    def noun(self):
        return "score" if self.is_score else "label"

    @property
    def usual_labels(self):
        first = {score: _SCORES, several_labels: (("labels",),)}.get(self.form, ())
        return (*first, *(_PAIR_LABELS if len(self.roles) > 1 else ()), *_LABELS)

    @property
    def given_names(self):
        """The names that the user gives, and what is around their +."""
        columns = [c if isinstance(c, list) else [c] for c in self.given.values()]
        return {part.strip() for c in columns for name in c for part in str(name).split(JOINED)}

    @property
    def header_names(self):
        """The names, in lower case, by which the first line of a table is its header."""
        usual = {*chain(*_PAIRS, *_TEXTS, *self.usual_labels)}
        others = self.given_names.union(map(str, chain(*self.remembered.values())))
        return usual | {name.casefold() for name in others if not name.isdigit()}

    def choose(self, table):
        """Sets the columns of a table.

        Raises InputError where two, or none, could be meant, or the table lacks a given one.
        """
        self.table, named = table, {}
        if table.are_cells and table.peek() is None:
            raise InputError(f"{table.name} has a header line and nothing else.")
        needed = {*self.roles, *((LABEL,) if self.need_labels else ())}
        if table.kind != JSON or self.given_names <= {*table.names}:
            named = self._by_name()
        if table.kind == JSON and not needed <= named.keys():  # the first object may lack a key
            table.names = [*dict.fromkeys(name for _, row in table.survey() for name in row)]
            named = self._by_name()
        looks_for_label = self.need_labels
        if self.is_score or self.of_model:  # a pipe is not read to its end for a label
            looks_for_label |= not table.is_stream and len(table.names) > len(self.roles)
        lacks_label = LABEL not in named and looks_for_label
        columns, profiles = named, {}
        if lacks_label or not {*self.roles} <= named.keys():
            taken = {name for names in named.values() for name in names}
            profiles = {n: p for n, p in self._profiles().items() if n not in taken}
            columns = self._by_content(profiles, named, lacks_label=lacks_label)
        chosen = [name for names in columns.values() for name in names]
        if len({*chosen}) < len(chosen):
            roles = "two texts and label" if len(self.roles) > 1 else "text and label"
            raise InputError(f"{table.name}: {roles} cannot be the same column.")
        self.texts = tuple(columns[name] for name in self.roles)
        self.label, self.by_content = columns.get(LABEL, ()), frozenset(chosen) & profiles.keys()
        if len(self.label) == 1 and table.kind != JSON:
            self._check_header(self.label[0], profiles)

    def is_label(self, value):
        """Whether a value is a label of the model."""
        return value in self.of_model or label_or_none(value) in self.of_model

    # By their names.

    def _by_name(self):
        """{role: the names of its columns}, without those that have no such name."""
        label = self._given(LABEL) or self._usual(self.usual_labels, (LABEL,))
        texts = [self._given(role) for role in self.roles]
        if not any(texts):
            usual = self._usual(_PAIRS if len(self.roles) > 1 else _TEXTS, self.roles)
            texts = [(name,) for name in usual if len(self.roles) > 1 or usual != label]
        columns = {**dict(zip(self.roles, texts, strict=False)), LABEL: label}
        return {role: names for role, names in columns.items() if names}

    def _given(self, role):
        """The columns that the user, or the training of the model, names for a role."""
        given = self.given.get(role)
        if given is None:
            remembered = tuple(self.remembered.get(role, ()))
            return remembered if {*remembered} <= {*self.table.names} else ()
        names = given if isinstance(given, list) else [given]
        if role != LABEL and self.table.column(given) is None:
            names = [name.strip() for name in str(given).split(JOINED)]
        return tuple(map(self.table.existing, names))

    def _usual(self, groups, roles):
        """The columns with usual names for some roles; () without any."""
        names = self.table.names if self.table.has_names else ()
        if len(roles) > 1:
            lower = {name.strip().casefold() for name in names}
            groups = [[name for pair in groups if {*pair} <= lower for name in pair]]
        matches = usual_columns(names, groups)
        if len(matches) > len(roles):
            raise self._question(matches, roles[0])
        return tuple(map(self.table.column, matches))

    def _argument(self, role):
        alone = len(self.roles) == 1
        return argument(f"{role}_column") if alone else Naming("{fields}, {}=…", role)

    def _question(self, names, role):
        """The InputError for several columns that a role could have."""
        described = [*map(self.table.describe, names)]
        name, given, or_all = self.table.name, self._argument(role), ""
        if role != LABEL:
            names = " and in ".join(described)
            return InputError.naming(
                "{} has text in {}. Give the right one as {}.", name, names, given
            )
        if len(names) > 2 and self.form is one_label:
            or_all = Naming(", or all of them as {label_columns} with {multi_label=True}")
        return InputError.naming(
            "{}: the {} could be in {}. Give the right one as {}{}.",
            name,
            self.noun,
            " or in ".join(described),
            given,
            or_all,
        )

    # By their content.

    def _profiles(self):
        """The `_Profile` of each column that has a name and values, from all rows."""
        names = [n for n in self.table.names if not (self.table.has_names and is_unnamed(n))]
        counters, rows = {name: Counter() for name in names}, self.table.survey()
        while batch := list(islice(rows, _ROWS_AT_ONCE)):
            for name, counts in counters.items():
                cells = [row.get(name) for _, row in batch]
                if not {*map(type, cells)}.isdisjoint(LISTS):
                    lists = [cell if isinstance(cell, LISTS) else [cell] for cell in cells]
                    lists = (label_or_none(cell, several_labels) or () for cell in lists)
                    cells = chain(*lists) if self.form is several_labels else ()
                counts.update(cells)
        na = self.na and self.table.are_cells
        for counts in counters.values():
            for value in [value for value in counts if is_missing(value, na=na)]:
                del counts[value]
        return {name: _Profile(counts) for name, counts in counters.items() if counts}

    def _by_content(self, profiles, named, *, lacks_label):
        """The named columns, and those that are chosen among the profiles of the others.

        A text is in the column of strings of which most differ and most hold a space (strings in a
        script without spaces count as holding one); without any, in one of strings with spaces.
        """
        columns, missing = {**named}, [role for role in self.roles if role not in named]
        texts = [name for name, profile in profiles.items() if profile.is_text]
        differ = [n for n in texts if 2 * len(profiles[n].counts) > profiles[n].filled]
        texts = differ or texts
        if lacks_label:
            columns[LABEL] = self._only_label({n: p for n, p in profiles.items() if n not in texts})
        others = [name for name in profiles if name not in columns.get(LABEL, ())]
        texts = [name for name in texts if name in others]
        if len(texts) < len(missing):
            left = [n for n in others if profiles[n].numbers < len(profiles[n].counts)]
            texts = left if len(left) == len(missing) else texts
        if missing and len(texts) > len(missing):
            raise self._question(texts, self.roles[0])
        if len(texts) < len(missing):
            if len(self.roles) > 1:
                raise InputError.naming(
                    "{} does not have two columns of texts. Give them as {fields}, text_a=…,"
                    "text_b=….",
                    self.table.name,
                )
            raise self._nothing("a text (most values differ and hold a space)", self.roles[0])
        return columns | {role: (name,) for role, name in zip(missing, texts, strict=False)}

    def _only_label(self, profiles):
        """The only column that could be the label, as a tuple; () where none is needed."""
        names = tuple(self._possible_labels(profiles))
        if len(names) == 1 or not self.need_labels:
            return names if len(names) == 1 else ()
        cells = (value for name in names for value in profiles[name].counts)
        if names and self.form is several_labels and None not in map(bit, cells):
            return names  # a 0 or 1 for each label
        if names:
            raise self._question(names, LABEL)
        expected = "score (numbers)" if self.is_score else "label (two or more values that repeat)"
        if self.of_model:
            expected += f" and none holds the model's ({quoted(self.of_model)})"
        raise self._nothing(f"a {expected}", LABEL)

    def _possible_labels(self, profiles):
        """The columns of numbers, those of the model's labels, or those that could be labels.

        In a table of few rows, in which labels need not repeat, it is the only one that is left.
        """
        if self.is_score:
            least = _LEAST_NUMBERS if self.need_labels else 1
            scores = [n for n, p in profiles.items() if p.numbers >= least * len(p.counts)]
            return [name for name in scores if not profiles[name].is_id] or scores
        labels = [n for n, p in profiles.items() if self.of_model and p.most(self.is_label)]
        if not labels and (self.need_labels or not self.of_model):
            labels = [name for name, profile in profiles.items() if profile.is_label]
            labels = [n for n in labels if not profiles[n].nearly_all_differ] or labels
        few = {name: p for name, p in profiles.items() if p.filled < _MANY_ROWS}
        left = [name for name, p in few.items() if not p.is_id and not p.are_dates]
        return labels or (left if self.need_labels and len(left) == 1 else [])

    def _nothing(self, expected, role):
        return InputError.naming(
            "{}: no column looks like {}. The {} are {}. Give it as {}.",
            self.table.name,
            expected,
            self.table.calls_columns,
            quoted(self.table.names),
            self._argument(role),
        )

    # The header.

    def _check_header(self, name, profiles):
        """Raises InputError where the first line could be a header or an example.

        It is so where a table without a header has a label in its first line that comes nowhere
        else, and where the name of a label column, chosen by its content, is one of its labels.
        """
        table = self.table
        if table.is_undecided and not table.has_names:
            rows = table.survey()
            cell = next(rows)[1][name].strip()
            if not self._is_label(cell) and all(row[name].strip() != cell for _, row in rows):
                message = Naming(
                    '"{}" in {} could be the name of the column, or a label that comes only once. '
                    "Set {header=True} or {header=False}.",
                    cell,
                    table.describe(name),
                )
                raise table.error(table.first, message)
        labels = map(label_or_none, profiles[name].counts) if name in profiles else ()
        if table.has_names and one_label(name) in labels:
            raise InputError.naming(
                '{}: "{}" is the name of a column and one of its labels. If the '
                "first line is an example, read it with {header=False} (in pandas header=None).",
                table.name,
                name,
            )

    def _is_label(self, cell):
        """Whether the cell of a first line is a label and no name, whatever other lines have."""
        if is_missing(cell, na=self.na) or self.is_label(cell):
            return True
        if self.is_score:
            return cell[:1].isdecimal() or is_number(cell)
        return self.form is several_labels and (cell[:1] in "[({" or "|" in cell)


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
        are_strings = all(isinstance(value, str) for value in self.counts)
        return are_strings and self.most(lambda text: _HAS_WORDS.search(text.strip()))

    @property
    def are_dates(self):
        return self.most(lambda value: _DATE.fullmatch(str(value).strip()))

    @property
    def is_label(self):
        """Whether there are two values or more, which repeat, and which are no dates."""
        return 2 <= len(self.counts) < self.filled and not self.are_dates

    @property
    def nearly_all_differ(self):
        """Whether its values are as those of an id of which some rows come twice."""
        return len(self.counts) > _NEARLY_ALL * self.filled

    @property
    def is_id(self):
        """Whether its values are whole numbers and nearly all differ."""
        return self.nearly_all_differ and all(str(v).isdecimal() for v in self.counts)

    @property
    def numbers(self):
        return sum(map(is_number, self.counts))
