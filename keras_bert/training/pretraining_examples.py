"""What pre-training feeds a model with: the rows of data folders, one phase after another."""

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
from keras_bert.tasks.pretraining.features import (
    WindowBatches,
    evaluation_dataset,
    training_dataset,
)
from keras_bert.training.loop import BatchSource
from keras_bert.training.monitoring.flops import flops_a_token


class InputTimer:
    """Counts the seconds between asking a dataset for a batch and getting it.

    Where a device works by itself while the next batch is asked for (a GPU), not all of them are
    lost.

    Attributes: `seconds`, all waiting so far.
    """

    def __init__(self):
        self.seconds = 0.0
        self._asked_at = None

    def of(self, dataset):
        """The dataset, whose every batch is timed where it is asked for.

        What comes after it must not ask ahead.
        """
        # Of what is zipped, one is asked after the other. (TensorFlow's own clock does not run
        # where operations are deterministic.)
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


_ROWS = 4
_PLACES_A_ROW = 2
_TOKENS_BESIDE = 10
_TOP = 5


class MaskExamples:
    """The same few places in every call: the first rows of a batch, and in each the first [MASK]s.

    Calling it gives a list of dictionaries, as JSON holds them: the text `before` and `after` the
    place, the piece that is `expected` there, and the `candidates`, (piece, probability) pairs, the
    likeliest first. Pieces are named as `fill_mask` names them.

    Args:
        task: a pre-training task with the output `masked_lm` and a tokenizer.
        batch: (x, y, sample_weight) of held-out rows, as the task takes them.
    """

    def __init__(self, task, batch):
        x, y, weights = batch
        self.task = task
        self._inputs = {name: np.asarray(x[name])[:_ROWS] for name in task.encoder.input_names}
        positions, labels, counts = (
            np.asarray(part)[:_ROWS]
            for part in (x["masked_lm_positions"], y["masked_lm"], weights["masked_lm"])
        )
        seen = np.take_along_axis(self._inputs["input_ids"], positions, axis=1)  # (R, P)
        usable = (counts > 0) & (seen == task.tokenizer.vocabulary.mask_id)
        first = usable & (np.cumsum(usable, axis=1) <= _PLACES_A_ROW)
        self._positions = positions.astype(np.int32)
        self._places = [(row, p, int(labels[row, p])) for row, p in np.argwhere(first)]

    def __call__(self):
        # Not a compiled function: tracing one would take longer than all calls of many a run.
        hidden = self.task.encoded(self._inputs, training=False)["sequence_output"]
        logits = self.task.lm_head(hidden, self._positions, training=False)
        logits = np.asarray(logits, np.float32)  # (R, P, V)
        return [self._example(row, p, label, logits[row, p]) for row, p, label in self._places]

    def _example(self, row, prediction, expected, logits):
        vocabulary = self.task.tokenizer.vocabulary
        ids = self._inputs["input_ids"][row][self._inputs["input_mask"][row] > 0]
        place = self._positions[row, prediction]
        return {
            "before": vocabulary.join(ids[max(0, place - _TOKENS_BESIDE) : place]),
            "after": vocabulary.join(ids[place + 1 : place + 1 + _TOKENS_BESIDE]),
            "expected": vocabulary.token_name(expected),
            "candidates": [
                [token, round(probability, 4)]
                for token, probability in most_probable(logits, vocabulary, _TOP)
            ],
        }


