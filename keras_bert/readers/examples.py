"""The base classes of examples and of the sources that read them, and the division of examples."""

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from keras_bert.base.errors import InputError, Naming, argument, warn_user
from keras_bert.base.formatting import counted, listed, percent, quoted
from keras_bert.readers import COUNT, ERROR, SKIP
from keras_bert.readers.annotation_tools import is_accepted, verdict_column
from keras_bert.readers.labels import unknown_label
from keras_bert.readers.sources import TextFile, is_text
from keras_bert.readers.table import Table
from keras_bert.readers.tables import open_objects

HELD_BACK = 10  # one example in so many
_MOST_LINES = 5  # that a note lists


class Missing(Exception):
    """Raised for a row that lacks a part, such as "a label", in the column `place`; and `why`."""

    def __init__(self, part, *, place="", why=""):
        super().__init__(part, place, why)


class ExampleSource:
    """One pass over the examples of a table, or of lines, in order; each type has a subclass.

    Examples of files are read when they are reached, and raise their InputErrors then. Those of
    data in memory are read at opening, and may be iterated again; an item of another type raises
    ValueError.

    Args:
        data: a path, `-` for standard input, `tfds:NAME/CONFIG:SPLIT`, a table in memory or a
            sequence.
        need_labels: whether examples without labels, tags or answers are left out.
        labels: those of a model, by which a column is recognised.
        unknown_labels: "count" or "error", whether another label than those is an error here; only
            if labels are needed.
        schema: the columns of the data that a model was trained on, as another source has them.
        missing: "skip" or "error", whether a row that lacks a part is an error.
        file_settings: {name: value} of settings that sequences do not have.

    Attributes: `name`, `kind` (see `Table`), `description`, one line for the user on how the data
    are read, `schema`, the columns as a model folder stores them (None if there are none),
    `is_left_over` (a column was chosen because no other is left, and not by its name), and
    `at_end`, a function that is called after the last example.

    A subclass says how messages call an item of a sequence (ITEM), a row (ROW) and what objects
    have (UNIT, or `how` a file is read), what items are (ITEMS, a sentence) besides dictionaries
    (STRINGS, or lists of WORDS), and how a line begins by which a file is not recognised (COMMENT).
    `_example` makes an example of a location and a row, and `_read_file` those of a text file.
    """

    ITEM, ROW, UNIT, ITEMS = "text", "row", "", ""
    SHOWN = 1  # how many examples `first_examples` gets
    STRINGS, WORDS, COMMENT = False, False, None
    how = ""  # a sequence has no description
    schema = None
    is_left_over = False
    at_end = None
    # Whether examples of a file have the `row` of a table that they were made of.
    keeps_rows = False
    keeps_columns = False  # whether the user gets the other columns, too

    def __init__(
        self,
        data,
        *,
        need_labels=True,
        labels=None,
        unknown_labels=COUNT,
        schema=None,
        missing=SKIP,
        file_settings=None,
    ):
        self._need_labels, self._labels, self._schema = need_labels, labels, schema or {}
        self._accepted = labels if need_labels and unknown_labels == ERROR else None
        self._missing, self._left_out, self._count = missing, {}, 0
        self._records = self._open(data)
        self.name, self.kind = self._records.name, self._records.kind
        for name, value in (file_settings or {}).items():
            if self.kind == "given" and value is not None:
                raise InputError.naming(
                    "{} is for files; {} have no columns.", argument(name), self.name
                )
        examples = self._examples_of(self._records)
        self._examples = [*examples] if self.kind in ("given", "table") else iter(examples)

    def _open(self, data):
        return open_objects(data, item=self.ITEM, as_record=self._as_record, comment=self.COMMENT)

    def _examples_of(self, records):
        return (self._read_file if isinstance(records, TextFile) else self._read_objects)(records)

    def _read_objects(self, records):
        unit = self.UNIT or f"one {self.ITEM} per {records.location}"
        self.how = f"{records.format}, {unit}"
        return self._each(records, self._example)

    @classmethod
    def _as_record(cls, item):
        if isinstance(item, dict):
            return item
        if cls.STRINGS and isinstance(item, str):
            return {"text": item}
        is_list = cls.WORDS and isinstance(item, list | tuple)
        if is_list and all(isinstance(word, str) for word in item):
            return {"words": item}
        raise ValueError(f"{cls.ITEMS}. Received: {item!r}.")

    def __iter__(self):
        yield from self._examples
        if self.at_end is not None:
            self.at_end()

    @property
    def description(self):
        return "" if self.kind == "given" else f"{self.name}: {self.how}"

    def shown(self):
        """A line for the user on the first examples, as they were read; "" for plain lines."""
        count = self.SHOWN if self._need_labels else 1
        keeps_rows, self.keeps_rows = self.keeps_rows, True
        first = [*islice(self._examples, count)]
        self.keeps_rows = keeps_rows
        if not isinstance(self._examples, list):
            self._examples = chain(first, self._examples)
        return self.first_examples(first) if first else ""

    def first_examples(self, examples):
        """The parts of the first examples, in words; "" for what has no parts to mix up."""
        return ""

    @property
    def location(self):
        """The unit that the `line` of an example counts: "line", "row", "item" or "record"."""
        return self._records.location

    def label(self, line):
        """The name of a location: of a DataFrame the label of its index."""
        return self._records.label(line)

    def error(self, line, message):
        """The InputError that names a location in the source."""
        return self._records.error(line, message)

    def notes(self):
        """Lines for the user about the examples read so far: what was left out, and where."""
        lines = [
            f"{self.name}, {located(where, self)}: {counted(len(where), self.ROW)} without {part}, "
            f"left out{why}."
            for (part, _, why), where in self._left_out.items()
        ]
        return lines + [f"{self.name}: {note}" for note in self._more_notes()]

    def _more_notes(self):
        return ()

    def _each(self, rows, read):
        """Yields `read(line, row)` of the rows that lack nothing, and counts the others."""
        verdict = None
        if self._need_labels and isinstance(rows, Table):
            verdict = verdict_column(rows, used={*chain(*(self.schema or {}).values())})
        for line, row in rows:
            try:
                if verdict is not None and not is_accepted(row.get(verdict)):
                    word = row.get(verdict) or "nothing"
                    raise Missing(f'an accepted "{verdict}"', why=f' ("{word}")')
                example = read(line, row)
            except Missing as missing:
                if self._missing == ERROR:
                    raise self.error(
                        line,
                        Naming(
                            'a {} without {}. Set {missing="skip"} to leave such {}s out.',
                            self.ROW,
                            missing.args[0],
                            self.ROW,
                        ),
                    ) from None
                self._left_out.setdefault(missing.args, []).append(line)
            else:
                self._count += 1
                if self.keeps_rows:
                    example.row = row
                yield example
        if self._need_labels and self._left_out and not self._count:
            part, place, _ = max(self._left_out, key=lambda key: len(self._left_out[key]))
            part = part.removeprefix("a ") + (f" in {place}" if place else "")
            where = located([line for lines in self._left_out.values() for line in lines], self)
            raise InputError(
                f"{self.name} {'have' if self.kind == 'given' else 'has'} no {part} of any record "
                f"({where}), so there is nothing to train on or to evaluate."
            )

    def _check_labels(self, labels, error):
        """Raises `error` of a message for a label that the model lacks, if that is an error."""
        for label in labels if self._accepted is not None else ():
            if label not in self._accepted:
                raise error(unknown_label(label, self._accepted))

    def may_lack(self, key):
        """Whether the first row has a key, so that others lack it if they do not have it."""
        return key in self._records.names

    def value(self, line, record, key, part, *, more=""):
        """Returns a dictionary's value under a key; raises Missing or InputError without one."""
        value = record.get(key)
        if value is not None and value != "":
            return value
        if self.may_lack(key):
            raise Missing(part, place=f'"{key}"')
        columns = self._records.calls_columns
        raise self.error(line, f'no "{key}" among the {columns} ({listed(record)}){more}.')

    def _text(self, line, record, key):
        """The text of a dictionary under a key; InputError if there is none."""
        text = record.get(key)
        if not isinstance(text, str):
            raise self.error(line, f'no text under "{key}"; a string is needed there.')
        if not is_text(text):
            raise self.error(line, f'"{key}" contains a NUL or half a surrogate pair.')
        return text


