"""Muon (Jordan et al. 2024): orthogonal updates of hidden matrices, and AdamW for all others."""

import keras
from keras import ops

from keras_bert.layers.kernels.optimizers import ClipsInFewPasses


@keras.saving.register_keras_serializable(package="keras_bert")
class Muon(ClipsInFewPasses, keras.optimizers.Muon):
    """Keras's Muon, for the matrices of a model's hidden layers.

    With the gradient G of a matrix x of shape (n, m), and the momentum M of Nesterov's form,

        M ← μ M + G        x ← x - η λ x - η 0.2 √max(n, m) O(G + μ M)

    where O is nearly the orthogonal matrix U Vᵀ of the singular value decomposition U S Vᵀ, by five
    steps of a Newton-Schulz iteration. The factor (Liu et al. 2025) gives updates of the size of
    AdamW's, so that its learning rate η and weight decay λ fit. All other variables have AdamW's
    updates. A matrix with an attribute `num_parts`, such as the fused kernel of query, key and
    value in `SelfAttention`, is that many matrices of equal size along the last axis.

    Args:
        learning_rate: η, a number or a schedule.
        is_hidden: for each variable that the optimizer is built for, whether it is such a matrix.
        fractions: each variable's learning rate as a fraction of η; None is 1.
        beta_1, beta_2, epsilon: of AdamW.
        weight_decay: λ; 0 for no decay.

    Others are those of Keras's Muon: `momentum`, μ, is 0.95.
    """

    def __init__(
        self,
        learning_rate,
        *,
        is_hidden,
        fractions=None,
        beta_1,
        beta_2,
        epsilon,
        weight_decay=None,
        name="muon",
        **options,
    ):
        super().__init__(
            learning_rate,
            adam_beta_1=beta_1,
            adam_beta_2=beta_2,
            epsilon=epsilon,
            weight_decay=weight_decay,
            adam_weight_decay=weight_decay,
            name=name,
            **options,
        )
        self.is_hidden = tuple(is_hidden)  # not lists, which Keras would wrap
        self.fractions = None if fractions is None else tuple(fractions)

    def build(self, variables):
        if not self.built:
            self._num_parts = [getattr(variable, "num_parts", 1) for variable in variables]
        super().build(variables)

    def _should_use_adamw(self, variable):
        return not self.is_hidden[self._get_variable_index(variable)]

    def update_step(self, gradient, variable, learning_rate):
        rate = ops.cast(learning_rate, variable.dtype)
        if self.fractions is not None:
            rate = rate * self.fractions[self._get_variable_index(variable)]
        if self.weight_decay and self._use_weight_decay(variable):
            self.assign_sub(variable, variable * (rate * self.weight_decay))
        super().update_step(gradient, variable, rate)

    def _apply_weight_decay(self, variables):
        """Not here, where Keras decays all variables at one learning rate: see `update_step`."""

    def _muon_update_step(self, gradient, variable, lr, m):
        self.assign(m, self.momentum * m + gradient)
        update = gradient + self.momentum * m if self.nesterov else ops.convert_to_tensor(m)
        parts = ops.split(update, self._num_parts[self._get_variable_index(variable)], axis=-1)
        parts = [self.lr_adjust(self.zeropower_via_newtonschulz5(x, self.ns_steps)) for x in parts]
        self.assign_sub(variable, lr * ops.concatenate(parts, axis=-1))

    def get_config(self):
        config = super().get_config()
        del config["adam_weight_decay"]
        for name in ("beta_1", "beta_2"):
            config[name] = config.pop(f"adam_{name}")
        return {**config, "is_hidden": list(self.is_hidden), "fractions": self.fractions}
