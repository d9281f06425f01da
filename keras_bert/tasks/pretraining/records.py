"""The records of a data folder as the inputs, labels and weights of a pre-training task.

A batch is (x, y, sample_weight), dictionaries by name (B examples, S length, P predictions, as many
as an example of that length can have):

- x: `input_ids`, `input_mask`, `segment_ids` (B, S), `masked_lm_positions` (B, P), and for the
  objective "span" `span_left`, `span_right`, `span_offset` (B, P), all int32; padding is 0
- y: `masked_lm` (B, P), for "mlm-nsp" `next_sentence` (B,), for "mlm-sop" `sentence_order` (B,),
  and for "span" `span_boundary` (B, P), the same tokens again; int32
- sample_weight: for each of y a float32 of its shape, 1 if it counts and 0 at padding

A task that replaces tokens also gets `original_ids` and `masked_lm_index` (B, S), the number of
each token's prediction from 1, 0 without one, and `sampling_draws` (B, P), random numbers that are
a function of an example's tokens, the seed and the epoch; its label `replaced_tokens` is
`original_ids`, and counts where there is a token.

A batch that is one of several parts of a step also has, for each of y, a float32 (B,) under
`part_of_step(NAME)` among its sample weights: by how much its mean loss is multiplied, so that the
mean over the parts is the loss of the whole step (see `parts_of_steps`).

A task of static vectors gets the tokens of the batch in chunks instead: see `static_vectors`.

A task gets those that it has inputs and outputs for. A task with an output `causal_lm` gets
examples without masks, with the labels (B, S - 1), the token after each position; `forward_lm` is
the same, and `backward_lm` the token before each position. If it predicts masked tokens as well,
these examples are `causal_input_ids` and `causal_input_mask`: in training the first of the batch, a
fraction `causal_fraction`, while the others are masked; in evaluation every example is both.

Examples that were stored without masks (dynamic) are masked here, in batches: in training the masks
are a function of an example's tokens, the seed and the epoch; in evaluation they are those of
epoch 0 and of the seed that made the data.
"""

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.records import STATIC_VECTORS
from keras_bert.records.masking import REPLACING, example_keys, uniform
from keras_bert.records.padding import pad
from keras_bert.records.specs import PREDICTION_FEATURES, SPAN_FEATURES
from keras_bert.tasks.pretraining.replaced_tokens import DRAW_BITS
from keras_bert.tasks.pretraining.static_vectors import CHUNK_NEGATIVES, CHUNK_TOKENS, Chunks

# The names that have one value per prediction, in padded examples and in batches.
_PER_PREDICTION = (
    *PREDICTION_FEATURES,
    *SPAN_FEATURES,
    *("masked_lm_weights", "masked_lm", "span_boundary", "sampling_draws"),
)
# Those that have one value per token.
_PER_TOKEN = (
    *("input_ids", "input_mask", "segment_ids"),
    *("original_ids", "masked_lm_index", "replaced_tokens"),
)
# The labels (B, S - 1) of neighbouring tokens, which any example has.
_NEIGHBOUR_LABELS = ("causal_lm", "forward_lm", "backward_lm")
# The label of examples with two segments.
_SENTENCES = {"mlm-nsp": "next_sentence", "mlm-sop": "sentence_order"}


def labels_of(folder):
    """The names of the labels that the examples of a `DataFolder` have."""
    objective = folder.card.objective
    names = ["masked_lm", "replaced_tokens", *_NEIGHBOUR_LABELS]
    if objective in _SENTENCES:
        names.append(_SENTENCES[objective])
    names += [name.replace("-", "_") for name in STATIC_VECTORS]
    return [*names, "span_boundary"] if objective == "span" else names


