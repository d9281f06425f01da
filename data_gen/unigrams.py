"""Counts the pieces of a corpus, for masks whose replacements follow their frequencies."""

import apache_beam as beam
import numpy as np
from apache_beam.transforms.window import GlobalWindows

from data_gen.shards import groups


class CountUnigrams(beam.DoFn):
    """Work items of the train split -> the counts of their tokens, int64 (V,), once a bundle."""

    def __init__(self, settings):
        super().__init__()
        self._settings = settings

    def setup(self):
        # Loads TensorFlow: here, in a worker, and not where the job is described.
        from data_gen.row_builder import RowBuilder

        self._builder = RowBuilder(self._settings)

    def start_bundle(self):
        self._counts = np.zeros(len(self._settings.vocabulary), np.int64)

    def process(self, item):
        if item.split != "train":
            return
        for group in groups(item, self._settings):
            sentences, _ = self._builder.sentences(group)
            self._counts += np.bincount(sentences.tokens, minlength=len(self._counts))

    def finish_bundle(self):
        yield GlobalWindows.windowed_value(self._counts)


def add_up(counts):
    """The sum of counts; also of none, as a number."""
    return sum(counts, np.int64(0))
