"""Questions about texts from SQuAD's JSON (1.1 and 2.0), JSON Lines and prepared tfds splits.

The layout is that of Rajpurkar et al. 2016 and, with questions that have no answer, 2018.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, parse_json
from keras_bert.base.formatting import counted, quoted
from keras_bert.readers.settings import parse_fields
from keras_bert.readers.text_file import TextFile
from keras_bert.readers.tfds import PREFIX, TfdsTable


class GoldAnswer(NamedTuple):
    """An answer that a person gave.

    `start` is the character of the context where it stands, None where it stands nowhere or is not
    to be moved there; `given_start` is what the file says.
    """

    text: str
    start: int | None
    given_start: int


@dataclass(frozen=True, slots=True)
class Question:
    """An example: a question and its context.

    `answers` are those that people gave: none where the context has no answer, and None where
    nobody says. `place` is where the example stands in its `source`, `id` what the source calls it,
    or None.
    """

    place: str
    question: str
    context: str
    answers: tuple[GoldAnswer, ...] | None
    id: str | None = None
    source: Any = field(default=None, compare=False, repr=False)

    @property
    def located(self):
        """The first answer that stands in the context, or None."""
        return next((answer for answer in self.answers or () if answer.start is not None), None)

    def error(self, message):
        """The InputError that names the example's place."""
        return self.source.error(self.place, message)


WRONG_OFFSETS = ("move", "drop")
# What a question consists of, by the names of SQuAD; `fields` may say others.
PARTS = ("id", "question", "context", "answers")

# JSON's escapes can write what UTF-8 and TensorFlow's strings cannot hold.
_IS_TEXT = re.compile(r"[^\0\ud800-\udfff]*").fullmatch


class Questions:
    """What files of questions and given questions have in common: one pass over `Question`s.

    Arguments: with `need_answers`, each must say its answers. An answer whose text does not stand
    at its `answer_start` is moved to the nearest place where it does, or with `wrong_offsets`
    "drop" to none, as is one that stands nowhere: nothing is learned from that one, but whatever is
    predicted is compared with it. `fields` names what has not SQuAD's names:
    "context=passage,question=query".

    Attributes: `name`; `kind`; `description`, a line for the user.
    """

    name = kind = None
    description = ""

    def __init__(self, *, need_answers=True, wrong_offsets="move", fields=None):
        self._need_answers = need_answers
        self._moves = wrong_offsets == "move"
        self._given_fields = parse_fields(fields, known=PARTS)
        self._key = {part: self._given_fields.get(part, part) for part in PARTS}

    def error(self, place, message):
        """The InputError that names a place here; a number is a line."""
        where = f"line {place}" if isinstance(place, int) else place
        return InputError(f"{self.name}, {where}: {message}")

    def _question(self, row, place, *, context=None):
        """A dictionary -> `Question`; `context` where the paragraph has it, not the row."""
        id = self._id(row, place)
        if id is not None:
            place = f"{place}, id {id}"
        question = self._text(row, "question", place)
        context = self._text(row, "context", place) if context is None else context
        answers = self._answers(row, context, place)
        return Question(place, question, context, answers, id=id, source=self)

    def _id(self, row, place):
        id = row.get(self._key["id"])
        if isinstance(id, int) and not isinstance(id, bool):
            id = str(id)
        if not isinstance(id, str | None) or not _IS_TEXT(id or ""):
            raise self.error(place, f'"{self._key["id"]}" should be a string or a number.')
        return id

    def _text(self, row, part, place):
        key = self._key[part]
        text = row.get(key)
        if not isinstance(text, str):
            raise self.error(place, f'no text under "{key}"; every question needs a string there.')
        if not _IS_TEXT(text):
            raise self.error(
                place, f'a NUL or half a surrogate pair under "{key}"; this is not text.'
            )
        return text

    def _answers(self, row, context, place):
        key = self._key["answers"]
        given = row.get(key)
        impossible = row.get("is_impossible")
        if given is None and not impossible:
            if self._need_answers:
                raise self.error(
                    place,
                    f'no "{key}"; a file to learn from or to measure on has a list of them for '
                    "every question, which is empty where the context has no answer.",
                )
            return None
        if isinstance(given, dict):  # a list a column, as other programs export it
            given = _rows_of_columns(given)
        if not isinstance(given, list | tuple | None):
            raise self.error(
                place, f'"{key}" should be a list of {{"text": …, "answer_start": …}}.'
            )
        answers = tuple(self._answer(answer, context, place) for answer in given or ())
        if impossible is not None and bool(impossible) == bool(answers) and self._need_answers:
            raise self.error(
                place,
                f'"is_impossible" is {str(bool(impossible)).lower()}, but there are '
                f"{'answers' if answers else 'no answers'}; one of the two is wrong.",
            )
        return answers

    def _answer(self, answer, context, place):
        text = answer.get("text") if isinstance(answer, dict) else None
        start = answer.get("answer_start") if isinstance(answer, dict) else None
        if not isinstance(text, str) or not isinstance(start, int) or isinstance(start, bool):
            raise self.error(
                place, 'an answer is not of the form {"text": "…", "answer_start": NUMBER}.'
            )
        return GoldAnswer(text, self._located(text, start, context), start)

    def _located(self, text, start, context):
        if not text.strip():
            return None
        if start >= 0 and context.startswith(text, start):
            return start
        return nearest(text, start, context) if self._moves else None


