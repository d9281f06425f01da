"""Vocabularies of any algorithm: tokens, their ids, special tokens, and where words begin."""

import abc
import dataclasses
import functools
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, delete, new_file, parse_json, write_text
from keras_bert.base.formatting import listed, percent
from keras_bert.text.normalizers import AddedToken

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# In characters, as in google-research/bert: a longer word is [UNK], whatever tokens there are.
MAX_WORD_LENGTH = 200
# In bytes of UTF-8, without the mark of a continuation: TensorFlow Text takes no more.
MAX_TOKEN_BYTES = 256
_UNUSED = re.compile(r"\[unused\d+\]")

VOCAB_TXT, VOCAB_JSON, MERGES_FILE = "vocab.txt", "vocab.json", "merges.txt"
CONFIG_FILE, TOKENIZER_FILE = "tokenizer_config.json", "tokenizer.json"
# Of SentencePiece: ALBERT's and others' name, XLM-R's and CamemBERT's, DeBERTa's.
SENTENCEPIECE_FILES = ("spiece.model", "sentencepiece.bpe.model", "spm.model")
# All files that a vocabulary of any algorithm may have in a folder.
TOKENIZER_FILES = frozenset(
    {VOCAB_TXT, VOCAB_JSON, MERGES_FILE, CONFIG_FILE, TOKENIZER_FILE, *SENTENCEPIECE_FILES}
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpecialTokens:
    """The special tokens of a tokenizer by role; None if it has none for that role.

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
    def from_dict(cls, tokens):
        """From the result of `to_dict`; ValueError for anything else."""
        roles = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(tokens, dict) or not all(
            role in roles and isinstance(token, str) for role, token in tokens.items()
        ):
            raise ValueError(
                f"Special tokens must be strings, by one of {', '.join(sorted(roles))}. "
                f"Received: {tokens!r}."
            )
        return cls(**tokens)

    def to_dict(self):
        """Role -> token, without the roles that have none."""
        return {role: token for role, token in dataclasses.asdict(self).items() if token}

    @property
    def tokens(self):
        """The different special tokens, in the order of their roles."""
        return tuple(dict.fromkeys(self.to_dict().values()))


BERT_TOKENS = SpecialTokens(pad=PAD, unk=UNK, cls=CLS, sep=SEP, mask=MASK)


class Vocabulary(abc.ABC):
    """Tokens in the order of their ids.

    The subclasses are the algorithms, each in one file of `keras_bert.text.vocabularies`.
    `keras_bert.load_vocabulary` reads any of them. What they do to texts is in the file of the same
    name of `keras_bert.text.encodings`, which alone needs TensorFlow.

    Args:
        tokens: strings, the special ones among them, each once.
        counts: None, or int64 (V,), how often each token occurs in the text that the vocabulary was
            learned from. Not part of the vocabulary's identity.
        special_tokens: `SpecialTokens`; BERT's by default ([PAD], [UNK], [CLS], [SEP], [MASK]).

    Raises `keras_bert.base.errors.InputError` for tokens that are not a valid vocabulary.
    """

    algorithm: str  # its name, such as "wordpiece"
    DESCRIPTION: str  # the algorithm in a sentence, such as "byte-pair encoding"
    ENCODING: str  # its `Encoding`, as "module:class"
    IS_FOLDER = True  # whether it is written as a folder, and not as one file
    RECORDS_CASE = False  # whether a folder that does not record the case is incomplete
    normalizers: tuple[str, ...] = ()  # before the algorithm's own (`keras_bert.text.normalizers`)
    added_tokens: tuple[AddedToken, ...] = ()  # that a text is cut at
    OWN_SPACES = False  # whether the text of a sequence is that of its tokens and nothing else
    FILES: tuple[str, ...]  # the names of the files that `files` gives, the last written last
    lowercase: bool | None = None  # whether its texts are lowercased; None: either
    UNKNOWN: str | None = UNK  # the token for unknown text; None: any name, or no such token
    HAS_UNKNOWN_TEXT = True  # some text has no other token than the unknown one
    ONE_LINE = True  # no token has a line end

    def __init__(
        self, tokens: Iterable[str], counts: Any = None, special_tokens: SpecialTokens = BERT_TOKENS
    ):
        self.tokens = tuple(tokens)
        self.special_tokens = special_tokens
        self._ids = index_tokens(
            self.tokens,
            name="the vocabulary",
            unit="place",
            special_tokens=special_tokens,
            one_line=self.ONE_LINE,
        )
        if self.UNKNOWN not in (None, special_tokens.unk):
            raise InputError(
                f"The vocabulary has {special_tokens.unk!r} for unknown words. Expected {UNK}."
            )
        if counts is not None:
            counts = np.asarray(counts, dtype=np.int64)
            if counts.shape != (len(self.tokens),):
                raise ValueError(
                    "`counts` must hold one number per token. "
                    f"Received: {counts.shape} for {len(self.tokens)} tokens."
                )
        self.counts = counts

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Writes what `load_vocabulary` reads: a `vocab.txt`, or for byte-pair encoding a folder.

        Whether text is lowercased is not in it; `Tokenizer.save` writes that too.

        Args:
            path: the file or the folder. Other files than those of a tokenizer stay there.
            overwrite: replace another file, or the files of another tokenizer in the folder.

        Raises:
            InputError: there is another file or tokenizer, unless `overwrite`.
        """
        if self.IS_FOLDER:
            write_into(path, self.files(), last=self.FILES[-1], overwrite=overwrite)
            return
        [text] = self.files().values()
        if os.path.lexists(path) and not overwrite and not _holds(Path(path), text):
            raise InputError.naming(
                "{} is another file already. Give another name, or {overwrite=True} to replace it.",
                path,
            )
        write_text(path, text)

    @abc.abstractmethod
    def files(self) -> dict[str, str]:
        """The files that the vocabulary is written as: name -> text."""

    @abc.abstractmethod
    def to_tokenizers(self, *, lowercase: bool) -> Any:
        """A `tokenizers.Tokenizer` with the same ids, without special tokens and template."""

    def config_options(self, *, lowercase: bool) -> dict[str, Any]:
        """Returns the JSON values of a `tokenizer_config.json` by key."""
        return {
            "do_lower_case": lowercase,
            "strip_accents": None,  # exactly if it lowercases
            "tokenize_chinese_chars": True,
        }

    @classmethod
    def options_of(cls, tokenizer: dict[str, Any], *, source: str) -> dict[str, Any]:
        """Further arguments of the constructor from the object of a `tokenizer.json`."""
        return {}

    def to_ids(self) -> dict[str, int]:
        """Token -> id: a dictionary in the order of the ids."""
        return dict(self._ids)

    @abc.abstractmethod
    def token_text(self, id: int) -> str:
        """The text of the token with this id, without the mark of its position in a word."""

    @abc.abstractmethod
    def join(self, ids: Sequence[int]) -> str:
        """The text of a sequence of ids, words separated by one space."""

    @cached_property
    def joinable(self) -> list[Any]:
        """The text of each token, with the space before or after it that `join` would put there.

        Those of a sequence, one after another, are its text, with a space more at one end.
        """
        return [f" {token}" for token in self.tokens]

    @property
    def starts_word(self) -> np.ndarray:
        """(V,) bool: True where a word starts with the token, whatever comes before it."""
        return self.stands_alone  # not so [UNK]: a character, which may be inside a word

    @property
    def ends_word(self) -> np.ndarray:
        """(V,) bool: True where a word starts after the token, whatever comes."""
        return self.stands_alone

    def _identity(self):
        """The strings that make the vocabulary what it is, in their order."""
        return self.tokens

    def _steps_identity(self):
        """Returns the settings of its steps; the special tokens are part of every vocabulary."""
        special = self.special_tokens.tokens
        added = [token for token in self.added_tokens if token.content not in special]
        return [*self.normalizers, *map(repr, added)]

    def _options(self, more=0):
        """The further arguments of the constructor by name, for `more` further special tokens."""
        return {}

    def __reduce__(self) -> tuple[Any, ...]:  # into a Beam worker without the derived tables
        options = {"counts": self.counts, "special_tokens": self.special_tokens}
        return functools.partial(type(self), **options, **self._options()), (self.tokens,)

    def with_special_tokens(self, **roles: str) -> Self:
        """A copy with further special tokens by role (see `SpecialTokens`).

        Those that are not tokens yet are appended, so that the ids of all others stay.
        """
        special = dataclasses.replace(self.special_tokens, **roles)
        new = [token for token in special.tokens if token not in self]
        counts = None if self.counts is None else np.append(self.counts, [0] * len(new))
        options = {"counts": counts, "special_tokens": special, **self._options(more=len(new))}
        return type(self)([*self.tokens, *new], **options)

    def needed_with(self, ids: Iterable[int]) -> set[int]:
        """The ids of tokens that a vocabulary needs which is cut to some of its tokens (`ids`).

        They are those, the special tokens, and what the algorithm needs so that every text whose
        tokens are all among them has the same tokens as before.
        """
        added = [self.id(token.content) for token in self.added_tokens if token.content in self]
        special = [self.id(token) for token in self.special_tokens.tokens]
        return {*ids, *added, *special}

    def tried_on(self, words: Iterable[str]) -> set[int]:
        """The ids of tokens that unknown words begin with, if other ones would make them known."""
        return set()

    def cut_to(self, ids: Sequence[int]) -> Self:
        """A copy with some of its tokens: the token `i` of the copy is the token `ids[i]`.

        `ids` rise, and are such as `needed_with` gives.
        """
        counts = None if self.counts is None else self.counts[ids]
        options = {"special_tokens": self.special_tokens, **self._options_of(ids)}
        return type(self)([self.tokens[id] for id in ids], counts=counts, **options)

    def _options_of(self, ids):
        """The further arguments of the constructor by name, for some of the tokens."""
        return self._options()

    def with_prefix_space(self) -> Self:
        """A copy that reads a text as if it began with a space; itself if spaces do not matter."""
        return self

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} tokens, sha256 {self.sha256[:12]}…)"

    def id(self, token: str) -> int:
        """The id of a token; ValueError for an unknown one."""
        if token not in self._ids:
            raise ValueError(f"The vocabulary has no such token. Received: {token!r}.")
        return self._ids[token]

    def token(self, id: int) -> str:
        """The token with this id; ValueError for an unknown one."""
        if not 0 <= id < len(self.tokens):
            raise ValueError(f"Ids go from 0 to {len(self.tokens) - 1}. Received: {id}.")
        return self.tokens[id]

    def token_name(self, id: int) -> str:
        """The token with this id as a person reads it on its own, as in a list."""
        return self.token(id)

    @property
    def pad_id(self) -> int:
        """The id of padding; 0 if there is no such token, since nothing reads it."""
        return self._ids.get(self.special_tokens.pad, 0)

    @property
    def unk_id(self) -> int:
        """The id of unknown text; that of padding if no text is unknown."""
        return self._ids.get(self.special_tokens.unk, self.pad_id)

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
        """Ids without a text, int32, rising: the special tokens and [unusedN]."""
        special = {token.content for token in self.added_tokens if token.special}
        special.update(self.special_tokens.tokens)
        return np.array(
            [i for i, p in enumerate(self.tokens) if p in special or _UNUSED.fullmatch(p)],
            dtype=np.int32,
        )

    @cached_property
    def stands_alone(self) -> np.ndarray:
        """(V,) bool: True for special tokens but [UNK] if that represents text."""
        alone = np.zeros(len(self), dtype=np.bool_)
        alone[self.special_ids] = True
        if self.HAS_UNKNOWN_TEXT:
            alone[self.unk_id] = False
        return alone

    @cached_property
    def _word_marks(self):
        """(V,) uint8: 1 for `starts_word` and 2 for `ends_word`, so that both are one look-up."""
        return self.starts_word.astype(np.uint8) | self.ends_word.astype(np.uint8) << 1

    def word_starts(self, ids: np.ndarray) -> np.ndarray:
        """Marks first tokens of words, and special tokens: ids (..., S) integers -> (..., S) bool.

        The first token of a sequence, and one that follows a special token, counts as a start even
        if truncation has cut off the beginning of its word.
        """
        marks = np.take(self._word_marks, ids)
        starts = (marks & 1).view(np.bool_)
        starts[..., :1] = True
        starts[..., 1:] |= (marks >= 2)[..., :-1]
        return starts

    @cached_property
    def sha256(self) -> str:
        """A hash of the tokens (and merges) in order, which dataset cards and models compare.

        Special tokens that are not BERT's are part of it.
        """
        parts = list(self._identity())
        if self.special_tokens != BERT_TOKENS:
            parts += map(" ".join, self.special_tokens.to_dict().items())
        return hashlib.sha256("\n".join(parts).encode("utf-8")).hexdigest()


