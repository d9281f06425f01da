"""The examples of pre-training: those of data folders, phase by phase."""

import bisect
import itertools
import time
from functools import cached_property

import keras
import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.inference.fill_mask import most_probable
from keras_bert.inputs.batches import resolved, tokens_per_batch
from keras_bert.programs import Devices
from keras_bert.tasks.pretraining.features import (
    WindowBatches,
    evaluation_dataset,
    parts_of_steps,
    training_dataset,
)
from keras_bert.training.costs import flops_per_token
from keras_bert.training.plan import BatchSource


class InputTimer:
    """Counts the seconds between requesting a batch of a dataset and receiving it.

    A device that works while the next batch is requested (a GPU) does not lose all of them.

    Attributes: `seconds`, the waiting time so far.
    """

    def __init__(self):
        self.seconds = 0.0
        self._asked_at = None

    def timed(self, dataset):
        """The dataset with every batch timed; what follows it must not prefetch."""
        # `zip` requests its datasets one after the other. (TensorFlow's own clock does not run with
        # deterministic operations.)
        asked = tf.data.Dataset.counter().map(
            lambda number: tf.numpy_function(self._ask, [number], tf.int64)
        )
        return resolved(tf.data.Dataset.zip((asked, dataset)).map(self._timed))

    def _timed(self, number, batch):
        with tf.control_dependencies([tf.numpy_function(self._give, [number], tf.int64)]):
            return tf.nest.map_structure(tf.identity, batch)

    def _ask(self, number):
        self._asked_at = time.perf_counter()
        return number

    def _give(self, number):
        self.seconds += time.perf_counter() - self._asked_at
        return number


_SEQUENCES = 4
_MASKS_PER_SEQUENCE = 2
_CONTEXT_TOKENS = 10
_TOP_K = 5


class MaskExamples:
    """Predictions for the first [MASK]s of the first sequences of a batch, the same in every call.

    A call returns a list of JSON-like dictionaries: the text `before` and `after` the [MASK], the
    `expected` token, and the `candidates`, (token, probability) pairs, the most probable first.
    Tokens are named as in `fill_mask`.

    Args:
        task: a pre-training task with the output `masked_lm` and a tokenizer.
        batch: (x, y, sample_weight) of held-out examples, as the task takes them.
    """

    def __init__(self, task, batch):
        x, y, weights = batch
        self.task = task
        self._inputs = {name: np.asarray(x[name])[:_SEQUENCES] for name in task.encoder.input_names}
        positions, labels, counts = (
            np.asarray(part)[:_SEQUENCES]
            for part in (x["masked_lm_positions"], y["masked_lm"], weights["masked_lm"])
        )
        seen = np.take_along_axis(self._inputs["input_ids"], positions, axis=1)  # (R, P)
        usable = (counts > 0) & (seen == task.tokenizer.vocabulary.mask_id)
        first = usable & (np.cumsum(usable, axis=1) <= _MASKS_PER_SEQUENCE)
        self._positions = positions.astype(np.int32)
        self._masks = [(n, p, int(labels[n, p])) for n, p in np.argwhere(first)]

    def __call__(self):
        # Not a compiled function: tracing would take longer than all calls of most runs.
        hidden = self.task.encoded(self._inputs, training=False)["sequence_output"]
        logits = self.task.lm_head(hidden, self._positions, training=False)
        logits = np.asarray(logits, np.float32)  # (R, P, V)
        return [self._example(n, p, label, logits[n, p]) for n, p, label in self._masks]

    def _example(self, number, prediction, expected, logits):
        vocabulary = self.task.tokenizer.vocabulary
        ids = self._inputs["input_ids"][number][self._inputs["input_mask"][number] > 0]
        position = self._positions[number, prediction]
        return {
            "before": vocabulary.join(ids[max(0, position - _CONTEXT_TOKENS) : position]),
            "after": vocabulary.join(ids[position + 1 : position + 1 + _CONTEXT_TOKENS]),
            "expected": vocabulary.token_name(expected),
            "candidates": [
                [token, round(probability, 4)]
                for token, probability in most_probable(logits, vocabulary, _TOP_K)
            ],
        }


