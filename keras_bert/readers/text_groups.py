"""Texts that belong together: an anchor with its positive and negatives, rated pairs, labelled and
plain texts.

The columns choose the form, by their names alone.
"""

from dataclasses import dataclass
from itertools import chain

from keras_bert.base.errors import InputError, Naming, argument
from keras_bert.base.formatting import counted, listed, quoted
from keras_bert.readers.columns import (
    JOINED,
    PAIRS_OF_NAMES,
    SCORE_NAMES,
    TEXT_NAMES,
    given_or_remembered,
    parse_fields,
    usual_columns,
)
from keras_bert.readers.examples import (
    Example,
    ExampleSource,
    Missing,
    located,
    shown_parts,
)
from keras_bert.readers.labels import LISTS, bit, is_missing, list_of, one_label, score
from keras_bert.readers.sources import is_text, is_unnamed
from keras_bert.readers.tables import open_table

PAIRS, SCORES, BINARY, TEXTS, LABELS = "pairs", "scores", "binary", "texts", "labels"
# What a form is called, for messages.
FORM_NAMES = {
    PAIRS: "anchors and positives",
    SCORES: "pairs with scores",
    BINARY: "pairs with 0 or 1",
    TEXTS: "plain texts",
    LABELS: "texts with labels",
}
_PARTS = ("anchor", "positive", "negatives", "text_a", "text_b", "score", "label", "text")
# The usual names of an anchor and its positive; a pair of other names may have a score or a label.
ANCHORS = ("anchor", "query", "question")
POSITIVES = ("positive", "positives", "pos", "answer", "passage", "document", "context")
_NEGATIVES = ("negatives", "negative", "neg")
_LABELS = ("label", "labels", "is_duplicate")
_NO_SCORE = " (no score is not a score of zero)"


@dataclass(slots=True)
class TextGroup(Example):
    """One text or several, in the form of its source.

    Attributes:
        form: PAIRS (the anchor, its positive, and negatives), SCORES, BINARY (two texts), LABELS or
            TEXTS (one).
        texts: the texts.
        label: the score, or 0.0 or 1.0, or of LABELS a string; None of other forms, and if
            nobody gave one.
    """

    form: str
    texts: tuple[str, ...]
    label: float | str | None = None

    @property
    def text(self):
        """The first text."""
        return self.texts[0]

    @property
    def labels(self):
        return (self.label,)

    @property
    def unit(self):
        """The anchor, or the texts: the same anchor is not in two splits."""
        return self.texts[:1] if self.form == PAIRS else self.texts


