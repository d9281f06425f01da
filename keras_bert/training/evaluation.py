"""A compiled model on held-out rows: Keras's figures and the model's outputs, in one pass."""

import keras
import tensorflow as tf

from keras_bert.base.replicas import replica_count
from keras_bert.inference.answers import put, room_for
from keras_bert.inputs.datasets import planned_batches
from keras_bert.tasks.global_mean import means_over
from keras_bert.training.strategies.devices import Devices


class Evaluation:
    """What `model.evaluate` says of some rows, together with what the model says of them.

    Keras's own keeps the outputs to itself. Official figures, tuning and the end of a run need
    them, which would be the same work, and another graph to trace, once more.

    Args:
        model: a compiled functional model with dictionaries in and out.
        rows: `RowBatches`.
        batch_size: rows at a time.
    """

    def __init__(self, model, rows, *, batch_size):
        devices = Devices()
        self._model = model
        self._count = len(rows)
        self._totals = rows.weight_totals
        self._loss = keras.metrics.Mean(name="loss")
        self._plan = devices.own_parts(rows.lengths, batch_size=batch_size)
        parts = planned_batches([part for step in self._plan for part in step], rows.batch)
        devices.prepare(model, parts)
        self._batches = devices.one_each(parts)
        self._step = devices.on_replicas(self._evaluated, parts.element_spec)

    def __call__(self):
        """Returns (figures by name, outputs as `Inference.outputs` gives them)."""
        self._model.reset_metrics()
        self._loss.reset_state()
        found = room_for(self._model.output, self._count)
        with means_over(self._model, self._totals, rows=self._count):
            for step, batch in zip(self._plan, self._batches, strict=True):
                for numbers, outputs in zip(step, self._step(batch), strict=True):
                    put(outputs, numbers, into=found)
        figures = {**self._model.get_metrics_result(), "loss": self._loss.result()}
        return {name: float(value) for name, value in figures.items()}, found

    def _evaluated(self, inputs, labels, weights=None):
        """One batch: (B, …) by name -> the outputs; the figures go on."""
        outputs = self._model(inputs, training=False)
        loss = self._model.compute_loss(inputs, labels, outputs, weights, training=False)
        loss = loss * replica_count()  # of which each has its share
        self._loss.update_state(loss, sample_weight=tf.shape(tf.nest.flatten(inputs)[0])[0])
        self._model.compute_metrics(inputs, labels, outputs, weights)
        return {name: tf.cast(values, tf.float32) for name, values in outputs.items()}
