"""How documents are read: which lines and which documents are left out."""

import dataclasses
import re
from typing import NamedTuple

from keras_bert.base.settings import Settings, setting

_LETTERS = re.compile(r"[^\W\d_]+")


def bad_lines():
    """The setting of what happens to lines that cannot be read."""
    return setting(
        "error",
        help='a line that is not UTF-8, holds a NUL or is broken JSON: "error" ends the job with '
        'its file and number, "skip" leaves it out and counts it',
        choices=("error", "skip"),
    )


def text_field():
    """The setting of where the text stands in files that hold more than it."""
    return setting(
        "text",
        help="the field (JSON Lines), column (Parquet) or feature (tfds) that holds the text",
        unit="NAME",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading(Settings):
    """What is read of the input, and what is not. Each thing left out is counted by its reason."""

    bad_lines: str = bad_lines()
    text_field: str = text_field()
    min_characters: int = setting(
        0, help="leave out documents that are shorter", unit="N", at_least=0, at_most=1 << 30
    )
    max_characters: int | None = setting(
        None, help="leave out documents that are longer", unit="N", default_help="none"
    )
    min_letters: float = setting(
        0.0,
        help="leave out documents with a smaller share of letters, white space aside",
        unit="SHARE",
        at_least=0,
        at_most=1,
    )
    max_repeated_lines: float = setting(
        1.0,
        help="leave out documents with a greater share of lines that stood in them before",
        unit="SHARE",
        at_least=0,
        at_most=1,
    )
    drop_duplicates: bool = setting(
        False, help="read only one of documents that are alike to the letter"
    )

    def reason_to_drop(self, document):
        """Why a document is left out, as the name of a counter; None if it is read."""
        length = len(document.content)
        if length < self.min_characters:
            return "dropped_too_short"
        if self.max_characters is not None and length > self.max_characters:
            return "dropped_too_long"
        if self.min_letters and fraction_of_letters(document.content) < self.min_letters:
            return "dropped_few_letters"
        if self.max_repeated_lines < 1:
            if fraction_of_repeated_lines(document.text) > self.max_repeated_lines:
                return "dropped_repeated_lines"
        return None


def dropped_documents(counters):
    """Of a job's counters those of documents that were left out: reason in words -> number."""
    return {
        name.removeprefix("dropped_").replace("_", " "): number
        for name, number in counters.items()
        if name.startswith("dropped_")
    }


def fraction_of_letters(text):
    """The share of letters, of whatever script, among the characters that are not white space."""
    characters = sum(map(len, text.split()))
    return sum(map(len, _LETTERS.findall(text))) / max(1, characters)


def fraction_of_repeated_lines(text):
    """The share of the lines that are not empty, and that stand further up in the text, too."""
    lines = [line for line in text.split("\n") if line.strip()]
    return (len(lines) - len(set(lines))) / max(1, len(lines))


class Window(NamedTuple):
    """The documents of `path` that begin from byte `start` up to `stop` (None: the end)."""

    path: str
    form: str | None  # None: to be told from the content
    start: int
    stop: int | None
    size: int  # its bytes on disk


class Block(NamedTuple):
    """A run of documents from `start` to `end` of a file (None: to its end).

    The places are bytes of a text file, rows of a Parquet file, records of a tfds shard. A `stream`
    cannot be entered in its middle: it is one block, however long, and read piece by piece.

    `digest` is a hash of what the documents hold, `size` their bytes. `eval_documents` and
    `eval_size` count those with a hash below the limit that was asked for, `lowest` and `highest`
    are the ends of their hashes. `counts` are those of what was left out, (name, number) each.
    `dropped` are the hashes of documents that are read from another block.
    """

    path: str
    form: str
    start: int
    end: int | None
    stream: bool = False
    digest: bytes = b""
    documents: int = 0
    size: int = 0
    eval_documents: int = 0
    eval_size: int = 0
    lowest: int = 2**64
    highest: int = -1
    counts: tuple = ()
    dropped: tuple = ()
