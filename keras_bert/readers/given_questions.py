"""Questions that come from Python instead of from a file."""

from keras_bert.base.errors import InputError
from keras_bert.readers.questions import Questions


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
