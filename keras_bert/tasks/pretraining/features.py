"""The examples of a data folder as the batches that a pre-training task trains on.

A batch is (x, y, sample_weight), dictionaries by name (B examples, S length, P predictions, as many
as an example of that length can have):

- x: `input_ids`, `input_mask`, `segment_ids` (B, S), `masked_lm_positions` (B, P), and for the
  objective "span" `span_left`, `span_right`, `span_offset` (B, P), all int32; padding is 0
- y: `masked_lm` (B, P), for "mlm-nsp" `next_sentence` (B,), for "mlm-sop" `sentence_order` (B,),
  and for "span" `span_boundary` (B, P), the same tokens again; int32
- sample_weight: for each of y a float32 of its shape, 1 if it counts and 0 at padding

A batch that is one of several parts of a step also has, for each of y, a float32 (B,) under
`part_of_step(NAME)` among its sample weights: by how much its mean loss is multiplied, so that the
mean over the parts is the loss of the whole step (see `parts_of_steps`).

A task of static vectors gets the tokens of the batch in chunks instead: see `static_vectors`.

A task gets those that it has inputs and outputs for. A task with an output `causal_lm` gets
examples without masks, with the labels (B, S - 1), the token after each position; `forward_lm` is
the same, and `backward_lm` the token before each position. If it predicts masked tokens as well,
these examples are `causal_input_ids` and `causal_input_mask`: in training the first of the batch, a
fraction `causal_fraction`, while the others are masked; in evaluation every example is both.

All epochs are one endless stream, and batch k has its examples k * B to (k + 1) * B. The order
within an epoch is a function of (seed, epoch) alone, so the position in the data is a function of
the step, and a run that starts at step k skips to it without parsing what it skips.

Examples that were stored without masks (dynamic) are masked here, in batches: in training the masks
are a function of an example's tokens, the seed and the epoch; in evaluation they are those of
epoch 0 and of the seed that made the data.
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
from keras_bert.records import STATIC_VECTORS, DataFolder
from keras_bert.records.masking import example_keys
from keras_bert.records.padding import pad
from keras_bert.records.specs import PREDICTION_FEATURES, SPAN_FEATURES
from keras_bert.tasks.pretraining.metrics import part_of_step
from keras_bert.tasks.pretraining.static_vectors import CHUNK_NEGATIVES, CHUNK_TOKENS, Chunks

# Examples are shuffled in windows of this many, read from several shards at once: whole epochs of
# small data, and some tens of MiB at a time of any other.
_WINDOW = 1 << 15
_SHARDS_AT_ONCE = 16
_RECORDS_OF_A_SHARD = 64  # at a time: single strings cost more to pass on than to read

# The names that have one value per prediction, in padded examples and in batches.
_PER_PREDICTION = (
    *PREDICTION_FEATURES,
    *SPAN_FEATURES,
    *("masked_lm_weights", "masked_lm", "span_boundary"),
)
# The labels (B, S - 1) of neighbouring tokens, which any example has.
_OF_NEIGHBOURS = ("causal_lm", "forward_lm", "backward_lm")
# The label of examples with two segments.
_SENTENCES = {"mlm-nsp": "next_sentence", "mlm-sop": "sentence_order"}


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
    read = _Reader(folder, vocabulary, seed=seed, task=task, training=True)
    if batch_tokens is not None:
        known = window_batches or WindowBatches(folder)
        *first, skipped = known.position_of(first_step)
        dataset = _batches_of_tokens(
            folder, tokens=batch_tokens, seed=seed, first=first, on_window=known.add
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
    over the batches. That is the gradient of the whole step only where all parts have the same
    number of predictions, so that each gets a factor: its predictions by their mean over the parts.
    """
    if parts == 1:
        return dataset

    def of_step(*batches):  # datasets, in the structure of a batch
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

    dataset = dataset.window(parts, drop_remainder=True).flat_map(of_step)
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
    read = _Reader(folder, vocabulary, seed=folder.card.seed, task=task, training=False)
    dataset = dataset.map(
        lambda serialized, weights: read(serialized, tf.zeros([batch_size], tf.int64), weights),
        num_parallel_calls=PARALLEL_CALLS,
    )
    # Otherwise Keras warns at the end of the dataset.
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(count))
    return resolved(dataset).prefetch(PREFETCHED)


def labels_of(folder):
    """The names of the labels that the examples of a `DataFolder` have."""
    objective = folder.card.objective
    names = ["masked_lm", *_OF_NEIGHBOURS]
    if objective in _SENTENCES:
        names.append(_SENTENCES[objective])
    names += [name.replace("-", "_") for name in STATIC_VECTORS]
    return [*names, "span_boundary"] if objective == "span" else names


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


