"""From rows of different lengths to the dense tensors that a model takes.

The one body of it: for the job's `--pad`, for training, evaluation and prediction, and inside an
exported model. Core TensorFlow operations only. Legend of shapes: B rows, S length, P predictions.

Segments of tokens become rows by a template such as BERT's, `[CLS] a [SEP] b [SEP]`. This is the
one body of it: for the data jobs, for training, evaluation and prediction, and inside an
exported model. Core TensorFlow operations only, a few of them a batch. Legend of shapes: T tokens,
K different special tokens of the template, B rows.
"""

import tensorflow as tf

from keras_bert.records.specs import PREDICTION_FEATURES, SPAN_FEATURES


def with_special_tokens(tokens, vocabulary, template):
    """Tokens (T,) behind those of a `Template`, as `frame_sequences` takes them: int32 (K + T,)."""
    special = [vocabulary.id(token) for token in template.special_tokens]
    return tf.concat([tf.constant(special, tf.int32), tf.cast(tokens, tf.int32)], axis=0)


def frame_sequences(tokens, segments, template):
    """Makes rows of one or two segments each. Works eagerly and in a graph.

    Shapes: `tokens` from `with_special_tokens`; each of `segments` says where its tokens start
    (counted without the special ones) and how many they are, int64 (B,) and (B,) -> rows, ragged
    int32 (B, None), and the lengths of their segments, int64 (B, 1 or 2), with the special tokens
    that belong to each (see `Template`).
    """
    zero, one = tf.zeros_like(segments[0][0]), tf.ones_like(segments[0][0])
    special = template.special_tokens
    # A row is a few ranges of one vector: in BERT's template three or five.
    starts, sizes, positions = [], [], []
    for what, _ in template.parts(len(segments)):
        is_special = isinstance(what, str)
        start, size = (zero, one) if is_special else segments[what]
        starts.append(start)
        sizes.append(size)
        positions.append(special.index(what) if is_special else len(special))
    starts = tf.reshape(tf.stack(starts, axis=1) + positions, [-1])
    sizes = tf.stack(sizes, axis=1)  # (B, 3 or 5)
    chosen = tf.ragged.range(starts, starts + tf.reshape(sizes, [-1])).values
    rows = tf.RaggedTensor.from_row_lengths(
        tf.gather(tokens, chosen), tf.reduce_sum(sizes, axis=1), validate=False
    )
    lengths = tf.stack([size for _, size in segments], axis=1)
    return rows, lengths + template.belonging(len(segments))


def pad_sequences(rows, lengths_of_segments, *, template, max_length, multiple_of=None, pad_id=0):
    """Pads rows of tokens, special ones among them.

    Works eagerly and in a graph. A row longer than `max_length` is an error: what is to be cut has
    to be cut where it is known what it is.

    Shapes: ragged int32 `rows` (B, None); `lengths_of_segments` (B, 1 or 2), both from
    `frame_sequences` -> `input_ids`, `input_mask`, `segment_ids`, each int32 (B, S).

    Args:
        template: the `Template` of the rows, which has their segment ids.
        multiple_of: None makes S `max_length`; a number makes it the longest row of the batch,
            rounded up to a multiple of it, and at most `max_length`.
        pad_id: what stands in `input_ids` behind a row; mask and segments are 0 there.
    """
    lengths = tf.cast(rows.row_lengths(), tf.int32)  # (B,)
    check = tf.debugging.assert_less_equal(
        tf.reduce_max(lengths),
        max_length,
        message="a row is longer than the maximum length asked for",
    )
    with tf.control_dependencies([check] if check is not None else []):
        if multiple_of is None:
            width = max_length
            input_ids = rows.to_tensor(pad_id, shape=(None, width))  # (B, S)
        else:
            width = padded_length(lengths, max_length, multiple_of)
            shape = tf.stack([rows.nrows(out_type=tf.int32), width])
            input_ids = tf.ensure_shape(rows.to_tensor(pad_id, shape=shape), [None, None])
    input_mask = tf.sequence_mask(lengths, width, dtype=tf.int32)
    first, *rest = template.segments(lengths_of_segments.shape[1])
    segment_ids = first * input_mask if first else tf.zeros_like(input_mask)
    if rest and rest[0] != first:
        in_first = tf.sequence_mask(lengths_of_segments[:, 0], width, dtype=tf.int32)
        segment_ids += (rest[0] - first) * (input_mask - in_first)
    return {"input_ids": input_ids, "input_mask": input_mask, "segment_ids": segment_ids}


def padded_length(lengths, max_length, multiple_of):
    """The width S of a batch of rows of so many tokens, int32 (B,); see `pad_sequences`."""
    longest = tf.reduce_max(tf.concat([lengths, [2]], axis=0))  # a batch of no rows has a width too
    return tf.minimum(-(-longest // multiple_of) * multiple_of, max_length)


def pad(batch, max_length, max_predictions, *, template):
    """Pads a parsed batch of compact rows of a data folder, made by a `Template`.

    Gives what `pad_sequences` gives for S = `max_length`; where the masks are static also int32
    `masked_lm_positions`, `masked_lm_ids` and float32 `masked_lm_weights` (B, P), and for spans
    `span_left`, `span_right`, `span_offset` (B, P). `next_sentence_labels` is (B, 1), and 0 where
    the rows have none. Padding is 0. A row with more predictions than `max_predictions` is an
    error, as one that is too long: cutting it here would lose what was masked.
    """
    segments = batch["segment_lengths"]  # (B, 1 or 2)
    result = pad_sequences(batch["input_ids"], segments, template=template, max_length=max_length)
    result["next_sentence_labels"] = batch.get(
        "next_sentence_labels", tf.zeros_like(segments[:, :1])
    )
    if "masked_lm_positions" in batch:
        result |= _pad_predictions(batch, max_predictions)
    return result


def _pad_predictions(batch, max_predictions):
    counts = batch["masked_lm_positions"].row_lengths()  # (B,)
    check = tf.debugging.assert_less_equal(
        tf.reduce_max(counts),
        tf.cast(max_predictions, counts.dtype),
        message="a row has more predictions than the maximum asked for",
    )
    with tf.control_dependencies([check] if check is not None else []):
        result = {
            name: batch[name].to_tensor(shape=(None, max_predictions))  # (B, P)
            for name in (*PREDICTION_FEATURES, *SPAN_FEATURES)
            if name in batch
        }
    result["masked_lm_weights"] = tf.sequence_mask(counts, max_predictions, dtype=tf.float32)
    return result
