"""The vocabulary: which pieces there are, and which id each has."""

import hashlib
import os
import re
from functools import cached_property
from pathlib import Path

import numpy as np

from keras_bert.errors import InputError

PAD, UNK, CLS, SEP, MASK = SPECIAL_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION_PREFIX = "##"
FILE = "vocab.txt"
# In characters, as in google-research/bert: a longer word is [UNK], whatever pieces there are.
MAX_WORD_LENGTH = 200
_UNUSED = re.compile(r"\[unused\d+\]")


class Vocabulary:
    """A WordPiece vocabulary: pieces in the order of their ids.

    Args:
        pieces: strings, the special ones ([PAD], [UNK], [CLS], [SEP], [MASK]) among them, each
            once. A piece that begins with "##" continues a word.
        counts: None, or int64 (V,), how often each piece stands in the text that the vocabulary
            was learned from. No part of the vocabulary's identity.

    `FILES` names the files that a vocabulary of this class is in a folder.

    Raises `keras_bert.errors.InputError` when the pieces cannot be a vocabulary.
    """

    FILES = (FILE,)

    def __init__(self, pieces, counts=None):
        self.pieces = tuple(pieces)
        self._ids = index_pieces(self.pieces, name="the vocabulary", unit="place")
        if counts is not None:
            counts = np.asarray(counts, dtype=np.int64)
            if counts.shape != (len(self.pieces),):
                raise ValueError(
                    "`counts` must hold one number a piece. "
                    f"Received: {counts.shape} for {len(self.pieces)} pieces"
                )
        self.counts = counts

    @classmethod
    def from_file(cls, path):
        """Reads a `vocab.txt`: UTF-8, one piece a line, the line number (from 0) being the id.

        Of a folder, reads the vocabulary in it, of either kind (see `read_folder` of
        `keras_bert.text.tokenizer_folder`).
        """
        path = Path(path)
        if path.is_dir():
            from keras_bert.text.tokenizer_folder import read_folder

            return read_folder(path)[0]
        if path.suffix == ".json" or path.name == "merges.txt":
            raise InputError(
                f"{path} alone is no vocabulary; give a {FILE}, or the folder that {path.name} "
                "lies in."
            )
        return cls._from_lines(read_bytes(path), path=path)

    @classmethod
    def from_files(cls, files, *, folder):
        """From the content of `FILES`, name -> bytes, as they lie in `folder` (for messages)."""
        return cls._from_lines(files[FILE], path=f"{folder}/{FILE}")

    @staticmethod
    def _from_lines(data, *, path):
        lines = decode(data, path, what="one piece a line").removesuffix("\n").split("\n")
        if "" in lines:
            raise InputError(
                f"{path}, line {lines.index('') + 1} is empty; every line is one piece."
            )
        index_pieces(lines, name=str(path), unit="line")  # so that errors name file and line
        return Vocabulary(lines)

    def save(self, path):
        """Writes `vocab.txt`, aside first, so that a broken run leaves no half vocabulary."""
        write_aside(path, self.files()[FILE])

    def files(self):
        """The files that the vocabulary is in a folder, which `from_files` reads: name -> text."""
        return {FILE: "".join(f"{piece}\n" for piece in self.pieces)}

    def __len__(self):
        return len(self.pieces)

    def __contains__(self, piece):
        return piece in self._ids

    def __eq__(self, other):
        return isinstance(other, Vocabulary) and self.sha256 == other.sha256

    def __hash__(self):
        return hash(self.sha256)

    def __repr__(self):
        return f"Vocabulary({len(self)} pieces, sha256 {self.sha256[:12]}…)"

    def __reduce__(self):  # into a Beam worker without the derived tables
        return type(self), (self.pieces, self.counts)

    def id(self, piece):
        """The id of a piece; ValueError when there is none."""
        if piece not in self._ids:
            raise ValueError(f"The vocabulary has no such piece. Received: {piece!r}")
        return self._ids[piece]

    def piece(self, id):
        """The piece with this id; ValueError when there is none."""
        if not 0 <= id < len(self.pieces):
            raise ValueError(f"Ids go from 0 to {len(self.pieces) - 1}. Received: {id}")
        return self.pieces[id]

    def piece_text(self, id):
        """What the piece with this id stands for, without the mark of where in a word it is."""
        piece = self.piece(id)
        return piece.removeprefix(CONTINUATION_PREFIX) if self.continuations[id] else piece

    def piece_name(self, id):
        """What a person reads where the piece with this id stands for itself, as in a list."""
        return self.piece(id)

    @property
    def pad_id(self):
        return self._ids[PAD]

    @property
    def unk_id(self):
        return self._ids[UNK]

    @property
    def cls_id(self):
        return self._ids[CLS]

    @property
    def sep_id(self):
        return self._ids[SEP]

    @property
    def mask_id(self):
        return self._ids[MASK]

    @cached_property
    def special_ids(self):
        """Ids that stand for no text, int32, rising: the five special pieces and [unusedN]."""
        return np.array(
            [i for i, p in enumerate(self.pieces) if p in SPECIAL_PIECES or _UNUSED.fullmatch(p)],
            dtype=np.int32,
        )

    @cached_property
    def continuations(self):
        """(V,) bool: True where the piece continues a word ("##ing")."""
        prefix = CONTINUATION_PREFIX
        return np.array([p.startswith(prefix) and p != prefix for p in self.pieces], dtype=np.bool_)

    @cached_property
    def stands_alone(self):
        """(V,) bool: True for special pieces but [UNK], which stands for text."""
        alone = np.zeros(len(self), dtype=np.bool_)
        alone[self.special_ids] = True
        alone[self.unk_id] = False
        return alone

    @property
    def starts_word(self):
        """(V,) bool: True where a word starts with the piece, whatever stands before it."""
        return ~self.continuations

    @property
    def ends_word(self):
        """(V,) bool: True where a word starts after the piece, whatever comes."""
        return self.stands_alone

    @cached_property
    def _word_marks(self):
        """(V,) uint8: 1 for `starts_word` and 2 for `ends_word`, so that both are one look-up."""
        return self.starts_word.astype(np.uint8) | self.ends_word.astype(np.uint8) << 1

    def word_starts(self, ids):
        """Where words begin: ids (..., S) integers -> (..., S) bool. Special pieces are words.

        The first token of a row, and one that follows a special piece, counts as a start even if
        truncation has cut off the beginning of its word.
        """
        marks = np.take(self._word_marks, ids)
        starts = (marks & 1).view(np.bool_)
        starts[..., :1] = True
        starts[..., 1:] |= (marks >= 2)[..., :-1]
        return starts

    def join(self, ids):
        """The text of a sequence of ids, as far as pieces tell it: words parted by one space."""
        words = []
        for id in ids:
            if self.continuations[id] and words:
                words[-1] += self.piece_text(id)
            else:
                words.append(self.pieces[id])
        return " ".join(words)

    @cached_property
    def sha256(self):
        """What dataset cards and models compare: the SHA-256 of the pieces in their order."""
        return hashlib.sha256("\n".join(self.pieces).encode("utf-8")).hexdigest()


