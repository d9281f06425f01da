"""Counts the pieces of a corpus, for masks whose replacements follow their frequencies."""

import apache_beam as beam
import numpy as np

from data_gen.row_builder import RowBuilder
from data_gen.shards import groups


class CountUnigrams(beam.DoFn):
    """Work items of the train split -> the counts of their tokens, int64 (V,)."""

    def __init__(self, settings):
        super().__init__()
        self._settings = settings

    def setup(self):
        self._builder = RowBuilder(self._settings)

    def process(self, item):
        if item.split != "train":
            return
        size = len(self._settings.vocabulary)
        for group in groups(item, self._settings):
            sentences, _ = self._builder.sentences(group)
            yield np.bincount(sentences.tokens, minlength=size)


def add_up(counts):
    """The sum of counts; also of none, as a number."""
    return sum(counts, np.int64(0))
