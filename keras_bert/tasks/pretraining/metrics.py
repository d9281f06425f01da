"""Loss and metrics of pre-training, which are computed together: a metric by itself would take the
softmax over the whole vocabulary a second time.
"""

import math
from typing import Any, NamedTuple

import keras
from keras import ops

FINITE_BATCHES = "finite_batches"


def part_of_step(output):
    """The name of the factors of an output's loss, among the sample weights of a part of a step."""
    return f"{output}_part_of_step"


def weighted_by_step(nats, sample_weight):
    """The nats (B, …) of a part of a step, by output, times its factors (B,), if it has some."""
    factors = {name: (sample_weight or {}).get(part_of_step(name)) for name in nats}
    return {
        name: output_nats
        if factors[name] is None
        else output_nats * ops.reshape(factors[name], (-1, *[1] * (len(output_nats.shape) - 1)))
        for name, output_nats in nats.items()
    }


@keras.saving.register_keras_serializable(package="keras_bert")
class CrossEntropy(keras.losses.Loss):
    """Cross-entropy in nats, the mean over what counts.

    Takes labels (…) and logits (…, C), or instead of the logits the nats (…) themselves if a task
    has already computed them.
    """

    def __init__(self, name="cross_entropy", reduction="mean_with_sample_weight", dtype=None):
        super().__init__(name=name, reduction=reduction, dtype=dtype)

    def call(self, y_true, y_pred):
        if len(y_pred.shape) == len(y_true.shape):
            return y_pred
        return cross_entropy(y_true, y_pred)

    def get_config(self):
        return {"name": self.name, "reduction": self.reduction}


def cross_entropy(labels, logits):
    """Nats: int (…) and (…, C) -> (…)."""
    return ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)


class Vectors(NamedTuple):
    """In place of an output's logits, what its head multiplies by the table: (B, P, E)."""

    vectors: Any


class OutputMetrics(keras.metrics.Metric):
    """The loss and accuracy of an output, over all of its predictions and over parts of them.

    `result` is a dictionary: `OUTPUT_cross_entropy` (nats) and `OUTPUT_accuracy`, and for each part
    `OUTPUT_PART_loss` and `OUTPUT_PART_accuracy`, which are NaN before the first such prediction.
    All are means over the predictions, however they are batched. `OUTPUT_perplexity`, if asked
    for, is that of the mean of the nats.

    Args:
        output: the output's name.
        parts: the names of the parts.
        perplexity: whether to include the perplexity.
    """

    def __init__(self, output, parts=(), *, perplexity=False):
        super().__init__(name=f"{output}_metrics")
        self.output = output
        self.perplexity = perplexity
        self.parts = tuple(parts)
        # For all predictions and for each part: their number, nats and correct ones.
        self.sums = self.add_variable((1 + len(self.parts), 3), initializer="zeros", name="sums")

    def update_state(self, nats, is_correct, weights, parts=()):
        """Adds predictions, (N,) each: nats, whether correct, weights, and masks of the parts."""
        weights = ops.stack([weights, *[weights * ops.cast(p, weights.dtype) for p in parts]])
        metrics = ops.stack([ops.ones_like(nats), nats, ops.cast(is_correct, nats.dtype)])
        # (K, 1, N) times (1, 3, N)
        self.sums.assign_add(ops.sum(weights[:, None] * metrics[None], axis=-1))

    def result(self):
        count, nats, correct = ops.unstack(self.sums.value, axis=1)  # (K,) each
        metrics = {
            f"{self.output}_cross_entropy": ops.divide_no_nan(nats[0], count[0]),
            f"{self.output}_accuracy": ops.divide_no_nan(correct[0], count[0]),
        }
        if self.perplexity:
            metrics[f"{self.output}_perplexity"] = ops.exp(nats[0] / count[0])
        for number, part in enumerate(self.parts, start=1):
            metrics[f"{self.output}_{part}_loss"] = nats[number] / count[number]
            metrics[f"{self.output}_{part}_accuracy"] = correct[number] / count[number]
        return metrics


