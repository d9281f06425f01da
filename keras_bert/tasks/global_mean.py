"""What a loss is a mean over: the batch of all devices, or the tokens of a whole epoch.

Replicas are devices that each compute a part of a step's batch. They are those of `tf.distribute`,
as a step sees them while it is traced. On JAX a step is one program over all devices, in which a
sum over the batch is one already: there is one replica.
"""

import contextlib

import keras
from keras import ops


def replica_count():
    """How many replicas there are under the strategy that is in scope; 1 without any."""
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync


def sum_over_replicas(x):
    """The sum of what each replica has in a tensor's place; without a gradient.

    Where no step is traced, as while Keras finds out about shapes, it is the tensor itself.
    """
    x = keras.ops.stop_gradient(x)
    if replica_count() == 1:
        return x
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    return x if context is None else context.all_reduce(tf.distribute.ReduceOp.SUM, x)


_BY_WEIGHT = "mean_with_sample_weight"


def global_means(losses, *, of_epochs=False):
    """The losses of a task by output, so that each is the mean over the batch of all replicas.

    With `of_epochs` those that are means over what has a weight can be means over a whole epoch,
    too (see `means_over`). What needs neither is as given; otherwise see `GlobalMean`.
    """
    # On JAX a step is compiled with the value that a variable beside the model's had then.
    of_epochs = of_epochs and keras.backend.backend() == "tensorflow"
    return {
        name: GlobalMean(loss)
        if replica_count() > 1 or (of_epochs and loss.reduction == _BY_WEIGHT)
        else loss
        for name, loss in losses.items()
    }


@keras.saving.register_keras_serializable(package="keras_bert")
class GlobalMean(keras.losses.Loss):
    """A mean over what counts in the batch of all replicas, as one device would have it.

    Keras takes the mean on each replica and then the mean of these means. That is another number
    where replicas have weights of other sums, such as other numbers of predictions. With values v
    and their weights w (1 each, where the mean is over all values), replica r gives

        Σ_r w v / Σ w        the first sum over its own part, the second one over all replicas

    so that the gradients of all replicas add up to that of the mean, Σ w v / Σ w. As a number it is
    that mean on every replica, divided by their number, by which Keras multiplies what it reports.

    Where the mean is by weight, Σ w may be replaced by `divide_by`, so that a token counts the same
    in every batch: in batches of texts of one length, Σ w of a batch of short ones is small.

    Args:
        loss: a loss with one of Keras's reductions to a mean, and "none". It is taken over: it
            gives its values from now on.

    Attributes: `loss`, `by_weight` (whether it is a mean by weight), `divisors` (see `divide_by`).
    """

    def __init__(self, loss):
        super().__init__(name=loss.name, dtype=loss.dtype)
        self._reduction = loss.reduction
        loss.reduction = "none"
        self.loss = loss
        self.by_weight = self._reduction == _BY_WEIGHT
        self.divisors = (0.0, 0.0)  # of a batch, and of each of its rows
        if self.by_weight:
            self._divisors = keras.Variable(self.divisors, trainable=False, name="divisors")

    def divide_by(self, *, batch=0.0, example=0.0):
        """Sets what Σ w v of a batch is divided by: `batch`, or `example` for each of its examples.

        0 for both is Σ w of the batch.
        """
        self.divisors = (batch, example)
        self._divisors.assign(self.divisors)

    def __call__(self, y_true, y_pred, sample_weight=None):
        values = self.loss(y_true, y_pred, sample_weight)
        by_weight = self.by_weight and sample_weight is not None
        count = ops.sum(ops.cast(sample_weight, values.dtype)) if by_weight else ops.size(values)
        examples = ops.shape(y_pred)[0]
        sums = [ops.cast(x, values.dtype) for x in (ops.sum(values), count, examples)]
        whole, count, examples = ops.unstack(sum_over_replicas(ops.stack(sums)))
        if by_weight:
            of_batch, of_example = ops.unstack(ops.cast(self._divisors, values.dtype))
            divisor = of_batch + of_example * examples
            count = ops.where(divisor > 0, divisor, count)
        part = ops.divide_no_nan(sums[0], count)
        mean = ops.divide_no_nan(whole, count) / replica_count()
        return part + ops.stop_gradient(mean - part)

    def get_config(self):
        self.loss.reduction = self._reduction
        try:
            return {"loss": keras.saving.serialize_keras_object(self.loss)}
        finally:
            self.loss.reduction = "none"

    @classmethod
    def from_config(cls, config):
        return cls(keras.saving.deserialize_keras_object(config["loss"]))


@contextlib.contextmanager
def means_over(model, totals, *, steps=None, examples=None):
    """Within it, losses by weight are means over all batches together, and not over each one.

    In training every batch's sum is divided by the mean weight of a batch, so that a token of a
    short text counts as much as one of a long text. In evaluation it is divided by the mean weight
    of its rows: the mean over batches, weighted by their rows, is then that over all tokens.

    Args:
        model: a compiled model.
        totals: the sum of all weights by the output's name (see `TokenizedExamples.weight_totals`);
            an output that is not among them is left as it is.
        steps: in training, the batches that the weights are of.
        examples: in evaluation, the number of examples that they are of.
    """
    losses = getattr(model, "loss", None)
    losses = losses if isinstance(losses, dict) else {}
    before = {}
    for name, loss in losses.items():
        if isinstance(loss, GlobalMean) and loss.by_weight and name in totals:
            before[name] = loss.divisors
            loss.divide_by(
                batch=totals[name] / steps if steps else 0.0,
                example=totals[name] / examples if examples else 0.0,
            )
    try:
        yield
    finally:
        for name, (batch, example) in before.items():
            losses[name].divide_by(batch=batch, example=example)
