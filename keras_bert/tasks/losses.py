"""Losses and metrics of tasks: losses that are global means, and accuracy over what counts.

A loss is a mean over the batch of all replicas, or over the tokens of a whole epoch. Replicas are
the devices that each compute a part of a step's batch under `tf.distribute`. On JAX a step is one
program over all devices, whose sums are over the whole batch: there is one replica. The losses also
say how the outputs of several tasks are averaged (`mean_outputs`).
"""

import contextlib

import keras
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.programs import replica_count, rows_of_replicas, sum_over_replicas

_BY_WEIGHT = "mean_with_sample_weight"


def cross_entropy_by_weight():
    """The cross-entropy of labels, as numbers, and logits in nats: the mean over what counts."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=_BY_WEIGHT)


def global_means(losses, *, over_epochs=False):
    """A task's losses by output, each as a mean over the batch of all replicas.

    With `over_epochs`, losses that are means by weight may become means over a whole epoch (see
    `means_over`). A loss that needs neither is returned as it is.
    """
    return {
        name: GlobalMean(loss)
        if replica_count() > 1 or (over_epochs and loss.reduction == _BY_WEIGHT)
        else loss
        for name, loss in losses.items()
    }


@keras.saving.register_keras_serializable(package="keras_bert")
class GlobalMean(keras.losses.Loss):
    """A mean over the batch of all replicas, as one device would compute it.

    Keras averages the means of the replicas, which differs if the sums of their weights differ.
    With values v and weights w (1 each for a mean over all values), replica r gives

        Σ_r w v / Σ w        the first sum over its own part, the second over all replicas

    so that the replicas' gradients add up to that of Σ w v / Σ w. The value is that mean divided by
    the number of replicas, by which Keras multiplies what it reports.

    A mean by weight may replace Σ w by `divide_by`, so that a token counts the same in every batch:
    Σ w is small in a batch of short texts.

    Args:
        loss: a loss with one of Keras's reductions to a mean, or "none". Its reduction is set to
            "none".

    Attributes: `loss`, `by_weight` (whether it is a mean by weight), `divisors` (see `divide_by`).
    """

    def __init__(self, loss):
        super().__init__(name=loss.name, dtype=loss.dtype)
        self._reduction = loss.reduction
        loss.reduction = "none"
        self.loss = loss
        self.by_weight = self._reduction == _BY_WEIGHT
        self.divisors = (0.0, 0.0)  # per batch, and per example
        if self.by_weight:
            self._divisors = keras.Variable(self.divisors, trainable=False, name="divisors")

    @property
    def state(self):
        """Its variables: a list, empty of a mean that is not by weight."""
        return [self._divisors] if self.by_weight else []

    def divide_by(self, *, batch=0.0, example=0.0):
        """Sets the divisor of Σ w v: `batch`, or `example` times the batch's examples.

        With 0 for both it is Σ w of the batch.
        """
        self.divisors = (batch, example)
        self._divisors.assign(self.divisors)

    def __call__(self, y_true, y_pred, sample_weight=None):
        losses = self.loss(y_true, y_pred, sample_weight)
        by_weight = self.by_weight and sample_weight is not None
        count = ops.sum(ops.cast(sample_weight, losses.dtype)) if by_weight else ops.size(losses)
        examples = ops.shape(y_pred)[0]
        sums = [ops.cast(x, losses.dtype) for x in (ops.sum(losses), count, examples)]
        whole, count, examples = ops.unstack(sum_over_replicas(ops.stack(sums)))
        if by_weight:
            per_batch, per_example = ops.unstack(ops.cast(self._divisors, losses.dtype))
            divisor = per_batch + per_example * examples
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


@keras.saving.register_keras_serializable(package="keras_bert")
class LossOfWholeBatch(GlobalMean):
    """A mean in which the rows of a batch depend on each other, over the batch of all replicas.

    Every replica computes it from the rows of all, with the gradient of its own rows, so that the
    replicas' gradients add up to the one that one device would compute. The value is divided by
    the number of replicas, by which Keras multiplies what it reports.

    Args:
        loss: a loss with Keras's reduction to a mean over all values.
    """

    def __call__(self, y_true, y_pred, sample_weight=None):
        given = [y_true, y_pred, *([] if sample_weight is None else [sample_weight])]
        rows = [rows_of_replicas(ops.convert_to_tensor(x)) for x in given]
        value = ops.mean(self.loss(*rows))
        return value + ops.stop_gradient(value / replica_count() - value)


@contextlib.contextmanager
def means_over(model, totals, *, steps=None, examples=None):
    """A context in which losses by weight are means over all batches together.

    In training, a batch's sum is divided by the mean weight of a batch, so that a token of a short
    text counts as much as one of a long text. In evaluation it is divided by the mean weight of its
    examples: Keras's mean over batches, weighted by their examples, is then the mean over all
    tokens.

    Args:
        model: a compiled model.
        totals: the sum of all weights by the output's name (see `TokenizedExamples.weight_totals`);
            other outputs are left as they are.
        steps: in training, the number of batches.
        examples: in evaluation, the number of examples.
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


# If a probability is 0 in float32, its logarithm is that of this.
_LEAST = 1e-30


def mean_outputs(outputs, losses):
    """The outputs of a task with the mean probabilities of several.

    If an output is trained by a cross-entropy, that is the logarithm of the mean softmax over
    the last axis, or the log-odds of the mean sigmoid: their softmax, or sigmoid, is that mean.
    If it is trained by the squared error, it is the mean.

    Args:
        outputs: the tasks' outputs by name, a list of dictionaries.
        losses: the loss of each output (`Task.default_losses`).
    """
    return {
        name: _mean([ops.cast(one[name], "float32") for one in outputs], losses[name])
        for name in losses
    }


def check_can_average(losses):
    """Raises `InputError` for a task with an output that `mean_outputs` has no mean of."""
    for loss in losses.values():
        if not (isinstance(loss, (*_SOFTMAX_LOSSES, *_SIGMOID_LOSSES)) or _is_of_numbers(loss)):
            raise InputError.naming(
                "{ensemble} averages the probabilities of each output, which vectors of texts have "
                "not, and a CRF gives them for whole sequences only. Leave {crf} or {ensemble} out."
            )


_SOFTMAX_LOSSES = (keras.losses.SparseCategoricalCrossentropy,)
_SIGMOID_LOSSES = (keras.losses.BinaryCrossentropy,)


def _is_of_numbers(loss):
    """Whether the mean of outputs is that of their numbers, which a loss of our own may say."""
    return isinstance(loss, keras.losses.MeanSquaredError) or getattr(
        loss, "predicts_numbers", False
    )


def _mean(outputs, loss):
    """Float32 tensors of one shape -> one."""
    if _is_of_numbers(loss):
        return sum(outputs[1:], outputs[0]) / len(outputs)
    if isinstance(loss, _SOFTMAX_LOSSES):
        return _log(_mean_of(ops.softmax, outputs))
    yes = _mean_of(ops.sigmoid, outputs)
    no = _mean_of(lambda logits: ops.sigmoid(-logits), outputs)  # exact near 0
    return _log(yes) - _log(no)


def _mean_of(function, outputs):
    return sum(function(value) for value in outputs) / len(outputs)


def _log(probabilities):
    return ops.log(ops.maximum(probabilities, _LEAST))


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
