"""Contexts with choices, one of which is correct: JSON Lines, SWAG's CSV or TSV, tfds."""

from dataclasses import dataclass

from keras_bert.base.errors import InputError, Naming, argument
from keras_bert.base.formatting import listed, quoted
from keras_bert.readers.columns import BETWEEN, JOINED, given_or_remembered, parse_fields
from keras_bert.readers.examples import Example, ExampleSource, Missing, shown_parts
from keras_bert.readers.labels import is_missing, label_or_none, list_of, named_labels
from keras_bert.readers.sources import is_text
from keras_bert.readers.tables import open_table

_CONTEXTS = ("context", "sent1", "question", "premise", "prompt", "text")
_LISTS = ("choices", "endings", "options", "answers")
_NUMBERED = ("ending", "choice", "option", "answer")  # ending0 or ending1, and so on
_LABELS = ("label", "answer", "gold")
# SWAG: the beginning of the second sentence, which every ending continues.
_MANY = 10  # examples, of which the first choice should be right somewhere
_SWAG, _BEGINNING = "sent1", "sent2"


@dataclass(slots=True)
class LabelledChoices(Example):
    """A context, two or more choices, and the index of the correct one from 0, or None."""

    context: str
    choices: tuple[str, ...]
    label: int | None

    @property
    def unit(self):
        return self.context


