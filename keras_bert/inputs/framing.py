"""Token ids -> model inputs: framed by the tokenizer's template, cut and padded.

The one body of it: training, evaluation and prediction call it in `dataset.map`, and an exported
model carries it. Core TensorFlow operations only, so that any server can run it.
"""

import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.records.padding import frame_sequences, pad_sequences, with_special_tokens


def frame(segments, *, tokenizer, names, max_length, multiple_of=1):
    """Makes the model's inputs of one or two segments that a `Tokenizer` made the tokens of.

    Shapes: each segment is a ragged int32 (B, None) without special tokens -> a dictionary of
    `names`, those of `input_ids`, `input_mask`, `segment_ids` that the encoder takes (see
    `Encoder.input_names`), each int32 (B, S). S is the longest row of the batch,
    rounded up to a multiple of `multiple_of`, and at most `max_length`, special tokens counted in.
    A single text that is too long loses its end; of two, the longer one loses its end until both
    fit (as in google-research/bert's run_classifier.py).

    Raises ValueError where `max_length` leaves no token for every segment.
    """
    count, template = len(segments), tokenizer.template
    if count not in (1, 2) or template.room(max_length, texts=count) < count:
        raise ValueError(
            "`segments` must be one or two, and `max_length` must leave a token for each. "
            f"Received: {count} segments, max_length={max_length}"
        )
    tokens = tf.concat([segment.values for segment in segments], axis=0)
    rows, lengths = frame_sequences(
        with_special_tokens(tokens, tokenizer.vocabulary, template),
        _trimmed(segments, template.room(max_length, texts=count)),
        template,
    )
    batch = pad_sequences(
        rows,
        lengths,
        template=template,
        max_length=max_length,
        multiple_of=multiple_of,
        pad_id=tokenizer.vocabulary.pad_id,
    )
    return {name: batch[name] for name in names}


def check_max_length(max_length, config, tokenizer):
    """Raises InputError where a model has no positions for rows of so many tokens.

    It also does where they leave no room for text beside the special tokens of its `Tokenizer`
    (None: there is none).
    """
    if config.max_length is not None and max_length > config.max_length:
        raise InputError(
            f"`max_length` is {max_length}, over the {config.max_length} positions that the model "
            f"has; give {config.max_length} or less."
        )
    least = 1 + (0 if tokenizer is None else tokenizer.template.num_special(1))
    if max_length < least:
        raise InputError(
            f"`max_length` is {max_length}, which leaves no room for text beside the special "
            f"tokens; give {least} or more."
        )


def _trimmed(segments, budget):
    """Where the tokens of ragged segments start, their values one after another, and how many stay.

    Shapes: a pair (B,), (B,) for each segment; together at most `budget` tokens a row.
    """
    kept = _kept([segment.row_lengths() for segment in segments], budget)
    starts = [segments[0].row_starts()]
    if len(segments) == 2:
        starts.append(segments[1].row_starts() + tf.size(segments[0].values, tf.int64))
    return list(zip(starts, kept, strict=True))


def _kept(lengths, budget):
    """How many tokens of each segment, each (B,), make at most `budget` tokens in a row."""
    if len(lengths) == 1:
        return [tf.minimum(lengths[0], budget)]
    first, second = lengths
    # Taking a token off the longer one, again and again, ends here (the first keeps the odd one).
    keep_first = tf.minimum(first, tf.maximum(budget - second, (budget + 1) // 2))
    return [keep_first, tf.minimum(second, budget - keep_first)]
