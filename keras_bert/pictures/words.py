"""The vectors of words in their contexts, and how such a context is written on a picture."""

from typing import NamedTuple

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.inference.embeddings.embed import open_embedder
from keras_bert.readers.given_texts import GivenTexts

_CHARACTERS_AROUND = 16


class WordInContext(NamedTuple):
    """One occurrence of a word: its vector float32 (D,), and a few words around it."""

    vector: np.ndarray
    label: str


def words_in_context(model, pairs, *, layers):
    """The `WordInContext` of each (text, word); the first occurrence, in capitals or not.

    Raises InputError where a text does not have its word, or see `Embedder`.
    """
    pairs = list(pairs)
    if len(pairs) < 2:
        raise InputError("A picture of words in context needs two texts or more.")
    embedder = open_embedder(model, layers=layers, tokens="words-mean")
    found = []
    texts = GivenTexts([text for text, _ in pairs], need_labels=False)
    for (_, word), one in zip(pairs, embedder(texts), strict=True):
        tokens = [token.casefold() for token in one.tokens]
        if word.casefold() not in tokens:
            raise texts.error(one.line, f'it has no word "{word}"; its words are {one.tokens}.')
        place = tokens.index(word.casefold())
        label = _around(one.text, int(one.starts[place]), int(one.ends[place]))
        found.append(WordInContext(one.vectors[place], label))
    return found


def _around(text, start, end):
    """The words before and after a place, as many as fit, cut between words."""
    before, after = text[:start], text[end:]
    if len(before) > _CHARACTERS_AROUND:
        before = "…" + before[-_CHARACTERS_AROUND - 1 :].partition(" ")[2]
    if len(after) > _CHARACTERS_AROUND:
        after = after[: _CHARACTERS_AROUND + 1].rpartition(" ")[0] + "…"
    return f"{before}{text[start:end].upper()}{after}"
