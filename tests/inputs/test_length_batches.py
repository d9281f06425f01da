"""Batches by length: every row once, about even lengths, an order from (seed, epoch) alone."""

import numpy as np
import pytest

from keras_bert.inputs.batches import distinct_batches, shuffled_batches, sorted_batches
from tests.seeds import make_rng, shifted

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


def batches_of(rows, *, count, epoch=0):
    return distinct_batches(rows, count=count, seed=shifted(3), epoch=epoch)


def test_in_distinct_batches_no_text_is_twice_and_every_example_once():
    rng = make_rng(8)
    for _ in range(20):
        count = int(rng.integers(5, 9))
        # Each text is in as many examples as there are batches, or in fewer.
        texts = np.repeat(np.arange(60), rng.integers(1, count, 60))
        rows = [{int(text), 1000 + number} for number, text in enumerate(rng.permutation(texts))]
        batches = batches_of(rows, count=count)
        assert len(batches) == count
        placed = np.concatenate(batches)
        assert len({*placed.tolist()}) == len(placed)
        for batch in batches:
            texts_of_batch = [text for example in batch for text in rows[example]]
            assert len({*texts_of_batch}) == len(texts_of_batch)
        # What is left out could not be placed: the batches with room have one of its texts.
        sizes = np.diff(np.arange(count + 1) * len(rows) // count)
        for example in {*range(len(rows))} - {*placed.tolist()}:
            for batch, size in zip(batches, sizes, strict=True):
                texts_of_batch = {text for other in batch for text in rows[other]}
                assert len(batch) == size or texts_of_batch & rows[example]


def test_distinct_batches_without_texts_have_even_sizes_and_another_order_each_epoch():
    rows = [()] * 23
    first, second = (batches_of(rows, count=5, epoch=epoch) for epoch in (0, 1))
    assert sorted(map(len, first)) == [4, 4, 5, 5, 5]
    assert sorted(np.concatenate(first)) == [*range(23)]
    assert np.concatenate(first).tolist() != np.concatenate(second).tolist()
    again = batches_of(rows, count=5)
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))


def test_a_text_in_more_examples_than_batches_is_left_out_in_some():
    batches = batches_of([{0}] * 7 + [{n} for n in range(1, 6)], count=3)
    assert sum(0 in ({0} if example < 7 else {}) for b in batches for example in b) == 3