def sizes_of(folder, phase, *, parts):
    """-> (what a batch of training has, as an argument; the rows of one in evaluation).

    Raises `InputError` where a batch of the `phase`, one of so many parts of a step, has no room
    for a row of the data folder.
    """
    if phase.batch_tokens is None:
        return {"batch_size": phase.batch_size // parts}, phase.batch_size // parts
    tokens, longest = phase.batch_tokens // parts, folder.card.max_length
    if tokens < longest:
        raise InputError(
            f"`batch_tokens` leaves {tokens} positions for a batch, and the rows of {folder.path} "
            f"have up to {longest}; give more."
        )
    return {"batch_tokens": tokens}, tokens // longest


class ExamplesOfFolder(BatchSource):
    """The rows of a data folder.

    Args:
        folder: the `DataFolder`.
        task: the pre-training task that takes the batches.
        phase: the `Phase` of the settings: how many rows, or positions, a step has.
        settings: the `PretrainSettings`.
        first_step: the step of the run that begins with the folder's first rows.
        counts: those of `WindowBatches`, as far as they are known.

    Attributes:
        window_batches: the `WindowBatches`, where the size of a batch is given in tokens, or None.
    """

    def __init__(self, folder, task, *, phase, settings, first_step=0, counts=()):
        self.folder = folder
        self.batches_a_step = settings.gradient_accumulation
        self._settings = settings
        self._first_step = first_step
        # Under a strategy, batches are asked for ahead of the step.
        self._clock = None if tf.distribute.has_strategy() else InputTimer()
        self._task = task
        self._options = {"vocabulary": task.tokenizer.vocabulary, "task": task}
        self._size, self._rows = sizes_of(folder, phase, parts=self.batches_a_step)
        self.tokens_a_step = self._tokens_a_step(phase)
        self.window_batches = None
        if phase.batch_tokens is not None:
            self.window_batches = WindowBatches(folder, counts)

    @cached_property
    def flops_a_token(self):
        card = self.folder.card
        return flops_a_token(
            self._task,
            examples_by_length=card.length_histogram,
            masked_rate=card.settings.masked_rate,
            max_predictions=card.max_predictions,
            causal_fraction=self._settings.causal_fraction,
        )

    def _tokens_a_step(self, phase):
        split = self.folder.card.splits["train"]
        if phase.batch_tokens is not None:
            tokens = tokens_per_batch(
                self.folder.card.length_histogram, tokens=self._size["batch_tokens"]
            )
            return None if tokens is None else self.batches_a_step * tokens
        return phase.batch_size * split.tokens / split.instances if split.instances else None

    def training(self, first_step):
        dataset = training_dataset(
            self.folder,
            seed=self._settings.seed,
            first_step=(first_step - self._first_step) * self.batches_a_step,
            window_batches=self.window_batches,
            **self._size,
            **self._options,
        )
        return dataset if self._clock is None else self._clock.of(dataset)

    def evaluation(self):
        return self._evaluation

    @cached_property
    def _evaluation(self):
        # Made once: tracing what it maps takes longer than reading a small split.
        if not self.folder.card.splits["eval"].instances:
            return None
        return evaluation_dataset(
            self.folder,
            batch_size=self._rows,
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
        return MaskExamples(self._task, next(iter(evaluation.take(1))))

    def waited(self):
        return None if self._clock is None else self._clock.seconds


class ExamplesOfPhases(BatchSource):
    """One `BatchSource` after another.

    Args:
        feeds: those of the phases.
        ends: the step at the end of each.
    """

    def __init__(self, feeds, ends):
        self._feeds = feeds
        self._ends = ends
        self.batches_a_step = feeds[0].batches_a_step

    @classmethod
    def of(cls, folders, task, *, steps, settings, window_batches=None):
        """Of data folders, one a phase of `settings`, each for so many `steps`.

        `window_batches` is what the property gave in an earlier session, or None.
        """
        firsts = [0, *itertools.accumulate(steps)]
        known = window_batches or [()] * len(folders)
        phases = zip(folders, settings.phases, firsts, known, strict=False)
        feeds = [
            ExamplesOfFolder(
                folder, task, phase=phase, settings=settings, first_step=first, counts=each
            )
            for folder, phase, first, each in phases
        ]
        return cls(feeds, firsts[1:])

    @property
    def window_batches(self):
        """The `counts` of each phase's `WindowBatches`; None where batches have so many rows."""
        if self._feeds[0].window_batches is None:
            return None
        return [list(feed.window_batches.counts) for feed in self._feeds]

    def at(self, step):
        return self._feeds[bisect.bisect_right(self._ends, step)]


class SettleWindowBatches(keras.callbacks.Callback):
    """Keeps in run.json, at each checkpoint, what `ExamplesOfPhases.window_batches` gives."""

    def __init__(self, run, rows, plan):
        super().__init__()
        self.run = run
        self.rows = rows
        self.plan = plan
        self._kept = rows.window_batches

    def on_epoch_end(self, epoch, logs=None):
        found = self.rows.window_batches
        if found != self._kept and self.plan.checkpoints(self.plan.step_of(epoch)):
            self._kept = self.run.settle("window_batches", found)
