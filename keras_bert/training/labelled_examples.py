"""What fine-tuning trains and evaluates a model with: rows of labelled examples in memory."""

import math
from functools import cached_property

import keras
import tensorflow as tf

from keras_bert.inference.answers import put, room_for
from keras_bert.inputs.batches import planned_batches
from keras_bert.tasks.global_mean import means_over, replica_count
from keras_bert.training.loop import BatchSource
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
        with means_over(self._model, self._totals, examples=self._count):
            for step, batch in zip(self._plan, self._batches, strict=True):
                for numbers, outputs in zip(step, self._step(batch), strict=True):
                    put(outputs, numbers, into=found)
        metrics = {**self._model.get_metrics_result(), "loss": self._loss.result()}
        return {name: float(value) for name, value in metrics.items()}, found

    def _evaluated(self, inputs, labels, weights=None):
        """One batch: (B, …) by name -> the outputs; the figures go on."""
        outputs = self._model(inputs, training=False)
        loss = self._model.compute_loss(inputs, labels, outputs, weights, training=False)
        loss = loss * replica_count()  # of which each has its share
        self._loss.update_state(loss, sample_weight=tf.shape(tf.nest.flatten(inputs)[0])[0])
        self._model.compute_metrics(inputs, labels, outputs, weights)
        return {name: tf.cast(values, tf.float32) for name, values in outputs.items()}


class LabelledExamples(BatchSource):
    """Rows in memory, in batches of about one length.

    Args:
        model: what is trained, compiled: the task, or the head alone that `freeze` gives.
        task: the `Task` whose rows they are.
        train_examples, dev_examples: `TokenizedExamples`.
        plan: the `Plan` of the run.
        settings: the `FinetuneSettings`.
        computed: None, or a function that gives the `FrozenRows` of both, which a head alone is
            fed with; called where there is something to train.
    """

    def __init__(self, model, task, train_examples, dev_examples, *, plan, settings, computed=None):
        self.model = model
        self.task = task
        self.train_examples = train_examples
        self.dev_examples = dev_examples
        self.plan = plan
        self.settings = settings
        self.computed = computed
        self._kept = -math.inf, None, None  # figure, step, outputs
        if computed is None:  # a head alone reads no tokens
            self.tokens_a_step = float(train_examples.lengths.sum() / plan.evaluate_every)

    def training(self, first_step):
        return self._fed[0].training_batches(
            steps=self.plan.evaluate_every,
            seed=self.settings.seed,
            epochs=self.settings.epochs,
            first_step=first_step,
        )

    def measures(self, step):
        """Keras's figures on the dev rows; official ones too, where the task's METRIC is one."""
        metrics, outputs = self._evaluate()
        if self.task.METRIC not in metrics:
            # Epochs are told apart by what a folder of each would answer.
            self.task.tune_threshold(outputs, self.dev_examples)
            predictions = self.task.decode(outputs, self.dev_examples)
            measures = self.task.official_metrics(predictions, self.dev_examples.examples)
            official = {name: v for name, v in measures.items() if isinstance(v, float)}
            metrics = {**metrics, **official}
        metric = metrics[self.task.METRIC]
        if self.settings.keep == "last" or metric > self._kept[0]:
            self._kept = metric, step, outputs
        return metrics

    def outputs_at(self, step):
        """What the model with its weights after `step` steps, which it has now, says of dev.

        As `Inference.outputs`. What an evaluation of this session has found is not computed again.
        """
        _, of_step, outputs = self._kept
        return outputs if step == of_step else self._evaluate()[1]

    @cached_property
    def _evaluate(self):
        return Evaluation(self.model, self._fed[1], batch_size=self.settings.batch_size)

    @cached_property
    def _fed(self):
        return (
            (self.train_examples, self.dev_examples) if self.computed is None else self.computed()
        )
