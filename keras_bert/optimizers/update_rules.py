"""The update rules of the optimizers: AdamW, LAMB and AdaGrad."""

import keras
from keras import ops

from keras_bert.layers.kernels.optimizers import (
    ClipsInFewPasses,
    InFewPasses,
    names_rows,
    update_rows,
)


@keras.saving.register_keras_serializable(package="keras_bert")
class AdamW(InFewPasses, keras.optimizers.AdamW):
    """Keras's AdamW (Loshchilov and Hutter 2019) in fewer passes; equal up to rounding.

    Arguments are those of Keras's AdamW.
    """


@keras.saving.register_keras_serializable(package="keras_bert")
class LayerwiseAdamW(AdamW):
    """Updates every variable as an AdamW of its own that begins at the variable's first step.

    Until then the variable and its moments (zero) are constant to the last bit, and its gradient is
    not part of the norm that clips the others'. The bias correction counts the variable's own
    steps: with those of the run its first updates would be up to six times too large.

    Which variables wait is decided in the graph by `iterations`: unfreezing traces nothing again,
    and a resumed run depends on its step alone.

    Args:
        learning_rate: a number or a schedule, of the whole run.
        fractions: each variable's learning rate as a fraction of that, in the order of the
            variables that the optimizer is built for.
        first_steps: the number of updates before each variable's first one.

    Others are those of AdamW, without `amsgrad`.
    """

    def __init__(self, learning_rate, *, fractions, first_steps, name="layerwise_adamw", **kwargs):
        super().__init__(learning_rate, name=name, **kwargs)
        self.fractions = tuple(fractions)  # not lists, which Keras would wrap
        self.first_steps = tuple(first_steps)

    def build(self, variables):
        if not self.built and not len(variables) == len(self.fractions) == len(self.first_steps):
            raise ValueError(
                "`fractions` and `first_steps` must have one value per variable. Received: "
                f"{len(self.fractions)} fractions, {len(self.first_steps)} first steps, "
                f"{len(variables)} variables."
            )
        super().build(variables)

    def apply(self, grads, trainable_variables=None):
        variables = (
            self._trainable_variables if trainable_variables is None else trainable_variables
        )
        if not self.built:
            self.build(list(variables))
        moved = [
            gradient
            if gradient is None or not self._waits(variable)
            # `*`, not `ops`: an embedding's gradient on TensorFlow is `IndexedSlices`.
            else gradient * ops.cast(self._has_begun(variable), gradient.dtype)
            for gradient, variable in zip(grads, variables, strict=True)
        ]
        super().apply(moved, variables)

    def update_step(self, gradient, variable, learning_rate):
        rate = ops.cast(learning_rate, variable.dtype)
        rate = rate * self.fractions[self._get_variable_index(variable)]
        if self._waits(variable):
            rate = rate * ops.cast(self._has_begun(variable), variable.dtype)
        if self.weight_decay is not None and self._use_weight_decay(variable):
            self.assign_sub(variable, variable * (rate * self.weight_decay))
        if self._waits(variable):
            rate = rate * self._correction(variable)
        super().update_step(gradient, variable, rate)

    def _apply_weight_decay(self, variables):
        """Not here, where Keras decays all variables at one learning rate: see `update_step`."""

    def _waits(self, variable):
        """Whether a variable begins after the first step of the run."""
        return self.first_steps[self._get_variable_index(variable)] > 0

    def _has_begun(self, variable):
        return self.iterations >= self.first_steps[self._get_variable_index(variable)]

    def _correction(self, variable):
        """From the bias correction by the steps of the run to that by those of the variable."""
        first = self.first_steps[self._get_variable_index(variable)]
        step_of_run = ops.cast(self.iterations + 1, variable.dtype)
        step_of_variable = ops.maximum(step_of_run - first, 1.0)
        return self._start_correction(step_of_variable) / self._start_correction(step_of_run)

    def _start_correction(self, steps):
        return ops.sqrt(1.0 - ops.power(self.beta_2, steps)) / (1.0 - ops.power(self.beta_1, steps))

    def get_config(self):
        config = super().get_config()
        del config["amsgrad"]
        return {**config, "fractions": list(self.fractions), "first_steps": list(self.first_steps)}


