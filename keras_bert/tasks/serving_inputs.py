"""The inputs that the exported models of all tasks have in common."""

import tensorflow as tf

from keras_bert.tasks.signature import Signature

_NAMES = ("input_ids", "input_mask", "segment_ids")


def ids_signature(answer, *, config, axes=("B", "S")):
    """The `Signature` for clients that tokenize: `input_ids`, `input_mask`, `segment_ids`.

    Each is int32 of those axes, the last of which is a row's tokens. A row that is longer than the
    model has positions, and numbers that it has no embedding for, are refused in the graph: a
    gather would wrap a negative number around, and on some devices read zeros for one too high.

    Args:
        answer: the function of the three tensors, by these names, to the outputs.
        config: the encoder's `BertConfig`.
        axes: the names of the axes.
    """

    def from_ids(input_ids, input_mask, segment_ids):
        rows = {"input_ids": input_ids, "input_mask": input_mask, "segment_ids": segment_ids}
        with tf.control_dependencies(_checks(rows, config)):
            return answer(**{name: tf.identity(tensor) for name, tensor in rows.items()})

    return Signature(
        from_ids, [tf.TensorSpec([None] * len(axes), tf.int32, name=n) for n in _NAMES]
    )


def examples_signature(answer, *, keys):
    """The `Signature` of `examples`, string (B,): serialized `tf.Example`.

    Args:
        answer: the function of strings (B,), by the names of `keys`, to the outputs.
        keys: the features of an example; each holds one string.
    """
    features = {key: tf.io.FixedLenFeature([], tf.string) for key in keys}

    def from_examples(examples):
        return answer(**tf.io.parse_example(examples, features))

    return Signature(from_examples, [tf.TensorSpec([None], tf.string, name="examples")])


def _checks(rows, config):
    """The assertions that `rows`, name -> int32 (B, S), must pass before they are used."""
    longest = config.max_length
    yield tf.debugging.assert_less_equal(
        tf.shape(rows["input_ids"])[-1], longest, message=f"A row may have at most {longest} ids."
    )
    counts = {
        "input_ids": config.vocab_size,
        "input_mask": 2,
        "segment_ids": config.type_vocab_size,
    }
    for name, count in counts.items():
        yield tf.debugging.assert_equal(
            tf.shape(rows[name]),
            tf.shape(rows["input_ids"]),
            message=f"{name} must have the shape of input_ids.",
        )
        message = f"{name} must be from 0 to {count - 1}."
        yield tf.debugging.assert_non_negative(rows[name], message=message)
        yield tf.debugging.assert_less(rows[name], count, message=message)