@dataclass(slots=True)  # one that is frozen takes three times as long to make
class Example:
    """The base class of examples: each has a location in its `source`, a number or in words."""

    line: int | str
    source: Any = field(default=None, kw_only=True, compare=False, repr=False)
    row: Any = field(default=None, kw_only=True, compare=False, repr=False)

    @property
    def unit(self):
        """The part that training and held-out examples may not share, such as the text."""
        return self.source.name, self.line

    def error(self, message):
        """The InputError that names the location of the example."""
        return self.source.error(self.line, message)


def not_reported(line):
    """The `report` of a caller that wants no lines: unnamed columns are warnings then."""


def report_source(source, report):
    """Reports how a source is read and its first example; else warns of a column left over."""
    if report not in (None, not_reported) and source.description:
        report(source.description)
        if shown := source.shown():
            report(shown)
    elif report in (None, not_reported) and getattr(source, "is_left_over", False):
        warn_user(source.description)


def shown_parts(parts):
    """{name of a part: its text} in one line: `text: "Win a prize", label: "spam"`."""
    return ", ".join(f"{name}: {quoted([' '.join(part.split())])}" for name, part in parts.items())


def report_notes(source, report):
    """Reports what was left out of a source; without a report, a warning for each note."""
    for note in source.notes():
        if report in (None, not_reported):
            warn_user(note)
        else:
            report(f"Note: {note}")