class _Reader:
    """Turns serialized examples, their epochs and weights, (B,) each, into (x, y, sample_weight).

    With a `width`, the length of the longest example of the batch or more, S is that. P is the
    maximum for S tokens, and not that of the data, as each prediction has V logits.
    """

    def __init__(self, folder, vocabulary, *, seed, task, training):
        card = folder.card
        self.task = task
        outputs = () if task is None else task.output
        missing = [name for name in outputs if name not in labels_of(folder)]
        if missing:
            raise InputError(
                f"A {type(task).__name__} needs {missing[0].replace('_', '-')} labels, but "
                f"{folder.path} was made for the objective {card.objective}."
            )
        self.is_causal = any(name in outputs for name in _OF_NEIGHBOURS)
        self.is_masked = task is None or "masked_lm" in outputs
        self.training = training
        self.spec = folder.spec
        self.template = card.template
        self.vocabulary_size = card.vocabulary.size
        self.max_length = card.max_length
        self.most_predictions = card.most_predictions(np.arange(card.max_length + 1))
        self.max_predictions = int(self.most_predictions[-1])
        self.sentences = _SENTENCES.get(card.objective)
        self.spans = SPAN_FEATURES if card.objective == "span" else ()
        self.seed = seed
        self.context_windows = None
        if task is not None:
            self.context_windows = task.context_windows(card, vocabulary)
        self.masker = card.masker(vocabulary) if self.is_masked or self.is_causal else None

    def __call__(self, serialized, epochs, sequence_weights, width=None):
        parts = self._read(serialized, epochs, sequence_weights)
        if width is None or self.context_windows is not None:
            return parts
        predictions = tf.gather(self.most_predictions, width)
        return tuple(_narrowed(part, width, predictions) for part in parts)

    def _read(self, serialized, epochs, sequence_weights):
        batch = self.spec.parse(serialized)
        for name in ("input_ids", "masked_lm_ids"):
            if name in batch:
                batch[name] = _in_range(batch[name], self.vocabulary_size)
        if self.spec.kind == "compact":
            batch = pad(batch, self.max_length, self.max_predictions, template=self.template)
        else:
            batch = _narrowed(batch, self.max_length, self.max_predictions)
        if self.context_windows is not None:
            return self._chunks(batch, epochs, sequence_weights)
        if not self.is_causal:
            return self._for_task(*self._masked(batch, epochs, sequence_weights))
        if not self.is_masked:
            return self._for_task(*self._causal(batch, sequence_weights))
        masked, causal = slice(None), slice(None)
        if self.training:
            count = sequence_weights.shape[0]
            first = min(max(round(self.task.causal_fraction * count), 1), count - 1)
            masked, causal = slice(first, None), slice(first)

        def taken(some):
            return {name: value[some] for name, value in batch.items()}

        x, y, weights = self._causal(taken(causal), sequence_weights[causal])
        of_masked = self._masked(taken(masked), epochs[masked], sequence_weights[masked])
        x = {f"causal_{name}": value for name, value in x.items()}
        parts = zip((x, y, weights), of_masked, strict=True)
        return self._for_task(*(one | other for one, other in parts))

    def _causal(self, batch, sequence_weights):
        """(x, y, sample_weight) of examples as they were before they were masked."""
        x = {name: batch[name] for name in ("input_mask", "segment_ids")}
        x["input_ids"] = _unmasked(batch)
        counts = tf.cast(x["input_mask"][:, 1:], tf.float32) * sequence_weights[:, None]
        following, before = x["input_ids"][:, 1:], x["input_ids"][:, :-1]
        y = {"causal_lm": following, "forward_lm": following, "backward_lm": before}
        return x, y, dict.fromkeys(y, counts)

    def _chunks(self, batch, epochs, sequence_weights):
        """(x, y, sample_weight) of static vectors, from examples as they were before masking.

        The number of chunks depends on the tokens that are kept.
        """
        lengths = tf.reduce_sum(batch["input_mask"], axis=1) * tf.cast(sequence_weights, tf.int32)
        given = [_unmasked(batch), batch["segment_ids"], lengths, epochs]
        windows = self.context_windows

        def chunked(ids, segments, lengths, epochs):
            return windows(ids, segments, lengths, seed=self.seed, epochs=epochs)

        found = Chunks(*tf.numpy_function(chunked, given, [tf.int32] * len(Chunks._fields)))
        length = CHUNK_TOKENS + 2 * windows.window
        sizes = (length, length, CHUNK_TOKENS, CHUNK_TOKENS, CHUNK_NEGATIVES)
        pairs = zip(found, sizes, strict=True)
        found = Chunks(*(tf.ensure_shape(value, [None, size]) for value, size in pairs))
        (name,) = self.task.output
        counts = found.contexts_before + found.contexts_after
        if name == "cbow":  # one prediction per token
            counts = tf.minimum(counts, 1)
        own = found.input_ids[:, windows.window : -windows.window]
        return found._asdict(), {name: own}, {name: tf.cast(counts, tf.float32)}

    def _masked(self, batch, epochs, sequence_weights):
        """(x, y, sample_weight) of masked examples, with the other labels of their objective."""
        if self.masker is not None:
            batch |= self._mask_in_graph(batch, epochs)
        names = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions", *self.spans)
        x = {name: batch[name] for name in names}
        y = {"masked_lm": batch["masked_lm_ids"]}
        weights = {"masked_lm": batch["masked_lm_weights"] * sequence_weights[:, None]}
        if self.sentences:
            y[self.sentences] = tf.squeeze(batch["next_sentence_labels"], axis=1)
            weights[self.sentences] = sequence_weights
        if self.spans:
            y["span_boundary"], weights["span_boundary"] = y["masked_lm"], weights["masked_lm"]
        return x, y, weights

    def _for_task(self, x, y, weights):
        """Those of the names that the task has inputs and outputs for."""
        if self.task is None:
            return x, y, weights
        if "span_boundary" in self.task.output:
            # Larger offsets have no embedding.
            near = tf.cast(x["span_offset"] <= self.task.max_span_length, tf.float32)
            weights["span_boundary"] *= near
        return (
            {name: x[name] for name in self.task.input},
            *({name: part[name] for name in self.task.output} for part in (y, weights)),
        )

    def _mask_in_graph(self, batch, epochs):
        predictions = ("masked_lm_positions", "masked_lm_ids", *self.spans)
        names = ("input_ids", "masked_lm_weights", *predictions)
        types = (tf.int32, tf.float32, *[tf.int32] * len(predictions))
        masked = tf.numpy_function(
            self._mask, [batch["input_ids"], batch["input_mask"], epochs], types
        )
        count = batch["input_ids"].shape[0]
        widths = (self.max_length, *[self.max_predictions] * (1 + len(predictions)))
        return {
            name: tf.ensure_shape(value, [count, width])
            for name, value, width in zip(names, masked, widths, strict=True)
        }

    def _mask(self, input_ids, input_mask, epochs):
        lengths = input_mask.sum(axis=1)
        keys = example_keys(input_ids, lengths, seed=self.seed, epoch=epochs)
        masked = self.masker.mask(input_ids, lengths, keys)
        filled = np.arange(self.max_predictions) < masked.positions[1][:, None]  # (B, P)
        result = [masked.input_ids.astype(np.int32), filled.astype(np.float32)]
        for field in ("positions", "ids", *self.spans):
            values = np.zeros(filled.shape, np.int32)
            values[filled] = getattr(masked, field)[0]
            result.append(values)
        return result


