"""AdamW in few passes over the weights, where TensorFlow would make many."""

import keras
from keras import ops

from keras_bert.layers.fast.program import is_unfused
from keras_bert.train.gradient_norm import global_norm


@keras.saving.register_keras_serializable(package="keras_bert")
class AdamW(keras.optimizers.AdamW):
    """Keras's AdamW (Loshchilov and Hutter 2019) with its numbers up to rounding.

    Its formulas are some twenty operations a variable. Where each of them is a pass over memory
    (`is_unfused`), a small batch's step can spend a quarter of its time on them: there the norm,
    Adam's step and the decay are an operation each. Elsewhere it is Keras's own.

    Arguments are those of AdamW.
    """

    def _clip_gradients(self, grads):
        if not (is_unfused() and self.global_clipnorm):
            return super()._clip_gradients(grads)
        import tensorflow as tf

        norm = global_norm(grads)
        clipped, _ = tf.clip_by_global_norm(grads, self.global_clipnorm, use_norm=norm)
        return clipped

    def _apply_weight_decay(self, variables):
        if not is_unfused():
            return super()._apply_weight_decay(variables)
        for variable in variables:
            if self.weight_decay and self._use_weight_decay(variable):
                share = ops.cast(self.learning_rate * self.weight_decay, variable.dtype)
                variable.assign(variable * (1 - share))

    def update_step(self, gradient, variable, learning_rate):
        if self.amsgrad or not is_unfused():
            return super().update_step(gradient, variable, learning_rate)
        import tensorflow as tf

        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        if isinstance(variable, keras.Variable):  # not everybody hands over what is inside
            variable = variable.value
        step = ops.cast(self.iterations + 1, variable.dtype)
        numbers = {
            "lr": learning_rate,
            "beta1": self.beta_1,
            "beta2": self.beta_2,
            "beta1_power": ops.power(ops.cast(self.beta_1, variable.dtype), step),
            "beta2_power": ops.power(ops.cast(self.beta_2, variable.dtype), step),
            "epsilon": self.epsilon,
            "grad": gradient,
        }
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=m.value.handle,
            v=v.value.handle,
            **{name: ops.cast(number, variable.dtype) for name, number in numbers.items()},
        )
