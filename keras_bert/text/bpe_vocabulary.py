"""The vocabulary of byte-pair encoding, and what encoding by merges means."""

import json
from functools import cached_property
from pathlib import Path

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, parse_json
from keras_bert.text.vocabulary import (
    BERT_TOKENS,
    MAX_WORD_LENGTH,
    UNK,
    Vocabulary,
    index_tokens,
    write_into,
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
        tokens: strings in the order of their ids, the special ones among them, each once: single
            characters, END_OF_WORD, and what the merges make.
        merges: pairs of pieces, the one learned first first. Their concatenation is a piece.
        counts, special_tokens: as for `Vocabulary`.
    """

    algorithm = "bpe"
    FILES = (VOCAB_FILE, MERGES_FILE)

    def __init__(self, tokens, merges, counts=None, special_tokens=BERT_TOKENS):
        super().__init__(tokens, counts=counts, special_tokens=special_tokens)
        self.merges = tuple((left, right) for left, right in merges)
        _check(self.merges, self._ids, special_tokens)
        self._ranks = {pair: rank for rank, pair in enumerate(self.merges)}

    @classmethod
    def from_texts(cls, vocab, merges, *, sources, special_tokens=BERT_TOKENS):
        """From the texts of a `vocab.json` (piece -> id) and a `merges.txt` (a pair a line).

        `sources` are what errors call the two.
        """
        vocab_source, merges_source = sources
        _reject_other_kinds(vocab, vocab_source)
        tokens = _parse_tokens(vocab, vocab_source)
        index_tokens(tokens, name=vocab_source, unit="id", special_tokens=special_tokens)
        pairs = _parse_merges(merges, merges_source)
        try:
            return cls(tokens, pairs, special_tokens=special_tokens)
        except InputError as error:
            raise InputError(f"{merges_source} does not fit {VOCAB_FILE}: {error}") from None

    def files(self):
        vocab = json.dumps(self._ids, ensure_ascii=False, indent=0)
        merges = "".join(f"{left} {right}\n" for left, right in self.merges)
        return {VOCAB_FILE: f"{vocab}\n", MERGES_FILE: f"{_VERSION_LINE}\n{merges}"}

    def save(self, path):
        write_into(Path(path), self.files(), last=MERGES_FILE)

    def __reduce__(self):  # into a Beam worker without the derived tables
        return type(self), (self.tokens, self.merges, self.counts, self.special_tokens)

    def token_text(self, id):
        return self.token(id).removesuffix(END_OF_WORD)

    def token_name(self, id):
        """As subword-nmt writes pieces: "low" ends a word, and after "low@@" it goes on."""
        token = self.token(id)
        if token == END_OF_WORD:
            return "(end of word)"
        ends = token.endswith(END_OF_WORD) or id in self.special_ids
        return token.removesuffix(END_OF_WORD) if ends else f"{token}@@"

    @property
    def starts_word(self):
        return self.stands_alone  # not so [UNK]: a character, which may be inside a word

    @cached_property
    def ends_word(self):
        """(V,) bool: True where a word ends with the piece; special pieces but [UNK] are words."""
        marked = np.array([token.endswith(END_OF_WORD) for token in self.tokens], dtype=np.bool_)
        return marked | self.stands_alone

    def join(self, ids):
        parts = []
        for id in ids:
            token = self.tokens[id]
            if token.endswith(END_OF_WORD):
                parts.append(token.removesuffix(END_OF_WORD) + " ")
            elif self.ends_word[id]:  # a special piece is a word, and so ends one cut off before it
                parts.append(("" if not parts or parts[-1].endswith(" ") else " ") + token + " ")
            else:
                parts.append(token)
        return "".join(parts).removesuffix(" ")

    def _identity(self):
        return [*self.tokens, *map(" ".join, self.merges)]

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


def _check(merges, ids, special_tokens):
    if END_OF_WORD not in ids:
        raise InputError(
            f"the vocabulary has no end-of-word mark {END_OF_WORD!r} (U+2017); a BPE vocabulary of "
            "another kind cannot be used here."
        )
    seen = set()
    for number, (left, right) in enumerate(merges, 1):
        for token in (left, right, left + right):
            if token not in ids or token in special_tokens.tokens:
                raise InputError(
                    f"merge {number}, {left!r} and {right!r}, needs the piece {token!r}, which the "
                    "vocabulary does not have."
                )
        if (left, right) in seen:
            raise InputError(f"merge {number}, {left!r} and {right!r}, is there twice.")
        seen.add((left, right))


def is_own_kind(vocab):
    """Whether the text of a `vocab.json` has our end-of-word mark, as it is or escaped."""
    return END_OF_WORD in vocab or json.dumps(END_OF_WORD)[1:-1] in vocab


def _reject_other_kinds(text, source):
    """`InputError` where a `vocab.json` is of byte-pair encoding of another kind."""
    if is_own_kind(text):  # whatever else is in it: Maltese has the letter that is asked for below
        return
    if "\u0120" in text or "\\u0120" in text:  # how byte-level BPE writes a space
        raise InputError(
            f"{source} holds a vocabulary of byte-level BPE, as GPT-2 and RoBERTa have; this "
            "library reads WordPiece (BERT's) and its own byte-pair encoding only."
        )
    raise InputError(
        f"{source} holds byte-pair encoding of a kind that this library does not read: its "
        f"pieces end words with no {END_OF_WORD!r} (U+2017)."
    )


def _parse_tokens(text, path):
    try:
        ids = parse_json(text)
    except NotJson as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(ids, dict) or sorted(map(str, ids.values())) != sorted(
        map(str, range(len(ids)))
    ):
        raise InputError(f"{path} must give every piece an id, from 0 on and none twice.")
    return sorted(ids, key=ids.get)


def _parse_merges(text, path):
    merges = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if (number == 1 and line.startswith("#version")) or (number == len(lines) and not line):
            continue
        pair = line.split(" ")
        if len(pair) != 2 or not all(pair):
            raise InputError(f"{path}, line {number} must be two pieces and one space: {line!r}")
        merges.append(tuple(pair))
    return merges
