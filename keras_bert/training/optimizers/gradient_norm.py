"""How long the gradient of a step is, all variables together, before it is cut."""

import keras
from keras import ops

from keras_bert.layers.kernels.adam import global_norm

GRADIENT_NORM = "gradient_norm"


@keras.saving.register_keras_serializable(package="keras_bert")
class GradientNorm(keras.metrics.Metric):
    """The mean over updates of the norm of their gradients; NaN while there were none.

    It is added up on the device, and read when a run's other figures are.
    """

    def __init__(self, name=GRADIENT_NORM):
        super().__init__(name=name, dtype="float32")
        self.sums = self.add_variable((2,), initializer="zeros", name="sums")  # norms, updates

    def update_state(self, norm):
        """Adds an update by its norm, ()."""
        norm = ops.cast(norm, self.dtype)
        self.sums.assign_add(ops.stack([norm, ops.ones_like(norm)]))

    def result(self):
        norms, updates = ops.unstack(self.sums.value)
        return norms / updates

    def get_config(self):
        return {"name": self.name}


def with_gradient_norm(optimizer_class):
    """The class of optimizers that measure their gradients where they clip them.

    Such an optimizer has the attribute `gradient_norm`, a `GradientNorm`. It computes what it would
    otherwise: the sum of squares that clips a gradient is the one that is measured.
    """
    return type(optimizer_class.__name__, (_Measuring, optimizer_class), {})


class _Measuring:
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.gradient_norm = GradientNorm()

    def _clip_gradients(self, grads):
        # The formula that clips them: TensorFlow computes the two as one.
        self.gradient_norm.update_state(global_norm(grads))
        return super()._clip_gradients(grads)
