"""Batches of one file each, by weights, and batches with several examples of a label."""

from collections import Counter

import numpy as np
import pytest

from keras_bert.inputs.batches import distinct_batches, file_batches, label_batches
from tests.seeds import make_rng, shifted


def batches_of_rows(numbers, *, count, epoch):
    rows = [(number,) for number in numbers]
    batches = distinct_batches(rows, count=count, seed=shifted(2), epoch=epoch)
    return [numbers[batch] for batch in batches]


FILES = [np.arange(40), np.arange(40, 47), np.arange(47, 100)]


def epochs(weights, *, count=10, number=6):
    options = {"count": count, "seed": shifted(2)}
    return [
        file_batches(FILES, weights, batches_of_rows, epoch=e, **options) for e in range(number)
    ]


@pytest.mark.parametrize("weights", [(1, 1, 1), (2, 1, 1), (8, 1, 1), (0.5, 0.1, 0.4)])
def test_every_batch_is_of_one_file_and_their_numbers_are_the_weights(weights):
    for batches, counts in epochs(weights):
        files_of_batches = [
            {int(np.searchsorted((40, 47), n, side="right")) for n in b} for b in batches
        ]
        assert all(len(files) == 1 for files in files_of_batches) and len(batches) == 10
        found = Counter(next(iter(files)) for files in files_of_batches)
        assert [found[n] for n in range(3)] == counts
        expected = np.array(weights) / sum(weights) * 10
        assert (np.abs(np.array(counts) - expected) < 1).all()
        assert all(1 <= len(batch) <= 10 for batch in batches)


def test_passes_over_a_file_go_on_in_the_next_epoch():
    """No example comes a second time before all others of its file have come."""
    seen = {0: [], 1: [], 2: []}
    for batches, _ in epochs((2, 1, 1), number=20):
        for place in range(3):
            lows = (0, 40, 47)
            own = [b for b in batches if int(np.searchsorted((40, 47), b[0], "right")) == place]
            assert all(lows[place] <= n for b in own for n in b)
            seen[place].append([n for b in own for n in b])
    for place, numbers_of_epochs in seen.items():
        counts = Counter(n for numbers in numbers_of_epochs for n in numbers)
        assert {*counts} == {*FILES[place].tolist()}
        assert max(counts.values()) - min(counts.values()) <= 1


def test_the_same_seed_and_epoch_give_the_same_batches():
    for (ours, _), (again, _) in zip(epochs((2, 1, 1)), epochs((2, 1, 1)), strict=True):
        assert all(map(np.array_equal, ours, again))
    (first, _), (second, _), *_ = epochs((1, 1, 1))
    assert not all(map(np.array_equal, first, second))


@pytest.mark.parametrize(("labels", "count"), [(3, 8), (20, 5), (1, 4), (100, 9)])
def test_batches_of_labels_have_every_example_once_and_neighbours_of_its_label(labels, count):
    label_of_example = make_rng(1).integers(0, labels, 100)
    options = {"count": count, "seed": shifted(1)}
    batches = label_batches(label_of_example, epoch=0, **options)
    assert len(batches) == count
    assert sorted(n for batch in batches for n in batch) == [*range(100)]
    sizes = [*map(len, batches)]
    assert max(sizes) - min(sizes) <= 1
    again = label_batches(label_of_example, epoch=0, **options)
    assert all(map(np.array_equal, batches, again))
    other = label_batches(label_of_example, epoch=1, **options)
    assert not all(map(np.array_equal, batches, other))
    if labels == 20:
        alone = sum(
            np.sum(label_of_example[batch] == label_of_example[n]) == 1
            for batch in batches
            for n in batch
        )
        singles = sum(count % 4 == 1 for count in Counter(label_of_example.tolist()).values())
        assert alone <= singles + 2 * count
