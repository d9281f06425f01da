"""AdaGrad's step on the rows of a table that a batch has read: `tf.IndexedSlices` of TensorFlow."""

import keras

from keras_bert.layers.kernels.program import compiled_by_xla


def names_rows(gradient):
    """Whether a gradient is `tf.IndexedSlices`."""
    return hasattr(gradient, "indices") and hasattr(gradient, "values")


def with_unique_rows(gradient, *, dense=False):
    """`tf.IndexedSlices` with every row once; any other gradient as it is.

    It is a table with `dense`, and in a program of XLA, where no shape may depend on the values.
    """
    if not names_rows(gradient):
        return gradient
    import tensorflow as tf

    if dense or compiled_by_xla():
        rows = gradient.dense_shape[0]
        return tf.math.unsorted_segment_sum(gradient.values, gradient.indices, rows)
    rows, number = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, number, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)


def update_rows(gradient, variable, accumulator, *, rate, epsilon):
    """G ← G + g² and x ← x - η g / (√G + ε), for the rows of `tf.IndexedSlices` in one pass."""
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
