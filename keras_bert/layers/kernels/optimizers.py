"""AdamW (Loshchilov and Hutter 2019, algorithm 2) and AdaGrad in few passes over the weights.

AdamW's plain form is Keras's, of a step t with the gradients g of all variables x:

    g ← g · min(1, clipnorm / ‖g‖), with the norm over all variables
    x ← x - η λ x
    m ← m + (1 - β₁) (g - m)        v ← v + (1 - β₂) (g² - v)
    x ← x - η √(1 - β₂ᵗ) / (1 - β₁ᵗ) · m / (√v + ε)

These are some twenty operations per variable. If each is a pass over memory (TensorFlow outside
XLA, on a CPU), a small batch's step can spend a quarter of its time on them: there the norm, the
decay and Adam's step are one operation each. AdaGrad's step is one over the rows of a table that a
batch has read (`tf.IndexedSlices`).
"""

import keras
from keras import ops

from keras_bert.layers.kernels.program import compiled_by_xla, is_unfused


def global_norm(gradients):
    """√ Σ g², over all tensors of a list together, (); None is skipped."""
    gradients = [gradient for gradient in gradients if gradient is not None]
    if is_unfused() or any(map(names_rows, gradients)):
        import tensorflow as tf

        return tf.linalg.global_norm(gradients)  # one operation per tensor
    squares = [ops.sum(ops.square(gradient)) for gradient in gradients]  # as Keras has it
    return ops.sqrt(ops.sum(ops.stack(squares)))


class ClipsInFewPasses:
    """Clips gradients by their norm, as a base class before `keras.optimizers.Optimizer`.

    `tf.IndexedSlices` stay such, while Keras's own method makes tables of them. A row that they
    name several times is added up first, since the norm is that of the sum. If the backend fuses
    operations, other tensors are left to Keras.
    """

    def apply(self, grads, trainable_variables=None):
        collects = self.gradient_accumulation_steps is not None  # in tables
        grads = [with_unique_rows(gradient, dense=collects) for gradient in grads]
        super().apply(grads, trainable_variables)

    def _clip_gradients(self, grads):
        if not self.global_clipnorm or not (is_unfused() or any(map(names_rows, grads))):
            return super()._clip_gradients(grads)
        import tensorflow as tf

        norm = global_norm(grads)
        clipped, _ = tf.clip_by_global_norm(grads, self.global_clipnorm, use_norm=norm)
        return clipped


class InFewPasses(ClipsInFewPasses):
    """The formula above, as a base class before `keras.optimizers.AdamW`.

    If the backend fuses operations, the methods are Keras's own.
    """

    def _apply_weight_decay(self, variables):
        if not is_unfused():
            return super()._apply_weight_decay(variables)
        if not self.weight_decay:
            return
        remaining = 1 - ops.cast(self.learning_rate * self.weight_decay, "float32")
        for variable in variables:
            if self._use_weight_decay(variable):
                variable.assign(variable * ops.cast(remaining, variable.dtype))

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        if is_unfused():  # what all variables share, traced once
            self._step_numbers = self._numbers_of_step()
        super()._backend_update_step(grads, trainable_variables, learning_rate)
        self._step_numbers = None

    def _numbers_of_step(self):
        step = ops.cast(self.iterations + 1, "float32")
        numbers = {"beta1": self.beta_1, "beta2": self.beta_2, "epsilon": self.epsilon}
        numbers = {name: ops.cast(number, "float32") for name, number in numbers.items()}
        powers = {f"{name}_power": ops.power(numbers[name], step) for name in ("beta1", "beta2")}
        return {**numbers, **powers}

    def update_step(self, gradient, variable, learning_rate):
        if self.amsgrad or not is_unfused():
            return super().update_step(gradient, variable, learning_rate)
        import tensorflow as tf

        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        if isinstance(variable, keras.Variable):  # some callers pass the tensor inside
            variable = variable.value
        numbers = {"lr": learning_rate, **self._step_numbers, "grad": gradient}
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=m.value.handle,
            v=v.value.handle,
            **{name: ops.cast(number, variable.dtype) for name, number in numbers.items()},
        )


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
    sums = tf.math.unsorted_segment_sum(gradient.values, number, tf.size(rows))
    return tf.IndexedSlices(sums, rows, gradient.dense_shape)


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
