"""What every source of questions makes of a dictionary: a `Question`, or a sentence."""

import re

from keras_bert.base.errors import InputError
from keras_bert.readers.fields import parse_fields
from keras_bert.readers.question import GoldAnswer, Question

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
