"""Questions about texts from SQuAD's JSON (1.1 and 2.0), JSON Lines and prepared tfds splits.

The layout is that of Rajpurkar et al. 2016 and, with questions that have no answer, 2018.
"""

from collections.abc import Iterator
from itertools import chain

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, parse_json
from keras_bert.readers.given_questions import GivenQuestions
from keras_bert.readers.question import Question
from keras_bert.readers.questions import Questions
from keras_bert.readers.text_file import TextFile
from keras_bert.readers.tfds import PREFIX
from keras_bert.readers.tfds_questions import TfdsQuestions


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
