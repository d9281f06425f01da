"""AdamW, and with a rate and a first step for each variable."""

import keras
from keras import ops

from keras_bert.layers.kernels.adam import InFewPasses


@keras.saving.register_keras_serializable(package="keras_bert")
class AdamW(InFewPasses, keras.optimizers.AdamW):
    """Keras's AdamW (Loshchilov and Hutter 2019), with its numbers up to rounding.

    Arguments are those of AdamW.
    """


@keras.saving.register_keras_serializable(package="keras_bert")
class LayerwiseAdamW(AdamW):
    """Every variable moves as in an AdamW of its own, which begins at its own first step.

    Until then it stays as it is to the last bit, and so do its moments, which are zero: they are
    corrected for that start by the steps that it has had itself. (By the steps of the run, as
    in Adam elsewhere, a block's first steps would be up to six times too long.) Its gradient is no
    part of the norm that clips the others'.

    What waits is decided in the graph by `iterations`: nothing is traced anew when a block thaws,
    and a resumed run needs to know no more than its step.

    Args:
        learning_rate: a number or a schedule, of the whole run.
        fractions: what each variable's rate is of that, in the order of the variables that the
            optimizer is built for.
        first_steps: the updates that are done before each variable's first one.

    Others are those of AdamW, but for `amsgrad`, which there is not.
    """

    def __init__(self, learning_rate, *, fractions, first_steps, name="layerwise_adamw", **kwargs):
        super().__init__(learning_rate, name=name, **kwargs)
        self.fractions = tuple(fractions)  # not lists, which Keras would wrap
        self.first_steps = tuple(first_steps)

    def build(self, variables):
        if not self.built and not len(variables) == len(self.fractions) == len(self.first_steps):
            raise ValueError(
                "`fractions` and `first_steps` must be as many as the variables. Received: "
                f"{len(self.fractions)} shares, {len(self.first_steps)} first steps, "
                f"{len(variables)} variables"
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
            # A sign and not `ops`: an embedding's gradient on TensorFlow is a list of rows.
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
        """Not here, where Keras decays all variables at one rate: see `update_step`."""

    def _waits(self, variable):
        """Whether a variable has a first step after that of the run."""
        return self.first_steps[self._get_variable_index(variable)] > 0

    def _has_begun(self, variable):
        return self.iterations >= self.first_steps[self._get_variable_index(variable)]

    def _correction(self, variable):
        """From moments corrected by the steps of the run to those of the variable."""
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
