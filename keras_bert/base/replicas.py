"""The replicas of a training step: devices that each compute a part of its batch.

They are those of `tf.distribute`, as a step sees them while it is traced. On JAX a step is one
program over all devices, in which a sum over the batch is one already: there is one replica.
"""

import keras


def replica_count():
    """How many replicas there are under the strategy that is in scope; 1 without any."""
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync


def sum_over_replicas(x):
    """The sum of what each replica has in a tensor's place; without a gradient.

    Where no step is traced, as while Keras finds out about shapes, it is the tensor itself.
    """
    x = keras.ops.stop_gradient(x)
    if replica_count() == 1:
        return x
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    return x if context is None else context.all_reduce(tf.distribute.ReduceOp.SUM, x)
