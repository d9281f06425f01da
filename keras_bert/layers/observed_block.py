"""A Transformer block whose attention is an output too."""

import keras


class ObservedBlock(keras.layers.Layer):
    """Runs an existing block and gives its attention probabilities beside its output.

    A layer of its own, because Keras's functional graph wants the same number of outputs from
    every call of one layer. It holds no weights but the block's and is not meant to be saved.

    Shapes: hidden (B, S, D), attention_mask bool (B, 1, S or 1, S) -> (B, S, D), (B, N, S, S).
    """

    def __init__(self, block, **kwargs):
        super().__init__(name=f"{block.name}_observed", dtype=block.dtype_policy, **kwargs)
        self.block = block

    def build(self, hidden_shape, attention_mask_shape=None):
        self.built = True

    def call(self, hidden, attention_mask, training=None):
        return self.block(hidden, attention_mask, training=training, return_probabilities=True)

    def compute_output_spec(self, hidden, attention_mask, training=None):
        return self.block.compute_output_spec(hidden, attention_mask, return_probabilities=True)
