"""AdamW, and AdamW with a learning rate and a first step per variable."""

import keras
from keras import ops

from keras_bert.layers.kernels.optimizers import InFewPasses


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
        of_run = ops.cast(self.iterations + 1, variable.dtype)
        of_its_own = ops.maximum(of_run - first, 1.0)
        return self._start_correction(of_its_own) / self._start_correction(of_run)

    def _start_correction(self, steps):
        return ops.sqrt(1.0 - ops.power(self.beta_2, steps)) / (1.0 - ops.power(self.beta_1, steps))

    def get_config(self):
        config = super().get_config()
        del config["amsgrad"]
        return {**config, "fractions": list(self.fractions), "first_steps": list(self.first_steps)}
