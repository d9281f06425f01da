"""Entry points of exports, and what those of all tasks share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from keras_bert.inputs.framing import frame, windows

# Positions computed at once: the memory of one long text or of many texts stays bounded.
_POSITIONS_PER_CHUNK = 8192


@dataclass(frozen=True)
class Signature:
    """A function of tensors -> a dictionary of dense tensors, batch first.

    `inputs` are the `tf.TensorSpec` of its arguments, named as clients name them; `warmup` are
    dictionaries of inputs for a server to run before it serves requests.
    """

    function: Callable
    inputs: Sequence[Any]
    warmup: Sequence[dict] = ()


def ids_signature(predict, *, encoder, tokenizer, axes=("B", "S")):
    """The `Signature` for clients that tokenize: the encoder's inputs, such as `input_ids`.

    Each is int32 with those axes; the last is a sequence's tokens. Too long sequences and ids
    outside the embedding raise an error in the graph: a gather would wrap negative ids around and,
    on some devices, return zeros for too large ones.

    [CLS] repeated at the end of a sequence is padding, whatever its mask. TensorFlow Serving joins
    requests of different lengths by repeating the first value of each tensor, which is [CLS] of the
    ids and 1 of the mask. The same holds for any special token that every sequence begins with; if
    the template begins with text, requests must have the same length.

    Args:
        predict: a function of the encoder's inputs, by name, to the outputs.
        encoder: the encoder.
        tokenizer: its `Tokenizer`, whose template has the first token.
        axes: the names of the axes.
    """

    specs = input_specs(encoder, axes=len(axes))
    first = tokenizer.template.first_token

    def from_ids(*tensors, **named):
        inputs = {spec.name: tensor for spec, tensor in zip(specs, tensors, strict=False)} | named
        with tf.control_dependencies(_checks(inputs, encoder.config)):
            inputs = {name: tf.identity(tensor) for name, tensor in inputs.items()}
        if first is not None:
            first_id = tokenizer.vocabulary.id(first)
            inputs["input_mask"] *= 1 - _padded_by_a_server(inputs["input_ids"], first_id)
        return predict(**inputs)

    return Signature(from_ids, specs)


def input_specs(encoder, *, axes=2):
    """The `tf.TensorSpec` of each of an encoder's inputs."""
    return [tf.TensorSpec([None] * axes, tf.int32, name=name) for name in encoder.input_names]


def traced_on_ids(function, *, encoder, axes=2):
    """A function of an encoder's inputs by name, traced once for all signatures of an export."""
    specs = {spec.name: spec for spec in input_specs(encoder, axes=axes)}
    traced = tf.function(
        lambda inputs: function(**inputs), input_signature=[specs], autograph=False
    )
    return lambda **inputs: traced(inputs)


def text_specs(texts, numbers=()):
    """The `tf.TensorSpec` of strings (B,), one per name in `texts`, and int32 (B,), per number."""
    types = {**dict.fromkeys(texts, tf.string), **dict.fromkeys(numbers, tf.int32)}
    return [tf.TensorSpec([None], dtype, name=name) for name, dtype in types.items()]


def traced_on_texts(function, *, names, numbers=()):
    """A function of strings and numbers (B,) with these names, in this order, traced once."""
    return tf.function(function, input_signature=text_specs(names, numbers), autograph=False)


def framed(task, segments, *, max_length, **options):
    """The inputs of a task's encoder for ragged ids, one or two segments (see `frame`)."""
    return frame(
        segments,
        tokenizer=task.tokenizer,
        names=task.encoder.input_names,
        max_length=max_length,
        **options,
    )


