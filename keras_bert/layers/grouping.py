"""Between rows by themselves, as an encoder takes them, and rows that belong to an example."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class FlattenRows(keras.layers.Layer):
    """Rows of examples, one after the other. Shapes: (B, n, …) -> (B n, …)."""

    def call(self, x):
        return ops.reshape(x, (-1, *ops.shape(x)[2:]))

    def compute_output_shape(self, shape):
        return (None, *shape[2:])


@keras.saving.register_keras_serializable(package="keras_bert")
class GroupRows(keras.layers.Layer):
    """What `FlattenRows` undid. Shapes: (B n, …) and anything of shape (B, n, …) -> (B, n, …)."""

    def call(self, x, like):
        return ops.reshape(x, (*ops.shape(like)[:2], *ops.shape(x)[1:]))

    def compute_output_shape(self, x_shape, like_shape):
        return (*like_shape[:2], *x_shape[1:])