class TextGroupSource(ExampleSource):
    """The `TextGroup`s of a source.

    The items of a sequence are strings, or tuples of an anchor, its positive and any negatives, or
    of two texts and a number, their score.

    Args:
        data, common: see `ExampleSource`.
        fields: `anchor=question,positive=answer,negatives=no1|no2`, or `text_a=…,text_b=…` with
            `score=…` or `label=…` (0 or 1), or `text=…`, maybe with `label=…`; None is by the
            names.
        text_column: the column of plain texts.
        score_range: (lowest, highest) score, which become 0 and 1; None leaves scores as they are.
        header, keep_na: see `TableSettings`.

    Attributes: `form`, `score_range`, and those of `ExampleSource`.
    """

    ITEM = "example"

    def __init__(
        self,
        data,
        *,
        fields=None,
        text_column=None,
        score_range=None,
        header=None,
        keep_na=False,
        **common,
    ):
        self._given = parse_fields(fields, parts=_PARTS)
        if text_column is not None:
            if self._given:
                raise InputError.naming("Give either {fields} or {text_column}, not both.")
            self._given = {"text": str(text_column)}
        self._header, self._keeps_na, self.score_range = header, keep_na, score_range
        self.form, self._with_own_negatives = None, []
        file_settings = {"header": header, "fields": fields, "text_column": text_column}
        super().__init__(data, file_settings=file_settings, **common)

    def _open(self, data):
        usual = {*chain(*TEXT_NAMES, *PAIRS_OF_NAMES, *SCORE_NAMES)}
        usual |= {*ANCHORS, *POSITIVES, *_NEGATIVES, *_LABELS}
        given = chain(*given_or_remembered(self._given, {}, ()).values())
        usual.update(name.casefold() for name in chain(given, *self._schema.values()))
        return open_table(
            data,
            item="example",
            as_record=_as_record,
            least=1,
            noun="texts",
            parts="a text, or several",
            header=self._header,
            header_names={name for name in usual if not name.isdigit()},
        )

    def _examples_of(self, table):
        self._na = table.are_cells and not self._keeps_na
        self._are_items = self.kind == "given"
        if self._are_items:
            return self._read_items(table)
        if self.kind == "lines":
            self._columns, self.form, self.how = {"text": ["1"]}, TEXTS, "plain lines"
        else:
            self._choose_columns(table)
            parts = (
                f"{part} in {' and '.join(map(table.describe, names))}"
                for part, names in self._columns.items()
            )
            self.how = f"{table.format}: {FORM_NAMES[self.form]}, {listed(parts)}"
            self.schema = self._columns
        self._names = _names_of(self._columns, self.form)
        return self._each(self._one_positive_each(table), self._example)

    def _read_items(self, table):
        forms = {form: line for line, (form, _, _) in reversed([*table])}
        if len(forms) > 1:
            (first, _), (second, line) = sorted(forms.items(), key=lambda item: item[1])[:2]
            raise self.error(
                line, f"{FORM_NAMES[second]}, and the first example is of {FORM_NAMES[first]}."
            )
        self.form = next(iter(forms), None)
        return self._each(table, self._read_item)

    def _read_item(self, line, item):
        form, texts, label = item
        if form == SCORES and label is None and self._need_labels:
            raise Missing("a score", why=_NO_SCORE)
        if form == PAIRS:
            texts = self._without_positives(line, texts)
        return TextGroup(line, form, texts, self._scaled(line, label), source=self)

    def _without_positives(self, line, texts):
        """An anchor, its positive and negatives, without negatives that equal one of the two."""
        negatives = [text for text in texts[2:] if text not in texts[:2]]
        if len(negatives) < len(texts) - 2:
            self._with_own_negatives.append(line)
        return (*texts[:2], *negatives)

    def _more_notes(self):
        if self._with_own_negatives:
            lines = self._with_own_negatives
            yield (
                f"{located(lines, self)}: {counted(len(lines), 'row')} with a negative that equals "
                "the anchor or the positive, which was left out."
            )

    # Columns.

    def _choose_columns(self, table):
        """Sets `_columns`, {part: names}, and `form`; InputError if names do not say them."""
        table_names = [name for name in table.names if not (table.has_names and is_unnamed(name))]
        given = given_or_remembered(self._given, self._schema, table.names)
        columns = {
            part: [
                table.existing(name.strip())
                for some in names
                for name in ([some] if table.column(some) else some.split(JOINED))
            ]
            for part, names in given.items()
        }
        if not columns:
            columns = self._usual(table, table_names)
        form = _form_of(columns)
        if self._need_labels and form == PAIRS and "text_a" in columns:
            columns = {"anchor": columns["text_a"], "positive": columns["text_b"]}
        used = [*chain(*columns.values())]
        if form is None or len({*used}) < len(used):
            raise InputError.naming(
                "{}: the columns do not say what the texts are. Its {} are {}. Give {}, with "
                "negatives=… if there are some; {}, or label=… for 0 and 1; or {}.",
                table.name,
                table.calls_columns,
                quoted(table_names, most=20),
                argument("fields", '"anchor=…,positive=…"'),
                argument("fields", '"text_a=…,text_b=…,score=…"'),
                argument("text_column", '"…"'),
            )
        self._columns, self.form = columns, form

    def _usual(self, table, names):
        """Returns {part: names} by the usual names; {} without any."""
        if not table.has_names:
            return {}
        lower = {name.strip().casefold(): name for name in names}
        anchors = [lower[name] for name in ANCHORS if name in lower]
        positives = [lower[name] for name in POSITIVES if name in lower]
        labels = [lower[name] for name in _LABELS if name in lower]
        scores = usual_columns(names, SCORE_NAMES)
        for part, found in (("anchor", anchors), ("positive", positives), ("score", scores)):
            if len(found) > 1 and (part == "score" or (anchors and positives)):
                raise self._question(part, found)
        if anchors and positives:
            columns = {
                "anchor": anchors,
                "positive": positives,
                "negatives": negative_columns(names),
            }
            if scores or labels:  # of a pair that may be no positive
                columns = {"text_a": anchors, "text_b": positives}
        else:
            found = [pair for pair in PAIRS_OF_NAMES if {*pair} <= lower.keys()]
            if len(found) > 1:
                raise self._question("pair", [lower[name] for name in chain(*found)])
            if not found:
                texts = usual_columns(names, TEXT_NAMES)
                if len(texts) > 1:
                    raise self._question("text", texts)
                if texts and labels and self._need_labels:
                    return {"text": texts, "label": labels[:1]}
                return {"text": texts} if texts else {}
            columns = {"text_a": [lower[found[0][0]]], "text_b": [lower[found[0][1]]]}
            left = {*names} - {*chain(*columns.values())}
            if left and not (scores or labels) and self._need_labels:
                return {}  # one of them could be the score
        if scores and labels:
            raise self._question("score or label", [*scores, *labels])
        columns |= {"score": scores[:1], "label": labels[:1]}
        return {part: found for part, found in columns.items() if found}

    def _question(self, part, names):
        return InputError.naming(
            "{}: several columns could be the {}: {}. Name the columns as {fields}, such as {}.",
            self._records.name,
            part,
            quoted(names),
            argument("fields", '"anchor=…,positive=…"'),
        )

    # Rows.

    def _one_positive_each(self, table):
        """The rows, of which one with a list of positives becomes one for each of them."""
        (name, *_) = self._columns.get("positive", [None])
        for line, record in table:
            positives = record.get(name) if name is not None else None
            if not isinstance(positives, LISTS):
                yield line, record
                continue
            for positive in positives if len(positives) else [None]:
                yield line, {**record, name: positive}

    def _example(self, line, record):
        columns, texts = self._columns, []
        for part in self._names:
            names = columns[part]
            if part == "negatives":
                texts += self._negative_texts(line, record, names)
                continue
            parts = [record.get(name) for name in names]
            parts = [part for part in parts if not is_missing(part, na=self._na)]
            if not parts and not (self.kind == "lines" and record[names[0]] is not None):
                raise Missing("a text", place=" and ".join(map(self._records.describe, names)))
            texts.append(" ".join(self._checked(line, text, names[0]) for text in parts))
        if self.form == PAIRS:
            texts = self._without_positives(line, texts)
        return TextGroup(line, self.form, tuple(texts), self._label(line, record), source=self)

    def _negative_texts(self, line, record, names):
        """The negatives of a row, of lists and of cells; missing ones are left out."""
        texts = []
        for name in names:
            value = record.get(name)
            try:
                value = list_of(value) if isinstance(value, LISTS) else value
            except ValueError as error:
                raise self.error(line, error) from None
            values = value if isinstance(value, LISTS) else [value]
            texts += [
                self._checked(line, text, name)
                for text in values
                if not is_missing(text, na=self._na)
            ]
        return texts

    def _checked(self, line, text, name):
        if not is_text(text):
            raise self.error(line, f'no text under "{name}"; a string without NUL is needed there.')
        return text

    def _label(self, line, record):
        (name,) = self._columns.get(self.form_label, [None])
        if name is None or (not self._need_labels and name not in record):
            return None
        value = record.get(name)
        if is_missing(value, na=self._na):
            if not self._need_labels:
                return None
            raise Missing(
                f"a {self.form_label}",
                place=self._records.describe(name),
                why=_NO_SCORE if self.form == SCORES else "",
            )
        if self.form == BINARY:
            label = bit(value)
            if label is None:
                raise self.error(
                    line,
                    Naming(
                        '{!r} in "{}" should be 0 or 1. Name a column of scores with {}.',
                        value,
                        name,
                        argument("fields", '"text_a=…,text_b=…,score=…"'),
                    ),
                )
            return float(label)
        try:
            value = one_label(value) if self.form == LABELS else score(value)
        except ValueError as error:
            raise self.error(line, error) from None
        return self._scaled(line, value)

    @property
    def form_label(self):
        """The part that has the label of an example of this form."""
        return "label" if self.form in (BINARY, LABELS) else "score"

    def _scaled(self, line, value):
        """A score as a fraction of `score_range`, if there is one; InputError outside of it."""
        if value is None or self.score_range is None or self.form != SCORES:
            return value
        low, high = self.score_range
        if not low <= value <= high:
            raise self.error(
                line,
                Naming("the score {:g} is not in {score_range}, {:g} to {:g}.", value, low, high),
            )
        return (value - low) / (high - low)

    def first_examples(self, examples):
        (example,) = examples
        names = ["anchor", "positive"] if self.form == PAIRS else ["text_a", "text_b"]
        if self.form in (TEXTS, LABELS):
            names = ["text"]
        names += [f"negative {number}" for number in range(1, len(example.texts) - 1)]
        parts = dict(zip(names, example.texts, strict=False))
        if example.label is not None:
            label = example.label
            parts[self.form_label] = label if isinstance(label, str) else f"{label:g}"
        return f"First example: {shown_parts(parts)}."