def _in_range(ids, size):
    """The ids, checked, because a GPU does not raise an error for those out of range."""
    values = ids.flat_values if isinstance(ids, tf.RaggedTensor) else ids
    message = "An id is not in the vocabulary."
    checks = [
        tf.debugging.assert_non_negative(values, message=message),
        tf.debugging.assert_less(values, size, message=message),
    ]
    with tf.control_dependencies([check for check in checks if check is not None]):
        values = tf.identity(values)
    return ids.with_flat_values(values) if isinstance(ids, tf.RaggedTensor) else values


def _narrowed(part, width, predictions):
    """The first `width` columns of what has one value per position, or `predictions` of others."""
    widths = dict.fromkeys(("input_ids", "input_mask", "segment_ids"), width)
    widths |= dict.fromkeys(_OF_NEIGHBOURS, width - 1)
    widths |= dict.fromkeys(_PER_PREDICTION, predictions)
    return {name: x[:, : widths[name]] if name in widths else x for name, x in part.items()}


def _unmasked(batch):
    """The tokens (B, S) of padded examples before static masking, if there was any."""
    if "masked_lm_positions" not in batch:
        return batch["input_ids"]
    offsets = tf.where(batch["masked_lm_weights"] > 0)  # (N, 2): example and prediction
    columns = tf.gather_nd(batch["masked_lm_positions"], offsets)  # (N,)
    positions = tf.stack([offsets[:, 0], tf.cast(columns, tf.int64)], axis=1)
    tokens = tf.gather_nd(batch["masked_lm_ids"], offsets)
    return tf.tensor_scatter_nd_update(batch["input_ids"], positions, tokens)
