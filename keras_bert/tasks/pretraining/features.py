"""The examples of a data folder as the batches that a pre-training task trains on.

See `records.py` for what a batch has.

All epochs are one endless stream, and batch k has its examples k * B to (k + 1) * B. The order
within an epoch is a function of (seed, epoch) alone, so the position in the data is a function of
the step, and a run that starts at step k skips to it without parsing what it skips.
"""

import math

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.inputs.batches import (
    PARALLEL_CALLS,
    PREFETCHED,
    resolved,
    token_batches,
    without_autograph,
)
from keras_bert.records import DataFolder
from keras_bert.tasks.pretraining.metrics import part_of_step
from keras_bert.tasks.pretraining.records import RecordReader

# Examples are shuffled in windows of this many, read from several shards at once: whole epochs of
# small data, and some tens of MiB at a time of any other.
_WINDOW = 1 << 15
_SHARDS_AT_ONCE = 16
_RECORDS_OF_A_SHARD = 64  # at a time: single strings cost more to pass on than to read


class WindowBatches:
    """The numbers of batches in the windows of examples, when batches have a number of tokens.

    They are a function of the examples and the settings alone. With them a run resumes in the
    window of its step, and the examples before it are neither parsed nor batched.

    Args:
        folder: the `DataFolder` of the examples.
        counts: those that are known already.

    Attributes: `counts`, for the windows of all epochs one after another; a single number if a
    window is a whole epoch, as all have the same.
    """

    def __init__(self, folder, counts=()):
        self.counts = list(counts)
        self._windows = max(1, math.ceil(folder.card.splits["train"].instances / _WINDOW))

    def add(self, epoch, window, batches):
        """Adds the number of batches of a window, if those of all before it are known."""
        if self._number(epoch, window) == len(self.counts):
            self.counts.append(batches)

    def position_of(self, step):
        """(epoch, window in it, batches to skip there) of a step, or the first unknown window."""
        if self._windows == 1 and self.counts:
            epoch, skipped = divmod(step, self.counts[0])
            return epoch, 0, skipped
        number = 0
        while number < len(self.counts) and self.counts[number] <= step:
            step -= self.counts[number]
            number += 1
        return *divmod(number, self._windows), step

    def _number(self, epoch, window):
        return window if self._windows == 1 else epoch * self._windows + window


@without_autograph
def training_dataset(
    folder,
    *,
    vocabulary,
    seed,
    batch_size=None,
    batch_tokens=None,
    first_step=0,
    task=None,
    window_batches=None,
):
    """Returns the endless batches of the train split.

    Args:
        folder: a `DataFolder`.
        vocabulary: its `Vocabulary`.
        batch_size: B, examples per batch.
        batch_tokens: positions per batch, instead of `batch_size`: batches are then of examples of
            similar length, as many as fit (see `window_batches`).
        seed: the order of the examples and dynamic masks depend on it and on the epoch alone.
        first_step: the number of batches to skip.
        task: the pre-training task that takes the batches; None returns all that examples have.
        window_batches: with `batch_tokens` a `WindowBatches`, to find `first_step`, to which new
            counts are added. None counts from the first example on.

    Returns:
        A `tf.data.Dataset` of (x, y, sample_weight) for a task's `fit`, with static shapes if
        `batch_size` is given.

    Raises:
        InputError: the split has no examples, or not the labels of the task.
    """
    count = folder.card.splits["train"].instances
    if not count:
        raise InputError(f"{folder.path} has no training examples. Make the data from more text.")
    read = RecordReader(folder, vocabulary, seed=seed, task=task, training=True)
    if batch_tokens is not None:
        counted = window_batches or WindowBatches(folder)
        *first, skipped = counted.position_of(first_step)
        dataset = _batches_of_tokens(
            folder, tokens=batch_tokens, seed=seed, first=first, on_window=counted.add
        )
        dataset = dataset.skip(skipped)
        dataset = dataset.map(read, num_parallel_calls=PARALLEL_CALLS)
        return resolved(dataset).prefetch(PREFETCHED)
    first_epoch, first_example = divmod(first_step * batch_size, count)

    def examples_of_epoch(epoch):
        skipped = tf.where(epoch == first_epoch, tf.constant(first_example, tf.int64), 0)
        windows = _shuffled_windows(folder, seed=seed, epoch=epoch, skipped=skipped)
        return windows.map(lambda window: (window, tf.fill(tf.shape(window), epoch)))

    dataset = tf.data.Dataset.counter(first_epoch).flat_map(examples_of_epoch)
    dataset = dataset.rebatch(batch_size, drop_remainder=True)
    dataset = dataset.map(
        lambda serialized, epochs: read(serialized, epochs, tf.ones([batch_size])),
        num_parallel_calls=PARALLEL_CALLS,
    )
    return resolved(dataset).prefetch(PREFETCHED)


