"""AdamW."""

import keras

from keras_bert.layers.kernels.adam import InFewPasses


@keras.saving.register_keras_serializable(package="keras_bert")
class AdamW(InFewPasses, keras.optimizers.AdamW):
    """Keras's AdamW (Loshchilov and Hutter 2019), with its numbers up to rounding.

    Arguments are those of AdamW.
    """
