"""The loss that trains a conditional random field and what gives its emissions."""

import keras
from keras import ops


class CrfLoss(keras.losses.Loss):
    """The negative log-likelihood of the labels, in nats a word.

    Called with labels int (B, S), emissions (B, S, C) and sample weights (B, S); a position whose
    weight is not 0 is a word. It is the sum over all rows of a batch, divided by the words, so that
    a batch weighs as much as with the mean cross-entropy of words. With the reduction "none" it is
    what each row adds to that sum, (B,).

    Args:
        crf: the `LinearChainCrf` whose scores the loss trains, too.
    """

    def __init__(self, crf, name="crf_loss"):
        super().__init__(name=name, reduction="mean_with_sample_weight", dtype="float32")
        self.crf = crf

    def __call__(self, y_true, y_pred, sample_weight=None):
        labels = ops.convert_to_tensor(y_true)
        if sample_weight is None:
            sample_weight = ops.ones_like(labels)
        is_word = ops.not_equal(ops.convert_to_tensor(sample_weight), 0)
        words = ops.sum(ops.cast(is_word, "float32"))
        likelihoods = self.crf.log_likelihoods(y_pred, labels, is_word)
        if self.reduction == "none":
            return -likelihoods
        return -ops.sum(likelihoods) / ops.maximum(words, 1.0)