@without_autograph
def parts_of_steps(dataset, parts):
    """The batches of `training_dataset`, of which so many are a step.

    The loss of a batch is a mean over its own predictions, and accumulated gradients are averaged
    over the batches. That is the gradient of the whole step only if all parts have the same
    number of predictions, so that each gets a factor: its predictions by their mean over the parts.
    """
    if parts == 1:
        return dataset

    def joined_step(*batches):  # datasets, in the structure of a batch
        batches = tf.data.Dataset.zip(batches)
        totals = batches.map(lambda x, y, weights: sums(weights))
        zeros = tf.nest.map_structure(lambda spec: tf.zeros([]), totals.element_spec)
        total = totals.reduce(zeros, lambda one, other: tf.nest.map_structure(tf.add, one, other))

        def with_factors(x, y, weights):
            factors = {}
            for name, predictions in sums(weights).items():
                factor = tf.math.divide_no_nan(parts * predictions, total[name])
                factor = tf.repeat(factor, tf.shape(weights[name])[0])
                factors[part_of_step(name)] = tf.ensure_shape(factor, weights[name].shape[:1])
            return x, y, weights | factors

        return batches.map(with_factors)

    def sums(weights):
        return {name: tf.reduce_sum(weight) for name, weight in weights.items()}

    dataset = dataset.window(parts, drop_remainder=True).flat_map(joined_step)
    return resolved(dataset).prefetch(PREFETCHED)


@without_autograph
def evaluation_dataset(folder, *, vocabulary, batch_size, batches=None, task=None):
    """Returns the batches of the eval split, every example once and always in the same order.

    The last batch is filled up with examples of weight 0, so that shapes are static. `batches` is
    their maximum number (None: the whole split). An empty split gives an empty dataset. `task` is
    as in `training_dataset`.
    """

    def fill_up(serialized):
        count = tf.size(serialized)
        filling = tf.repeat(serialized[:1], batch_size - count)
        serialized = tf.ensure_shape(tf.concat([serialized, filling], axis=0), [batch_size])
        return serialized, tf.cast(tf.range(batch_size) < count, tf.float32)

    count = math.ceil(folder.card.splits["eval"].instances / batch_size)
    if batches is not None:
        count = min(count, batches)
    dataset = tf.data.TFRecordDataset(folder.shards("eval"), folder.compression)
    dataset = dataset.batch(batch_size).take(count).map(fill_up)
    read = RecordReader(folder, vocabulary, seed=folder.card.seed, task=task, training=False)
    dataset = dataset.map(
        lambda serialized, weights: read(serialized, tf.zeros([batch_size], tf.int64), weights),
        num_parallel_calls=PARALLEL_CALLS,
    )
    # Otherwise Keras warns at the end of the dataset.
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(count))
    return resolved(dataset).prefetch(PREFETCHED)


def check_sequences_fit(folder, config, task_class, *, source):
    """Raises `InputError` if a model of `config`, which came from `source`, is too small.

    Masked tokens of pairs need two segments; a `task_class` without them reads pairs as one.
    """
    longest = folder.card.max_length
    if config.max_length is not None and longest > config.max_length:
        raise InputError(
            f"The examples of {folder.path} have up to {longest} tokens, but the model has only "
            f"{config.max_length} positions. Make shorter examples, or use an architecture with "
            "more positions."
        )
    if folder.card.has_pairs and not config.num_segments and task_class.MASKED_OUTPUTS:
        raise InputError.naming(
            "The examples of {} have two segments, but {} has one "
            '(type_vocab_size 1). Make the data with {objective="mlm"}, or use an architecture '
            "with two.",
            folder.path,
            source,
        )


