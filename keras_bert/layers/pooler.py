"""BERT's pooler: what the next-sentence head and classifiers read."""

import keras
from keras import ops

from keras_bert.layers.dense import dense


@keras.saving.register_keras_serializable(package="keras_bert")
class Pooler(keras.layers.Layer):
    """A dense layer with tanh over the vector of the first token ([CLS]).

    Shapes: first (B, D) -> (B, D).

    Args:
        hidden_size: D.
        initializer_range: standard deviation of new weights.
    """

    def __init__(self, *, hidden_size, initializer_range, **kwargs):
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.initializer_range = initializer_range
        self.dense = dense(
            hidden_size,
            initializer_range=initializer_range,
            name="dense",
            dtype=self.dtype_policy,
        )

    def build(self, first_shape=None):
        self.dense.build((None, self.hidden_size))
        self.built = True

    def call(self, first):
        return ops.tanh(self.dense(first))

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "initializer_range": self.initializer_range,
        }
