"""Laws of the rows that long texts are read in."""

import numpy as np
import pytest

from keras_bert.inference.embed import windows_of

LENGTHS = [0, 1, 9, 10, 11, 12, 19, 20, 21, 37, 400, 3]


@pytest.mark.parametrize("room", [1, 2, 3, 10, 25])
def test_every_token_is_kept_once_and_in_order(room):
    rows = windows_of(LENGTHS, room=room)
    for text, length in enumerate(LENGTHS):
        own = [row for row in zip(*rows, strict=True) if row[0] == text]
        kept = [token for _, _, _, start, end in own for token in range(start, end)]
        assert kept == list(range(length))
        for _, first, size, keep_first, keep_last in own:
            assert first <= keep_first <= keep_last <= first + size
            assert size <= room
    assert (np.diff(rows.sequence) >= 0).all()


def test_what_fits_is_one_row():
    rows = windows_of([0, 4, 10], room=10)
    assert rows.sequence.tolist() == [0, 1, 2]
    assert rows.sizes.tolist() == rows.core_ends.tolist() == [0, 4, 10]


@pytest.mark.parametrize("room", [16, 30, 510])
@pytest.mark.parametrize("length", [517, 1024, 5000])
def test_every_token_sees_an_eighth_of_a_row_on_either_side(room, length):
    rows = windows_of([length], room=room)
    for _, first, size, keep_first, keep_last in zip(*rows, strict=True):
        assert first == 0 or keep_first - first >= room // 8
        assert first + size == length or first + size - keep_last >= room // 8


def test_full_rows_and_not_many_more_than_needed():
    rows = windows_of([5000], room=100)
    assert (rows.sizes == 100).all()
    assert len(rows.sequence) <= 5000 / 75 + 1
