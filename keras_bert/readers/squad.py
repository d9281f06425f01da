"""Questions about texts from SQuAD's JSON (1.1 and 2.0), JSON Lines and prepared tfds splits.

The layout is that of Rajpurkar et al. 2016 and, with questions that have no answer, 2018.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson
from keras_bert.base.formatting import counted, quoted
from keras_bert.readers import ERROR
from keras_bert.readers.columns import given_or_remembered, parse_fields
from keras_bert.readers.examples import (
    Example,
    ExampleSource,
    Missing,
    first_location,
    shown_parts,
)
from keras_bert.readers.labels import bit, is_missing
from keras_bert.readers.sources import TextFile, is_text, parsed_json, records_of_columns
from keras_bert.readers.tables import is_json_object, json_table, open_source, parse_file

WRONG_OFFSETS = ("move", "drop")
# What a question consists of, by the names of SQuAD; `fields` may give others.
_EXPECTED = " Expected SQuAD's JSON, or JSON Lines with a question and its context per line."
_PARTS = ("id", "question", "context", "answers")


class GoldAnswer(NamedTuple):
    """An answer that a person gave.

    `start` is the offset of its first character in the context, None if it is not in the context
    or is not to be moved there; `given_start` is the offset in the file. One without an offset in
    the file has the only offset where its text is; if there are several, or none, both are None.
    """

    text: str
    start: int | None
    given_start: int | None


@dataclass(slots=True)
class Question(Example):
    """A question and its context; `line` is where it is in its `source`, in words."""

    question: str
    context: str
    # Those that people gave: () if the context has none, and None if nobody gave any.
    answers: tuple[GoldAnswer, ...] | None
    id: str | None = None

    @property
    def unit(self):
        return self.context

    @property
    def located(self):
        """The first answer that is in the context, or None."""
        return next((answer for answer in self.answers or () if answer.start is not None), None)


class QuestionSource(ExampleSource):
    """The `Question`s of a source.

    A SQuAD file is parsed whole (some 175 MiB of memory for one of 30 MB, less than any model
    takes); JSON Lines are read line by line. The items of a sequence are (question, context), or
    dictionaries like the objects of JSON Lines.

    Args:
        data, common: see `ExampleSource`.
        wrong_offsets: an answer whose text is not at its `answer_start` is moved to the nearest
            offset where it is ("move") or to none ("drop"), as is one that is nowhere: nothing is
            learned from that one, but predictions are compared with it.
        fields: the names of the parts that do not have SQuAD's: "context=passage,question=query".
    """

    ITEM = ROW = "question"

    def __init__(self, data, *, wrong_offsets="move", fields=None, **common):
        self._moves, self._given = wrong_offsets == "move", parse_fields(fields, parts=_PARTS)
        self._key, self._keys_of_first = dict(zip(_PARTS, _PARTS, strict=True)), None
        self._unlocated, self._without_start = 0, {}  # the first of each reason
        super().__init__(data, file_settings={"fields": fields}, **common)

    def _open(self, data):
        file = open_source(data, item=self.ITEM, as_record=self._as_record)
        if not isinstance(file, TextFile):
            return file
        _, line = file.first = file.first_line()
        self._first = _object(line)
        is_array = line.lstrip().startswith("[") and is_json_object(line)
        is_lines = self._first is not None and "data" not in self._first
        return json_table(file) if is_array or is_lines else file

    def _read_file(self, file):
        if self._given:
            raise InputError.naming(
                "{} is SQuAD's JSON, whose names are known; {fields} is for other files.", self.name
            )
        rest = islice(file.lines(keep=True), file.first[0], None)
        is_all = self._first is not None and not any(line.strip() for _, line in rest)
        whole = self._first if is_all else parse_file(file, advice=_EXPECTED)
        whole, self.kind = whole if isinstance(whole, dict) else {}, "squad"
        version = whole.get("version")
        version = f" (version {version})" if isinstance(version, str | int | float) else ""
        self.how = f"SQuAD JSON{version}"
        return self._each(self._read_squad(whole), self._example)

    def _read_objects(self, objects):
        given = given_or_remembered(self._given, self._schema, objects.names)
        self._key |= {part: name for part, (name, *_) in given.items() if part in _PARTS}
        if any(part != name for part, name in self._key.items()):
            self.schema = {part: [name] for part, name in self._key.items()}
        self.how = f"{objects.format}, a question and its context per {objects.location}"
        return self._each(self._located(objects), self._example)

    def _located(self, records):
        """Yields (where a record is, in words, the record)."""
        key = self._key["answers"]
        location = "question" if self.kind in ("given", "table") else self._records.location
        for number, record in records:
            if f"{key}/text" in record:  # of tfds
                parts = {part: record.get(f"{key}/{part}") for part in ("text", "answer_start")}
                record = {**record, key: parts}
            yield f"{location} {number}", record

    def _read_squad(self, whole):
        """Yields as `_located`, with the context of the paragraph in each record."""
        for article, paragraphs in self._parts(whole, "data", "the file"):
            for paragraph, about in self._parts(paragraphs, "paragraphs", f"article {article}"):
                place = f"article {article}, paragraph {paragraph}"
                context = self._text(place, about, "context")
                for number, record in self._parts(about, "qas", place):
                    yield f"{place}, question {number}", {**record, "context": context}

    def _parts(self, holder, key, place):
        parts = holder.get(key)
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            raise InputError(
                f'{self.name}: {place} has no list of objects under "{key}"; SQuAD\'s JSON is '
                '{"data": [{"paragraphs": [{"context": …, "qas": [{"id": …, "question": …, '
                '"answers": […]}]}]}]}.'
            )
        return enumerate(parts, start=1)

    @staticmethod
    def _as_record(item):
        if isinstance(item, dict):
            return item
        is_pair = isinstance(item, list | tuple) and len(item) == 2
        if not is_pair or not all(isinstance(text, str) for text in item):
            raise ValueError(
                "Questions must be pairs of a question and its context, or dictionaries. "
                f"Received: {item!r}."
            )
        return dict(zip(("question", "context"), item, strict=True))

    def first_examples(self, examples):
        (example,) = examples
        parts = {"question": example.question, "context": example.context}
        if example.answers is not None:
            parts["answer"] = example.answers[0].text if example.answers else "none"
        return f"First example: {shown_parts(parts)}."

    def may_lack(self, key):
        return key in self._keys_of_first

    def _example(self, place, record):
        id = record.get(self._key["id"])
        if isinstance(id, int) and not isinstance(id, bool):
            id = str(id)
        if id is not None and not is_text(id):
            raise self.error(place, f'"{self._key["id"]}" should be a string or a number.')
        if id is not None:
            place = f"{place}, id {id}"
        if self._keys_of_first is None:
            self._keys_of_first = {*record}
        texts = []
        for part in ("question", "context"):
            if record.get(self._key[part]) is None and self.may_lack(self._key[part]):
                raise Missing(f"a {part}", place=f'"{self._key[part]}"')
            texts.append(self._text(place, record, self._key[part]))
        answers = self._answers(record, texts[1], place)
        return Question(place, *texts, answers, id=id, source=self)

    def _answers(self, record, context, place):
        key = self._key["answers"]
        answers, impossible = record.get(key), self._is_impossible(record, place)
        if answers is None and not impossible:
            if self._need_labels and self.may_lack(key):
                raise Missing("answers", place=f'"{key}"')
            if self._need_labels:
                raise self.error(
                    place,
                    f'no "{key}"; for training and evaluation every question has a list of them, '
                    "which is empty if the context has no answer.",
                )
            return None
        if isinstance(answers, dict):  # one list per column, as other programs export them
            columns = {part: answers.get(part) for part in ("text", "answer_start")}
            columns = {
                part: column
                for part, column in columns.items()
                if part == "text" or column is not None
            }
            answers = records_of_columns(columns)
            answers = columns if answers is None else answers
        if not isinstance(answers, list | tuple | None):
            raise self.error(
                place, f'"{key}" should be a list of {{"text": …, "answer_start": …}}.'
            )
        answers = tuple(self._answer(answer, context, place) for answer in answers or ())
        answers = answers if any(answer.text.strip() for answer in answers) else ()
        if impossible is not None and impossible == bool(answers) and self._need_labels:
            raise self.error(
                place,
                f'"is_impossible" is {str(impossible).lower()}, but there are '
                f"{'answers' if answers else 'no answers'}; one of the two is wrong.",
            )
        return answers

    def _is_impossible(self, record, place):
        """Whether a record says that its context has no answer; None if it does not say."""
        value = record.get("is_impossible")
        if is_missing(value, na=False):
            return None
        if bit(value) is None:
            raise self.error(place, f'"is_impossible" is {value!r}. Expected true or false.')
        return bit(value) == 1

    def _answer(self, answer, context, place):
        answer = {"text": answer} if isinstance(answer, str) else answer
        text = answer.get("text") if isinstance(answer, dict) else None
        given = answer.get("answer_start") if isinstance(answer, dict) else None
        is_number = given is None or (isinstance(given, int) and not isinstance(given, bool))
        if not isinstance(text, str) or not is_number:
            raise self.error(
                place,
                'an answer should be {"text": "…", "answer_start": NUMBER}, or its text alone.',
            )
        if given is None:
            start = self._only_offset(text, context, place)
            return GoldAnswer(text, start, start)
        start = None
        if text.strip() and given >= 0 and context.startswith(text, given):
            start = given
        elif text.strip() and self._moves:
            start = nearest(text, given, context)
        return GoldAnswer(text, start, given)

    def _only_offset(self, text, context, place):
        """The offset of a text in a context if there is one; None, and counted, otherwise."""
        first = context.find(text) if text.strip() else -1
        second = context.find(text, first + 1) if first >= 0 else -1
        if first >= 0 and second < 0:
            return first
        if second >= 0:
            reason = f"in its context at characters {first} and {second}"
            self._without_start.setdefault("several", (place, reason))
        elif text.strip():
            reason = "not in its context"
            self._without_start.setdefault("none", (place, reason))
        else:
            return None
        if self._missing == ERROR:
            raise self.error(place, f'the answer "{text}" has no "answer_start", and is {reason}.')
        self._unlocated += 1
        return None

    def _more_notes(self):
        if self._unlocated:
            shown = "; ".join(
                f"{place}: {reason}" for place, reason in self._without_start.values()
            )
            yield (
                f'{counted(self._unlocated, "answer")} without "answer_start" not used in training '
                f"({shown}). Only one that is in its context once is found there."
            )


def nearest(text, start, context):
    """The offset of `text` in `context` that is nearest to the character `start`, or None."""
    start = max(0, start)
    offsets = (context.rfind(text, 0, start + len(text)), context.find(text, start))
    nearby = [offset for offset in offsets if offset >= 0]
    return min(nearby, key=lambda offset: abs(offset - start), default=None)


def question_warnings(examples):
    """Lines for the user on unusual `Question`s: how many there are, and where the first one is."""
    empty = [e for e in examples if not e.question.strip() or not e.context.strip()]
    answers = [(example, answer) for example in examples for answer in example.answers or ()]
    wrong = [(e, answer) for e, answer in answers if answer.start != answer.given_start]
    counts = Counter(example.id for example in examples if example.id is not None)
    again, lines = [id for id, count in counts.items() if count > 1], []
    if empty:
        lines.append(
            f"{first_location(empty)}: {counted(len(empty), 'question')} without a word, or about "
            "a context without one."
        )
    if wrong:
        moved = sum(answer.start is not None for _, answer in wrong)
        lines.append(
            f"{first_location([example for example, _ in wrong])}: "
            f'{counted(len(wrong), "answer")} not at the given "answer_start"; {moved:,} moved to '
            f"the nearest offset of that text, {len(wrong) - moved:,} not used in training."
        )
    if again:
        first = next(example for example in examples if example.id == again[0])
        lines.append(
            f"{first_location([first])}: {counted(len(again), 'id')} of several questions "
            f"({quoted(again, most=3)})."
        )
    return [*lines, *examples[0].source.notes()] if examples else lines


def _object(line):
    """The dictionary that a line holds as JSON, or None."""
    try:
        record = parsed_json(line)
    except NotJson:
        return None
    return record if isinstance(record, dict) else None
