"""How documents are read: which lines and which documents are left out."""

import dataclasses
import re

_LETTERS = re.compile(r"[^\W\d_]+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """What is read of the input, and what is not. Each thing left out is counted by its reason.

    - `bad_lines`: what happens to a line that is not UTF-8, that holds a NUL, or that is no JSON
      object with a text where one is due: "error" raises `InputError` with file and line, "skip"
      leaves it out.
    - `text_field`: the field (JSON Lines), column (Parquet) or feature (tfds) that holds the text.
    - `min_characters`, `max_characters` (None: no limit): of a document.
    - `min_letters`: the least share of letters among what is not white space.
    - `max_repeated_lines`: the greatest share of a document's lines (as `Document.text` has them)
      that have stood in it before.
    - `drop_duplicates`: of documents that are alike to the letter, only one is read.
    """

    bad_lines: str = "error"
    text_field: str = "text"
    min_characters: int = 0
    max_characters: int | None = None
    min_letters: float = 0.0
    max_repeated_lines: float = 1.0
    drop_duplicates: bool = False

    def reason_to_drop(self, document):
        """Why a document is left out, as the name of a counter; None if it is read."""
        length = len(document.content)
        if length < self.min_characters:
            return "dropped_too_short"
        if self.max_characters is not None and length > self.max_characters:
            return "dropped_too_long"
        if self.min_letters and share_of_letters(document.content) < self.min_letters:
            return "dropped_few_letters"
        if self.max_repeated_lines < 1:
            if share_of_repeated_lines(document.text) > self.max_repeated_lines:
                return "dropped_repeated_lines"
        return None


def share_of_letters(text):
    """The share of letters, of whatever script, among the characters that are not white space."""
    characters = sum(map(len, text.split()))
    return sum(map(len, _LETTERS.findall(text))) / max(1, characters)


def share_of_repeated_lines(text):
    """The share of the lines that are not empty, and that stand further up in the text, too."""
    lines = [line for line in text.split("\n") if line.strip()]
    return (len(lines) - len(set(lines))) / max(1, len(lines))
