"""Losses on the scores of the passages of queries, each over a whole batch of lists.

Pure functions of scores, and `ListLoss`, by which Keras calls them. Legend of shapes: B lists, n
passages per list. `present` is 1 for each passage that a list has, 0 for those that only longer
lists of its batch have. Scores are logits, before any activation.
"""

import math

import keras
from keras import ops

from keras_bert.tasks.classification import (
    BINARY_CROSSENTROPY,
    LISTNET,
    LISTWISE,
    MARGIN_MSE,
)

_NEVER = -1e9  # a logit of what is not there


def list_net(scores, grades, present):
    """The cross-entropy of the softmax of the scores and that of the grades (Cao et al. 2007): (B,)

    Args:
        scores, grades, present: (B, n).
    """
    targets = ops.softmax(ops.where(present > 0, grades, _NEVER), axis=-1)
    logits = ops.log_softmax(ops.where(present > 0, scores, _NEVER), axis=-1)
    return -ops.sum(targets * logits, axis=-1)


def rank_net(scores, grades, present):
    """log₂(1 + e^(z_j - z_i)), the mean over all pairs with grade i > grade j of one list: ().

    Burges et al. 2005; the logarithm is that of sentence-transformers.

    Args:
        scores, grades, present: (B, n).
    """
    both = (present[:, :, None] > 0) & (present[:, None, :] > 0)
    counts = ops.cast(both & (grades[:, :, None] > grades[:, None, :]), "float32")  # (B, i, j)
    losses = ops.softplus(scores[:, None, :] - scores[:, :, None]) / math.log(2)
    return _mean(losses, counts)


def margin_mse(scores, teacher, present):
    """((z_p - z_n) - (t_p - t_n))², the mean over the passages n after each list's first, p: ().

    Hofstätter et al. 2020.

    Args:
        scores, present: (B, n).
        teacher: (B, n), the scores t of another model.
    """
    errors = scores - teacher
    return _mean(ops.square(errors[:, :1] - errors[:, 1:]), present[:, 1:])


def binary_crossentropy(scores, labels, present):
    """The cross-entropy of labels from 0 to 1 and the sigmoid of scores, over all passages: ()."""
    losses = ops.softplus(scores) - labels * scores
    return _mean(losses, present)


def squared_error(scores, labels, present):
    """The squared difference of score and label, over all passages: ()."""
    return _mean(ops.square(scores - labels), present)


def _mean(values, weights):
    return ops.divide_no_nan(ops.sum(values * weights), ops.sum(weights))


@keras.saving.register_keras_serializable(package="keras_bert")
class ListLoss(keras.losses.Loss):
    """One of LOSSES on `score` (B, n), the mean over the lists, pairs or passages of a batch.

    The labels are (B, N, 2), N at least n: of each passage its grade, or the teacher's score, and
    whether the list has it.

    Args:
        loss: its name.
        list_loss: with "listwise", "listnet" or "ranknet".
    """

    predicts_numbers = True  # see `mean_outputs`

    def __init__(self, loss, *, list_loss=LISTNET, name=None):
        super().__init__(name=name or loss.replace("-", "_"), dtype="float32")
        self.loss, self.list_loss = loss, list_loss

    def call(self, y_true, y_pred):
        count = ops.shape(y_pred)[1]
        labels, present = y_true[:, :count, 0], y_true[:, :count, 1]
        if self.loss == LISTWISE:
            function = list_net if self.list_loss == LISTNET else rank_net
        elif self.loss == MARGIN_MSE:
            function = margin_mse
        else:
            is_binary = self.loss == BINARY_CROSSENTROPY
            function = binary_crossentropy if is_binary else squared_error
        return function(y_pred, labels, present)

    def get_config(self):
        return {"name": self.name, "loss": self.loss, "list_loss": self.list_loss}
