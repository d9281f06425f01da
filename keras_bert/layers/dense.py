"""How every dense layer of a BERT is made."""

import keras


def initializer(standard_deviation):
    """A new truncated normal (Keras's are cut at two deviations, as BERT's are)."""
    return keras.initializers.TruncatedNormal(stddev=standard_deviation)


def dense(units, *, initializer_range, name, dtype):
    """A dense layer over the last axis: kernel (D, units), bias (units,)."""
    return keras.layers.Dense(
        units, kernel_initializer=initializer(initializer_range), name=name, dtype=dtype
    )