def located(where, source):
    """The rows of a source: `line 4`, `lines 4, 7 and 9`, `lines 4, 7, 9, 12, 15 and 80 more`."""
    *first, last = (str(source.label(line)) for line in islice(where, _MOST_LINES))
    more = len(where) - _MOST_LINES
    if more > 0:
        first, last = [*first, last], f"{more:,} more"
    location = "" if isinstance(where[0], str) else source.location
    location = f"{location}s " if location and first else location and f"{location} "
    return f"{location}{', '.join(first)} and {last}" if first else f"{location}{last}"


def first_location(examples):
    """The source and location of the first of some examples, and whether there are more."""
    first = examples[0]
    later = " and later" if len(examples) > 1 else ""
    return f"{first.source.name}, {location_of(first)}{later}"


def location_of(example):
    """The place of an example in its source: "line 4", or in words."""
    source = example.source
    is_number = isinstance(example.line, int)
    return f"{source.location} {source.label(example.line)}" if is_number else example.line


def fold_numbers(examples, count):
    """The number of each example's fold, a list of ints from 0 to below `count`.

    Examples with the same text, of the same context or of the same document are in one fold. The
    folds have about the same number of examples, and of examples of each label; of several labels
    of a text, the rarest counts. A label that one text alone has is in the last fold.

    The folds depend on the content of the examples alone, not on their order.

    Raises `InputError` if there are fewer texts or documents than folds.
    """
    units = _units(examples)
    if len(units) < count:
        raise InputError.naming(
            "{} has {} to divide into {}. Give {dev}.",
            examples[0].source.name,
            counted(len(units), "different text") if len(units) != 1 else "one document or text",
            counted(count, "part"),
        )
    frequencies = Counter(label for example in examples for label in _labels(example))
    strata = {}
    for unit in sorted(units, key=_hash):
        labels = {label for number in units[unit] for label in _labels(examples[number])}
        rarest = min(labels, key=lambda label: (frequencies[label], label), default=None)
        strata.setdefault(rarest, []).append(units[unit])
    folds, sizes = [count - 1] * len(examples), [0] * count
    for _, groups in sorted(strata.items(), key=lambda item: (-len(item[1]), str(item[0]))):
        fold_sizes = [0] * count
        for numbers in groups:
            fold = min(range(count), key=lambda k: (fold_sizes[k], sizes[k], k))
            fold = count - 1 if len(groups) == 1 else fold
            for number in numbers:
                folds[number] = fold
            fold_sizes[fold] += len(numbers)
            sizes[fold] += len(numbers)
    return folds


