"""Which examples make which batch: by length, by a number of tokens, in parts for devices."""

import weakref
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import tensorflow as tf

from keras_bert.programs import keep_input_on_cpu
from keras_bert.programs.datasets import (
    PARALLEL_CALLS,
    PREFETCHED,
    resolved,
    sorted_batches,
)

keep_input_on_cpu()

# Batches whose examples are sorted by length together: enough for batches of even length, few
# enough that the examples of a batch remain a random choice.
_BATCHES_PER_SORT = 64
# The most sequence lengths that a compiler meets.
_LENGTHS = 8

_Function = TypeVar("_Function", bound=Callable)


def without_autograph(function: _Function) -> _Function:
    """The function as it is, if AutoGraph would write Python files to a temporary folder."""
    return tf.autograph.experimental.do_not_convert(function)


def kept_by_dataset(method: Callable) -> Callable:
    """Returns a function that calls a method without keeping its object, which the dataset does.

    It is for `tf.numpy_function`, whose functions TensorFlow keeps as long as the process lives.
    """
    reference = weakref.WeakMethod(method)
    return lambda *args, **kwargs: reference()(*args, **kwargs)


@without_autograph
def planned_batches(plan, batch):
    """The dataset of `batch(numbers)` for each array of example numbers in `plan`."""
    return _mapped(_slices(*_flat(plan)), batch)


def _flat(plan):
    """Arrays of example numbers, one per batch -> int32 (all numbers, their number per batch)."""
    numbers = np.concatenate([np.empty(0, np.int32), *plan]).astype(np.int32)
    return numbers, np.array([len(batch) for batch in plan], np.int32)


def _slices(numbers, sizes):
    """The dataset of the example numbers of each batch, from those of `_flat`."""
    return tf.data.Dataset.from_tensor_slices(tf.RaggedTensor.from_row_lengths(numbers, sizes))


def _mapped(dataset, batch):
    dataset = dataset.map(batch, num_parallel_calls=PARALLEL_CALLS, deterministic=True)
    return resolved(dataset.prefetch(PREFETCHED))


def shuffled_batches(lengths, *, count, seed, epoch):
    """The examples of each batch of one epoch, in an order that depends on (seed, epoch) alone.

    Every example is in one batch, together with others of about its length; the sizes of batches
    differ by at most one.

    Shapes: lengths (N,) int -> a list of `count` arrays of example numbers.
    """
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(lengths))
    edges = np.arange(count + 1) * len(lengths) // count
    batches = []
    for first in range(0, count, _BATCHES_PER_SORT):
        last = min(first + _BATCHES_PER_SORT, count)
        group = order[edges[first] : edges[last]]
        group = group[np.argsort(lengths[group], kind="stable")]
        batches += np.split(group, edges[first + 1 : last] - edges[first])
    return [batches[index] for index in rng.permutation(count)]


def distinct_batches(rows, *, count, seed, epoch):
    """The examples of each batch of one epoch in random order, no text twice in a batch.

    An example goes into the first batch with room that is after all that have one of its texts, or,
    at the end, before them. The sizes of batches differ by at most one, unless a text is in more
    examples than there are batches: those that are left then are in no batch.

    Args:
        rows: for each of N examples the numbers of its texts, from 0; () of any other examples.
        count: the number of batches.
        seed, epoch: what the order depends on.

    Returns:
        A list of `count` int32 arrays of example numbers.
    """
    rng = np.random.default_rng([seed, epoch])
    edges = np.arange(count + 1) * len(rows) // count
    room, batches = np.diff(edges).tolist(), [[] for _ in range(count)]
    batch_texts, last, first, waiting = [set() for _ in range(count)], {}, 0, []

    def add(example, batch):
        batches[batch].append(example)
        room[batch] -= 1
        for text in rows[example]:
            batch_texts[batch].add(text)
            last[text] = max(batch, last.get(text, -1))

    for example in rng.permutation(len(rows)).tolist():
        while first < count and not room[first]:
            first += 1
        batch = max([first, *(last.get(text, -1) + 1 for text in rows[example])])
        while batch < count and not room[batch]:
            batch += 1
        if batch < count:
            add(example, batch)
        else:
            waiting.append(example)
    for example in waiting:
        texts = rows[example]
        fitting = (k for k in range(first, count) if room[k] and batch_texts[k].isdisjoint(texts))
        if (batch := next(fitting, None)) is not None:
            add(example, batch)
    return [np.array(batch, np.int32) for batch in batches]


