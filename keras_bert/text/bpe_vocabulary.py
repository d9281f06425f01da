"""Byte-pair encoding: the vocabulary with its merges, and what encoding by merges means."""

import hashlib
import json
from functools import cached_property
from pathlib import Path

import numpy as np

from keras_bert.errors import InputError
from keras_bert.text.vocabulary import (
    MAX_WORD_LENGTH,
    SPECIAL_PIECES,
    UNK,
    Vocabulary,
    index_pieces,
    read_text,
    write_aside,
)

# Ends every word, as a symbol of its own. A punctuation mark (double low line): the tokenizer makes
# a word of its own of every punctuation mark, so within a word it cannot come from the text; where
# the text has it, it is an unknown character.
END_OF_WORD = "\u2017"
VOCAB_FILE, MERGES_FILE = "vocab.json", "merges.txt"
_VERSION_LINE = "#version: 0.1"  # of subword-nmt's format: the mark is a symbol of its own


class BpeVocabulary(Vocabulary):
    """A vocabulary of byte-pair encoding (Sennrich et al. 2016): pieces and merges.

    Args:
        pieces: strings in the order of their ids, the special ones among them, each once: single
            characters, END_OF_WORD, and what the merges make.
        merges: pairs of pieces, the one learned first first. Their concatenation is a piece.
        counts: as for `Vocabulary`.
    """

    def __init__(self, pieces, merges, counts=None):
        super().__init__(pieces, counts=counts)
        self.merges = tuple((left, right) for left, right in merges)
        _check(self.pieces, self.merges, self._ids)
        self._ranks = {pair: rank for rank, pair in enumerate(self.merges)}

    @classmethod
    def from_folder(cls, folder):
        """Reads `vocab.json` (piece -> id) and `merges.txt` (a pair a line)."""
        folder = Path(folder)
        pieces = _read_pieces(folder / VOCAB_FILE)
        index_pieces(pieces, name=str(folder / VOCAB_FILE), unit="id")
        merges = _read_merges(folder / MERGES_FILE)
        try:
            return cls(pieces, merges)
        except InputError as error:
            raise InputError(f"{folder / MERGES_FILE} does not fit {VOCAB_FILE}: {error}") from None

    def save(self, folder):
        """Writes `vocab.json` and `merges.txt`."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.files().items():
            write_aside(folder / name, text)

    def piece_text(self, id):
        return self.piece(id).removesuffix(END_OF_WORD)

    def files(self):
        vocab = json.dumps(self._ids, ensure_ascii=False, indent=0)
        merges = "".join(f"{left} {right}\n" for left, right in self.merges)
        return {VOCAB_FILE: f"{vocab}\n", MERGES_FILE: f"{_VERSION_LINE}\n{merges}"}

    def __reduce__(self):
        return type(self), (self.pieces, self.merges, self.counts)

    @cached_property
    def sha256(self):
        """The SHA-256 of the pieces in their order and of the merges in theirs."""
        text = "\n".join([*self.pieces, *map(" ".join, self.merges)])
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    @property
    def continuations(self):
        """What a WordPiece vocabulary has, and this one has not."""
        raise AttributeError(
            "Whether a BPE piece continues a word is told by the piece before it. Use word_starts."
        )

    @cached_property
    def ends_word(self):
        """(V,) bool: True where a word ends with the piece; special pieces but [UNK] are words."""
        return np.array(
            [
                piece.endswith(END_OF_WORD) or (piece in SPECIAL_PIECES and piece != UNK)
                for piece in self.pieces
            ],
            dtype=np.bool_,
        )

    def word_starts(self, ids):
        ids = np.asarray(ids)
        special = np.zeros(len(self), dtype=np.bool_)
        special[self.special_ids] = True
        special[self.unk_id] = False  # it stands for a character, which may be inside a word
        starts = special[ids]
        starts[..., :1] = True
        starts[..., 1:] |= (self.ends_word | special)[ids[..., :-1]]
        return starts

    def join(self, ids):
        parts = []
        for id in ids:
            piece = self.pieces[id]
            if piece.endswith(END_OF_WORD):
                parts.append(piece.removesuffix(END_OF_WORD) + " ")
            elif self.ends_word[id]:  # a special piece is a word, and so ends one cut off before it
                parts.append(("" if not parts or parts[-1].endswith(" ") else " ") + piece + " ")
            else:
                parts.append(piece)
        return "".join(parts).removesuffix(" ")

    def encode_word(self, word):
        """The pieces of a word: the definition of encoding by merges.

        The word's characters, those that are no piece as [UNK], and END_OF_WORD are symbols. Again
        and again the pair of neighbours whose merge was learned first, the leftmost of several,
        becomes one symbol, until no merge applies. A word over 200 characters is [UNK] and
        END_OF_WORD.

        Args:
            word: a str as the tokenizer parts words, without END_OF_WORD.

        Returns a list of str.
        """
        if len(word) > MAX_WORD_LENGTH:
            return [UNK, END_OF_WORD]
        symbols = [c if c in self._ids and c != END_OF_WORD else UNK for c in word]
        symbols.append(END_OF_WORD)
        never = len(self._ranks)
        while len(symbols) > 1:
            pairs = zip(symbols, symbols[1:], strict=False)
            ranks = [self._ranks.get(pair, never) for pair in pairs]
            best = min(ranks)
            if best == never:
                break
            i = ranks.index(best)
            symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
        return symbols


def _check(pieces, merges, ids):
    if END_OF_WORD not in ids:
        raise InputError(
            f"the vocabulary has no end-of-word mark {END_OF_WORD!r} (U+2017); a BPE vocabulary of "
            "another kind cannot be used here."
        )
    seen = set()
    for number, (left, right) in enumerate(merges, 1):
        for piece in (left, right, left + right):
            if piece not in ids or piece in SPECIAL_PIECES:
                raise InputError(
                    f"merge {number}, {left!r} and {right!r}, needs the piece {piece!r}, which the "
                    "vocabulary does not have."
                )
        if (left, right) in seen:
            raise InputError(f"merge {number}, {left!r} and {right!r}, is there twice.")
        seen.add((left, right))


def _read_pieces(path):
    try:
        ids = json.loads(read_text(path, what="a JSON object of piece and id"))
    except json.JSONDecodeError as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(ids, dict) or sorted(map(str, ids.values())) != sorted(
        map(str, range(len(ids)))
    ):
        raise InputError(f"{path} must give every piece an id, from 0 on and none twice.")
    return sorted(ids, key=ids.get)


def _read_merges(path):
    merges = []
    lines = read_text(path, what="a pair of pieces a line").split("\n")
    for number, line in enumerate(lines, 1):
        if (number == 1 and line.startswith("#version")) or (number == len(lines) and not line):
            continue
        pair = line.split(" ")
        if len(pair) != 2 or not all(pair):
            raise InputError(f"{path}, line {number} must be two pieces and one space: {line!r}")
        merges.append(tuple(pair))
    return merges