def parse_ids(text, *, source):
    """The content of a `vocab.json`; `tokens_by_id` checks it."""
    try:
        return parse_json(text)
    except NotJson as error:
        raise InputError(f"{source} is not JSON: {error}.") from None


def tokens_by_id(ids, *, source, special_tokens):
    """The tokens of a JSON object of token and id, in the order of their ids.

    Raises `InputError`, which names `source`, if they are not a valid vocabulary.
    """
    numbers = list(ids.values()) if isinstance(ids, dict) else [None]
    if not all(type(id) is int for id in numbers) or sorted(numbers) != [*range(len(numbers))]:
        raise InputError(f"{source} must give every token an id, from 0 on and none twice.")
    tokens = sorted(ids, key=ids.get)
    index_tokens(tokens, name=source, unit="id", special_tokens=special_tokens, one_line=False)
    return tokens


def write_into(folder, texts, *, last, overwrite):
    """Writes the files of a vocabulary (name -> text) into a folder. Other files stay there.

    `last` is the file without which there is no vocabulary in the folder.

    Raises `InputError` if the folder has files of another tokenizer, unless `overwrite`.
    """
    folder = Path(folder)
    there = [name for name in sorted(TOKENIZER_FILES) if os.path.lexists(folder / name)]
    others = [name for name in there if not _holds(folder / name, texts.get(name))]
    if others and not overwrite:
        raise InputError.naming(
            "{} has another tokenizer already ({}). Give another folder, or {overwrite=True} to "
            "replace its files.",
            folder,
            listed(others),
        )
    with new_file(folder / last) as temporary:
        for name, text in texts.items():
            temporary.with_name(name).write_text(text, encoding="utf-8", newline="")
        # First the one that could be read alone, then those of a vocabulary of another algorithm.
        for name in (TOKENIZER_FILE, *sorted(TOKENIZER_FILES - texts.keys())):
            delete(folder / name)


