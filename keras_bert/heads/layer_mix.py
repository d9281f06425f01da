"""Several layers as one vector per token: the choices of the BERT paper, and a learned mix."""

import keras
import numpy as np
from keras import ops

from keras_bert.heads.layer_choice import CONCAT, MEAN, layer_numbers
from keras_bert.layers import Layer


def choose_layers(states, choice):
    """The vectors of a choice of layers without weights, from an encoder's hidden states.

    * `last`, `second-to-last`, `layer-K`: the output of that layer
    * `sum-last-4`, `mean-last-4`, `concat-last-4` (the last layer's first): of four layers
    * `sum-all`: the sum of all layers' outputs without the embeddings (the paper's "all 12")
    * `first`: the embeddings, which do not depend on the context (the paper's "Embeddings")

    Shapes: `states` are L + 1 tensors (B, S, D), the embeddings first -> (B, S, D), or (B, S, 4 D)
    for `concat-last-4`.

    Raises `InputError` if there are too few layers.
    """
    numbers, how = layer_numbers(choice, layers=len(states) - 1)
    layers = [states[number] for number in numbers]
    if how == CONCAT:
        return ops.concatenate(layers, axis=-1)
    total = sum(layers[1:], layers[0])
    return total / len(layers) if how == MEAN else total


@keras.saving.register_keras_serializable(package="keras_bert")
class ScalarMix(Layer):
    """γ Σ s_k h_k over K layers' outputs h_k, with s = softmax(w): one weight per layer, one scale.

    That is ELMo's mix (Peters et al. 2018, section 3.2, equation 1).

    Shapes: a list or tuple of K tensors (B, S, D) -> (B, S, D).

    w is initialized to zero, so that the mix begins as the average, and γ to one. Where
    `layer_norm_eps` is a number, each h_k is first normalised over its last axis (Ba et al. 2016,
    without scale and offset); the published code took mean and variance over all tokens of a batch,
    which makes a text's result depend on the other examples in the batch.

    Args:
        num_layers: K.
        layer_norm_eps: epsilon of the LayerNorm before mixing; None mixes the outputs as they are.
        l2: λ of the penalty λ Σ w_k² on the loss, which pulls the mix toward the average (the paper
            used 0.001 to 1); 0 means none.

    Raises:
        ValueError: λ is negative, or (on a call) there are not K tensors, or their shapes differ.
    """

    def __init__(self, *, num_layers, layer_norm_eps, l2, **kwargs):
        super().__init__(**kwargs)
        if num_layers < 1 or l2 < 0:
            raise ValueError(
                "`num_layers` must be at least 1 and `l2` at least 0. "
                f"Received: num_layers={num_layers}, l2={l2}."
            )
        self.num_layers = num_layers
        self.l2 = l2
        self.layer_norm = None
        if layer_norm_eps is not None:
            self.layer_norm = keras.layers.LayerNormalization(
                epsilon=layer_norm_eps,
                center=False,
                scale=False,
                name="layer_norm",
                dtype=self.dtype_policy,
            )

    def build(self, hidden_shapes):
        self._check(hidden_shapes)
        if self.layer_norm is not None:
            self.layer_norm.build(hidden_shapes[0])
        # Not cast to half precision: the weights of a dozen layers should sum to one.
        self.scores = self.add_weight(
            shape=(self.num_layers,),
            initializer="zeros",
            regularizer=keras.regularizers.L2(self.l2) if self.l2 else None,
            autocast=False,
            name="scores",
        )
        self.gamma = self.add_weight(shape=(), initializer="ones", autocast=False, name="gamma")
        self.built = True

    def call(self, hidden_states):
        self._check([hidden.shape for hidden in hidden_states])
        # γ is part of the factors, which saves a pass over the mix.
        factors = self.gamma * ops.softmax(self.scores)  # (K,)
        mix = 0.0
        for k, hidden in enumerate(hidden_states):
            if self.layer_norm is not None:
                hidden = self.layer_norm(hidden)
            mix = mix + ops.cast(factors[k], hidden.dtype) * hidden  # (B, S, D)
        return mix

    @property
    def layer_weights(self):
        """s, a float32 array (K,) that sums to one: the weight of each layer in the mix."""
        return np.asarray(ops.convert_to_numpy(ops.softmax(self.scores)))

    def compute_output_shape(self, hidden_shapes):
        return tuple(hidden_shapes[0])

    def _check(self, shapes):
        if len(shapes) != self.num_layers or len({tuple(shape) for shape in shapes}) != 1:
            raise ValueError(
                f"A mix of {self.num_layers} layers takes as many tensors of one shape. "
                f"Received: {[tuple(shape) for shape in shapes]}."
            )
