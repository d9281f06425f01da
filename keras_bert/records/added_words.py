"""Words that a vocabulary cuts into several tokens, as tokens of their own; numpy only.

The examples of a data folder are ids of the vocabulary that made them. With a longer vocabulary
their words have other tokens, which replace those in the examples as they are read.
"""

from collections import Counter

import numpy as np

from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary

# A word that is rarer learns nothing.
_LEAST_COUNT = 3


class WordCounts:
    """The words of examples that have several tokens: how often each occurs.

    Args:
        vocabulary: a `WordPieceVocabulary`.

    Attributes: `counts`, the number of occurrences by the word's ids, a tuple.
    """

    def __init__(self, vocabulary: WordPieceVocabulary):
        self.vocabulary = vocabulary
        self.counts: Counter = Counter()

    def add(self, ids: np.ndarray, lengths: np.ndarray) -> None:
        """Adds examples: ids (N,), one example after another, and their lengths (R,)."""
        for start, end in _words(ids, lengths, self.vocabulary):
            self.counts[tuple(ids[start:end].tolist())] += 1

    def most_worth(self, count: int) -> list[str]:
        """The `count` words that save most tokens as tokens of their own, the first most."""
        words: Counter = Counter()
        for ids, times in self.counts.items():
            words[self._text(ids)] += times * (len(ids) - 1)
        frequent = {self._text(ids) for ids, times in self.counts.items() if times >= _LEAST_COUNT}
        ranked = sorted((-saved, word) for word, saved in words.items() if word in frequent)
        return [word for _, word in ranked[:count]]

    def other_tokens(self, vocabulary: WordPieceVocabulary) -> dict[tuple, tuple]:
        """{a word's ids: its ids in a longer vocabulary}, of words that have others there.

        Without those that have more tokens there, for which examples may have no room.
        """
        longer = {ids: vocabulary.ids_of_word(self._text(ids)) for ids in self.counts}
        return {ids: new for ids, new in longer.items() if new != ids and len(new) <= len(ids)}

    def _text(self, ids):
        return "".join(map(self.vocabulary.token_text, ids))


class OtherTokens:
    """Replaces the tokens of words in examples.

    Args:
        vocabulary: the `WordPieceVocabulary` that made the examples.
        words: {a word's ids: its new ids, at most as many}.
    """

    def __init__(self, vocabulary: WordPieceVocabulary, words: dict[tuple, tuple]):
        self.vocabulary = vocabulary
        self.words = words

    def __call__(
        self, ids: np.ndarray, segment_lengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Examples with their words' new tokens.

        Shapes: int ids (N,), one example after another, and the lengths of their segments (R, K)
        -> the same, (N',) and (R, K), int32.
        """
        ids, is_kept = np.array(ids, np.int32), np.ones(len(ids), bool)
        for start, end in _words(ids, segment_lengths.sum(axis=1), self.vocabulary):
            new = self.words.get(tuple(ids[start:end].tolist()))
            if new is not None:
                ids[start : start + len(new)] = new
                is_kept[start + len(new) : end] = False
        kept = np.concatenate([[0], np.cumsum(is_kept)])
        ends = np.cumsum(segment_lengths, axis=None)
        lengths = kept[ends] - kept[ends - segment_lengths.ravel()]
        return ids[is_kept], lengths.reshape(segment_lengths.shape).astype(np.int32)


def _words(ids, lengths, vocabulary):
    """(start, end) of the words with several tokens: ids (N,) of examples of so many tokens."""
    continues = vocabulary.continuations[ids]
    firsts = np.concatenate([[0], np.cumsum(lengths)[:-1]])[lengths > 0].astype(np.int64)
    continues[firsts] = False  # whose beginning may have been cut off
    edges = np.flatnonzero(np.diff(continues.astype(np.int8), prepend=0, append=0))
    starts, ends = edges[::2] - 1, edges[1::2]
    # What begins with a special token, or with one that continues a word, is the end of a word.
    is_whole = ~np.isin(ids[starts], vocabulary.special_ids)
    is_whole &= ~vocabulary.continuations[ids[starts]]
    return zip(starts[is_whole].tolist(), ends[is_whole].tolist(), strict=True)
