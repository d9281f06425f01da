"""Ragged rows in few operations: what `tf.ragged` gives, of empty rows and of none, too."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.text.ragged import leading, per_value, select

ROWS = {
    "some": [[3, 1, 4], [], [1, 5, 9, 2, 6], [5], []],
    "empty": [[], []],
    "none": [],
}


@pytest.mark.parametrize("name", ROWS)
def test_as_tensorflow_has_it(name):
    rows = tf.ragged.constant(ROWS[name], ragged_rank=1, dtype=tf.int32)
    is_odd = rows.with_values(rows.values % 2 == 1)
    pairs = [(select(rows, is_odd.values), tf.ragged.boolean_mask(rows, is_odd))]
    pairs += [(leading(rows, most), rows[:, :most]) for most in (0, 2, 9)]
    for actual, expected in pairs:
        assert actual.to_list() == expected.to_list()
        assert (actual.dtype, actual.row_splits.dtype) == (rows.dtype, rows.row_splits.dtype)
    numbers = tf.range(rows.nrows())
    expected = tf.zeros_like(rows, numbers.dtype) + numbers[:, None]
    np.testing.assert_array_equal(per_value(numbers, rows), expected.values)
