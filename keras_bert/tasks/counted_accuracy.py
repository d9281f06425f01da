"""Accuracy over what counts, whatever its weight in the loss."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class CountedAccuracy(keras.metrics.SparseCategoricalAccuracy):
    """The fraction of labels with the highest logit, among those whose weight is above 0.

    Shapes: labels (B, …) int, logits (B, …, C), sample weights as the labels.

    Keras's metric counts a label by its weight, so that it changes with the weights of labels.
    """

    def __init__(self, name="accuracy", **options):
        super().__init__(name=name, **options)

    def update_state(self, y_true, y_pred, sample_weight=None):
        if sample_weight is not None:
            sample_weight = ops.cast(ops.greater(sample_weight, 0), self.dtype)
        return super().update_state(y_true, y_pred, sample_weight)
