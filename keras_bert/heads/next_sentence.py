"""Next-sentence head (Devlin et al. 2018, section 3.1)."""

import keras

from keras_bert.layers.dense import logits_layer


@keras.saving.register_keras_serializable(package="keras_bert")
class NextSentenceHead(keras.layers.Layer):
    """Tells whether the second segment follows the first.

    Shapes: pooled (B, D) -> logits (B, 2), float32 at least: column 0 is "follows", 1 is "random",
    as in BERT.

    Args:
        initializer_range: standard deviation of new weights.
    """

    def __init__(self, *, initializer_range, **kwargs):
        super().__init__(**kwargs)
        self.initializer_range = initializer_range
        self.dense = logits_layer(
            2, initializer_range=initializer_range, name="dense", dtype=self.dtype_policy
        )

    def build(self, pooled_shape):
        self.dense.build(pooled_shape)
        self.built = True

    def call(self, pooled):
        return self.dense(pooled)

    def get_config(self):
        return {**super().get_config(), "initializer_range": self.initializer_range}
