"""AdaGrad (Duchi et al. 2011), which updates only the rows of a table that a batch has read."""

import keras
from keras import ops

from keras_bert.layers.kernels.optimizers import names_rows, update_rows, with_unique_rows


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
        weight_decay: of all rows, in every step; None and 0 mean no decay.

    Others are those of every Keras optimizer.
    """

    def __init__(
        self, learning_rate, *, epsilon=1e-10, weight_decay=None, name="adagrad", **kwargs
    ):
        # Keras would decay all rows by 0.
        super().__init__(learning_rate, weight_decay=weight_decay or None, name=name, **kwargs)
        self.epsilon = epsilon

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self._accumulators = self.add_optimizer_variables(variables, "accumulator")

    def apply(self, grads, trainable_variables=None):
        collects = self.gradient_accumulation_steps is not None  # in tables
        grads = [with_unique_rows(gradient, dense=collects) for gradient in grads]
        super().apply(grads, trainable_variables)

    def update_step(self, gradient, variable, learning_rate):
        accumulator = self._accumulators[self._get_variable_index(variable)]
        rate = ops.cast(learning_rate, variable.dtype)
        if names_rows(gradient):
            update_rows(gradient, variable, accumulator, rate=rate, epsilon=self.epsilon)
            return
        gradient = ops.cast(gradient, variable.dtype)
        self.assign_add(accumulator, ops.square(gradient))
        self.assign_sub(variable, rate * gradient / (ops.sqrt(accumulator) + self.epsilon))

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}