def write_aside(path, text):
    """Writes a text file whole or not at all."""
    path = Path(path)
    aside = path.with_name(f".{path.name}.part")
    try:
        aside.write_text(text, encoding="utf-8", newline="\n")
        os.replace(aside, path)
    except OSError as error:
        raise InputError(f"{path} could not be written: {error.strerror}.") from error


def read_bytes(path):
    """The content of a vocabulary's file; `InputError` where it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"The vocabulary {path} could not be read: {error.strerror}; give a {FILE}, or a "
            "folder with a vocabulary."
        ) from error


def decode(data, path, *, what):
    """The text of a vocabulary's file; `InputError` names file and line (`what` was expected)."""
    if not data:
        raise InputError(f"The vocabulary {path} is empty; {what} was expected.")
    if data.startswith(b"\xef\xbb\xbf"):
        raise InputError(
            f"{path}, line 1 begins with a byte order mark; save the file as UTF-8 without one."
        )
    if b"\r\n" in data:
        number = data[: data.index(b"\r\n")].count(b"\n") + 1
        raise InputError(
            f"{path}, line {number} has a Windows line end; "
            "save the file with Unix line ends (a newline only)."
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = data[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {number} is not UTF-8.") from error


def index_pieces(pieces, *, name, unit):
    """Piece -> id; `InputError` for what cannot be a vocabulary, saying where.

    Args:
        pieces: a sequence of str.
        name: what the sentence calls the vocabulary.
        unit: "line" or "place", which count from 1, or "id", which counts from 0.
    """
    first = 0 if unit == "id" else 1
    ids = {}
    for id, piece in enumerate(pieces):
        if piece in ids:
            raise InputError(
                f"{name}, {unit} {id + first}: the piece {piece!r} stands already at {unit} "
                f"{ids[piece] + first}; every piece may be there only once."
            )
        if not piece or "\n" in piece or "\r" in piece:
            raise InputError(
                f"{name}, {unit} {id + first}: {piece!r} is no piece; "
                "a piece has at least one character and no line end."
            )
        ids[piece] = id
    missing = [piece for piece in SPECIAL_PIECES if piece not in ids]
    if missing:
        raise InputError(
            f"{name} has no {' and no '.join(missing)}; a vocabulary needs all of "
            f"{', '.join(SPECIAL_PIECES)}, each on a line of its own."
        )
    return ids
