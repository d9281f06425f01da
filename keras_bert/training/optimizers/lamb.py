"""LAMB (You et al. 2019, algorithm 2): Adam with layer-wise trust ratios."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class LAMB(keras.optimizers.Optimizer):
    """Adam whose update of a tensor has the tensor's norm times the learning rate.

    With Adam's bias-corrected direction m̂ / (√v̂ + ε), a tensor x is updated by

        u = m̂ / (√v̂ + ε) + λ x        x ← x - η (‖x‖ / ‖u‖) u

    The weight decay λ x is inside the norm, as in the paper; `keras.optimizers.Lamb` decays apart
    from it. The ratio is 1 where either norm is 0. Tensors of `exclude_from_weight_decay` have
    neither decay nor ratio, but Adam's step, as in the authors' code (biases and LayerNorm there).
    A variable with an attribute `num_parts`, such as the fused kernel of query, key and value in
    `SelfAttention`, is that many tensors of equal size along the last axis, each with its ratio.

    Args:
        learning_rate: η, a number or a schedule.
        weight_decay: λ; 0 is none.
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
    """‖x‖ / ‖u‖, or 1 where either is 0: a number, or with several parts (size of last axis,)."""

    def norm(x):
        if num_parts == 1:
            return ops.sqrt(ops.sum(ops.square(x)))
        size = x.shape[-1] // num_parts
        parts = ops.reshape(ops.square(x), (-1, num_parts, size))
        return ops.repeat(ops.sqrt(ops.sum(parts, axis=(0, 2))), size)

    size, length = norm(variable), norm(update)
    usable = ops.logical_and(size > 0, length > 0)
    return ops.where(usable, size / ops.where(usable, length, 1), 1)