def in_windows(task, ids, *, max_length):
    """Texts of any length as overlapping windows: ragged int32 (B, None) -> R windows.

    Returns the `Windows`, the encoder's inputs (R, S) by name, and bool (R, S), the cores, in which
    each token of the texts is once, in order.
    """
    template = task.tokenizer.template
    room = template.room(max_length)
    lengths = tf.cast(ids.row_lengths(), tf.int32)
    parts = windows(lengths, room, stride=max(1, room // 2))
    inputs = framed(task, [parts.rows(ids)], max_length=max_length)
    length = tf.shape(inputs["input_ids"])[1]
    return parts, inputs, parts.core_of(length, offset=template.before(0, texts=1))


def examples_signature(predict, *, keys, numbers=()):
    """The `Signature` of `examples`, string (B,): serialized `tf.Example`.

    Args:
        predict: the function of strings (B,), one per key, and int32 (B,), one per number.
        keys: the features that hold one string.
        numbers: the features that hold one number, clipped to int32.
    """
    features = {key: tf.io.FixedLenFeature([], tf.string) for key in keys}
    features |= {name: tf.io.FixedLenFeature([], tf.int64) for name in numbers}

    def from_examples(examples):
        parsed = tf.io.parse_example(examples, features)
        for name in numbers:
            number = tf.clip_by_value(parsed[name], tf.int32.min, tf.int32.max)
            parsed[name] = tf.cast(number, tf.int32)
        return predict(*(parsed[name] for name in (*keys, *numbers)))

    return Signature(from_examples, text_specs(["examples"]))


def standard_signatures(
    from_text, *, task, warmup, texts=("text",), numbers=(), from_ids=None, axes=("B", "S")
):
    """`serving_default`, `ids` and `examples` by name.

    Args:
        from_text: the function of strings (B,), one per name in `texts`, and int32 (B,), one per
            name in `numbers`, to the outputs.
        task: the task, which has a tokenizer.
        warmup: see `Signature`.
        from_ids: the function of the encoder's inputs, by name, to the outputs, or None: then there
            is no signature `ids`.
        axes: those of the encoder's inputs.
    """
    signatures = {"serving_default": Signature(from_text, text_specs(texts, numbers), warmup)}
    if from_ids is not None:
        signatures["ids"] = ids_signature(
            from_ids, encoder=task.encoder, tokenizer=task.tokenizer, axes=axes
        )
    return {**signatures, "examples": examples_signature(from_text, keys=texts, numbers=numbers)}


def warmup_texts(max_length):
    """Batches of typical requests: a short text, one of `max_length` words, one of all lengths."""
    words = "a text of many words".split() * max_length
    lengths = [max(2, max_length * part // 8) for part in range(1, 9)]
    return ["a text"], [" ".join(words[:max_length])], [" ".join(words[:n]) for n in lengths]


def warmup_at(positions, max_length):
    """Requests of `text` and of positions in it, the same for all texts, by name."""
    return [
        {"text": batch, **{name: [position] * len(batch) for name, position in positions.items()}}
        for batch in warmup_texts(max_length)
    ]


def outputs_in_chunks(task, inputs):
    """The float32 outputs of a task, by name, for any number of sequences, computed in chunks."""
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
    """How many sequences of `ids`, int32 (R, …, S), are computed at once: int32 ()."""
    return tf.maximum(1, _POSITIONS_PER_CHUNK // tf.maximum(1, tf.reduce_prod(tf.shape(ids)[1:])))


def in_chunks(compute, inputs, *, size, specs):
    """`compute` of `size` sequences at a time; its results are concatenated.

    Args:
        compute: a function of tensors by name to tensors by name; its results may have another
            first axis.
        inputs: tensors by name, each with the axis of sequences first.
        size: the number of sequences.
        specs: the `tf.TensorSpec` of the results by name; they are cast to these types. An axis of
            variable size, other than the first, has the same size for all sequences.
    """
    total = tf.shape(next(iter(inputs.values())))[0]
    chunks = tf.maximum(1, -(-total // size))  # at least one, which gives the shapes
    arrays = [
        tf.TensorArray(spec.dtype, chunks, infer_shape=False, element_shape=spec.shape)
        for spec in specs.values()
    ]

    def step(number, *arrays):
        chunk = slice(number * size, (number + 1) * size)
        results = compute({name: tensor[chunk] for name, tensor in inputs.items()})
        return number + 1, *(
            array.write(number, tf.cast(results[name], spec.dtype))
            for (name, spec), array in zip(specs.items(), arrays, strict=True)
        )

    _, *arrays = tf.while_loop(
        lambda number, *_: number < chunks, step, (0, *arrays), parallel_iterations=1
    )
    return {
        name: tf.ensure_shape(array.concat(), spec.shape)
        for (name, spec), array in zip(specs.items(), arrays, strict=True)
    }


def _padded_by_a_server(ids, first_id):
    """int32 (…, S): 1 where `first_id` is repeated up to the end, 0 at the first position."""
    repeated = tf.cast(ids == first_id, tf.int32)
    at_end = tf.math.cumprod(repeated, axis=-1, reverse=True)
    is_first = tf.range(tf.shape(ids)[-1]) == 0  # (S,)
    return at_end * (1 - tf.cast(is_first, tf.int32))


def _checks(inputs, config):
    """The assertions on `inputs`, by name int32 (B, S)."""
    longest = config.max_length
    if longest is not None:
        yield tf.debugging.assert_less_equal(
            tf.shape(inputs["input_ids"])[-1],
            longest,
            message=f"A sequence may have at most {longest} ids.",
        )
    counts = {
        "input_ids": config.vocab_size,
        "input_mask": 2,
        "segment_ids": config.num_segments,
    }
    for name in inputs:
        count = counts[name]
        yield tf.debugging.assert_equal(
            tf.shape(inputs[name]),
            tf.shape(inputs["input_ids"]),
            message=f"{name} must have the shape of input_ids.",
        )
        message = f"{name} must be from 0 to {count - 1}."
        yield tf.debugging.assert_non_negative(inputs[name], message=message)
        yield tf.debugging.assert_less(inputs[name], count, message=message)
