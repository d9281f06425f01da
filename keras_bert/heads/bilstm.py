"""A bidirectional LSTM over tokens (Hochreiter and Schmidhuber 1997)."""

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.kernels.program import use_cudnn


@keras.saving.register_keras_serializable(package="keras_bert")
class BiLstm(Layer):
    """Two bidirectional layers: the feature-based tagger of Devlin et al. 2018, section 5.3.

    Shapes: hidden (B, S, D), input_mask int32 (B, S) -> (B, S, 2 U): B batch, S sequence, U units.
    Padding, which is at the end of a sequence, is skipped.

    Args:
        units: U, 768 in the paper.
        layers: the number of stacked layers.
    """

    def __init__(self, *, units, layers=2, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.layers = [
            keras.layers.Bidirectional(
                keras.layers.LSTM(
                    units, return_sequences=True, dtype=self.dtype_policy, name="lstm"
                ),
                name=f"layer_{number}",
                dtype=self.dtype_policy,
            )
            for number in range(layers)
        ]

    def build(self, hidden_shape, input_mask_shape=None):
        shape = tuple(hidden_shape)
        for layer in self.layers:
            layer.build(shape)
            shape = (*shape[:2], 2 * self.units)
        self.built = True

    def call(self, hidden, input_mask):
        mask = ops.cast(input_mask, "bool")
        for layer in self.layers:
            for lstm in (layer.forward_layer, layer.backward_layer):
                lstm.use_cudnn = use_cudnn()
            hidden = layer(hidden, mask=mask)
        # A copy drops the mask that Keras attaches to a tensor, which losses would apply again.
        return ops.copy(hidden)

    def compute_output_shape(self, hidden_shape, input_mask_shape=None):
        return (*hidden_shape[:2], 2 * self.units)
