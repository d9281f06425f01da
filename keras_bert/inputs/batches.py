"""Batches of rows: of about the same length, of about as many tokens, in parts for devices."""

import numpy as np
import tensorflow as tf

# Calls of one map at the same time, and batches made ahead, where a dataset does not need more.
PARALLEL_CALLS = 2
PREFETCHED = 4


def resolved(dataset):
    """The dataset in a fixed order and with the parallelism that it was made with.

    The autotuner is off: destroying an iterator waits for its thread, which wakes at doubling
    intervals of up to a minute.
    """
    options = tf.data.Options()
    options.deterministic = True
    options.autotune.enabled = False
    return dataset.with_options(options)


@tf.autograph.experimental.do_not_convert  # it writes Python files into the temporary folder
def planned_batches(plan, batch):
    """The dataset of `batch(rows)` for each array of row numbers in `plan`."""
    rows = np.concatenate([np.empty(0, np.int32), *plan]).astype(np.int32)
    batches = tf.RaggedTensor.from_row_lengths(rows, [len(numbers) for numbers in plan])
    dataset = tf.data.Dataset.from_tensor_slices(batches)
    dataset = dataset.map(batch, num_parallel_calls=PARALLEL_CALLS, deterministic=True)
    return resolved(dataset.prefetch(PREFETCHED))


# So many batches are drawn at random before their rows are sorted by length: enough for batches of
# even length, few enough that the rows of a batch stay a random choice.
_BATCHES_SORTED_TOGETHER = 64


def shuffled_batches(lengths, *, count, seed, epoch):
    """The rows of each batch of one epoch, in an order that depends on (seed, epoch) alone.

    Shapes: lengths (N,) int -> a list of `count` arrays of row numbers. Every row is in one of
    them, and their sizes differ by one at most, so that each row has about the same weight.
    """
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(lengths))
    edges = np.arange(count + 1) * len(lengths) // count
    batches = []
    for first in range(0, count, _BATCHES_SORTED_TOGETHER):
        last = min(first + _BATCHES_SORTED_TOGETHER, count)
        group = order[edges[first] : edges[last]]
        group = group[np.argsort(lengths[group], kind="stable")]
        batches += np.split(group, edges[first + 1 : last] - edges[first])
    return [batches[index] for index in rng.permutation(count)]


def sorted_batches(lengths, *, batch_size):
    """The rows of each batch from the shortest to the longest row, for evaluation."""
    rows = np.argsort(lengths, kind="stable")
    return [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]


# A compiler meets at most so many shapes.
_WIDTHS = 8


def bucket_widths(max_length):
    """The widths that rows are padded to: rising, multiples of 8 but for the last, `max_length`."""
    step = 8 * -(-max_length // (8 * _WIDTHS))
    return [*range(step, max_length, step), max_length]


def token_batches(lengths, *, max_length, tokens, rng):
    """Parts rows into batches of at most `tokens` positions, all of a width of as many rows.

    What does not fill a batch goes into the next wider ones; of the widest, the last batch is
    filled up. Every row is in one batch, and the order of the batches is drawn.

    Shapes: lengths int (N,), in the order in which rows are taken -> (rows int32 (M,), of all
    batches one after another, -1 where a batch is filled up; sizes int32 (K,); widths int32 (K,)).

    Args:
        max_length: of a row; at most `tokens`.
        tokens: positions of a batch, padding counted in.
        rng: a numpy generator.
    """
    batches, waiting, narrower = [], np.empty(0, np.int32), 0
    for width in bucket_widths(max_length):
        own = np.flatnonzero((lengths > narrower) & (lengths <= width)).astype(np.int32)
        rows, size, narrower = np.concatenate([waiting, own]), tokens // width, width
        whole = len(rows) // size * size
        batches += [(batch, width) for batch in rows[:whole].reshape(-1, size)]
        waiting = rows[whole:]
    if len(waiting):
        filling = np.full(size - len(waiting), -1, np.int32)
        batches.append((np.concatenate([waiting, filling]), max_length))
    batches = [batches[number] for number in rng.permutation(len(batches))]
    rows = np.concatenate([np.empty(0, np.int32), *(batch for batch, _ in batches)])
    sizes = np.array([len(batch) for batch, _ in batches], np.int32)
    return rows, sizes, np.array([width for _, width in batches], np.int32)


def tokens_a_batch(histogram, *, tokens):
    """The tokens of a batch on average, padding not counted, or None where nothing is known.

    `histogram` (S + 1,) counts rows by their tokens.
    """
    counts = np.asarray(histogram)
    if not counts.sum():
        return None
    lengths = np.arange(len(counts))
    widths = np.array(bucket_widths(len(counts) - 1))
    of_length = widths[np.searchsorted(widths, lengths)]
    return float((counts * lengths).sum() / (counts / (tokens // of_length)).sum())


class SequenceBatches:
    """Rows that batches are made of by their numbers; a subclass says how, in `batch`.

    Which rows make which batch is settled before training starts, so that a run can begin at any
    step; it depends on nothing but the arguments.

    Args:
        lengths: int (N,), the tokens of each row; batches are of rows of about one length.
    """

    def __init__(self, lengths):
        self.lengths = lengths

    def __len__(self):
        return len(self.lengths)

    def batch(self, rows):
        """What `fit` takes for rows of these numbers, int32 (B,): (inputs, labels[, weights])."""
        raise NotImplementedError

    @property
    def weight_totals(self):
        """The sum of the weights of all rows by the output's name, where labels have weights."""
        return {}

    def training_batches(self, *, steps, seed, epochs=1, first_step=0):
        """A dataset of `epochs` times `steps` batches, less the first `first_step`.

        In each epoch every row is in one of the batches, with others of about its length.
        """
        plan = []
        for epoch in range(epochs):
            plan += shuffled_batches(self.lengths, count=steps, seed=seed, epoch=epoch)
        return planned_batches(plan[first_step:], self.batch)

    def shuffled(self, *, batch_size, seed, epochs):
        """`training_batches` of up to `batch_size` rows."""
        return self.training_batches(steps=-(-len(self) // batch_size), seed=seed, epochs=epochs)

    def evaluation_batches(self, *, batch_size):
        """A dataset of every row once, from the shortest to the longest."""
        return planned_batches(sorted_batches(self.lengths, batch_size=batch_size), self.batch)


def parts(dataset, numbers, *, of):
    """The batches of a dataset in parts: of each batch those of the given numbers, one by one.

    Part r of n has the rows [B r / n, B (r + 1) / n) of a batch of B rows, so that all parts
    together are the batch, and differ by one row at most.

    Args:
        dataset: batches, tensors of B rows.
        numbers: a range within [0, n).
        of: n.
    """

    def split(*batch):
        found = [_part(batch, number, of) for number in numbers]
        together = tf.data.Dataset.from_tensors(found[0])
        for part in found[1:]:
            together = together.concatenate(tf.data.Dataset.from_tensors(part))
        return together

    return resolved(dataset.flat_map(split)).prefetch(PREFETCHED)


def _part(batch, number, of):
    def cut(x):
        first, last = (tf.shape(x)[0] * n // of for n in (number, number + 1))
        rows = x.shape[0]
        if rows is not None:  # a shape that is known stays known
            rows = rows * (number + 1) // of - rows * number // of
        return tf.ensure_shape(x[first:last], [rows, *x.shape[1:]])

    return tf.nest.map_structure(cut, batch)
