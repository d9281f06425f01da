"""Vocabularies whose tokens have the white space of the text, byte-level BPE's and unigram's."""

import abc
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from keras_bert.text.vocabulary import Vocabulary

# What Unicode counts as white space, which is less than `str.isspace` does.
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


class SpacedVocabulary(Vocabulary):
    """A vocabulary whose tokens, one after another, are a text with its white space."""

    OWN_SPACES = True

    @property
    @abc.abstractmethod
    def contents(self) -> list[bytes | None]:
        """The bytes of each token in a text, a list; None for a special one."""

    @cached_property
    def is_space(self) -> np.ndarray:
        """(V,) bool: True for tokens of white space alone."""
        return np.array(
            [bool(content) and not _text(content).strip(WHITE_SPACE) for content in self.contents],
            np.bool_,
        )

    @cached_property
    def is_blank(self) -> np.ndarray:
        """(V,) bool: True for the token that is one space."""
        return np.array([content == b" " for content in self.contents], np.bool_)

    @cached_property
    def begins_with_space(self) -> np.ndarray:
        """(V,) bool: True for tokens that begin with white space."""
        texts = (_text(content or b"")[:1] for content in self.contents)
        return np.array([bool(text) and text in WHITE_SPACE for text in texts], np.bool_)

    @cached_property
    def starts_word(self) -> np.ndarray:
        """A word starts with white space before it or with a punctuation mark, as far as tokens
        tell: letters after digits go on with the word."""
        starts = [bool(content) and _splits(_text(content)[:1]) for content in self.contents]
        return np.array(starts, np.bool_) & ~self.is_space | self.stands_alone

    @cached_property
    def ends_word(self) -> np.ndarray:
        ends = [bool(content) and _splits(_text(content)[-1:]) for content in self.contents]
        return np.array(ends, np.bool_) | self.stands_alone

    def word_starts(self, ids: np.ndarray) -> np.ndarray:
        starts = super().word_starts(ids)
        starts[..., 1:] &= ~self.is_space[np.asarray(ids)][..., 1:]
        return starts

    def token_text(self, id: int) -> str:
        """The text of the token with this id, without the space before it.

        What is not a whole character in UTF-8 is U+FFFD.
        """
        self.token(id)
        content = self.contents[id]
        return self.tokens[id] if content is None else _replaced(content).removeprefix(" ")

    def token_name(self, id: int) -> str:
        """The text of the token; its letters if that is not whole characters."""
        token, content = self.token(id), self.contents[id]
        try:
            return token if content is None else content.decode("utf-8")
        except UnicodeDecodeError:
            return token

    @cached_property
    def joinable(self) -> list[Any]:
        """The bytes of each token; those of a sequence, one after another, are its text."""
        return [
            token.encode("utf-8") if content is None else content
            for token, content in zip(self.tokens, self.contents, strict=True)
        ]

    def join(self, ids: Sequence[int]) -> str:
        """The text of a sequence of ids; what is not UTF-8 is U+FFFD."""
        return _replaced(b"".join(self.joinable[id] for id in ids))


def _text(content):
    """The text of bytes, with a letter in the place of what is not a whole character."""
    return _replaced(content).replace("\ufffd", "a")


def _replaced(content):
    return content.decode("utf-8", errors="replace")


def _splits(character):
    """Whether a character is white space or, as BERT splits words, a punctuation mark."""
    if character.isascii():
        return not character.isalnum()
    return character in WHITE_SPACE or unicodedata.category(character).startswith("P")
