"""Questions of a prepared TensorFlow Dataset."""

from collections.abc import Iterator

from keras_bert.readers.question import Question
from keras_bert.readers.questions import Questions
from keras_bert.readers.tfds import TfdsTable


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
