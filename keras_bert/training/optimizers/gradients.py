"""What an optimizer does with gradients first: it measures them, and sums them over replicas."""

import keras
from keras import ops

from keras_bert.layers.kernels.optimizers import global_norm, with_unique_rows

GRADIENT_NORM = "gradient_norm"


@keras.saving.register_keras_serializable(package="keras_bert")
class GradientNorm(keras.metrics.Metric):
    """The mean norm of the gradients over updates; NaN while there were none.

    It is summed on the device, and read with a run's other metrics.
    """

    def __init__(self, name=GRADIENT_NORM):
        super().__init__(name=name, dtype="float32")
        self.sums = self.add_variable((2,), initializer="zeros", name="sums")  # norms, updates

    def update_state(self, norm):
        """Adds the norm of an update, ()."""
        norm = ops.cast(norm, self.dtype)
        self.sums.assign_add(ops.stack([norm, ops.ones_like(norm)]))

    def result(self):
        norms, updates = ops.unstack(self.sums.value)
        return norms / updates

    def get_config(self):
        return {"name": self.name}


def with_gradient_norm(optimizer_class):
    """The class of optimizers with a `gradient_norm`, a `GradientNorm`, updated when they clip."""

    class Measuring:
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.gradient_norm = GradientNorm()

        def _clip_gradients(self, grads):
            # The formula that clips them: TensorFlow computes the two as one.
            self.gradient_norm.update_state(global_norm(grads))
            return super()._clip_gradients(grads)

    return type(optimizer_class.__name__, (Measuring, optimizer_class), {})


def with_global_gradients(optimizer_class):
    """The class of optimizers that first sum the gradients over the replicas.

    Keras sums them last: each replica clips, or accumulates, the gradients of its own part of the
    batch, which makes other updates than the whole batch on one device. Here all replicas have the
    same gradients, and each updates its own copies of the variables as one device would.
    """
    import tensorflow as tf
    from keras.src.backend.tensorflow.optimizer import TFOptimizer
    from keras.src.optimizers.base_optimizer import BaseOptimizer

    class PerReplica(TFOptimizer):
        """The sum, and then what one device does, in place of Keras's for `tf.distribute`."""

        def _backend_apply_gradients(self, grads, trainable_variables):
            context = tf.distribute.get_replica_context()
            grads = context.all_reduce(tf.distribute.ReduceOp.SUM, list(grads))
            # The sum of `tf.IndexedSlices` names a row once for each replica that has it.
            grads = [with_unique_rows(gradient) for gradient in grads]
            super()._backend_apply_gradients(grads, trainable_variables)

        _backend_update_step = BaseOptimizer._backend_update_step
        _apply_weight_decay = BaseOptimizer._apply_weight_decay
        _backend_increment_gradient_accumulators = (
            BaseOptimizer._backend_increment_gradient_accumulators
        )

    # Python puts `PerReplica` between the optimizer's own methods and Keras's for TensorFlow.
    return type(optimizer_class.__name__, (optimizer_class, PerReplica), {})
