"""Optimizers whose every replica does what one device would do with the whole batch."""

import tensorflow as tf
from keras.src.backend.tensorflow.optimizer import TFOptimizer
from keras.src.optimizers.base_optimizer import BaseOptimizer


def with_global_gradients(optimizer_class):
    """The class of optimizers that adds the replicas' gradients up before anything else.

    Keras adds them up last: each replica clips, or accumulates, the gradients of its own part of
    the batch, which makes other updates than the whole batch on one device. Here the sum comes
    first. All replicas have the same gradients then, and each updates its own copies of the
    variables as one device would, without asking the others again.
    """
    # Python puts `_PerReplica` between the optimizer's own methods and Keras's for TensorFlow.
    return type(optimizer_class.__name__, (optimizer_class, _PerReplica), {})


class _PerReplica(TFOptimizer):
    """In place of what Keras does for `tf.distribute`: the sum, and then what one device does."""

    def _backend_apply_gradients(self, grads, trainable_variables):
        context = tf.distribute.get_replica_context()
        grads = context.all_reduce(tf.distribute.ReduceOp.SUM, list(grads))
        super()._backend_apply_gradients(grads, trainable_variables)

    _backend_update_step = BaseOptimizer._backend_update_step
    _apply_weight_decay = BaseOptimizer._apply_weight_decay
    _backend_increment_gradient_accumulators = (
        BaseOptimizer._backend_increment_gradient_accumulators
    )