def sizes_of(folder, phase, *, parts):
    """-> (size of a training batch, as an argument; examples of an evaluation batch).

    A batch is one of so many parts of a step. Raises `InputError` if a batch of the `phase` has
    no room for the longest example of the data folder.
    """
    if phase.batch_tokens is None:
        return {"batch_size": phase.batch_size // parts}, phase.batch_size // parts
    tokens, longest = phase.batch_tokens // parts, folder.card.max_length
    if tokens < longest:
        raise InputError.naming(
            "{batch_tokens} gives a batch {} tokens, less than the longest example of {}, {}. Use "
            "a larger value.",
            tokens,
            folder.path,
            longest,
        )
    return {"batch_tokens": tokens}, tokens // longest


class ExamplesOfFolder(BatchSource):
    """The examples of a data folder.

    Args:
        folder: the `DataFolder`.
        task: the pre-training task that takes the batches.
        phase: the `Phase` of the settings, with the size of a step.
        settings: the `PretrainSettings`.
        first_step: the step of the run that begins with the folder's first examples.
        counts: those of `WindowBatches`, as far as they are known.

    Attributes:
        window_batches: the `WindowBatches`, if the size of a batch is in tokens, or None.
    """

    def __init__(self, folder, task, *, phase, settings, first_step=0, counts=()):
        self.folder = folder
        self.batches_per_step = settings.gradient_accumulation
        self._settings = settings
        self._first_step = first_step
        self._timer = None if Devices().prefetches else InputTimer()
        self._task = task
        self._options = {"vocabulary": task.tokenizer.vocabulary, "task": task}
        self._size, self._eval_batch_size = sizes_of(folder, phase, parts=self.batches_per_step)
        self.tokens_per_step = self._tokens_per_step(phase)
        self.window_batches = None
        if phase.batch_tokens is not None:
            self.window_batches = WindowBatches(folder, counts)

    @cached_property
    def flops_per_token(self):
        card = self.folder.card
        return flops_per_token(
            self._task,
            examples_by_length=card.length_histogram,
            masked_rate=card.settings.masked_rate,
            max_predictions=card.max_predictions,
            causal_fraction=self._settings.causal_fraction,
        )

    def _tokens_per_step(self, phase):
        split = self.folder.card.splits["train"]
        if phase.batch_tokens is not None:
            tokens = tokens_per_batch(
                self.folder.card.length_histogram, tokens=self._size["batch_tokens"]
            )
            return None if tokens is None else self.batches_per_step * tokens
        return phase.batch_size * split.tokens / split.instances if split.instances else None

    def training(self, first_step):
        dataset = training_dataset(
            self.folder,
            seed=self._settings.seed,
            first_step=(first_step - self._first_step) * self.batches_per_step,
            window_batches=self.window_batches,
            **self._size,
            **self._options,
        )
        dataset = parts_of_steps(dataset, self.batches_per_step)
        return dataset if self._timer is None else self._timer.timed(dataset)

    def evaluation(self):
        return self._evaluation

    @cached_property
    def _evaluation(self):
        # Made once: tracing its functions takes longer than reading a small split.
        if not self.folder.card.splits["eval"].instances:
            return None
        return evaluation_dataset(
            self.folder,
            batch_size=self._eval_batch_size,
            batches=self._settings.eval_batches,
            **self._options,
        )

    def examples(self):
        return self._examples() if self._examples is not None else []

    @cached_property
    def _examples(self):
        evaluation = self.evaluation()
        if evaluation is None or "masked_lm" not in self._task.output:
            return None
        return MaskExamples(self._task.masked_lm(), next(iter(evaluation.take(1))))

    def waited(self):
        return None if self._timer is None else self._timer.seconds


class ExamplesOfPhases(BatchSource):
    """One `BatchSource` after another.

    Args:
        sources: those of the phases.
        ends: the step at the end of each.
    """

    def __init__(self, sources, ends):
        self._sources = sources
        self._ends = ends
        self.batches_per_step = sources[0].batches_per_step

    @classmethod
    def of(cls, folders, task, *, steps, settings, window_batches=None):
        """Opens data folders, one per phase of `settings`, each for so many `steps`.

        `window_batches` is the property's value in an earlier session, or None.
        """
        firsts = [0, *itertools.accumulate(steps)]
        counts = window_batches or [()] * len(folders)
        phases = zip(folders, settings.phases, firsts, counts, strict=False)
        sources = [
            ExamplesOfFolder(
                folder, task, phase=phase, settings=settings, first_step=first, counts=phase_counts
            )
            for folder, phase, first, phase_counts in phases
        ]
        return cls(sources, firsts[1:])

    @property
    def window_batches(self):
        """The `counts` of each phase's `WindowBatches`; None if batches are of `batch_size`."""
        if self._sources[0].window_batches is None:
            return None
        return [list(source.window_batches.counts) for source in self._sources]

    def at(self, step):
        return self._sources[bisect.bisect_right(self._ends, step)]


class StoreWindowBatches(keras.callbacks.Callback):
    """Stores `ExamplesOfPhases.window_batches` in run.json at each checkpoint, for resuming."""

    def __init__(self, run, source, plan):
        super().__init__()
        self.run = run
        self.source = source
        self.plan = plan
        self._stored = source.window_batches

    def on_epoch_end(self, epoch, logs=None):
        counts = self.source.window_batches
        if counts != self._stored and self.plan.checkpoints(self.plan.step_of(epoch)):
            self._stored = self.run.resolve("window_batches", counts)
