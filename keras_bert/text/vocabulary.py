"""What every vocabulary tells: its pieces and their ids, and where words begin."""

import abc
import dataclasses
import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from os import PathLike

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.files import delete, new_file

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# In characters, as in google-research/bert: a longer word is [UNK], whatever pieces there are.
MAX_WORD_LENGTH = 200
MAX_TOKEN_BYTES = 256  # of UTF-8, beside the mark of a continuation: TensorFlow Text takes no more
# All files that a vocabulary of either kind may have in a folder.
NAMES = frozenset(
    {"vocab.txt", "vocab.json", "merges.txt", "tokenizer.json", "tokenizer_config.json"}
)
_UNUSED = re.compile(r"\[unused\d+\]")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpecialTokens:
    """The special tokens of a tokenizer by what they are for; None where it has none for that.

    BERT's are the first five. Other models begin and end a sequence with `bos` and `eos`, or with
    `start` and `extract`, and have `delimiter` between two texts.
    """

    pad: str | None = None
    unk: str | None = None
    cls: str | None = None
    sep: str | None = None
    mask: str | None = None
    bos: str | None = None
    eos: str | None = None
    start: str | None = None
    delimiter: str | None = None
    extract: str | None = None

    @classmethod
    def from_dict(cls, values):
        """From what `to_dict` gives; ValueError where it is something else."""
        roles = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(values, dict) or not all(
            role in roles and isinstance(token, str) for role, token in values.items()
        ):
            raise ValueError(
                f"Special tokens must be strings, by one of {', '.join(sorted(roles))}. "
                f"Received: {values!r}"
            )
        return cls(**values)

    def to_dict(self):
        """Role -> token, of those that there are."""
        return {role: token for role, token in dataclasses.asdict(self).items() if token}

    @property
    def tokens(self):
        """The different special tokens, in the order of their roles."""
        return tuple(dict.fromkeys(self.to_dict().values()))


BERT_TOKENS = SpecialTokens(pad=PAD, unk=UNK, cls=CLS, sep=SEP, mask=MASK)


