"""Which columns of a table hold texts and labels: names choose.

The columns are those that the user names, then those that the model was trained on, then those with
usual names, then the only one that is left over. Otherwise it is an error that lists the columns,
in which their content proposes what to give.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, islice
from statistics import fmean

from keras_bert.base.errors import InputError, Naming, argument
from keras_bert.base.formatting import in_one_line, listed, quoted
from keras_bert.readers.labels import (
    DATE,
    bit,
    is_missing,
    is_number,
    one_label,
    score,
    several_labels,
)
from keras_bert.readers.sources import FOLDER, JSON, is_unnamed
from keras_bert.readers.table import Table, same_name

LABEL = "label"
# The usual names, in lower case, in groups of which an earlier one wins; two of one group are a
# question.
TEXT_NAMES = (
    ("text",),
    ("sentence", "message", "content", "review", "document", "utterance", "query", "comment")
    + ("headline", "body", "tweet", "question", "post", "passage", "comment_text", "review_text")
    + ("review_body", "input_text"),
)
# Two names of the two texts of a pair; several such pairs are a question.
PAIRS_OF_NAMES = (
    *(("text_a", "text_b"), ("text1", "text2"), ("text_1", "text_2"), ("sentence1", "sentence2")),
    *(("sentence_1", "sentence_2"), ("sentence_a", "sentence_b"), ("sent1", "sent2")),
    *(("premise", "hypothesis"), ("question1", "question2"), ("question", "sentence")),
    *(("query", "passage"), ("query", "document"), ("claim", "evidence")),
    ("#1 string", "#2 string"),
)
_LABELS = (
    ("label",),
    ("class", "category", "target", "quality", "sentiment", "labels", "sense", "intent", "topic")
    + ("emotion", "stance", "class_label", "accept"),  # the last one is Prodigy's
)
_PAIR_LABELS = ("gold_label",), ("is_duplicate", "entailment")
SCORE_NAMES = (
    ("score",),
    ("similarity", "similarity_score", "rating", "relatedness", "relatedness_score", "stars"),
)
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
_SHOWN = 20  # columns
_SAMPLED, _COMPARED = 10_000, 100  # rows that an error describes, whose texts are compared


def parse_fields(text, *, parts):
    """`a=x,b=y` as a dictionary; {} for None.

    Raises InputError if a part is not NAME=COLUMN, or its name is not one of `parts`.
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
            other_task = ""
            if name in _TASKS_WITH:
                task = argument("task", f'"{_TASKS_WITH[name]}"')
                other_task = Naming(", a part of the examples of another task ({})", task)
            raise InputError.naming(
                '{fields} names "{}"{}. It should be {}.', name, other_task, listed(parts)
            )
        if name in fields:
            raise InputError.naming('{fields} names "{}" twice.', name)
        fields[name] = column
    return fields


def given_columns(texts, fields, columns):
    """{a text, or "label": its column}, of `fields` and of the arguments for single columns."""
    given = in_fields = parse_fields(fields, parts=(*texts, LABEL))
    for setting, column in columns.items():
        name = setting.partition("_")[0]
        if column is not None:
            if name in given:
                other = "{fields} with {}=…" if name in in_fields else "{label_column}"
                other = Naming(other, name)
                raise InputError.naming(
                    "Give either {}, or {}, not both.", argument(setting), other
                )
            given = {**given, name: column}
    return given


class ColumnsUnclear(InputError):
    """Several columns, or none, could be meant; the message gives the arguments to copy."""


