"""AdaGrad (Duchi et al. 2011), which updates only the rows of a table that a batch has read."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class Adagrad(keras.optimizers.Optimizer):
    """AdaGrad, the optimizer of GloVe. With the gradient g of a variable x:

        G ← G + g²        x ← x - η g / (√G + ε)

    A row without a gradient does not change. So the update of an embedding on TensorFlow, whose
    gradient names its rows (`tf.IndexedSlices`), takes time for these rows alone, and equals that
    of the whole table. Rows that occur several times are added up first, for the norm that clips
    the gradients as well. The accumulators begin at 0, as PyTorch's do: Keras's 0.1 is larger than
    all g² of a mean over many tokens.

    Args:
        learning_rate: η, a number or a schedule.
        epsilon: ε.

    Others are those of every Keras optimizer.
    """

    def __init__(self, learning_rate, *, epsilon=1e-10, name="adagrad", **kwargs):
        super().__init__(learning_rate, name=name, **kwargs)
        self.epsilon = epsilon

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self._accumulators = self.add_optimizer_variables(variables, "accumulator")

    def apply(self, grads, trainable_variables=None):
        super().apply([_added_up(gradient) for gradient in grads], trainable_variables)

    def update_step(self, gradient, variable, learning_rate):
        accumulator = self._accumulators[self._get_variable_index(variable)]
        rate = ops.cast(learning_rate, variable.dtype)
        if _names_rows(gradient):
            _update_rows(gradient, variable, accumulator, rate=rate, epsilon=self.epsilon)
            return
        gradient = ops.cast(gradient, variable.dtype)
        self.assign_add(accumulator, ops.square(gradient))
        self.assign_sub(variable, rate * gradient / (ops.sqrt(accumulator) + self.epsilon))

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}


def _names_rows(gradient):
    """Whether a gradient is `tf.IndexedSlices`."""
    return hasattr(gradient, "indices") and hasattr(gradient, "values")


def _added_up(gradient):
    """`tf.IndexedSlices` with every row once; any other gradient as it is."""
    if not _names_rows(gradient):
        return gradient
    import tensorflow as tf

    rows, number = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, number, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)


def _update_rows(gradient, variable, accumulator, *, rate, epsilon):
    import tensorflow as tf

    if isinstance(variable, keras.Variable):  # some callers pass the tensor inside
        variable = variable.value
    tf.raw_ops.ResourceSparseApplyAdagradV2(
        var=variable.handle,
        accum=accumulator.value.handle,
        lr=rate,
        epsilon=tf.cast(epsilon, variable.dtype),
        grad=tf.cast(gradient.values, variable.dtype),
        indices=gradient.indices,
    )