def _form_of(columns):
    """The form of {part: names}; None if they are of none."""
    parts = {*columns}
    if {"anchor", "positive"} <= parts <= {"anchor", "positive", "negatives"}:
        return PAIRS
    if parts == {"text_a", "text_b"}:
        return PAIRS
    forms = {("score",): SCORES, ("label",): BINARY}
    if {"text_a", "text_b"} <= parts:
        return forms.get(tuple(parts - {"text_a", "text_b"}))
    return {("text",): TEXTS, ("label", "text"): LABELS}.get(tuple(sorted(parts)))


def _names_of(columns, form):
    """The parts with texts, in their order."""
    order = ("anchor", "positive", "negatives") if form == PAIRS else ("text_a", "text_b")
    order = ("text",) if form in (TEXTS, LABELS) else order
    if form == PAIRS and "text_a" in columns:
        order = ("text_a", "text_b")
    return [part for part in order if part in columns]


def negative_columns(names):
    """The columns of negatives by their usual names, numbered ones in the order of the table."""
    found = []
    for name in names:
        lower = name.strip().casefold()
        stem = lower.rstrip("0123456789").rstrip("_ ")
        if stem in _NEGATIVES:
            found.append(name)
    return found


def _as_record(item):
    """-> (form, texts, label) of an item of a sequence."""
    if isinstance(item, str):
        return TEXTS, (item,), None
    parts = tuple(item) if isinstance(item, list | tuple) else ()
    label = None
    is_scored = len(parts) == 3 and not isinstance(parts[2], str | list | tuple)
    if is_scored:
        label, parts = score(parts[2]), parts[:2]
    texts = tuple(
        text for part in parts for text in (part if isinstance(part, list | tuple) else [part])
    )
    if len(texts) < 2 or not all(map(is_text, texts)):
        raise ValueError(
            "Examples must be texts, tuples of an anchor, its positive and any negatives, or of "
            f"two texts and their score. Received: {item!r}."
        )
    return (SCORES if is_scored else PAIRS), texts, label