def nearest(text, start, context):
    """Where `text` stands in `context` nearest to the character `start`, or None."""
    start = max(0, start)
    places = (context.rfind(text, 0, start + len(text)), context.find(text, start))
    found = [place for place in places if place >= 0]
    return min(found, key=lambda place: abs(place - start), default=None)


def _rows_of_columns(columns):
    """{"text": […], "answer_start": […]} -> a list of dictionaries, or None."""
    texts, starts = columns.get("text"), columns.get("answer_start")
    if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
        return columns
    return [{"text": t, "answer_start": s} for t, s in zip(texts, starts, strict=True)]


def question_warnings(examples):
    """Lines for the user on `Question`s: what is odd, how often, and where the first one stands."""
    empty = [e for e in examples if not e.question.strip() or not e.context.strip()]
    lines = []
    if empty:
        lines.append(
            f"{_where(empty)}: {counted(len(empty), 'question')} without a word, or about a "
            "context without one."
        )
    return [*lines, *_wrong_offsets(examples), *_repeated(examples)]


def _wrong_offsets(examples):
    wrong = [
        (example, answer)
        for example in examples
        for answer in example.answers or ()
        if answer.start != answer.given_start
    ]
    if not wrong:
        return
    moved = sum(answer.start is not None for _, answer in wrong)
    yield (
        f"{_where([example for example, _ in wrong])}: {counted(len(wrong), 'answer')} not at the "
        f'"answer_start" given; {moved:,} moved to the nearest place that reads so, nothing is '
        f"learned from {len(wrong) - moved:,}."
    )


def _repeated(examples):
    counts = Counter(example.id for example in examples if example.id is not None)
    again = [id for id, count in counts.items() if count > 1]
    if again:
        first = next(example for example in examples if example.id == again[0])
        names = quoted(again, most=3)
        yield f"{_where([first])}: {counted(len(again), 'id')} of several questions ({names})."


def _where(examples):
    first = examples[0]
    return f"{first.source.name}, {first.place}" + (" and later" if len(examples) > 1 else "")


class GivenQuestions(Questions):
    """A sequence of (question, context) or of dictionaries like an object of JSON Lines.

    Raises ValueError for anything else, InputError as `QuestionFile`. `options` are those of
    `Questions`.
    """

    name = "the given questions"
    kind = "given"

    def __init__(self, questions, **options):
        super().__init__(**options)
        if self._given_fields:
            raise InputError("`fields` is for files; the given questions have SQuAD's names.")
        self._found = [
            self._question(_as_row(item), f"question {place}")
            for place, item in enumerate(questions, start=1)
        ]

    def __iter__(self):
        return iter(self._found)


def _as_row(item):
    if isinstance(item, dict):
        return item
    is_pair = isinstance(item, list | tuple) and len(item) == 2
    if not is_pair or not all(isinstance(text, str) for text in item):
        raise ValueError(
            "Questions must be pairs of a question and its context, or dictionaries. "
            f"Received: {item!r}"
        )
    question, context = item
    return {"question": question, "context": context}


