"""WordPiece, as BERT's: tokens that begin a word, and tokens that continue one."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.text.tokenizer_json import bert_words_tokenizer
from keras_bert.text.vocabulary import (
    BERT_TOKENS,
    MAX_WORD_LENGTH,
    UNK,
    VOCAB_TXT,
    SpecialTokens,
    Vocabulary,
    index_tokens,
)

CONTINUATION_PREFIX = "##"


class WordPieceVocabulary(Vocabulary):
    """A vocabulary of WordPiece, as BERT's: a token that begins with "##" continues a word.

    Args:
        tokens, counts, special_tokens: as for `Vocabulary`.
    """

    algorithm = "wordpiece"
    DESCRIPTION = "WordPiece"
    ENCODING = "keras_bert.text.encodings.wordpiece:WordPiece"
    IS_FOLDER = False
    FILES = (VOCAB_TXT,)

    @classmethod
    def from_text(
        cls, text: str, *, source: str, special_tokens: SpecialTokens = BERT_TOKENS
    ) -> Self:
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
        index_tokens(lines, name=source, unit="line", special_tokens=special_tokens)
        return cls(lines, special_tokens=special_tokens)

    def files(self) -> dict[str, str]:
        return {VOCAB_TXT: "".join(f"{token}\n" for token in self.tokens)}

    def to_tokenizers(self, *, lowercase: bool) -> Any:
        from tokenizers import decoders, models

        model = models.WordPiece(
            self.to_ids(),
            unk_token=UNK,
            continuing_subword_prefix=CONTINUATION_PREFIX,
            max_input_chars_per_word=MAX_WORD_LENGTH,
        )
        decoder = decoders.WordPiece(prefix=CONTINUATION_PREFIX)
        return bert_words_tokenizer(model, decoder, lowercase=lowercase)

    def needed_with(self, ids: Iterable[int]) -> set[int]:
        """Also the characters of the tokens, by which other words of them are known."""
        needed = super().needed_with(ids)
        special = {*self.special_ids.tolist()}
        letters = {c for id in needed - special for c in self.token_text(id)}
        pairs = ((letter, f"{CONTINUATION_PREFIX}{letter}") for letter in letters)
        return needed | {self.id(token) for pair in pairs for token in pair if token in self}

    def tried_on(self, words: Iterable[str]) -> set[int]:
        tried = set()
        for word in words:
            if len(word) <= MAX_WORD_LENGTH:
                tried.update(self._longest_tokens(word))
        return tried

    def _longest_tokens(self, word):
        """The ids of the tokens that a word begins with, up to where none goes on."""
        start = 0
        while start < len(word):
            prefix = CONTINUATION_PREFIX if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self), None)
            if end is None:
                return
            yield self.id(prefix + word[start:end])
            start = end

    @cached_property
    def continuations(self) -> np.ndarray:
        """(V,) bool: True where the token continues a word ("##ing")."""
        prefix = CONTINUATION_PREFIX
        return np.array([p.startswith(prefix) and p != prefix for p in self.tokens], dtype=np.bool_)

    @property
    def starts_word(self) -> np.ndarray:
        return ~self.continuations

    def token_text(self, id: int) -> str:
        token = self.token(id)
        return token.removeprefix(CONTINUATION_PREFIX) if self.continuations[id] else token

    @cached_property
    def joinable(self) -> list[Any]:
        return [
            self.token_text(id) if continues else f" {token}"
            for id, (token, continues) in enumerate(
                zip(self.tokens, self.continuations, strict=True)
            )
        ]

    def join(self, ids: Sequence[int]) -> str:
        words: list[str] = []
        for id in ids:
            if self.continuations[id] and words:
                words[-1] += self.token_text(id)
            else:
                words.append(self.tokens[id])
        return " ".join(words)
