"""Contexts with choices, one of which is correct: JSON Lines, SWAG's CSV or TSV, tfds."""

from dataclasses import dataclass

from keras_bert.base.errors import Naming
from keras_bert.base.formatting import listed, quoted
from keras_bert.readers.columns import parse_fields
from keras_bert.readers.labels import is_missing, list_of, one_label
from keras_bert.readers.settings import ERROR, SKIP
from keras_bert.readers.sources import Example, ExampleSource, is_text
from keras_bert.readers.tables import open_table

_CONTEXTS = ("context", "sent1", "question", "premise", "prompt", "text")
_LISTS = ("choices", "endings", "options", "answers")
_NUMBERED = ("ending", "choice", "option", "answer")  # ending0 or ending1, and so on
_LABELS = ("label", "answer", "gold")
# SWAG: the beginning of the second sentence, which every ending continues.
_BEGINNING = "sent2"
_BETWEEN_COLUMNS = "|"


@dataclass(frozen=True, slots=True)
class LabelledChoices(Example):
    """A context, two or more choices, and the index of the correct one from 0, or None."""

    context: str
    choices: tuple[str, ...]
    label: int | None


class ChoiceSource(ExampleSource):
    """The `LabelledChoices` of a source.

    JSON Lines have a context, a list of choices and the number of the correct one, from 0. A table
    (CSV as SWAG's, or TSV) has a header with such names, and one column per choice, of which the
    last ones may be empty. The items of a sequence are (context, choices) or (context, choices,
    label).

    Args:
        data: see `ExampleSource`.
        fields: `context=question,choices=option_a|option_b,label=answer`; None is by the names.
        header: False where the first line of a table is not a header; None is by the rule of
            `keras_bert.readers.tables`.
        missing: "skip" or "error", what is done with a row without a context or its label.
        keep_na: cells such as NA are contexts and choices; otherwise they are missing.
        schema: the columns of the data that a model was trained on, as another source has them.
        need_labels: whether an example without a label is left out.
    """

    def __init__(
        self,
        data,
        *,
        fields=None,
        header=None,
        missing=SKIP,
        keep_na=False,
        schema=None,
        need_labels=True,
    ):
        given = parse_fields(fields, parts=("context", "choices", "label"))
        columns = [name for column in given.values() for name in column.split(_BETWEEN_COLUMNS)]
        columns += [name for names in (schema or {}).values() for name in names]
        names = [name.strip().casefold() for name in columns if not name.strip().isdigit()]
        table = open_table(
            data,
            item="example",
            as_record=_as_record,
            noun="contexts with choices",
            header=header,
            header_names={*_CONTEXTS, *_LISTS, *names},
        )
        super().__init__(table, header=header, fields=fields, stops=missing == ERROR)
        self._need_labels = need_labels
        self._na = table.are_cells and not keep_na
        if self.kind == "given":
            self._begin, self._context, self._choices = None, "context", ("choices",)
            self._label = "label"
        else:
            self._choose_columns(given, schema or {})
            label = f'label in "{self._label}"' if self._label else "no labels"
            begin = f' after "{self._begin}"' if self._begin else ""
            self.description = (
                f'{self.name}: {table.format}, context in "{self._context}", choices in '
                f"{quoted(self._choices)}{begin}, {label}"
            )
        self._set_examples(self._read())

    def _choose_columns(self, given, schema):
        names = self._records.names
        given = {name: self._records.column(column) or column for name, column in given.items()}
        remembered = (
            schema if {c for columns in schema.values() for c in columns} <= {*names} else {}
        )
        self._context, self._begin = _context(names, given)
        self._choices = _choices(names, given)
        self._label = given.get("label") or next((n for n in _LABELS if n in names), None)
        if remembered and not given:
            self._context, *begin = remembered["context"]
            self._begin = begin[0] if begin else None
            self._choices = tuple(remembered["choices"])
            self._label = next(iter(remembered.get("label", ())), None)
        needed = {"context": self._context, "choices": self._choices}
        if self._need_labels:
            needed["label"] = self._label
        missing = [name for name, column in needed.items() if not column]
        columns = (self._context, self._begin, *self._choices, self._label)
        unknown = [name for name in columns if name and name not in names]
        if missing or unknown:
            raise self.error(
                1,
                Naming(
                    "no {} among the columns ({}). An example has a context, choices and a label; "
                    "give their columns as {fields}, context=…,choices=…,label=….",
                    listed(missing or unknown),
                    quoted(names),
                ),
            )
        self.schema = {
            "context": [self._context, *([self._begin] if self._begin else [])],
            "choices": list(self._choices),
            **({"label": [self._label]} if self._label else {}),
        }

    def _read(self):
        for line, record in self._records:
            label = record.get(self._label) if self._label else None
            given, is_given = record.get(self._context), self.kind == "given"
            if not is_given and is_missing(given, na=self._na):
                self.leave_out(line, "without a context, left out")
                continue
            if self._need_labels and not is_given and is_missing(label, na=self._na):
                self.leave_out(line, "without a label, left out")
                continue
            context = self._text(line, record, self._context)
            yield self._example(line, context, self._choice_texts(line, record), label)

    def _choice_texts(self, line, record):
        """The choices, behind their common beginning where there is one."""
        if len(self._choices) == 1:
            choices = list_of(record.get(self._choices[0]))
            if not isinstance(choices, list | tuple):
                raise self.error(line, f'no list of choices under "{self._choices[0]}".')
        else:
            choices = [record.get(name) for name in self._choices]
            # Of examples with fewer choices.
            while choices and is_missing(choices[-1], na=self._na):
                choices.pop()
        if self._begin:
            begin = self._text(line, record, self._begin)
            choices = [f"{begin} {choice}".strip() for choice in choices]
        return choices

    def _example(self, line, context, choices, label):
        if len(choices) < 2:
            raise self.error(line, "an example needs two or more choices.")
        for choice in choices:
            if not is_text(choice):
                raise self.error(line, f"a choice should be a text. Received: {choice!r}.")
        if not all(choice.strip() for choice in choices):
            raise self.error(line, "a choice without a word.")
        number = _number(label)
        if number is None and (self._need_labels or label not in (None, "")):
            shown = "no label" if label in (None, "") else f"the label {label!r}"
            raise self.error(
                line, f"{shown}. It should be the number of the correct choice, from 0."
            )
        if number is not None and number >= len(choices):
            raise self.error(
                line,
                f"the label is {number}, but there are {len(choices)} choices, numbered from 0.",
            )
        return LabelledChoices(line, context, tuple(choices), number, source=self)


def _as_record(item):
    context, choices, label = (*item, None)[:3]
    choices = choices if isinstance(choices, str) else list(choices)
    return {"context": context, "choices": choices, "label": label}


def _context(names, given):
    """-> (the column of the context, that of the choices' common beginning or None)."""
    if "context" in given:
        return given["context"], None
    context = next((name for name in _CONTEXTS if name in names), None)
    return context, _BEGINNING if context == "sent1" and _BEGINNING in names else None


def _choices(names, given):
    """The column of a list of choices, or the columns with one choice each."""
    if "choices" in given:
        return tuple(name.strip() for name in given["choices"].split(_BETWEEN_COLUMNS))
    for stem in _NUMBERED:
        numbered = [name for name in names if name.removeprefix(stem).isdecimal()]
        numbered = [name for name in numbered if name.startswith(stem)]
        if len(numbered) > 1:
            return tuple(sorted(numbered, key=lambda name: int(name.removeprefix(stem))))
    return tuple(name for name in _LISTS if name in names)[:1]


def _number(label):
    if isinstance(label, bool):
        return None
    try:
        label = one_label(label)
    except ValueError:
        return None
    return int(label) if label is not None and label.isdecimal() else None
