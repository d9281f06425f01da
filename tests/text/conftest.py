"""Real books, parted into words once for all tests."""

import functools
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.text.normalization import WordSplitter, normalize


class Books:
    """The words of some books, as the tokenizer parts lowered text.

    Attribute: `paths`, of all the books.
    """

    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.txt"))
        self._numbers = {}
        self._splitter = WordSplitter()
        self.numbers = functools.cache(self._numbers_of)

    @property
    def words(self):
        """The distinct words met so far, bytes, in the order of their numbers."""
        return list(self._numbers)

    def lines(self, path):
        return path.read_text(encoding="utf-8").split("\n")

    def counts(self, *paths):
        """word -> how often it stands in these books."""
        numbers = Counter()
        for path in paths:
            numbers.update(dict(enumerate(np.bincount(self.numbers(path)).tolist())))
        return {word.decode(): numbers[n] for word, n in self._numbers.items() if numbers[n]}

    def _numbers_of(self, path):
        """The words of a book in order, int32 (W,)."""
        words = self._splitter.words(normalize(tf.constant(self.lines(path)), lowercase=True))
        numbers = self._numbers
        return np.array([numbers.setdefault(word, len(numbers)) for word in words], np.int32)


@pytest.fixture(scope="session")
def books(shared_data):
    return Books(shared_data / "books")
