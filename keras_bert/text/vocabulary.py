"""Vocabularies, WordPiece and byte-pair encoding: tokens, their ids, and where words begin."""

import abc
import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Self

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, delete, new_file, parse_json, write_text

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# In characters, as in google-research/bert: a longer word is [UNK], whatever tokens there are.
MAX_WORD_LENGTH = 200
# In bytes of UTF-8, without the mark of a continuation: TensorFlow Text takes no more.
MAX_TOKEN_BYTES = 256
_UNUSED = re.compile(r"\[unused\d+\]")

VOCAB_TXT, VOCAB_JSON, MERGES_FILE = "vocab.txt", "vocab.json", "merges.txt"
CONFIG_FILE, TOKENIZER_FILE = "tokenizer_config.json", "tokenizer.json"
# All files that a vocabulary of either algorithm may have in a folder.
TOKENIZER_FILES = frozenset({VOCAB_TXT, VOCAB_JSON, MERGES_FILE, CONFIG_FILE, TOKENIZER_FILE})


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpecialTokens:
    """The special tokens of a tokenizer by role; None where it has none for that role.

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

    The subclasses are `WordPieceVocabulary` and those of byte-pair encoding: `BpeVocabulary`,
    `GptVocabulary` (OpenAI GPT's) and `ByteLevelVocabulary` (GPT-2's and RoBERTa's).
    `keras_bert.load_vocabulary` reads any of them.

    Args:
        tokens: strings, the special ones among them, each once.
        counts: None, or int64 (V,), how often each token occurs in the text that the vocabulary was
            learned from. Not part of the vocabulary's identity.
        special_tokens: `SpecialTokens`; BERT's by default ([PAD], [UNK], [CLS], [SEP], [MASK]).

    Raises `keras_bert.base.errors.InputError` for tokens that are not a valid vocabulary.
    """

    algorithm: str  # "wordpiece", "bpe", "gpt-bpe" or "byte-level-bpe"
    FILES: tuple[str, ...]  # the names of the files that `files` gives, the last written last
    lowercase: bool | None = None  # whether its texts are lowercased; None: either
    UNKNOWN: str | None = UNK  # the token for unknown text; None: any name, or no such token
    HAS_UNKNOWN_TEXT = True  # some text has no other token than the unknown one
    ONE_LINE = True  # no token has a line end

    def __init__(self, tokens, counts=None, special_tokens=BERT_TOKENS):
        self.tokens = tuple(tokens)
        self.special_tokens = special_tokens
        self._ids = _index_tokens(
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

    @abc.abstractmethod
    def save(self, path: str | PathLike[str]) -> None:
        """Writes what `load_vocabulary` reads: a `vocab.txt`, or for byte-pair encoding a folder.

        Whether text is lowercased is not in it; `Tokenizer.save` writes that too.
        """

    @abc.abstractmethod
    def files(self):
        """The files that the vocabulary is written as: name -> text."""

    @abc.abstractmethod
    def token_text(self, id):
        """The text of the token with this id, without the mark of its position in a word."""

    @abc.abstractmethod
    def join(self, ids: Sequence[int]) -> str:
        """The text of a sequence of ids, words separated by one space."""

    @cached_property
    def joinable(self) -> list[str]:
        """The text of each token, with the space before or after it that `join` would put there.

        Those of a sequence, one after another, are its text, with a space more at one end.
        """
        return [f" {token}" for token in self.tokens]

    @property
    def starts_word(self):
        """(V,) bool: True where a word starts with the token, whatever comes before it."""
        return self.stands_alone  # not so [UNK]: a character, which may be inside a word

    @property
    def ends_word(self):
        """(V,) bool: True where a word starts after the token, whatever comes."""
        return self.stands_alone

    def _identity(self):
        """The strings that make the vocabulary what it is, in their order."""
        return self.tokens

    def _options(self):
        """The further arguments of the constructor by name."""
        return {}

    def __reduce__(self):  # into a Beam worker without the derived tables
        options = {"counts": self.counts, "special_tokens": self.special_tokens}
        return functools.partial(type(self), **options, **self._options()), (self.tokens,)

    def with_special_tokens(self, **roles: str) -> Self:
        """A copy with further special tokens by role (see `SpecialTokens`).

        Those that are not tokens yet are appended, so that the ids of all others stay.
        """
        special = dataclasses.replace(self.special_tokens, **roles)
        new = [token for token in special.tokens if token not in self]
        counts = None if self.counts is None else np.append(self.counts, [0] * len(new))
        options = {"counts": counts, "special_tokens": special, **self._options()}
        return type(self)([*self.tokens, *new], **options)

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def __eq__(self, other):
        return isinstance(other, Vocabulary) and self.sha256 == other.sha256

    def __hash__(self):
        return hash(self.sha256)

    def __repr__(self):
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
        """The id of padding; 0 where there is no such token, since nothing reads it."""
        return self._ids.get(self.special_tokens.pad, 0)

    @property
    def unk_id(self) -> int:
        """The id of unknown text; that of padding where no text is unknown."""
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
        special = frozenset(self.special_tokens.tokens)
        return np.array(
            [i for i, p in enumerate(self.tokens) if p in special or _UNUSED.fullmatch(p)],
            dtype=np.int32,
        )

    @cached_property
    def stands_alone(self):
        """(V,) bool: True for special tokens but [UNK] where that represents text."""
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
        """Where words begin: ids (..., S) integers -> (..., S) bool. Special tokens are words.

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


CONTINUATION_PREFIX = "##"


class WordPieceVocabulary(Vocabulary):
    """A vocabulary of WordPiece, as BERT's: a token that begins with "##" continues a word.

    Args:
        tokens, counts, special_tokens: as for `Vocabulary`.
    """

    algorithm = "wordpiece"
    FILES = (VOCAB_TXT,)

    @classmethod
    def from_text(cls, text, *, source, special_tokens=BERT_TOKENS):
        """From the text of a `vocab.txt`: one token per line, the line number (from 0) is the id.

        White space around a token is dropped, as in google-research/bert, unless the token would be
        empty or that of another line. `source` names the text in errors.
        """
        lines = text.removesuffix("\n").split("\n")
        if "" in lines:
            raise InputError(
                f"{source}, line {lines.index('') + 1} is empty. Every line is one token."
            )
        as_they_are = set(lines)
        stripped = ((line, line.strip()) for line in lines)
        lines = [line if token in as_they_are else token or line for line, token in stripped]
        # So that errors name source and line.
        _index_tokens(lines, name=source, unit="line", special_tokens=special_tokens)
        return cls(lines, special_tokens=special_tokens)

    def files(self):
        return {VOCAB_TXT: "".join(f"{token}\n" for token in self.tokens)}

    def save(self, path):
        write_text(path, self.files()[VOCAB_TXT])

    @cached_property
    def continuations(self):
        """(V,) bool: True where the token continues a word ("##ing")."""
        prefix = CONTINUATION_PREFIX
        return np.array([p.startswith(prefix) and p != prefix for p in self.tokens], dtype=np.bool_)

    @property
    def starts_word(self):
        return ~self.continuations

    def token_text(self, id):
        token = self.token(id)
        return token.removeprefix(CONTINUATION_PREFIX) if self.continuations[id] else token

    @cached_property
    def joinable(self):
        return [
            self.token_text(id) if continues else f" {token}"
            for id, (token, continues) in enumerate(
                zip(self.tokens, self.continuations, strict=True)
            )
        ]

    def join(self, ids):
        words = []
        for id in ids:
            if self.continuations[id] and words:
                words[-1] += self.token_text(id)
            else:
                words.append(self.tokens[id])
        return " ".join(words)


# Ends every word, as a symbol of its own. A punctuation mark (double low line): the tokenizer makes
# a word of its own of every punctuation mark, so within a word it cannot come from the text; where
# the text has it, it is an unknown character.
END_OF_WORD = "\u2017"


class BpeVocabulary(Vocabulary):
    """A vocabulary of byte-pair encoding (Sennrich et al. 2016): tokens and merges.

    Args:
        tokens: strings in the order of their ids, the special ones among them, each once: single
            characters, END_OF_WORD, and what the merges make.
        merges: pairs of tokens in the order of learning. Their concatenation is a token.
        counts, special_tokens: as for `Vocabulary`.
    """

    algorithm = "bpe"
    FILES = (VOCAB_JSON, MERGES_FILE)
    VERSION = "#version: 0.1"  # of subword-nmt's format: the mark is a symbol of its own
    END_OF_WORD = END_OF_WORD  # with which tokens end that end a word

    def __init__(self, tokens, merges, counts=None, special_tokens=BERT_TOKENS):
        super().__init__(tokens, counts=counts, special_tokens=special_tokens)
        self.merges = tuple((left, right) for left, right in merges)
        self.check_symbols(self._ids, special_tokens, name="The vocabulary")
        _check_merges(self.merges, self._ids, special_tokens)
        self._ranks = {pair: rank for rank, pair in enumerate(self.merges)}

    @classmethod
    def from_texts(cls, vocab, merges, *, sources, special_tokens=BERT_TOKENS, **options):
        """From the texts of a `vocab.json` (token -> id) and a `merges.txt` (one pair per line).

        `sources` name the two in errors; `options` are further arguments of the class.
        """
        vocab_source, merges_source = sources
        ids = parse_ids(vocab, source=vocab_source)
        tokens = tokens_by_id(ids, source=vocab_source, special_tokens=special_tokens)
        cls.check_symbols(ids, special_tokens, name=vocab_source)
        pairs = parse_merges(merges, source=merges_source)
        try:
            return cls(tokens, pairs, special_tokens=special_tokens, **options)
        except InputError as error:
            raise InputError(f"{merges_source} does not fit {VOCAB_JSON}. {error}") from None

    @classmethod
    def check_symbols(cls, tokens, special_tokens, *, name):
        """Raises `InputError` where the tokens, named `name`, lack what words are made of."""
        if END_OF_WORD not in tokens:
            raise InputError(
                f"{name} has no end-of-word mark {END_OF_WORD!r} (U+2017). A BPE vocabulary of "
                "another kind cannot be used here."
            )

    def files(self):
        vocab = json.dumps(self._ids, ensure_ascii=False, indent=0)
        merges = "".join(f"{left} {right}\n" for left, right in self.merges)
        return {VOCAB_JSON: f"{vocab}\n", MERGES_FILE: f"{self.VERSION}\n{merges}"}

    def save(self, path):
        write_into(path, self.files(), last=MERGES_FILE)

    def _options(self):
        return {"merges": self.merges}

    def token_text(self, id):
        return self.token(id).removesuffix(self.END_OF_WORD)

    def token_name(self, id):
        """As subword-nmt writes tokens: "low" ends a word, and "low@@" does not."""
        token = self.token(id)
        if token == self.END_OF_WORD:
            return "(end of word)"
        ends = token.endswith(self.END_OF_WORD) or id in self.special_ids
        return token.removesuffix(self.END_OF_WORD) if ends else f"{token}@@"

    @cached_property
    def ends_word(self):
        marked = np.array(
            [token.endswith(self.END_OF_WORD) for token in self.tokens], dtype=np.bool_
        )
        return marked | self.stands_alone

    @cached_property
    def joinable(self):
        return [
            self.token_text(id) + (" " if ends else "") for id, ends in enumerate(self.ends_word)
        ]

    def join(self, ids):
        parts = []
        for id in ids:
            token = self.tokens[id]
            if token.endswith(self.END_OF_WORD):
                parts.append(token.removesuffix(self.END_OF_WORD) + " ")
            elif self.ends_word[id]:  # a special token is a word, and so ends one cut off before it
                parts.append(("" if not parts or parts[-1].endswith(" ") else " ") + token + " ")
            else:
                parts.append(token)
        return "".join(parts).removesuffix(" ")

    def _identity(self):
        return [*self.tokens, *map(" ".join, self.merges)]

    def symbols(self, word):
        """What the encoding of a word begins with, a list of str.

        The word's characters (unknown ones as [UNK]) and END_OF_WORD. A word over 200 characters is
        [UNK] and END_OF_WORD.
        """
        if len(word) > MAX_WORD_LENGTH:
            return [UNK, END_OF_WORD]
        return [*(c if c in self._ids and c != END_OF_WORD else UNK for c in word), END_OF_WORD]

    def encode_word(self, word):
        """The tokens of a word, a list of str: the definition of encoding by merges.

        Of its `symbols`, the pair of neighbours whose merge was learned first, the leftmost of
        several, becomes one symbol, until no merge applies.

        Args:
            word: a str as the tokenizer splits words, without END_OF_WORD.
        """
        symbols = self.symbols(word)
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


def _check_merges(merges, ids, special_tokens):
    seen = set()
    for number, (left, right) in enumerate(merges, 1):
        for token in (left, right, left + right):
            if token not in ids or token in special_tokens.tokens:
                raise InputError(
                    f"Merge {number}, {left!r} and {right!r}, needs the token {token!r}, which the "
                    "vocabulary does not have."
                )
        if (left, right) in seen:
            raise InputError(f"Merge {number}, {left!r} and {right!r}, is there twice.")
        seen.add((left, right))


def parse_ids(text, *, source):
    """The content of a `vocab.json`; `tokens_by_id` checks it."""
    try:
        return parse_json(text)
    except NotJson as error:
        raise InputError(f"{source} is not JSON: {error}.") from None


def parse_merges(text, *, source):
    """The pairs of a `merges.txt`."""
    merges = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if (number == 1 and line.startswith("#version")) or (number == len(lines) and not line):
            continue
        pair = line.split(" ")
        if len(pair) != 2 or not all(pair):
            raise InputError(f"{source}, line {number} must be two tokens and one space: {line!r}.")
        merges.append(tuple(pair))
    return merges


def tokens_by_id(ids, *, source, special_tokens):
    """The tokens of a JSON object of token and id, in the order of their ids.

    Raises `InputError`, which names `source`, where they are not a valid vocabulary.
    """
    numbers = list(ids.values()) if isinstance(ids, dict) else [None]
    if not all(type(id) is int for id in numbers) or sorted(numbers) != [*range(len(numbers))]:
        raise InputError(f"{source} must give every token an id, from 0 on and none twice.")
    tokens = sorted(ids, key=ids.get)
    _index_tokens(tokens, name=source, unit="id", special_tokens=special_tokens, one_line=False)
    return tokens


def write_into(folder, texts, *, last):
    """Writes the files of a vocabulary (name -> text) into a folder, replacing another's files.

    `last` is the file without which there is no vocabulary in the folder.
    """
    folder = Path(folder)
    with new_file(folder / last) as temporary:
        for name, text in texts.items():
            temporary.with_name(name).write_text(text, encoding="utf-8", newline="")
        # Those of a vocabulary of another algorithm; first the one that could be read alone.
        for name in sorted(TOKENIZER_FILES - texts.keys(), key=TOKENIZER_FILE.__ne__):
            delete(folder / name)


def _index_tokens(tokens, *, name, unit, special_tokens, one_line=True):
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