def given_or_remembered(given, remembered, names):
    """{part: its columns}: those that the user gives, else those of training among the names.

    Several columns that are given have | between them.
    """
    columns = {part: [same_name(n, names) for n in some] for part, some in remembered.items()}
    columns = {part: some for part, some in columns.items() if None not in some}
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
    each), and `left_over`, the one that was chosen because no other is left, or None.
    """

    roles: tuple[str, ...]  # of the texts: ("text",), or ("text_a", "text_b")
    form: object = one_label  # the type of label, or `several_labels` or `score`
    # {a role, or "label": a name, a number from 1, or several names with + between them; of "label"
    # also a list of columns}, and likewise {role: names} of the data that a model was trained on.
    given: dict = field(default_factory=dict)
    remembered: dict = field(default_factory=dict)
    need_labels: bool = True
    na: bool = True  # cells such as NA are missing
    texts: tuple = ()
    label: tuple = ()
    left_over: str | None = None
    table: Table | None = None

    @property
    def is_score(self):
        return self.form is score

    @property
    def noun(self):
        return "score" if self.is_score else "label"

    @property
    def usual_labels(self):
        first = {score: SCORE_NAMES, several_labels: (("labels",),)}.get(self.form, ())
        return (*first, *(_PAIR_LABELS if len(self.roles) > 1 else ()), *_LABELS)

    @property
    def given_names(self):
        """The names that the user gives, and what is around their +."""
        columns = [c if isinstance(c, list) else [c] for c in self.given.values()]
        return {part.strip() for c in columns for name in c for part in str(name).split(JOINED)}

    @property
    def header_names(self):
        """The names, in lower case, by which the first line of a table is its header."""
        usual = {*chain(*PAIRS_OF_NAMES, *TEXT_NAMES, *self.usual_labels)}
        others = self.given_names.union(map(str, chain(*self.remembered.values())))
        return usual | {name.casefold() for name in others if not name.isdigit()}

    @property
    def unused(self):
        """The named columns of the table that are no part of an example."""
        used = {*self.label, *chain(*self.texts)}
        has_names = self.table is not None and self.table.kind != FOLDER  # of files
        names = self.table.names if has_names else ()
        return [name for name in names if name not in used and not self._is_unnamed(name)]

    def choose(self, table):
        """Sets the columns of a table.

        Raises InputError if several, or none, could be meant, or the table lacks a given one.
        """
        self.table, columns = table, {}
        if table.are_cells and table.peek() is None:
            raise InputError(f"{table.name} has a header line and nothing else.")
        needed = [*self.roles, *([LABEL] if self.need_labels else [])]
        if table.kind != JSON or self.given_names <= {*table.names}:
            columns = self._by_name()
        if table.kind == JSON and not {*needed} <= columns.keys():  # the first may lack a key
            table.names = [*dict.fromkeys(name for _, row in table for name in row)]
            columns = self._by_name()
        missing = [role for role in needed if role not in columns]
        taken = {*chain(*columns.values())}
        left = [name for name in table.names if name not in taken and not self._is_unnamed(name)]
        if len(missing) == len(left) == 1:
            columns[missing[0]], self.left_over = (left[0],), left[0]
        elif missing:
            raise self._question("no column has a usual name for the {}", missing, left)
        chosen = [*chain(*columns.values())]
        if len({*chosen}) < len(chosen):
            roles = "two texts and label" if len(self.roles) > 1 else "text and label"
            raise InputError(f"{table.name}: {roles} cannot be the same column.")
        self.texts = tuple(columns[name] for name in self.roles)
        self.label = columns.get(LABEL, ())

    def _is_unnamed(self, name):
        return self.table.has_names and is_unnamed(name)

    def _by_name(self):
        """{role: the names of its columns}, without those that have no such name."""
        label = self._given(LABEL) or self._usual_label()
        texts = [self._given(role) for role in self.roles]
        if not any(texts):
            texts = [(name,) for name in self._usual_texts() if (name,) != label]
        columns = {**dict(zip(self.roles, texts, strict=False)), LABEL: label}
        return {role: names for role, names in columns.items() if names}

    def _given(self, role):
        """The columns that the user, or the training of the model, names for a role."""
        given = self.given.get(role)
        if given is None:
            names = [same_name(n, self.table.names) for n in self.remembered.get(role, ())]
            return () if None in names else tuple(names)
        names = given if isinstance(given, list) else [given]
        if role != LABEL and self.table.column(given) is None:
            names = [name.strip() for name in str(given).split(JOINED)]
        return tuple(map(self.table.existing, names))

    def _usual_label(self):
        """The column with a usual name, or that the table declares to have labels; () without."""
        table = self.table
        declared = () if self.is_score else [name.strip().casefold() for name in table.declared]
        *first, last = self.usual_labels
        names = table.names if table.has_names else ()
        matches = usual_columns(names, (*first, (*last, *declared)))
        matches = [*dict.fromkeys(matches)]
        if len(matches) > 1 and self.need_labels:
            raise self._question("several columns have a usual name for the {}", [LABEL], matches)
        return tuple(map(table.column, matches)) if len(matches) == 1 else ()

    def _usual_texts(self):
        """The columns with usual names of all texts of an example; () without."""
        names = self.table.names if self.table.has_names else ()
        if len(self.roles) == 1:
            matches = usual_columns(names, TEXT_NAMES)
        else:
            lower = {name.strip().casefold() for name in names}
            matches = usual_columns(
                names, [[*chain(*(p for p in PAIRS_OF_NAMES if {*p} <= lower))]]
            )
        if len(matches) > len(self.roles):
            raise self._question(
                "several columns have a usual name for the {}", self.roles, matches
            )
        return tuple(map(self.table.column, matches))

    def longer_texts(self):
        """(a column with longer texts, the column of the text) if its name alone chose it, or None.

        By the first rows.
        """
        names = {n for names in self.texts for n in names}
        if self.table is None or len(self.roles) > 1 or self.texts[0] == self._given("text"):
            return None
        values = self._values([*names, *self.unused], rows=_COMPARED)
        lengths = {name: _length_of_texts(counts) for name, counts in values.items()}
        longest = max(lengths, key=lengths.get)
        read = max(fmean(map(len, values[name])) if values[name] else 0 for name in names)
        return (longest, *names) if longest not in names and lengths[longest] > read else None

    # The error for a question.

    def _question(self, what, roles, names):
        """The InputError that says `what` is wrong, and proposes columns for some roles.

        `names` are the columns that could be meant.
        """
        table, values = self.table, self._values(names)
        is_all = {*names} >= {name for name in table.names if not self._is_unnamed(name)}
        text = "two texts" if len(self.roles) > 1 else "text"
        nouns = dict.fromkeys(self.noun if role == LABEL else text for role in roles)
        shown = [self._described(name, values[name]) for name in names]
        more = f" and {len(shown) - _SHOWN:,} more" if len(shown) > _SHOWN else ""
        hint = ""
        if table.is_undecided and is_all:
            hint = "is an example, set {header=False}"
            hint = hint if table.has_names else "names the columns, set {header=True}"
            hint = Naming(f" If the first line {hint}.")
        return ColumnsUnclear.naming(
            "{}: {}. {} {} are {}. Give {}.{}",
            table.name,
            what.format(" and the ".join(nouns)),
            "Its" if is_all else "The possible",
            table.calls_columns,
            (", ".join(shown[:_SHOWN]) + more) or "none",
            self._proposal(roles, values),
            hint,
        )

    def _values(self, names, *, rows=_SAMPLED):
        """{name of a column: how often each of its values comes in the first rows}."""
        rows, na = self.table.sample(rows), self.na and self.table.are_cells
        return {
            name: Counter(str(row[name]) for row in rows if not is_missing(row.get(name), na=na))
            for name in names
        }

    def _described(self, name, counts):
        first = [in_one_line(value) for value in islice(counts, 2)]
        first = [value if len(value) <= 40 else f"{value[:39]}…" for value in first]
        shown = quoted(first) + (", …" if len(counts) > len(first) else "")
        count = "" if self.table.is_stream else f"{len(counts):,} different: "
        return f"{self.table.describe(name)} ({count}{shown})" if counts else f'"{name}" (empty)'

    def _proposal(self, roles, values):
        """A `Naming` of the arguments for some roles, with columns that could be meant."""
        chosen, texts = {}, [role for role in roles if role != LABEL]
        lengths = {n: _length_of_texts(counts) for n, counts in values.items()}
        longest = sorted(lengths, key=lambda name: -lengths[name])[: len(texts)]
        columns = [name for name in values if name in longest and lengths[name]]
        chosen |= zip(texts, columns, strict=False)
        others = {name: counts for name, counts in values.items() if name not in columns}
        if LABEL in roles and self.form is several_labels:
            bits = [n for n, counts in others.items() if counts and None not in map(bit, counts)]
            if len(bits) > 1:
                return argument("label_columns", f'"{",".join(bits)}"')
        if LABEL in roles:
            is_usual = _could_be_score if self.is_score else _could_be_label
            labels = [name for name, counts in others.items() if is_usual(counts)]
            chosen |= zip([LABEL], labels[-1:], strict=False)
        chosen = {role: chosen.get(role, "…") for role in roles}
        if len(self.roles) > 1 or self.is_score:
            fields = ",".join(f"{role}={name}" for role, name in chosen.items())
            return argument("fields", f'"{fields}"')
        flags = [argument(f"{role}_column", f'"{name}"') for role, name in chosen.items()]
        return Naming(" ".join("{}" for _ in flags), *flags)


def _length_of_texts(counts):
    """The mean length of the values of a column; 0 if most are no texts."""
    texts = [value for value in counts if _HAS_WORDS.search(value.strip())]
    return fmean(map(len, counts)) if 2 * len(texts) > len(counts) else 0


def _could_be_label(counts):
    """Whether there are two values or more, which repeat, and which are not dates."""
    is_repeated = 2 <= len(counts) < counts.total()
    return is_repeated and not all(map(DATE.fullmatch, counts))


def _could_be_score(counts):
    """Whether the values are numbers, maybe with a decimal comma, and not those of the rows."""
    numbers = [value.replace(",", ".") for value in counts]
    are_numbers = len(numbers) > 0 and all(map(is_number, numbers))
    return are_numbers and (len(counts) < counts.total() or not all(map(str.isdecimal, counts)))