@keras.saving.register_keras_serializable(package="keras_bert")
class LAMB(keras.optimizers.Optimizer):
    """LAMB (You et al. 2019, algorithm 2): Adam with layer-wise trust ratios.

    The update of a tensor has the tensor's norm times the learning rate.

    With Adam's bias-corrected direction m̂ / (√v̂ + ε), a tensor x is updated by

        u = m̂ / (√v̂ + ε) + λ x        x ← x - η (‖x‖ / ‖u‖) u

    The weight decay λ x is inside the norm, as in the paper; `keras.optimizers.Lamb` decays apart
    from it. The ratio is 1 if either norm is 0. Tensors of `exclude_from_weight_decay` have
    neither decay nor ratio, but Adam's step, as in the authors' code (biases and LayerNorm there).
    A variable with an attribute `num_parts`, such as the fused kernel of query, key and value in
    `SelfAttention`, is that many tensors of equal size along the last axis, each with its ratio.

    Args:
        learning_rate: η, a number or a schedule.
        weight_decay: λ; 0 for no decay.
        beta_1, beta_2: decay rates of the moments m and v.
        epsilon: ε.

    Others are those of every Keras optimizer.
    """

    def __init__(
        self, learning_rate, *, weight_decay, beta_1, beta_2, epsilon, name="lamb", **kwargs
    ):
        super().__init__(learning_rate, weight_decay=weight_decay, name=name, **kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self._m, self._v = self.add_optimizer_variables(variables, ["momentum", "velocity"])
        self._adapted = [self._use_weight_decay(variable) for variable in variables]
        self._num_parts = [getattr(variable, "num_parts", 1) for variable in variables]

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        m, v = self._m[index], self._v[index]
        rate = ops.cast(learning_rate, variable.dtype)
        gradient = ops.cast(gradient, variable.dtype)
        step = ops.cast(self.iterations + 1, variable.dtype)
        # `ops`, not operators: an embedding's gradient on TensorFlow is `IndexedSlices`.
        self.assign_add(m, (1 - self.beta_1) * ops.subtract(gradient, m))
        self.assign_add(v, (1 - self.beta_2) * ops.subtract(ops.square(gradient), v))
        corrected_m = m / (1 - ops.power(self.beta_1, step))
        corrected_v = v / (1 - ops.power(self.beta_2, step))
        update = corrected_m / (ops.sqrt(corrected_v) + self.epsilon)
        if self._adapted[index]:
            update = update + self.weight_decay * variable
            update = _trust_ratio(variable, update, num_parts=self._num_parts[index]) * update
        self.assign_sub(variable, rate * update)

    def _apply_weight_decay(self, variables):
        """Not before the step, as in Keras: the decay is a part of the step."""

    def get_config(self):
        return {
            **super().get_config(),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
        }


def _trust_ratio(variable, update, *, num_parts):
    """‖x‖ / ‖u‖, or 1 if either is 0: a number, or with several parts (size of last axis,)."""

    def norm(x):
        if num_parts == 1:
            return ops.sqrt(ops.sum(ops.square(x)))
        size = x.shape[-1] // num_parts
        parts = ops.reshape(ops.square(x), (-1, num_parts, size))
        return ops.repeat(ops.sqrt(ops.sum(parts, axis=(0, 2))), size)

    size, length = norm(variable), norm(update)
    usable = ops.logical_and(size > 0, length > 0)
    return ops.where(usable, size / ops.where(usable, length, 1), 1)


@keras.saving.register_keras_serializable(package="keras_bert")
class Adagrad(ClipsInFewPasses, keras.optimizers.Optimizer):
    """AdaGrad (Duchi et al. 2011), the optimizer of GloVe. With the gradient g of a variable x:

        G ← G + g²        x ← x - η g / (√G + ε)

    A row without a gradient does not change. So the update of an embedding on TensorFlow, whose
    gradient names its rows (`tf.IndexedSlices`), takes time for these rows alone, and equals that
    of the whole table. Rows that occur several times are added up first. The accumulators begin at
    0, as PyTorch's do: Keras's 0.1 is larger than all g² of a mean over many tokens.

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
