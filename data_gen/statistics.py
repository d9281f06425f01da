"""Counts of what a job has read and written, which add up over its shards."""

import dataclasses
from collections import Counter

import apache_beam as beam
import numpy as np


@dataclasses.dataclass
class Statistics:
    """What a part of a job did.

    `counters` maps names to numbers. `lengths` (S + 1,) counts the train split's rows by their
    tokens; `unigrams` (V,) the tokens of its text, each text once. Both are None where nothing of
    the train split was written. `shards` maps (split, index) to the rows of a shard.
    """

    counters: Counter = dataclasses.field(default_factory=Counter)
    lengths: np.ndarray | None = None
    unigrams: np.ndarray | None = None
    shards: dict = dataclasses.field(default_factory=dict)

    def add(self, other):
        """Adds another part."""
        self.counters.update(other.counters)
        self.lengths = _sum(self.lengths, other.lengths)
        self.unigrams = _sum(self.unigrams, other.unigrams)
        self.shards |= other.shards


class AddStatistics(beam.CombineFn):
    """Adds up `Statistics`."""

    def create_accumulator(self):
        return Statistics()

    def add_input(self, accumulator, element):
        accumulator.add(element)
        return accumulator

    def merge_accumulators(self, accumulators):
        total = Statistics()
        for accumulator in accumulators:
            total.add(accumulator)
        return total

    def extract_output(self, accumulator):
        return accumulator


def _sum(a, b):
    if a is None or b is None:
        return b if a is None else a
    return a + b
