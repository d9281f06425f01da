"""Entry points of exports, and what those of all tasks have in common: inputs, rows in turn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

# Positions that the model works on at once: a text of a megabyte, or ten thousand texts, must not
# take the memory of all of their rows.
_TOGETHER = 8192


@dataclass(frozen=True)
class Signature:
    """A function of tensors -> a dictionary of dense tensors, batch first.

    `inputs` are the `tf.TensorSpec` of its arguments, each with the name that clients use;
    `warmup` are dictionaries of inputs that a server should run before it answers anybody.
    """

    function: Callable
    inputs: Sequence[Any]
    warmup: Sequence[dict] = ()


def ids_signature(answer, *, encoder, tokenizer, axes=("B", "S")):
    """The `Signature` for clients that tokenize: the encoder's inputs, such as `input_ids`.

    Each is int32 of those axes, the last of which is a row's tokens. A row that is longer than the
    model has positions, and numbers that it has no embedding for, are refused in the graph: a
    gather would wrap a negative number around, and on some devices read zeros for one too high.

    A run of [CLS] at the end of a row is padding, whatever its mask says. TensorFlow Serving joins
    requests of several lengths by repeating the first value of each of a request's tensors, which
    is [CLS] of the ids and 1 of the mask. So it is with any other special token that every row
    begins with; where rows begin with a text, requests must be of one length.

    Args:
        answer: a function of the encoder's inputs, by name, to the outputs.
        encoder: the encoder.
        tokenizer: its `Tokenizer`, whose template says what rows begin with.
        axes: the names of the axes.
    """

    specs = input_specs(encoder, axes=len(axes))
    first = tokenizer.template.first_token

    def from_ids(*tensors, **named):
        given = zip(specs, tensors, strict=False)
        rows = {**{spec.name: tensor for spec, tensor in given}, **named}
        with tf.control_dependencies(_checks(rows, encoder.config)):
            rows = {name: tf.identity(tensor) for name, tensor in rows.items()}
        if first is not None:
            first_id = tokenizer.vocabulary.id(first)
            rows["input_mask"] *= 1 - _padded_by_a_server(rows["input_ids"], first_id)
        return answer(**rows)

    return Signature(from_ids, specs)


def input_specs(encoder, *, axes=2):
    """The `tf.TensorSpec` of each of an encoder's inputs."""
    return [tf.TensorSpec([None] * axes, tf.int32, name=name) for name in encoder.input_names]


def traced_on_ids(function, *, encoder, axes=2):
    """A function of an encoder's inputs, by name, traced once.

    All signatures share it, so that an export holds the model's graph once.
    """
    specs = {spec.name: spec for spec in input_specs(encoder, axes=axes)}
    traced = tf.function(lambda rows: function(**rows), input_signature=[specs], autograph=False)
    return lambda **rows: traced(rows)


def traced_on_texts(function, *, names):
    """A function of strings (B,), by these names in this order, traced once."""
    specs = [tf.TensorSpec([None], tf.string, name=name) for name in names]
    return tf.function(function, input_signature=specs, autograph=False)


def examples_signature(answer, *, keys, numbers=()):
    """The `Signature` of `examples`, string (B,): serialized `tf.Example`.

    Args:
        answer: the function of strings (B,), by the names of `keys`, to the outputs; and of int32
            (B,), by those of `numbers`.
        keys: the features of an example that hold one string.
        numbers: those that hold one number; what int32 has no room for becomes its nearest.
    """
    features = {key: tf.io.FixedLenFeature([], tf.string) for key in keys}
    features |= {name: tf.io.FixedLenFeature([], tf.int64) for name in numbers}

    def from_examples(examples):
        found = tf.io.parse_example(examples, features)
        for name in numbers:
            number = tf.clip_by_value(found[name], tf.int32.min, tf.int32.max)
            found[name] = tf.cast(number, tf.int32)
        return answer(**found)

    return Signature(from_examples, [tf.TensorSpec([None], tf.string, name="examples")])


