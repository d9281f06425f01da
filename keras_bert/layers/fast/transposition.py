"""Axes in another order, in prediction by a kernel that begins at once."""

import numpy as np
from keras import ops

from keras_bert.layers.fast.program import is_for_litert, is_unfused


def transposed(x, axes, *, training):
    """As `ops.transpose`.

    On a CPU TensorFlow has oneDNN move floats, which takes 40 microseconds for the smallest tensor;
    whole numbers of the same bits it moves itself, in five, and large ones no slower. In training
    nothing is so small.
    """
    if training or not is_unfused() or is_for_litert():
        return ops.transpose(x, axes)
    import tensorflow as tf

    bits = {2: tf.uint16, 4: tf.uint32, 8: tf.uint64}[x.dtype.size]
    back = np.argsort(axes)

    @ops.custom_gradient  # a cast of bits has none
    def moved(x):
        def gradient(upstream):
            return transposed(upstream, back, training=training)

        return tf.bitcast(tf.transpose(tf.bitcast(x, bits), axes), x.dtype), gradient

    return moved(x)
