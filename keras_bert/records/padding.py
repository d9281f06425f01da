"""From segments of tokens to sequences with special tokens, and to the padded inputs of a model.

The only implementation, for the data jobs, for training, evaluation and prediction, and inside an
exported model; core TensorFlow operations only. Legend of shapes: T tokens, K different special
tokens of the template, B sequences, S length, P predictions.
"""

import tensorflow as tf

from keras_bert.records.specs import PREDICTION_FEATURES, SPAN_FEATURES


def with_special_tokens(tokens, vocabulary, template):
    """Special tokens of a `Template`, then tokens (T,), for `frame_sequences`: int32 (K + T,)."""
    special = [vocabulary.id(token) for token in template.special_tokens]
    return tf.concat([tf.constant(special, tf.int32), tf.cast(tokens, tf.int32)], axis=0)


def frame_sequences(tokens, segments, template):
    """Makes sequences of one or two segments each, eagerly or in a graph.

    Shapes: `tokens` from `with_special_tokens`; `segments` are one or two pairs of the starts
    (special tokens not counted) and sizes of texts, int64 (B,) each -> sequences, ragged
    int32 (B, None), and the lengths of their segments, int64 (B, 1 or 2), with the special tokens
    that belong to each (see `Template`).
    """
    zero, one = tf.zeros_like(segments[0][0]), tf.ones_like(segments[0][0])
    special = template.special_tokens
    # A sequence is a few ranges of one vector: three or five with BERT's template.
    starts, sizes, positions = [], [], []
    for part, _ in template.parts(len(segments)):
        is_special = isinstance(part, str)
        start, size = (zero, one) if is_special else segments[part]
        starts.append(start)
        sizes.append(size)
        positions.append(special.index(part) if is_special else len(special))
    starts = tf.reshape(tf.stack(starts, axis=1) + positions, [-1])
    sizes = tf.stack(sizes, axis=1)  # (B, 3 or 5)
    chosen = tf.ragged.range(starts, starts + tf.reshape(sizes, [-1])).values
    sequences = tf.RaggedTensor.from_row_lengths(
        tf.gather(tokens, chosen), tf.reduce_sum(sizes, axis=1), validate=False
    )
    lengths = tf.stack([size for _, size in segments], axis=1)
    return sequences, lengths + template.belonging(len(segments))


def pad_sequences(sequences, segment_lengths, *, template, max_length, multiple_of=None, pad_id=0):
    """Pads sequences of tokens, special tokens included, eagerly or in a graph.

    A sequence longer than `max_length` is an error: cutting needs to know what the tokens are.

    Shapes: ragged int32 `sequences` (B, None) and `segment_lengths` (B, 1 or 2), both from
    `frame_sequences` -> `input_ids`, `input_mask`, `segment_ids`, each int32 (B, S).

    Args:
        template: the `Template` of the sequences, which has their segment ids.
        multiple_of: None makes S `max_length`; a number makes it the longest sequence of the batch,
            rounded up to a multiple of it, and at most `max_length`.
        pad_id: the padding of `input_ids`; that of mask and segments is 0.
    """
    lengths = tf.cast(sequences.row_lengths(), tf.int32)  # (B,)
    check = tf.debugging.assert_less_equal(
        tf.reduce_max(lengths), max_length, message="A sequence is longer than the maximum length."
    )
    with tf.control_dependencies([check] if check is not None else []):
        if multiple_of is None:
            length = max_length
            input_ids = sequences.to_tensor(pad_id, shape=(None, length))  # (B, S)
        else:
            length = padded_length(lengths, max_length, multiple_of)
            shape = tf.stack([sequences.nrows(out_type=tf.int32), length])
            input_ids = tf.ensure_shape(sequences.to_tensor(pad_id, shape=shape), [None, None])
    input_mask = tf.sequence_mask(lengths, length, dtype=tf.int32)
    first, *rest = template.segments(segment_lengths.shape[1])
    segment_ids = first * input_mask if first else tf.zeros_like(input_mask)
    if rest and rest[0] != first:
        in_first = tf.sequence_mask(segment_lengths[:, 0], length, dtype=tf.int32)
        segment_ids += (rest[0] - first) * (input_mask - in_first)
    return {"input_ids": input_ids, "input_mask": input_mask, "segment_ids": segment_ids}


def padded_length(lengths, max_length, multiple_of):
    """The length S of a batch of sequences of so many tokens, int32 (B,); see `pad_sequences`."""
    longest = tf.reduce_max(tf.concat([lengths, [2]], axis=0))  # also for an empty batch
    return tf.minimum(-(-longest // multiple_of) * multiple_of, max_length)


def pad(batch, max_length, max_predictions, *, template):
    """Pads a parsed batch of compact examples of a data folder, made by a `Template`.

    Returns what `pad_sequences` returns for S = `max_length`; with static masks also int32
    `masked_lm_positions`, `masked_lm_ids` and float32 `masked_lm_weights` (B, P), and for spans
    `span_left`, `span_right`, `span_offset` (B, P). `next_sentence_labels` is (B, 1), and 0 if
    the examples have none. Padding is 0. More predictions than `max_predictions` are an error, as
    is a sequence that is too long.
    """
    segments = batch["segment_lengths"]  # (B, 1 or 2)
    result = pad_sequences(batch["input_ids"], segments, template=template, max_length=max_length)
    result["next_sentence_labels"] = batch.get(
        "next_sentence_labels", tf.zeros_like(segments[:, :1])
    )
    if "masked_lm_positions" in batch:
        counts = batch["masked_lm_positions"].row_lengths()  # (B,)
        check = tf.debugging.assert_less_equal(
            tf.reduce_max(counts),
            tf.cast(max_predictions, counts.dtype),
            message="An example has more predictions than the maximum.",
        )
        with tf.control_dependencies([check] if check is not None else []):
            for name in (*PREDICTION_FEATURES, *SPAN_FEATURES):
                if name in batch:
                    result[name] = batch[name].to_tensor(shape=(None, max_predictions))  # (B, P)
        result["masked_lm_weights"] = tf.sequence_mask(counts, max_predictions, dtype=tf.float32)
    return result