def pretraining_dataset(data, *, split, **options):
    """`training_dataset` (with seed 0 by default) or `evaluation_dataset`, depending on the split.

    `data` is a `DataFolder` or the path of one.
    """
    if split not in ("train", "eval"):
        raise ValueError(f"`split` must be 'train' or 'eval'. Received: {split!r}.")
    folder = data if isinstance(data, DataFolder) else DataFolder.open(data)
    if split == "train":
        return training_dataset(folder, **{"seed": 0, **options})
    return evaluation_dataset(folder, **options)


def _shuffled_windows(folder, *, seed, epoch, skipped):
    """The serialized examples of an epoch, in vectors (≤ window,), without the first `skipped`."""
    # Not Dataset.shuffle: its order depends on the process's global seed as well, and it can resume
    # only by drawing every example before.
    paths = tf.random.experimental.stateless_shuffle(folder.shards("train"), seed=[seed, epoch])
    records = tf.data.Dataset.from_tensor_slices(paths).interleave(
        lambda path: tf.data.TFRecordDataset(path, folder.compression).batch(_RECORDS_OF_A_SHARD),
        cycle_length=_SHARDS_AT_ONCE,
        num_parallel_calls=PARALLEL_CALLS,
        deterministic=True,
    )
    first = skipped // _WINDOW

    def shuffle(index, window):
        # (seed, epoch) is the key of the shards' shuffle, so the second number differs here.
        key = tf.stack([tf.cast(seed, tf.int64), epoch + (index + 1) * 2**32])
        window = tf.random.experimental.stateless_shuffle(window, seed=key)
        return window[tf.where(index == first, skipped % _WINDOW, 0) :]

    return records.rebatch(_WINDOW).enumerate().skip(first).map(shuffle)


def _batches_of_tokens(folder, *, tokens, seed, first, on_window):
    """Endless batches: serialized examples, their epochs and weights, (B,) each, and the length.

    They begin at `first`, an epoch and a window in it. `on_window` is called with the epoch, the
    window and the number of its batches.
    """
    first_epoch, first_window = first

    def plan(lengths, epoch, index):
        rng = np.random.default_rng([seed, epoch, index])
        longest = folder.card.max_length
        numbers, sizes, widths = token_batches(lengths, max_length=longest, tokens=tokens, rng=rng)
        on_window(int(epoch), int(index), len(sizes))
        return numbers, sizes, widths

    def batches_of_window(index, window, epoch):
        types = (tf.int32,) * 3
        numbers, sizes, widths = tf.numpy_function(
            plan, [_lengths(folder, window), epoch, index], types
        )
        batches = tf.RaggedTensor.from_row_lengths(tf.ensure_shape(numbers, [None]), sizes)
        parts = tf.data.Dataset.from_tensor_slices((batches, tf.ensure_shape(widths, [None])))
        return parts.map(lambda numbers, width: taken(window, epoch, numbers, width))

    def taken(window, epoch, numbers, width):
        serialized = tf.gather(window, tf.maximum(numbers, 0))
        weights = tf.cast(numbers >= 0, tf.float32)  # 0 for what fills up a batch
        return serialized, tf.fill(tf.shape(numbers), epoch), weights, width

    def batches_of_epoch(epoch):
        begin = tf.where(epoch == first_epoch, tf.constant(first_window, tf.int64), 0)
        windows = _shuffled_windows(folder, seed=seed, epoch=epoch, skipped=begin * _WINDOW)
        windows = windows.enumerate()
        return windows.flat_map(
            lambda index, window: batches_of_window(begin + index, window, epoch)
        )

    return tf.data.Dataset.counter(first_epoch).flat_map(batches_of_epoch)


def _lengths(folder, window):
    """The numbers of tokens of serialized examples: (N,) -> int64 (N,)."""
    name = "segment_lengths" if folder.spec.kind == "compact" else "input_mask"
    feature = tf.io.FixedLenFeature([folder.spec.lengths[name]], tf.int64)
    return tf.reduce_sum(tf.io.parse_example(window, {name: feature})[name], axis=1)