class RecordReader:
    """Turns serialized examples, their epochs and weights, (B,) each, into (x, y, sample_weight).

    With a `width`, the length of the longest example of the batch or more, S is that. P is the
    maximum for S tokens, and not that of the data, as each prediction has V logits.
    """

    def __init__(self, folder, vocabulary, *, seed, task, training):
        card = folder.card
        # TensorFlow keeps functions in Python, and with them this, as long as the process lives: so
        # it must not hold the task.
        self.inputs = None if task is None else tuple(task.input)
        self.outputs = outputs = () if task is None else tuple(task.output)
        self.settings = None if task is None else task.settings
        missing = [name for name in outputs if name not in labels_of(folder)]
        if missing:
            raise InputError(
                f"A {type(task).__name__} needs {missing[0].replace('_', '-')} labels, but "
                f"{folder.path} was made for the objective {card.objective}."
            )
        self.is_causal = any(name in outputs for name in _NEIGHBOUR_LABELS)
        self.is_masked = task is None or "masked_lm" in outputs
        self.replaces = "replaced_tokens" in outputs
        self.training = training
        self.spec = folder.spec
        self.other_tokens = folder.other_tokens
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
        if self.other_tokens is not None:
            batch |= self._with_other_tokens(batch)
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
            first = min(max(round(self.settings.causal_fraction * count), 1), count - 1)
            masked, causal = slice(first, None), slice(first)

        def taken(some):
            return {name: value[some] for name, value in batch.items()}

        x, y, weights = self._causal(taken(causal), sequence_weights[causal])
        masked_parts = self._masked(taken(masked), epochs[masked], sequence_weights[masked])
        x = {f"causal_{name}": value for name, value in x.items()}
        parts = zip((x, y, weights), masked_parts, strict=True)
        return self._for_task(*(one | other for one, other in parts))

    def _with_other_tokens(self, batch):
        """The ids, ragged, and lengths of segments (B, K) by a longer vocabulary."""
        given = [batch["input_ids"].flat_values, batch["segment_lengths"]]
        ids, segments = tf.numpy_function(self.other_tokens, given, [tf.int32, tf.int32])
        segments = tf.ensure_shape(segments, batch["segment_lengths"].shape)
        ids = tf.RaggedTensor.from_row_lengths(
            tf.ensure_shape(ids, [None]), tf.reduce_sum(segments, axis=1)
        )
        return {"input_ids": ids, "segment_lengths": segments}

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

        chunks = Chunks(*tf.numpy_function(chunked, given, [tf.int32] * len(Chunks._fields)))
        length = CHUNK_TOKENS + 2 * windows.window
        sizes = (length, length, CHUNK_TOKENS, CHUNK_TOKENS, CHUNK_NEGATIVES)
        pairs = zip(chunks, sizes, strict=True)
        chunks = Chunks(*(tf.ensure_shape(chunk, [None, size]) for chunk, size in pairs))
        (name,) = self.outputs
        counts = chunks.contexts_before + chunks.contexts_after
        if name == "cbow":  # one prediction per token
            counts = tf.minimum(counts, 1)
        tokens = chunks.input_ids[:, windows.window : -windows.window]
        return chunks._asdict(), {name: tokens}, {name: tf.cast(counts, tf.float32)}

    def _masked(self, batch, epochs, sequence_weights):
        """(x, y, sample_weight) of masked examples, with the other labels of their objective."""
        original = _unmasked(batch) if self.replaces else None
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
        if self.replaces:
            x |= self._replacing(original, batch, epochs)
            y["replaced_tokens"] = original
            counts = tf.cast(batch["input_mask"], tf.float32) * sequence_weights[:, None]
            weights["replaced_tokens"] = counts
        return x, y, weights

    def _replacing(self, original, batch, epochs):
        """The inputs by which a task replaces the predicted tokens of a batch (B, S)."""

        def draws_and_index(ids, mask, positions, is_prediction, epochs):
            keys = example_keys(ids, mask.sum(axis=1), seed=self.seed, epoch=epochs)
            draws = uniform(keys[:, None], REPLACING, positions) * 2**DRAW_BITS
            index = np.zeros(ids.shape, np.int32)
            examples, columns = np.nonzero(is_prediction)
            index[examples, positions[examples, columns]] = columns + 1
            return draws.astype(np.int32), index

        positions = batch["masked_lm_positions"]
        is_prediction = batch["masked_lm_weights"] > 0
        given = [original, batch["input_mask"], positions, is_prediction, epochs]
        draws, index = tf.numpy_function(draws_and_index, given, [tf.int32, tf.int32])
        return {
            "original_ids": original,
            "masked_lm_index": tf.ensure_shape(index, original.shape),
            "sampling_draws": tf.ensure_shape(draws, positions.shape),
        }

    def _for_task(self, x, y, weights):
        """Leaves out all names that the task has no input or output for."""
        if self.inputs is None:
            return x, y, weights
        if "span_boundary" in self.outputs:
            # Larger offsets have no embedding.
            near = tf.cast(x["span_offset"] <= self.settings.max_span_length, tf.float32)
            weights["span_boundary"] *= near
        return (
            {name: x[name] for name in self.inputs},
            *({name: part[name] for name in self.outputs} for part in (y, weights)),
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
            padded = np.zeros(filled.shape, np.int32)
            padded[filled] = getattr(masked, field)[0]
            result.append(padded)
        return result


def _in_range(ids, size):
    """The ids, checked, because a GPU does not raise an error for those out of range."""
    flat = ids.flat_values if isinstance(ids, tf.RaggedTensor) else ids
    message = "An id is not in the vocabulary."
    checks = [
        tf.debugging.assert_non_negative(flat, message=message),
        tf.debugging.assert_less(flat, size, message=message),
    ]
    with tf.control_dependencies([check for check in checks if check is not None]):
        flat = tf.identity(flat)
    return ids.with_flat_values(flat) if isinstance(ids, tf.RaggedTensor) else flat


def _narrowed(part, width, predictions):
    """The first `width` columns of what has one value per position, or `predictions` of others."""
    widths = dict.fromkeys(_PER_TOKEN, width)
    widths |= dict.fromkeys(_NEIGHBOUR_LABELS, width - 1)
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
