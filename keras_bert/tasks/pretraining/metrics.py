"""What is measured of a pre-training output where its loss is computed.

A metric of its own would take the softmax over the whole vocabulary a second time.
"""

import math

import keras
from keras import ops

FINITE_BATCHES = "finite_batches"


@keras.saving.register_keras_serializable(package="keras_bert")
class CrossEntropy(keras.losses.Loss):
    """Cross-entropy in nats, the mean over what counts.

    Takes logits (…, C) and labels (…), or in place of the logits the nats (…) themselves, where a
    task has computed them already.
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


class OutputMetrics(keras.metrics.Metric):
    """The loss and accuracy of an output, over all of its predictions and over parts of them.

    `result` is a dictionary: `OUTPUT_cross_entropy` (nats) and `OUTPUT_accuracy`, and of each part
    `OUTPUT_PART_loss` and `OUTPUT_PART_accuracy`, which are NaN while there were no such
    predictions. All are means over the predictions, however batches part them.

    Args:
        output: the output's name.
        parts: the names of the parts.
    """

    def __init__(self, output, parts=()):
        super().__init__(name=f"{output}_figures")
        self.output = output
        self.parts = tuple(parts)
        # Of all predictions and of each part: their number, nats and right answers.
        self.sums = self.add_variable((1 + len(self.parts), 3), initializer="zeros", name="sums")

    def update_state(self, nats, is_right, weights, parts=()):
        """Adds predictions, (N,): nats, right or not, weights; which of them are of each part."""
        weights = ops.stack([weights, *[weights * ops.cast(p, weights.dtype) for p in parts]])
        metrics = ops.stack([ops.ones_like(nats), nats, ops.cast(is_right, nats.dtype)])
        # (K, 1, N) times (1, 3, N)
        self.sums.assign_add(ops.sum(weights[:, None] * metrics[None], axis=-1))

    def result(self):
        count, nats, right = ops.unstack(self.sums.value, axis=1)  # (K,) each
        metrics = {
            f"{self.output}_cross_entropy": ops.divide_no_nan(nats[0], count[0]),
            f"{self.output}_accuracy": ops.divide_no_nan(right[0], count[0]),
        }
        for number, part in enumerate(self.parts, start=1):
            metrics[f"{self.output}_{part}_loss"] = nats[number] / count[number]
            metrics[f"{self.output}_{part}_accuracy"] = right[number] / count[number]
        return metrics


def exact_losses(logs, *, weights, penalties):
    """Keras's figures, with losses that are exact over all predictions where there are such.

    Keras averages a loss over batches, whatever they hold. Where a task measures an output's
    `cross_entropy` over all predictions, it takes the place of the output's `loss`; `loss` is then
    their sum, each times its weight, and the penalties of the layers. Another figure that is NaN is
    a mean over nothing, and left out, and so is the count of batches with a finite loss.
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
    kept = {n: v for n, v in metrics.items() if not n.endswith("_cross_entropy")}
    total = penalties + sum(weights.get(output, 1.0) * loss for output, loss in exact.items())
    return {**kept, **{f"{o}_loss": loss for o, loss in exact.items()}, "loss": round(total, 6)}


class FiniteBatches(keras.metrics.Metric):
    """How many batches had a finite loss before the first that had none."""

    def __init__(self):
        super().__init__(name=FINITE_BATCHES, dtype="float32")
        self.count = self.add_variable((), initializer="zeros", name="count")
        self.all_are = self.add_variable((), initializer="ones", name="all_are")

    def update_state(self, loss):
        """Adds a batch by its loss, ()."""
        self.all_are.assign(self.all_are * ops.cast(ops.isfinite(loss), self.dtype))
        self.count.assign_add(self.all_are)

    def result(self):
        return {FINITE_BATCHES: ops.convert_to_tensor(self.count)}

    def reset_state(self):
        self.count.assign(0.0)
        self.all_are.assign(1.0)


class Metrics:
    """The figures of all outputs of a pre-training task.

    Those of tokens are also told apart by what the model saw in the token's place: [MASK]
    (`masked`), another token (`replaced`) or the token itself (`kept`).

    Attributes: `metrics`, the list of `OutputMetrics` and, where it is wanted, of `finite`, a
    `FiniteBatches`, which is to be told the losses (else None).

    Args:
        outputs: names of outputs that give a class a row.
        masked_outputs: names of those that give a token at each masked position.
        mask_id: the id of [MASK], or None: then nothing is told apart.
        counts_finite: whether batches with a finite loss are counted.
    """

    OUTCOMES = ("masked", "replaced", "kept")

    def __init__(self, outputs, *, masked_outputs, mask_id, counts_finite=False):
        self._mask_id = mask_id
        self._outcomes = {
            name: self.OUTCOMES if mask_id is not None and name in masked_outputs else ()
            for name in outputs
        }
        self._of_output = {
            name: OutputMetrics(name, outcomes) for name, outcomes in self._outcomes.items()
        }
        self.finite = FiniteBatches() if counts_finite else None

    @property
    def metrics(self):
        return [*self._of_output.values(), *([] if self.finite is None else [self.finite])]

    def measure(self, x, labels, logits, weights):
        """Adds a batch, dictionaries by name; returns the nats of each output's predictions."""
        nats = {}
        for name, scores in logits.items():
            nats[name] = cross_entropy(labels[name], scores)
            counts = ops.ones_like(nats[name]) if weights is None else weights[name]
            is_right = ops.equal(ops.cast(labels[name], "int32"), ops.argmax(scores, axis=-1))
            parts = self._parts(x, labels[name]) if self._outcomes[name] else ()
            self._of_output[name].update_state(
                *(ops.reshape(each, (-1,)) for each in (nats[name], is_right, counts)),
                parts=[ops.reshape(part, (-1,)) for part in parts],
            )
        return nats

    def _parts(self, x, labels):
        """For each of FATES which predictions (B, P) are of it."""
        seen = ops.take_along_axis(x["input_ids"], x["masked_lm_positions"], axis=1)  # (B, P)
        is_masked, is_kept = seen == self._mask_id, seen == ops.cast(labels, seen.dtype)
        is_replaced = ops.logical_not(ops.logical_or(is_masked, is_kept))
        return is_masked, is_replaced, is_kept