def _holds(path, text):
    """Whether a file has this text; None is no file."""
    return text is not None and path.is_file() and path.read_bytes() == text.encode("utf-8")


def index_tokens(tokens, *, name, unit, special_tokens, one_line=True):
    """Token -> id; `InputError` with the position of what is not valid in a vocabulary.

    Args:
        tokens: a sequence of str.
        name: the vocabulary in errors.
        unit: "line" or "place", which count from 1, or "id", which counts from 0.
        special_tokens: `SpecialTokens`, which must be among the tokens.
        one_line: whether a token with a line end is invalid.
    """
    first = 0 if unit == "id" else 1
    ids = {}
    for id, token in enumerate(tokens):
        if token in ids:
            raise InputError(
                f"{name}, {unit} {id + first}: the token {token!r} is already at {unit} "
                f"{ids[token] + first}. Each token may occur only once."
            )
        if not token or (one_line and ("\n" in token or "\r" in token)):
            raise InputError(
                f"{name}, {unit} {id + first}: {token!r} is not a token. "
                "A token has at least one character and no line end."
            )
        ids[token] = id
    missing = [token for token in special_tokens.tokens if token not in ids]
    if missing:
        raise InputError(
            f"{name} has no {' and no '.join(missing)}. A vocabulary needs all of "
            f"{', '.join(special_tokens.tokens)}, each on a line of its own."
        )
    return ids


def note_on_unknown(unknown, tokens, *, which=""):
    """A sentence if more than 5 % of `tokens` tokens are [UNK], else None.

    Args:
        unknown, tokens: how many tokens are [UNK], and how many there are.
        which: their data in the sentence ("dev").
    """
    if unknown <= 0.05 * tokens:
        return None
    return (
        f"{percent(unknown / tokens)} of the {which + ' ' if which else ''}tokens are [UNK]: the "
        "vocabulary does not have these words, nor parts of them."
    )