class Vocabulary(abc.ABC):
    """Pieces in the order of their ids.

    There are two kinds, `WordPieceVocabulary` and `BpeVocabulary`. `keras_bert.load_vocabulary`
    reads either.

    Args:
        tokens: strings, the special ones among them, each once.
        counts: None, or int64 (V,), how often each piece stands in the text that the vocabulary
            was learned from. No part of the vocabulary's identity.
        special_tokens: `SpecialTokens`; BERT's by default ([PAD], [UNK], [CLS], [SEP], [MASK]).

    Raises `keras_bert.base.errors.InputError` when the pieces cannot be a vocabulary.
    """

    algorithm: str  # "wordpiece" or "bpe"
    FILES: tuple[str, ...]  # the names of the files that `files` gives, the last written last

    def __init__(self, tokens, counts=None, special_tokens=BERT_TOKENS):
        self.tokens = tuple(tokens)
        self.special_tokens = special_tokens
        self._ids = index_tokens(
            self.tokens, name="the vocabulary", unit="place", special_tokens=special_tokens
        )
        if special_tokens.unk != UNK:
            raise InputError(
                f"The vocabulary has {special_tokens.unk!r} for what it does not know; expected "
                f"{UNK}."
            )
        if counts is not None:
            counts = np.asarray(counts, dtype=np.int64)
            if counts.shape != (len(self.tokens),):
                raise ValueError(
                    "`counts` must hold one number a piece. "
                    f"Received: {counts.shape} for {len(self.tokens)} pieces"
                )
        self.counts = counts

    @abc.abstractmethod
    def save(self, path: str | PathLike[str]) -> None:
        """Writes what `load_vocabulary` reads: a `vocab.txt`, or for byte-pair encoding a folder.

        Whether text is to be lowered is not in it; `Tokenizer.save` says it too.
        """

    @abc.abstractmethod
    def files(self):
        """The files that the vocabulary is written as: name -> text."""

    @abc.abstractmethod
    def token_text(self, id):
        """What the piece with this id stands for, without the mark of where in a word it is."""

    @property
    @abc.abstractmethod
    def starts_word(self):
        """(V,) bool: True where a word starts with the piece, whatever stands before it."""

    @property
    @abc.abstractmethod
    def ends_word(self):
        """(V,) bool: True where a word starts after the piece, whatever comes."""

    @abc.abstractmethod
    def join(self, ids: Sequence[int]) -> str:
        """The text of a sequence of ids, as far as pieces tell it: words parted by one space."""

    @abc.abstractmethod
    def _identity(self):
        """The strings that make the vocabulary what it is, in their order."""

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def __eq__(self, other):
        return isinstance(other, Vocabulary) and self.sha256 == other.sha256

    def __hash__(self):
        return hash(self.sha256)

    def __repr__(self):
        return f"{type(self).__name__}({len(self)} pieces, sha256 {self.sha256[:12]}…)"

    def id(self, token: str) -> int:
        """The id of a piece; ValueError when there is none."""
        if token not in self._ids:
            raise ValueError(f"The vocabulary has no such piece. Received: {token!r}")
        return self._ids[token]

    def token(self, id: int) -> str:
        """The piece with this id; ValueError when there is none."""
        if not 0 <= id < len(self.tokens):
            raise ValueError(f"Ids go from 0 to {len(self.tokens) - 1}. Received: {id}")
        return self.tokens[id]

    def token_name(self, id: int) -> str:
        """What a person reads where the piece with this id stands for itself, as in a list."""
        return self.token(id)

    @property
    def pad_id(self) -> int:
        """What padding has; 0 where there is no such token, since nobody reads it."""
        return self._ids.get(self.special_tokens.pad, 0)

    @property
    def unk_id(self) -> int:
        return self._ids[self.special_tokens.unk]

    @property
    def cls_id(self) -> int | None:
        return self._ids.get(self.special_tokens.cls)

    @property
    def sep_id(self) -> int | None:
        return self._ids.get(self.special_tokens.sep)

    @property
    def mask_id(self) -> int | None:
        return self._ids.get(self.special_tokens.mask)

    @cached_property
    def special_ids(self) -> np.ndarray:
        """Ids that stand for no text, int32, rising: the special tokens and [unusedN]."""
        special = frozenset(self.special_tokens.tokens)
        return np.array(
            [i for i, p in enumerate(self.tokens) if p in special or _UNUSED.fullmatch(p)],
            dtype=np.int32,
        )

    @cached_property
    def stands_alone(self):
        """(V,) bool: True for special pieces but [UNK], which stands for text."""
        alone = np.zeros(len(self), dtype=np.bool_)
        alone[self.special_ids] = True
        alone[self.unk_id] = False
        return alone

    @cached_property
    def _word_marks(self):
        """(V,) uint8: 1 for `starts_word` and 2 for `ends_word`, so that both are one look-up."""
        return self.starts_word.astype(np.uint8) | self.ends_word.astype(np.uint8) << 1

    def word_starts(self, ids: np.ndarray) -> np.ndarray:
        """Where words begin: ids (..., S) integers -> (..., S) bool. Special pieces are words.

        The first token of a row, and one that follows a special piece, counts as a start even if
        truncation has cut off the beginning of its word.
        """
        marks = np.take(self._word_marks, ids)
        starts = (marks & 1).view(np.bool_)
        starts[..., :1] = True
        starts[..., 1:] |= (marks >= 2)[..., :-1]
        return starts

    @cached_property
    def sha256(self) -> str:
        """What dataset cards and models compare: a hash of the pieces (and merges) in order.

        Special tokens that are not BERT's are part of it.
        """
        parts = list(self._identity())
        if self.special_tokens != BERT_TOKENS:
            parts += map(" ".join, self.special_tokens.to_dict().items())
        return hashlib.sha256("\n".join(parts).encode("utf-8")).hexdigest()


def write_into(folder, texts, *, last):
    """Writes the files of a vocabulary into a folder, in the place of the one that is there.

    Args:
        folder: the path.
        texts: name -> text.
        last: the name without which there is no vocabulary in the folder.
    """
    with new_file(folder / last) as temporary:
        for name, text in texts.items():
            temporary.with_name(name).write_text(text, encoding="utf-8", newline="")
        for name in NAMES - texts.keys():  # of a vocabulary of the other kind
            delete(folder / name)


def index_tokens(tokens, *, name, unit, special_tokens=BERT_TOKENS):
    """Piece -> id; `InputError` for what cannot be a vocabulary, saying where.

    Args:
        tokens: a sequence of str.
        name: what the sentence calls the vocabulary.
        unit: "line" or "place", which count from 1, or "id", which counts from 0.
        special_tokens: `SpecialTokens`, which must be among the pieces.
    """
    first = 0 if unit == "id" else 1
    ids = {}
    for id, token in enumerate(tokens):
        if token in ids:
            raise InputError(
                f"{name}, {unit} {id + first}: the piece {token!r} stands already at {unit} "
                f"{ids[token] + first}; every piece may be there only once."
            )
        if not token or "\n" in token or "\r" in token:
            raise InputError(
                f"{name}, {unit} {id + first}: {token!r} is no piece; "
                "a piece has at least one character and no line end."
            )
        ids[token] = id
    needed = special_tokens.tokens
    missing = [token for token in needed if token not in ids]
    if missing:
        raise InputError(
            f"{name} has no {' and no '.join(missing)}; a vocabulary needs all of "
            f"{', '.join(needed)}, each on a line of its own."
        )
    return ids