class TfdsQuestions(Questions):
    """The questions of a prepared split, `tfds:NAME/CONFIG:SPLIT`, laid out as tfds's squad.

    `options` are those of `Questions`. Raises InputError as `TfdsTable` and `Questions`.
    """

    kind = "tfds"

    def __init__(self, name, **options):
        super().__init__(**options)
        self._table = TfdsTable(str(name))
        self.name = self._table.name
        self.description = f"{self.name}: a prepared tfds split, a question and its context a row"

    def __iter__(self) -> Iterator[Question]:
        """Yields the questions; may be called once."""
        key = self._key["answers"]
        for number, row in self._table:
            if f"{key}/text" in row:
                inner = {part: row.get(f"{key}/{part}") for part in ("text", "answer_start")}
                row = {**row, key: inner}
            yield self._question(row, f"row {number}")


def open_questions(data, **options):
    """`QuestionFile` of a path (or `-`), `TfdsQuestions` of `tfds:…`, `GivenQuestions` of others.

    `options` are those of `Questions`.
    """
    if not isinstance(data, str) and not hasattr(data, "__fspath__"):
        return GivenQuestions(data, **options)
    return (TfdsQuestions if str(data).startswith(PREFIX) else QuestionFile)(data, **options)


class QuestionFile(Questions, TextFile):
    """The questions of a file or of standard input (`-`), in order.

    A SQuAD file is parsed whole (some 175 MiB of memory for one of 30 MB, less than any model
    takes); JSON Lines are read line by line. `options` are those of `Questions`.

    Raises InputError at opening, or when a bad line or question is reached, which it names.
    """

    def __init__(self, path, **options):
        Questions.__init__(self, **options)
        TextFile.__init__(self, path)
        with self.closed_on_error():
            self._begin(self._lines())

    def __iter__(self) -> Iterator[Question]:
        """Yields the questions; may be called once."""
        with self._closer:
            yield from self._found

    def _begin(self, lines):
        first = next(((number, line) for number, line in lines if line.strip()), None)
        if first is None:
            raise InputError(f"{self.name} is empty; at least one question is needed.")
        row = _object(first[1])
        if row is not None and "data" not in row:
            self.kind = "jsonl"
            self.description = f"{self.name}: JSON Lines, a question and its context a line"
            self._found = self._of_lines(chain([first], lines))
            return
        if self._given_fields:
            raise InputError(
                f"{self.name} is SQuAD's JSON, which has its names; `fields` is for other files."
            )
        rest = list(lines)
        is_all = row is not None and not any(line.strip() for _, line in rest)
        whole = row if is_all else self._whole([first, *rest])
        self.kind = "squad"
        version = whole.get("version")
        named = f" (version {version})" if isinstance(version, str | int | float) else ""
        self.description = f"{self.name}: SQuAD JSON{named}"
        self._found = self._of_squad(whole)

    def _whole(self, lines):
        skipped = lines[0][0] - 1
        try:
            found = parse_json("\n".join(line for _, line in lines))
        except NotJson as error:
            where = "" if error.line is None else f", line {error.line + skipped}"
            raise InputError(
                f"{self.name}{where}: not JSON ({error}); give SQuAD's JSON, or JSON Lines with a "
                "question and its context a line."
            ) from None
        return found if isinstance(found, dict) else {}

    def _of_lines(self, lines):
        for number, line in lines:
            if not line.strip():
                continue
            row = _object(line)
            if row is None:
                raise self.error(number, "not a JSON object; JSON Lines have one object a line.")
            yield self._question(row, f"line {number}")

    def _of_squad(self, whole):
        for article, paragraphs in self._parts(whole, "data", "the file"):
            place = f"article {article}"
            for paragraph, held in self._parts(paragraphs, "paragraphs", place):
                inner = f"{place}, paragraph {paragraph}"
                context = self._text(held, "context", inner)
                for number, row in self._parts(held, "qas", inner):
                    yield self._question(row, f"{inner}, question {number}", context=context)

    def _parts(self, holder, key, place):
        parts = holder.get(key)
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            raise InputError(
                f'{self.name}: {place} has no list of objects under "{key}"; SQuAD\'s JSON is '
                '{"data": [{"paragraphs": [{"context": …, "qas": [{"id": …, "question": …, '
                '"answers": […]}]}]}]}.'
            )
        return enumerate(parts, start=1)


def _object(line):
    """The dictionary that a line holds as JSON, or None."""
    try:
        row = parse_json(line)
    except NotJson:
        return None
    return row if isinstance(row, dict) else None
