"""The loss of labels each of which is a decision of its own, where decisions have weights."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class DecisionCrossentropy(keras.losses.Loss):
    """Binary cross-entropy of logits in nats, the mean over all decisions of a batch.

    Called with labels (B, C) of 0 and 1, logits (B, C) and sample weights (B, C). Keras's own takes
    the mean over C before it sees weights, and so has room for one a row.
    """

    def __init__(self, name="decision_crossentropy", **options):
        super().__init__(name=name, **options)

    def call(self, y_true, y_pred):
        return ops.binary_crossentropy(y_true, y_pred, from_logits=True)  # (B, C)
