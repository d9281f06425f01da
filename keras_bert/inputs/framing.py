"""Token ids -> model inputs: the tokenizer's template, truncation and padding.

Training, evaluation and prediction use it in `dataset.map`, and exports contain it: core TensorFlow
operations only.
"""

import hashlib

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.records.padding import frame_sequences, pad_sequences, with_special_tokens


def frame(segments, *, tokenizer, names, max_length, multiple_of=1):
    """The model inputs of one or two segments that a `Tokenizer` tokenized.

    Shapes: each segment is a ragged int32 (B, None) without special tokens -> a dictionary of
    `names`, those of `input_ids`, `input_mask`, `segment_ids` that the encoder takes (see
    `Encoder.input_names`), each int32 (B, S). S is the longest sequence of the batch, rounded up to
    a multiple of `multiple_of`, and at most `max_length`, including special tokens. A single text
    is cut at its end; of two, the longer one is cut until both fit (as in google-research/bert's
    run_classifier.py).

    Raises ValueError if `max_length` leaves no token for every segment.
    """
    count, template = len(segments), tokenizer.template
    if count not in (1, 2) or template.room(max_length, texts=count) < count:
        raise ValueError(
            "`segments` must be one or two, and `max_length` must leave a token for each. "
            f"Received: {count} segments, max_length={max_length}."
        )
    tokens = tf.concat([segment.values for segment in segments], axis=0)
    sequences, lengths = frame_sequences(
        with_special_tokens(tokens, tokenizer.vocabulary, template),
        _truncated(segments, template.room(max_length, texts=count)),
        template,
    )
    batch = pad_sequences(
        sequences,
        lengths,
        template=template,
        max_length=max_length,
        multiple_of=multiple_of,
        pad_id=tokenizer.vocabulary.pad_id,
    )
    return {name: batch[name] for name in names}


def fingerprints(segments, room):
    """A hash of the ids that each sequence of one or two ragged segments has: int64 (B,).

    The segments are those of `frame`, which cuts them to `room` tokens without special ones.
    """
    values = np.concatenate([segment.values.numpy() for segment in segments])
    texts = [
        [values[start:end].tobytes() for start, end in zip(starts, starts + lengths, strict=True)]
        for starts, lengths in tf.stack(_truncated(segments, room)).numpy()
    ]
    # An id has no negative value, so that one separates the two texts.
    end = np.int32(-1).tobytes()
    hashes = (hashlib.blake2b(end.join(row), digest_size=8) for row in zip(*texts, strict=True))
    return np.array([int.from_bytes(each.digest(), "little", signed=True) for each in hashes])


def check_max_length(max_length, config, tokenizer):
    """Raises InputError for sequences longer than the model's positions or without room for text.

    `tokenizer` has the special tokens; None is none.
    """
    if config.max_length is not None and max_length > config.max_length:
        raise InputError(
            f"`max_length` must be at most {config.max_length}, the positions of the model. "
            f"Received: {max_length}."
        )
    least = 1 + (0 if tokenizer is None else tokenizer.template.num_special(1))
    if max_length < least:
        raise InputError(
            f"`max_length` must be at least {least} to leave room for text. Received: {max_length}."
        )


def _truncated(segments, room):
    """(starts, kept lengths) of each ragged segment in the values of all, int64 (B,) each."""
    first = segments[0].row_lengths()
    if len(segments) == 1:
        return [(segments[0].row_starts(), tf.minimum(first, room))]
    second = segments[1].row_lengths()
    # The result of removing one token after another from the longer one (ties keep the first's).
    keep_first = tf.minimum(first, tf.maximum(room - second, (room + 1) // 2))
    keep_second = tf.minimum(second, room - keep_first)
    second_starts = segments[1].row_starts() + tf.size(segments[0].values, tf.int64)
    return [(segments[0].row_starts(), keep_first), (second_starts, keep_second)]
