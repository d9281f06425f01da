"""The position-wise feed-forward layer (Vaswani et al. 2017, section 3.3)."""

import keras

from keras_bert.layers.dense import activation, dense
from keras_bert.layers.dropout import Dropout


@keras.saving.register_keras_serializable(package="keras_bert")
class FeedForward(keras.layers.Layer):
    """Two dense layers with an activation between them, and dropout.

    Shapes: x (R, D) -> (R, D).

    Args:
        hidden_size: D.
        intermediate_size: size of the inner layer.
        hidden_act: its activation, by Hugging Face's name.
        dropout: fraction of the output set to zero in training.
        initializer_range: standard deviation of new weights.
    """

    def __init__(
        self, *, hidden_size, intermediate_size, hidden_act, dropout, initializer_range, **kwargs
    ):
        super().__init__(**kwargs)
        self.settings = {
            "hidden_size": hidden_size,
            "intermediate_size": intermediate_size,
            "hidden_act": hidden_act,
            "dropout": dropout,
            "initializer_range": initializer_range,
        }
        weights = {"initializer_range": initializer_range, "dtype": self.dtype_policy}
        self.activation = activation(hidden_act)
        self.dense_in = dense(intermediate_size, name="dense_in", **weights)
        self.dense_out = dense(hidden_size, name="dense_out", **weights)
        self.dropout = Dropout(rate=dropout, name="dropout", dtype=self.dtype_policy)

    def build(self, x_shape=None):
        self.dense_in.build((None, self.settings["hidden_size"]))
        self.dense_out.build((None, self.settings["intermediate_size"]))
        self.built = True

    def call(self, x, training=None):
        x = self.activation(self.dense_in(x), training=training)
        return self.dropout(self.dense_out(x), training=training)

    def get_config(self):
        return {**super().get_config(), **self.settings}
