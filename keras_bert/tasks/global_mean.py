"""The mean of a loss over a batch that several devices share."""

import keras
from keras import ops

from keras_bert.replicas import replica_count, sum_over_replicas


def means_over_replicas(losses):
    """The losses of a task by output, so that each is the mean over the batch of all replicas.

    Without replicas they are as given; otherwise see `GlobalMean`.
    """
    if replica_count() == 1:
        return losses
    return {name: GlobalMean(loss) for name, loss in losses.items()}


class GlobalMean(keras.losses.Loss):
    """A mean over what counts in the batch of all replicas, as one device would have it.

    Keras takes the mean on each replica and then the mean of these means. That is another number
    where replicas have weights of other sums, such as other numbers of predictions. With values v
    and their weights w (1 each, where the mean is over all values), replica r gives

        Σ_r w v / Σ w        the first sum over its own part, the second one over all replicas

    so that the gradients of all replicas add up to that of the mean, Σ w v / Σ w. As a number it is
    that mean on every replica, divided by their number, by which Keras multiplies what it reports.

    Args:
        loss: a loss with one of Keras's reductions to a mean, and "none". It is taken over: it
            gives its values from now on.
    """

    def __init__(self, loss):
        super().__init__(name=loss.name, dtype=loss.dtype)
        self._by_weight = loss.reduction == "mean_with_sample_weight"
        loss.reduction = "none"
        self._values = loss

    def __call__(self, y_true, y_pred, sample_weight=None):
        values = self._values(y_true, y_pred, sample_weight)
        if self._by_weight and sample_weight is not None:
            count = ops.sum(ops.cast(sample_weight, values.dtype))
        else:
            count = ops.cast(ops.size(values), values.dtype)
        part = ops.sum(values)
        whole, count = ops.unstack(sum_over_replicas(ops.stack([part, count])))
        part = ops.divide_no_nan(part, count)
        mean = ops.divide_no_nan(whole, count) / replica_count()
        return part + ops.stop_gradient(mean - part)