def standard_signatures(
    from_text, *, task, warmup, texts=("text",), numbers=(), from_ids=None, axes=("B", "S")
):
    """`serving_default`, `ids` and `examples` by name.

    Args:
        from_text: the function of strings (B,) by the names of `texts` and int32 (B,) by those of
            `numbers`, in this order, to the outputs.
        task: the task, which has a tokenizer.
        warmup: see `Signature`.
        from_ids: the function of the encoder's inputs, by name, to the outputs, or None: then there
            is no signature `ids`.
        axes: those of the encoder's inputs.
    """
    specs = [tf.TensorSpec([None], tf.string, name=name) for name in texts]
    specs += [tf.TensorSpec([None], tf.int32, name=name) for name in numbers]
    signatures = {"serving_default": Signature(from_text, specs, warmup)}
    if from_ids is not None:
        signatures["ids"] = ids_signature(
            from_ids, encoder=task.encoder, tokenizer=task.tokenizer, axes=axes
        )
    return {**signatures, "examples": examples_signature(from_text, keys=texts, numbers=numbers)}


def warmup_texts(max_length):
    """The texts of typical requests: a short one, one that fills a row, a batch of all lengths."""
    words = "a text of many words".split() * max_length
    lengths = [max(2, max_length * part // 8) for part in range(1, 9)]
    return ["a text"], [" ".join(words[:max_length])], [" ".join(words[:n]) for n in lengths]


def outputs_in_chunks(task, inputs):
    """The outputs of a task for any number of rows, float32 by name: some rows at a time.

    Args:
        task: a task.
        inputs: its inputs by name, each with the axis of rows first.
    """
    specs = {
        name: tf.TensorSpec([None, *output.shape[1:]], tf.float32)
        for name, output in task.output.items()
    }
    return in_chunks(
        lambda some: task(some, training=False),
        inputs,
        size=chunk_size(inputs["input_ids"]),
        specs=specs,
    )


def chunk_size(ids):
    """How many rows of `ids`, int32 (R, …, S), are worked on at once: int32 ()."""
    return tf.maximum(1, _TOGETHER // tf.maximum(1, tf.reduce_prod(tf.shape(ids)[1:])))


def in_chunks(compute, inputs, *, size, specs):
    """`compute` of so many rows at a time, one after another; what it gives is joined.

    Args:
        compute: a function of tensors by name to tensors by name. What it gives of some rows may
            have another number of rows.
        inputs: tensors by name, each with the axis of rows first.
        size: the number of sequences.
        specs: the `tf.TensorSpec` of what `compute` gives, by name; it is cast to their types. An
            axis of no fixed size, other than the first one, has the same size for all rows.
    """
    rows = tf.shape(next(iter(inputs.values())))[0]
    turns = tf.maximum(1, -(-rows // size))  # of no rows, too: the shapes are known from it
    arrays = [
        tf.TensorArray(spec.dtype, turns, infer_shape=False, element_shape=spec.shape)
        for spec in specs.values()
    ]

    def one(turn, *arrays):
        some = slice(turn * size, (turn + 1) * size)
        found = compute({name: tensor[some] for name, tensor in inputs.items()})
        return turn + 1, *(
            array.write(turn, tf.cast(found[name], spec.dtype))
            for (name, spec), array in zip(specs.items(), arrays, strict=True)
        )

    _, *arrays = tf.while_loop(
        lambda turn, *_: turn < turns, one, (0, *arrays), parallel_iterations=1
    )
    return {
        name: tf.ensure_shape(array.concat(), spec.shape)
        for (name, spec), array in zip(specs.items(), arrays, strict=True)
    }


def _padded_by_a_server(ids, first_id):
    """int32 (…, S): 1 at a run of an id, [CLS], that ends a row and does not begin it."""
    repeated = tf.cast(ids == first_id, tf.int32)
    at_end = tf.math.cumprod(repeated, axis=-1, reverse=True)
    is_first = tf.range(tf.shape(ids)[-1]) == 0  # (S,)
    return at_end * (1 - tf.cast(is_first, tf.int32))


def _checks(rows, config):
    """The assertions that `rows`, name -> int32 (B, S), must pass before they are used."""
    longest = config.max_length
    if longest is not None:
        yield tf.debugging.assert_less_equal(
            tf.shape(rows["input_ids"])[-1],
            longest,
            message=f"A row may have at most {longest} ids.",
        )
    counts = {
        "input_ids": config.vocab_size,
        "input_mask": 2,
        "segment_ids": config.num_segments,
    }
    for name in rows:
        count = counts[name]
        yield tf.debugging.assert_equal(
            tf.shape(rows[name]),
            tf.shape(rows["input_ids"]),
            message=f"{name} must have the shape of input_ids.",
        )
        message = f"{name} must be from 0 to {count - 1}."
        yield tf.debugging.assert_non_negative(rows[name], message=message)
        yield tf.debugging.assert_less(rows[name], count, message=message)