class ChoiceSource(ExampleSource):
    """The `LabelledChoices` of a source.

    JSON Lines have a context, a list of choices and the number of the correct one, from 0. A table
    (CSV as SWAG's, or TSV) has a header with such names, and one column per choice, of which the
    last ones may be empty. The items of a sequence are (context, choices) or (context, choices,
    label).

    Args:
        data, need_labels, common: see `ExampleSource`.
        fields: `context=question,choices=option_a|option_b,label=answer`; None is by the names. A
            context of several columns, joined by spaces, is `context=premise+question`.
        header: False if the first line of a table is not a header; None is by the rule of
            `keras_bert.readers.tables`.
        keep_na: cells such as NA are contexts and choices; otherwise they are missing.
    """

    def __init__(self, data, *, fields=None, header=None, keep_na=False, **common):
        self._given = parse_fields(fields, parts=("context", "choices", "label"))
        self._header, self._keeps_na = header, keep_na
        self._begin, self._is_never_0 = None, False
        super().__init__(data, file_settings={"header": header, "fields": fields}, **common)

    def _open(self, data):
        names = {*_CONTEXTS, *_LISTS}.union(*self._schema.values())
        names.update(*given_or_remembered(self._given, {}, ()).values())
        return open_table(
            data,
            item="example",
            as_record=_as_record,
            noun="contexts with choices",
            header=self._header,
            header_names={name.casefold() for name in names if not name.isdigit()},
        )

    def _examples_of(self, table):
        self._na = table.are_cells and not self._keeps_na
        if self.kind == "given":
            self._context, self._choices, self._label = ["context"], ["choices"], "label"
        else:
            self._choose_columns(given_or_remembered(self._given, self._schema, table.names))
            label = f'label in "{self._label}"' if self._label else "no labels"
            begin = f' after "{self._begin}"' if self._begin else ""
            context = " + ".join(map(table.describe, self._context))
            self.how = (
                f"{table.format}, context in {context}, choices in {quoted(self._choices)}{begin}, "
                f"{label}"
            )
        return self._numbered(self._each(table, self._example))

    def first_examples(self, examples):
        (example,) = examples
        parts = {"context": example.context, "choices": " | ".join(example.choices)}
        if example.label is not None:
            parts["answer"] = example.choices[example.label]
        return f"First example: {shown_parts(parts)}."

    def _choose_columns(self, chosen):
        """Sets the columns of the context, of the choices' beginning, of choices and label."""
        names = self._records.names
        usual = {
            "context": [name for name in names if name in _CONTEXTS],
            "choices": _usual_choices(names),
            "label": [name for name in _LABELS if name in names][:1],
        }
        usual["beginning"] = [_BEGINNING] if _BEGINNING in names else []
        parts = usual | {part: [*map(self._existing, some)] for part, some in chosen.items()}
        context = parts["context"]
        if "context" in chosen:
            context = [name for some in context for name in some.split(JOINED)]
            context = [self._existing(name.strip()) for name in context]
        elif len(context) > 1:
            raise InputError.naming(
                "{}: the context could be in {}. Give one, or several that are joined, such as {}.",
                self._records.name,
                quoted(context),
                argument("fields", f'"context={JOINED.join(context)}"'),
            )
        # The beginning is of SWAG's context alone, and the second one of older folders.
        begins = parts["beginning"] if context[:1] == [_SWAG] else []
        self._context = [name for name in context if name not in begins]
        self._choices, self._begin = parts["choices"], next(iter(begins), None)
        self._label = next(iter(parts["label"]), None)
        # Numbers from 1 in usual names leave open whether the answers count so, too.
        self._are_from_one = "choices" not in chosen and self._choices[:1] != self._choices[-1:]
        self._are_from_one &= bool(self._choices) and self._choices[0].endswith("1")
        parts |= {"context": self._context, "beginning": begins}
        needed = ("context", "choices", *(["label"] if self._need_labels else ()))
        missing = [part for part in needed if not parts[part]]
        unknown = [name for columns in parts.values() for name in columns if name not in names]
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
        self.schema = {part: columns for part, columns in parts.items() if columns}

    def _existing(self, name):
        return self._records.column(name) or name

    def _numbered(self, examples):
        """The examples; InputError if the answers could count from 1."""
        if not self._need_labels or self.kind == "given":
            yield from examples
            return
        examples = [*examples]
        is_never_0 = bool(examples) and all(example.label for example in examples)
        self._is_never_0 = is_never_0 and len(examples) >= _MANY
        if is_never_0 and self._are_from_one:
            raise InputError.naming(
                '{}: "{}" is never 0, and the choices are {}, so that 1 could be the first or the '
                "second of them. Write the numbers from 0; if they are so, name the choices as {}.",
                self.name,
                self._label,
                quoted(self._choices),
                argument("fields", f'"choices={BETWEEN.join(self._choices)}"'),
            )
        yield from examples

    def _more_notes(self):
        if self._is_never_0:
            yield "no answer is 0, the number of the first choice. Do they count from 1?"

    def _example(self, line, record):
        label = record.get(self._label) if self._label else None
        for part, value in (("context", record.get(self._context[0])), ("label", label)):
            is_needed = self.kind != "given" and (part != "label" or self._need_labels)
            if is_needed and is_missing(value, na=self._na):
                place = self._context[0] if part == "context" else self._label
                raise Missing(f"a {part}", place=f'"{place}"')
        context = " ".join(self._text(line, record, name) for name in self._context)
        choices = self._choice_texts(line, record)
        if len(choices) < 2:
            raise self.error(line, "an example needs two or more choices.")
        for choice in choices:
            if not is_text(choice):
                raise self.error(line, f"a choice should be a text. Received: {choice!r}.")
        if not all(map(str.strip, choices)):
            raise self.error(line, "a choice without a word.")
        number = self._number(line, label, len(choices))
        return LabelledChoices(line, context, tuple(choices), number, source=self)

    def _choice_texts(self, line, record):
        """The choices, behind their common beginning if there is one."""
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

    def _number(self, line, label, count):
        """The number of the correct choice among so many, or None."""
        if label in (None, "") and not self._need_labels:
            return None
        number = None if isinstance(label, bool) else label_or_none(label)
        number = number if number is None else named_labels([number])[number]
        if number is None or not number.isdecimal():
            shown = "no label" if label in (None, "") else f"the label {label!r}"
            raise self.error(
                line, f"{shown}. It should be the number of the correct choice, from 0."
            )
        if int(number) >= count:
            raise self.error(
                line, f"the label is {number}, but there are {count} choices, numbered from 0."
            )
        return int(number)


def _as_record(item):
    if not isinstance(item, list | tuple) or len(item) not in (2, 3):
        raise ValueError(
            "Examples must be a context and its choices, or these and the number of the correct "
            f"one. Received: {item!r}."
        )
    context, choices, label = (*item, None)[:3]
    return {"context": context, "choices": choices, "label": label}


def _usual_choices(names):
    """The column of a list of choices, or the columns with one choice each."""
    for stem in _NUMBERED:
        numbers = {name: name.removeprefix(stem) for name in names if name.startswith(stem)}
        numbered = [name for name, number in numbers.items() if number.isdecimal()]
        if len(numbered) > 1:
            return sorted(numbered, key=lambda name: int(numbers[name]))
    return [name for name in _LISTS if name in names][:1]
