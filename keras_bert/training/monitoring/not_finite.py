"""Training that has come to numbers that are none, and the batch in which it did."""

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.files import new_file


class NotFinite(InputError):
    """A loss, or weights, that are infinite or NaN.

    Attributes:
        step: the step (from 1) of whose batch that is, or None where it is not known.
    """

    def __init__(self, what, *, step=None):
        super().__init__(f"{what}; try a lower learning rate or a longer warm-up.")
        self.what = what
        self.step = step

    def with_batch(self, path):
        """The same, with the place where the batch lies."""
        return NotFinite(f"{self.what}, whose batch is in {path}", step=self.step)


def save_batch(path, batches):
    """Writes batches that `fit` takes, one after another, as arrays by name into an .npz file.

    What an output is compared with is `label/OUTPUT`, and what that counts `weight/OUTPUT`.
    """
    parts = [
        {
            **inputs,
            **{f"label/{name}": values for name, values in labels.items()},
            **{f"weight/{name}": values for name, values in weights.items()},
        }
        for inputs, labels, weights in batches
    ]
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    with new_file(path) as aside, open(aside, "wb") as file:
        np.savez_compressed(file, **arrays)
