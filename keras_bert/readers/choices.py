"""Contexts with choices, one of which is correct: JSON Lines, SWAG's CSV or TSV, tfds."""

import numbers
from dataclasses import dataclass

from keras_bert.base.formatting import listed, quoted
from keras_bert.readers.columns import parse_fields
from keras_bert.readers.sources import Example, ExampleSource, is_text, open_records

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
        header: False where the first line of a table is not a header.
        need_labels: whether an example without a label is an error.
    """

    def __init__(self, data, *, fields=None, header=None, need_labels=True):
        table = open_records(
            data,
            item="example",
            as_record=_as_record,
            tables=True,
            may_be_csv=True,
            header_names=(*_CONTEXTS, *_LISTS),
        )
        super().__init__(table, header=header, fields=fields)
        self._need_labels = need_labels
        if self.kind == "given":
            self._names, self._has_header, self._begin = None, False, None
            self._context, self._choices, self._label = "context", ("choices",), "label"
        else:
            given = parse_fields(fields, known=("context", "choices", "label"))
            self._choose_columns(given, header)
            label = f'label in "{self._label}"' if self._label else "no labels"
            begin = f' after "{self._begin}"' if self._begin else ""
            self.description = (
                f'{self.name}: {table.format}, context in "{self._context}", choices in '
                f"{quoted(self._choices)}{begin}, {label}"
            )
        self._set_examples(self._read())

    def _choose_columns(self, given, header):
        line, first = self._records.sample[0]
        self._names, self._has_header = None, False
        if self._records.width is not None:
            self._has_header = header is not False
            self._names = [cell.strip() for cell in first]
            if not self._has_header:
                self._names = [str(number) for number in range(1, len(first) + 1)]
        names = self._names or list(first)
        self._context, self._begin = _context(names, given)
        self._choices = _choices(names, given)
        self._label = given.get("label") or next((n for n in _LABELS if n in names), None)
        needed = {"context": self._context, "choices": self._choices}
        if self._need_labels:
            needed["label"] = self._label
        missing = [name for name, column in needed.items() if not column]
        columns = (self._context, self._begin, *self._choices, self._label)
        unknown = [name for name in columns if name and name not in names]
        if missing or unknown:
            raise self.error(
                line,
                f"no {listed(missing or unknown)} among the columns ({quoted(names)}). An example "
                "has a context, choices and a label; give their columns as `fields`, "
                "context=…,choices=…,label=….",
            )

    def _read(self):
        records = iter(self._records)
        if self._has_header:
            next(records)
        for line, record in records:
            if self._names is not None:
                record = dict(zip(self._names, record, strict=True))
            label = record.get(self._label) if self._label else None
            context = self._text(line, record, self._context)
            yield self._example(line, context, self._choice_texts(line, record), label)

    def _choice_texts(self, line, record):
        """The choices, behind their common beginning where there is one."""
        if len(self._choices) == 1:
            choices = record.get(self._choices[0])
            if not isinstance(choices, list):
                raise self.error(line, f'no list of choices under "{self._choices[0]}".')
        else:
            choices = [record.get(name) for name in self._choices]
            while choices and not choices[-1]:  # of examples with fewer choices
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
    if isinstance(label, str) and label.strip().isdecimal():
        return int(label)
    is_whole = isinstance(label, numbers.Integral) and not isinstance(label, bool)
    return int(label) if is_whole and label >= 0 else None
