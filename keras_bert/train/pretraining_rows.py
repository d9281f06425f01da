"""What pre-training feeds a model with: the rows of data folders, one phase after another."""

import bisect
import itertools

import tensorflow as tf

from keras_bert.input_pipeline.input_clock import InputClock
from keras_bert.tasks.pretraining.features import evaluation_dataset, training_dataset
from keras_bert.train.loop import Feed


class RowsOfFolder(Feed):
    """The rows of a data folder.

    Args:
        folder: the `DataFolder`.
        task: the pre-training task that takes the batches.
        batch_size: rows in a step.
        settings: the `PretrainSettings`.
        first_step: the step of the run that begins with the folder's first rows.
    """

    def __init__(self, folder, task, *, batch_size, settings, first_step=0):
        self.folder = folder
        self.batches_a_step = settings.gradient_accumulation
        self._settings = settings
        self._first_step = first_step
        # Under a strategy, batches are asked for ahead of the step.
        self._clock = None if tf.distribute.has_strategy() else InputClock()
        self._options = {
            "vocabulary": task.tokenizer.vocabulary,
            "task": task,
            "batch_size": batch_size // self.batches_a_step,
        }
        split = folder.card.splits["train"]
        if split.instances:
            self.tokens_a_step = batch_size * split.tokens / split.instances

    def training(self, first_step):
        dataset = training_dataset(
            self.folder,
            seed=self._settings.seed,
            first_step=(first_step - self._first_step) * self.batches_a_step,
            **self._options,
        )
        return dataset if self._clock is None else self._clock.of(dataset)

    def evaluation(self):
        if not self.folder.card.splits["eval"].instances:
            return None
        return evaluation_dataset(self.folder, batches=self._settings.eval_batches, **self._options)

    def waited(self):
        return None if self._clock is None else self._clock.seconds


class RowsOfPhases(Feed):
    """One `Feed` after another.

    Args:
        feeds: those of the phases.
        ends: the step at the end of each.
    """

    def __init__(self, feeds, ends):
        self._feeds = feeds
        self._ends = ends
        self.batches_a_step = feeds[0].batches_a_step

    @classmethod
    def of(cls, folders, task, *, steps, settings):
        """Of data folders, one a phase of `settings`, each for so many `steps`."""
        firsts = [0, *itertools.accumulate(steps)]
        feeds = [
            RowsOfFolder(
                folder, task, batch_size=phase.batch_size, settings=settings, first_step=first
            )
            for folder, phase, first in zip(folders, settings.phases, firsts, strict=False)
        ]
        return cls(feeds, firsts[1:])

    def at(self, step):
        return self._feeds[bisect.bisect_right(self._ends, step)]