def exact_losses(logs, *, weights, penalties):
    """Keras's logs, with losses that are exact over all predictions.

    Keras averages a loss over batches, regardless of their numbers of predictions. An output's
    `cross_entropy`, which is over all predictions, replaces its `loss`; `loss` is then their
    weighted sum and the penalties of the layers. Any other metric that is NaN is a mean over
    nothing and is left out, as is the number of batches with a finite loss.
    """
    metrics = {
        name: round(float(value), 6)
        for name, value in logs.items()
        if name != FINITE_BATCHES
        and (name == "loss" or name.endswith("_cross_entropy") or not math.isnan(value))
    }
    exact = {
        name.removesuffix("_cross_entropy"): value
        for name, value in metrics.items()
        if name.endswith("_cross_entropy")
    }
    if not exact:
        return metrics
    others = {n: v for n, v in metrics.items() if not n.endswith("_cross_entropy")}
    total = penalties + sum(weights.get(output, 1.0) * loss for output, loss in exact.items())
    return {**others, **{f"{o}_loss": loss for o, loss in exact.items()}, "loss": round(total, 6)}


class FiniteBatches(keras.metrics.Metric):
    """The number of batches before the first one without a finite loss."""

    def __init__(self):
        super().__init__(name=FINITE_BATCHES, dtype="float32")
        self.count = self.add_variable((), initializer="zeros", name="count")
        self.all_are = self.add_variable((), initializer="ones", name="all_are")

    def update_state(self, loss):
        """Adds the loss of a batch, ()."""
        self.all_are.assign(self.all_are * ops.cast(ops.isfinite(loss), self.dtype))
        self.count.assign_add(self.all_are)

    def result(self):
        return {FINITE_BATCHES: ops.convert_to_tensor(self.count)}

    def reset_state(self):
        self.count.assign(0.0)
        self.all_are.assign(1.0)


class Metrics:
    """The metrics of all outputs of a pre-training task.

    Those of masked tokens are also separate by masking outcome: whether the model saw [MASK]
    (`masked`), another token (`replaced`) or the token itself (`kept`).

    Args:
        outputs: the names of the outputs.
        masked_outputs: those that predict a token at each masked position.
        mask_id: the id of [MASK], or None: then outcomes are not separate.
        perplexities: the outputs whose perplexity is measured.
        counts_finite: whether to count the batches with a finite loss.

    Attributes: `finite`, a `FiniteBatches` to update with the losses, or None, and `metrics`, the
    list of all Keras metrics.
    """

    OUTCOMES = ("masked", "replaced", "kept")

    def __init__(self, outputs, *, masked_outputs, mask_id, perplexities=(), counts_finite=False):
        self._mask_id = mask_id
        separate = masked_outputs if mask_id is not None else ()
        self._outputs = {
            name: OutputMetrics(
                name,
                self.OUTCOMES if name in separate else (),
                perplexity=name in perplexities,
            )
            for name in outputs
        }
        self.finite = FiniteBatches() if counts_finite else None

    @property
    def metrics(self):
        return [*self._outputs.values(), *([] if self.finite is None else [self.finite])]

    def measure(self, x, labels, outputs, weights, *, head_of):
        """Adds a batch, dictionaries by name; returns the nats of each output's predictions.

        `outputs` are logits, or the `Vectors` of the head that `head_of` returns for a name.
        """
        nats = {}
        for name, output in outputs.items():
            if isinstance(output, Vectors):
                head = head_of(name)
                nats[name], is_correct = head.cross_entropies(output.vectors, labels[name])
            else:
                nats[name] = cross_entropy(labels[name], output)
                best = ops.argmax(output, axis=-1)
                is_correct = ops.equal(ops.cast(labels[name], "int32"), best)
            counts = ops.ones_like(nats[name]) if weights is None else weights[name]
            parts = self._parts(x, labels[name]) if self._outputs[name].parts else ()
            self._outputs[name].update_state(
                *(ops.reshape(column, (-1,)) for column in (nats[name], is_correct, counts)),
                parts=[ops.reshape(part, (-1,)) for part in parts],
            )
        return nats

    def _parts(self, x, labels):
        """For each of OUTCOMES a mask of its predictions, (B, P)."""
        seen = ops.take_along_axis(x["input_ids"], x["masked_lm_positions"], axis=1)  # (B, P)
        is_masked, is_kept = seen == self._mask_id, seen == ops.cast(labels, seen.dtype)
        is_replaced = ops.logical_not(ops.logical_or(is_masked, is_kept))
        return is_masked, is_replaced, is_kept


class MeanNats(Metrics):
    """The metrics of outputs that are nats: their means over what counts."""

    def __init__(self, outputs, *, counts_finite=False):
        self._outputs = {name: keras.metrics.Mean(name=f"{name}_cross_entropy") for name in outputs}
        self.finite = FiniteBatches() if counts_finite else None

    def measure(self, x, labels, nats, weights, *, head_of):
        """Adds a batch, dictionaries by name; returns the nats."""
        for name, output_nats in nats.items():
            self._outputs[name].update_state(output_nats, weights and weights[name])
        return nats
