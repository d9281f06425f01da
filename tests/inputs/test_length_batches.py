"""Batches by length: every row once, about even lengths, an order from (seed, epoch) alone."""

import numpy as np
import pytest

from keras_bert.inputs.batches import shuffled_batches, sorted_batches
from tests.seeds import make_rng

LENGTHS = make_rng(0).integers(3, 129, 5003)


@pytest.mark.parametrize("sequences, count", [(0, 1), (1, 1), (31, 4), (5003, 156), (5003, 5003)])
def test_every_row_is_in_one_batch_and_batches_are_even(sequences, count):
    batches = shuffled_batches(LENGTHS[:sequences], count=count, seed=1, epoch=0)
    assert len(batches) == count
    assert sorted(np.concatenate([*batches, []]).tolist()) == list(range(sequences))
    assert len({len(batch) for batch in batches}) <= 2
    assert max(len(batch) for batch in batches) == -(-sequences // count)


def test_the_order_depends_on_seed_and_epoch_alone():
    def order(seed, epoch):
        batches = shuffled_batches(LENGTHS, count=157, seed=seed, epoch=epoch)
        return np.concatenate(batches).tolist()

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(seed, epoch)) for seed in (1, 2) for epoch in (0, 1)}) == 4


def test_rows_of_a_batch_are_of_about_one_length_and_batches_come_mixed():
    batches = shuffled_batches(LENGTHS, count=157, seed=1, epoch=0)
    padded = sum(LENGTHS[batch].max() * len(batch) for batch in batches)
    assert padded < 1.05 * LENGTHS.sum()
    means = np.array([LENGTHS[batch].mean() for batch in batches])
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.35  # sorted batches have 1.0


@pytest.mark.parametrize("sequences", [0, 1, 31, 32, 33, 5003])
def test_evaluation_goes_from_short_to_long(sequences):
    batches = sorted_batches(LENGTHS[:sequences], batch_size=32)
    assert [len(batch) for batch in batches[:-1]] == [32] * (len(batches) - 1)
    order = np.concatenate([*batches, np.empty(0, int)])
    assert sorted(order.tolist()) == list(range(sequences))
    assert (np.diff(LENGTHS[order]) >= 0).all()