# Examples of one label that `label_batches` puts into a batch together.
_EXAMPLES_PER_LABEL = 4


def label_batches(labels, *, count, seed, epoch):
    """The examples of each batch of one epoch in random order, some of the same label together.

    The examples of a label are divided into groups of `_EXAMPLES_PER_LABEL` at random, and a batch
    has groups of random labels (Hermans et al. 2017). The sizes of batches differ by at most one,
    so that the last group of a batch may continue in the next one.

    Shapes: labels int (N,) -> a list of `count` int32 arrays of example numbers.
    """
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    begins = np.flatnonzero(np.diff(labels[order], prepend=labels[order[0]] - 1))
    groups = [
        group[start : start + _EXAMPLES_PER_LABEL]
        for group in np.split(order, begins[1:])
        for start in range(0, len(group), _EXAMPLES_PER_LABEL)
    ]
    order = np.concatenate([groups[number] for number in rng.permutation(len(groups))])
    return np.split(order.astype(np.int32), np.arange(1, count) * len(labels) // count)


def file_batches(files, weights, batches_of, *, count, seed, epoch):
    """The examples of each batch of one epoch in random order, each batch of one file.

    Of `count` batches a file has the number that is nearest to its part of the weights. Its
    examples come in passes over all of them: an epoch continues where the one before has ended, so
    that a small file is read several times, and a large one in part.

    Args:
        files: a list of arrays of example numbers, those of each file.
        weights: of each file.
        batches_of: a function of the numbers of some examples, `count` and `epoch` to the batches
            of one pass, a list of arrays of these numbers.
        count: the number of batches.
        seed, epoch: what the order depends on.

    Returns:
        A list of `count` arrays of example numbers, and the number of batches of each file.
    """
    parts = np.asarray(weights, np.float64) * count / np.sum(weights)
    counts = np.floor(parts).astype(int)
    largest = np.argsort(counts - parts, kind="stable")[: count - counts.sum()]
    counts[largest] += 1
    size, batches = -(-sum(map(len, files)) // count), []
    for numbers, taken in zip(files, counts.tolist(), strict=True):
        in_pass = -(-len(numbers) // size)
        done, passes = epoch * taken, {}
        for place in range(done, done + taken):
            number, position = divmod(place, in_pass)
            if number not in passes:
                passes[number] = batches_of(numbers, count=in_pass, epoch=number)
            batches.append(passes[number][position])
    order = np.random.default_rng([seed, epoch]).permutation(len(batches))
    return [batches[number] for number in order], counts.tolist()


def bucket_lengths(max_length):
    """The lengths that sequences are padded to: rising multiples of 8, and last `max_length`."""
    step = 8 * -(-max_length // (8 * _LENGTHS))
    return [*range(step, max_length, step), max_length]


def token_batches(lengths, *, max_length, tokens, rng):
    """Batches of at most `tokens` positions, each padded to one of the `bucket_lengths`.

    Sequences that do not fill a batch move to the next longer bucket; the last batch of the longest
    one is filled up. Every sequence is in one batch, and the order of the batches is random.

    Shapes: lengths int (N,), in the order of use -> (numbers int32 (M,), the sequences of all
    batches, -1 as filling; sizes int32 (K,), of the batches; padded lengths int32 (K,)).

    Args:
        max_length: of a sequence; at most `tokens`.
        tokens: positions of a batch, including padding.
        rng: a numpy generator.
    """
    batches, waiting, shorter = [], np.empty(0, np.int32), 0
    for padded in bucket_lengths(max_length):
        fitting = np.flatnonzero((lengths > shorter) & (lengths <= padded)).astype(np.int32)
        numbers, size, shorter = np.concatenate([waiting, fitting]), tokens // padded, padded
        whole = len(numbers) // size * size
        batches += [(batch, padded) for batch in numbers[:whole].reshape(-1, size)]
        waiting = numbers[whole:]
    if len(waiting):
        filling = np.full(size - len(waiting), -1, np.int32)
        batches.append((np.concatenate([waiting, filling]), max_length))
    batches = [batches[number] for number in rng.permutation(len(batches))]
    numbers = np.concatenate([np.empty(0, np.int32), *(batch for batch, _ in batches)])
    sizes = np.array([len(batch) for batch, _ in batches], np.int32)
    return numbers, sizes, np.array([padded for _, padded in batches], np.int32)


def tokens_per_batch(histogram, *, tokens):
    """The mean tokens of a batch without padding; None for an empty histogram.

    `histogram` (S + 1,) counts sequences by their length.
    """
    counts = np.asarray(histogram)
    if not counts.sum():
        return None
    lengths = np.arange(len(counts))
    padded = np.array(bucket_lengths(len(counts) - 1))
    padded = padded[np.searchsorted(padded, lengths)]
    return float((counts * lengths).sum() / (counts / (tokens // padded)).sum())


class SequenceBatches:
    """Examples in memory, batched by their numbers; a subclass defines `batch`.

    The batches are known before training starts and depend on nothing but the arguments, so that a
    run can resume at any step.

    Args:
        lengths: int (N,), the tokens of each sequence; batches have sequences of similar length.
    """

    # {output: sum of all its sample weights}, for outputs that have some.
    weight_totals = {}
    # Whether batches have the labels that the loss takes.
    has_labels = True

    def __init__(self, lengths):
        self.lengths = lengths

    def __len__(self):
        return len(self.lengths)

    def batch(self, numbers):
        """(inputs, labels[, weights]) for `fit`, of the examples int32 (B,)."""
        raise NotImplementedError

    def check_trainable(self):
        """Raises InputError for examples that are for evaluation alone."""

    def epoch_batches(self, *, count, seed, epoch):
        """The numbers of the examples of each batch of an epoch, `count` arrays."""
        return shuffled_batches(self.lengths, count=count, seed=seed, epoch=epoch)

    @without_autograph
    def training_batches(self, *, steps, seed, epochs=1, first_step=0):
        """A dataset of `epochs` times `steps` batches, without the first `first_step`.

        In each epoch every example is in one of the batches, which are chosen when it begins.
        """
        self.check_trainable()
        first_epoch, skipped = divmod(first_step, steps)
        epoch_batches = kept_by_dataset(self.epoch_batches)

        def chosen(epoch):
            plan = epoch_batches(count=steps, seed=seed, epoch=int(epoch))
            return _flat(plan[skipped:] if epoch == first_epoch else plan)

        def batches_of(epoch):
            numbers, sizes = tf.numpy_function(chosen, [epoch], (tf.int32, tf.int32))
            return _slices(tf.ensure_shape(numbers, [None]), tf.ensure_shape(sizes, [None]))

        dataset = tf.data.Dataset.range(first_epoch, epochs).flat_map(batches_of)
        left = max(0, epochs * steps - first_step)
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(left))
        return _mapped(dataset, self.batch)

    def shuffled(self, *, batch_size, seed, epochs):
        """`training_batches` of up to `batch_size` examples."""
        return self.training_batches(steps=-(-len(self) // batch_size), seed=seed, epochs=epochs)

    def evaluation_batches(self, *, batch_size):
        """A dataset of every example once, from the shortest to the longest."""
        return planned_batches(sorted_batches(self.lengths, batch_size=batch_size), self.batch)
