"""AdamW in few passes over the weights, where TensorFlow would make many."""

import keras
from keras import ops

from keras_bert.layers.kernels.program import is_unfused
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
        if not self.weight_decay:
            return
        kept = 1 - ops.cast(self.learning_rate * self.weight_decay, "float32")
        for variable in variables:
            if self._use_weight_decay(variable):
                variable.assign(variable * ops.cast(kept, variable.dtype))

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        if is_unfused():  # what all variables share, traced once
            self._of_step = self._numbers_of_step()
        super()._backend_update_step(grads, trainable_variables, learning_rate)
        self._of_step = None

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
        if isinstance(variable, keras.Variable):  # not everybody hands over what is inside
            variable = variable.value
        numbers = {"lr": learning_rate, **self._of_step, "grad": gradient}
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=m.value.handle,
            v=v.value.handle,
            **{name: ops.cast(number, variable.dtype) for name, number in numbers.items()},
        )
