"""Batches are checked before a model computes with them, wherever they come from."""

import itertools
from typing import Any

import keras
import numpy as np

from keras_bert.encoders.encoder import check_ids
from keras_bert.heads.reader import ReadingModel
from keras_bert.layers.kernels.fused_attention import reads_lengths


class CheckingModel(ReadingModel):
    """A model that raises an error for ids that its encoder does not have (see `check_ids`).

    Arrays are checked as a whole. Of datasets, generators and all else, an id that is too large is
    an error of the lookup on a CPU. On a GPU it is none, and attention reads the lengths of rows:
    the first batch is checked there.
    """

    def check_batches(self, x: Any) -> None:
        """Raises InputError for arrays, (inputs, …) or inputs, that `check_ids` rejects."""
        inputs = x[0] if isinstance(x, tuple) and x else x
        if isinstance(inputs, dict):
            check_ids(inputs, self.config)

    def make_train_function(self, force: bool = False) -> None:
        """As Keras's, with the first batch checked; so are the two below."""
        is_new = force or self.train_function is None
        super().make_train_function(force)
        if is_new and reads_lengths():
            self.train_function = _FirstBatchChecked(self.train_function, self.check_batches)

    def make_test_function(self, force: bool = False) -> None:
        is_new = force or self.test_function is None
        super().make_test_function(force)
        if is_new and reads_lengths():
            self.test_function = _FirstBatchChecked(self.test_function, self.check_batches)

    def make_predict_function(self, force: bool = False) -> None:
        is_new = force or self.predict_function is None
        super().make_predict_function(force)
        if is_new and reads_lengths():
            self.predict_function = _FirstBatchChecked(self.predict_function, self.check_batches)


class _FirstBatchChecked:
    """A function of (state, iterator), as Keras makes it on JAX, which checks its first batch."""

    def __init__(self, function, check):
        self._function = function
        self._check = check
        self._has_checked = False

    def __call__(self, state, iterator):
        if not self._has_checked:
            batch = next(iterator)
            self._check(keras.tree.map_structure(np.asarray, batch))  # it may be on the device
            self._has_checked, iterator = True, itertools.chain([batch], iterator)
        return self._function(state, iterator)