def _units(examples):
    """{what is not divided: the numbers of its examples}: a document, a context or a text."""
    has_documents = any(getattr(example, "document", 0) for example in examples)
    units = {}
    for number, example in enumerate(examples):
        unit = (example.source.name, example.document) if has_documents else example.unit
        units.setdefault(unit, []).append(number)
    return units


def _labels(example):
    """The labels that decide an example's stratum; empty for a score or tags."""
    label = getattr(example, "label", None)
    return label if isinstance(label, tuple) else (label,) if isinstance(label, str) else ()


def _hash(unit):
    return hashlib.blake2b(repr(unit).encode("utf-8", "surrogatepass")).digest()


def divided(examples, fold, count):
    """-> (the examples of the other folds, those of a fold), each in their order."""
    return _parts(examples, fold_numbers(examples, count), fold)


def held_back(examples):
    """-> (the examples that are left, about a tenth that is held back), each in their order.

    It is the first of those of ten folds with the most labels; of these, the first that has no
    label far more often than a tenth of its examples, as texts that are repeated often make it.
    Documents may be so unequal that no fold has between half and twice a tenth of the examples:
    then it is the one that is nearest.

    Raises `InputError` if every label comes once.
    """
    folds = fold_numbers(examples, HELD_BACK)
    sizes, tenth = Counter(folds), len(examples) / HELD_BACK
    usual = [k for k in range(HELD_BACK) if tenth / 2 <= sizes[k] <= 2 * tenth]
    labels = {k: Counter() for k in range(HELD_BACK)}
    for example, number in zip(examples, folds, strict=True):
        labels[number].update(_labels(example))
    counts = Counter(label for fold_labels in labels.values() for label in fold_labels)
    total = sum(labels.values(), Counter())

    def suitability(k):
        """How many labels a fold has, and whether it has them in their proportions."""
        count = sum(1 if counts[x] > 1 else -9 for x in labels[k])  # its own stay in training
        return count, all(n <= 1.5 * total[x] / HELD_BACK + 1 for x, n in labels[k].items())

    if usual:
        fold = max(usual, key=suitability)
    else:
        fold = min(range(HELD_BACK), key=lambda k: abs(sizes[k] - tenth))
    train, dev = _parts(examples, folds, fold)
    if not dev:
        first = next(label for example in examples for label in _labels(example))
        raise InputError.naming(
            "{}: every label comes once, such as {!r}, so that no example can be held back as dev "
            "data. Are these the labels? {label_column} names their column. Otherwise give {dev}.",
            examples[0].source.name,
            first,
        )
    return train, dev


def _parts(examples, folds, fold):
    parts = [], []
    for example, number in zip(examples, folds, strict=True):
        parts[number == fold].append(example)
    return parts


def line_on_held_back(train, dev):
    """A line for the user on the tenth of the examples that is held back."""
    by_label = Counter(label for example in dev for label in _labels(example))
    labels = f" ({listed(f'{label}: {n:,}' for label, n in by_label.most_common())})"
    count, tenth = len(train) + len(dev), (len(train) + len(dev)) / HELD_BACK
    is_tenth = tenth / 2 <= len(dev) <= 2 * tenth
    return (
        f"No dev data are given: {counted(len(dev), 'example')} of the {count:,}, "
        f"{'a tenth' if is_tenth else percent(len(dev) / count)}, are held back as dev "
        f"examples{labels if by_label else ''}. A repeated text, and the examples of one document, "
        "are either in training or in dev, not in both."
    )


def line_on_missing_labels(train, dev):
    """A line for the user on labels that no dev example has, or None."""
    counts = Counter(label for example in train for label in _labels(example))
    missing = counts.keys() - {label for example in dev for label in _labels(example)}
    if not missing:
        return None
    shown = listed(f'"{label}": {counts[label]:,}' for label in sorted(missing))
    return (
        f"No dev example has some of the labels ({shown} in training), so that the metrics on the "
        "dev data say nothing about them."
    )
