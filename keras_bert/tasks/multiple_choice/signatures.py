"""Entry points of exported multiple-choice tasks."""

import functools

import tensorflow as tf

from keras_bert.tasks.multiple_choice.features import frame_choices
from keras_bert.tasks.signatures import (
    Signature,
    ids_signature,
    outputs_in_chunks,
    text_specs,
    traced_on_ids,
    warmup_texts,
)

_ONE_MORE = [[0, 0], [0, 1]]  # padding at the end of the second axis


def choice_signatures(task, *, max_length):
    """The signatures of a `MultipleChoice`; the first is the default one.

    * `serving_default`: `context`, string (B,), and `choices`, string (B, n), padded with empty
      strings.
    * `ids`: the encoder's inputs, such as `input_ids`, int32 (B, n, S), for clients that tokenize.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `context`
      and any number of strings under `choices`.

    Each gives `label`, int32 (B,), the number of the most probable choice; `score`, float32 (B,),
    its probability; and `probabilities`, float32 (B, n), 0 for missing choices. The first and the
    last also give `choice`, string (B,).
    """

    @functools.partial(traced_on_ids, encoder=task.encoder, axes=3)
    def from_ids(**inputs):
        shape = tf.shape(inputs["input_ids"])  # (B, n, S)
        # One choice per example, so that an example with very many choices is computed in chunks.
        single = tf.stack([shape[0] * shape[1], 1, shape[2]])
        inputs = {name: tf.reshape(x, single) for name, x in inputs.items()}
        logits = tf.reshape(outputs_in_chunks(task, inputs)["logits"], shape[:2])  # (B, n)
        probabilities = tf.nn.softmax(logits, axis=-1)
        padded = tf.pad(probabilities, _ONE_MORE)  # so that there is always a choice
        best = tf.argmax(padded, axis=-1, output_type=tf.int32)
        return {
            "label": best,
            "score": tf.gather(padded, best, batch_dims=1),
            "probabilities": probabilities,
        }

    specs = [
        tf.TensorSpec([None], tf.string, name="context"),
        tf.TensorSpec([None, None], tf.string, name="choices"),
    ]

    @functools.partial(tf.function, input_signature=specs, autograph=False)
    def from_strings(context, choices):
        present = tf.RaggedTensor.from_tensor(choices, padding="")
        tokens = task.tokenizer.tokenize(present.values)
        batch = frame_choices(
            task.tokenizer.tokenize(context),
            present.with_values(tokens),
            tokenizer=task.tokenizer,
            names=task.encoder.input_names,
            max_length=max_length,
        )
        outputs = from_ids(**batch)
        width = tf.shape(choices)[1]  # more than n if every example has an empty choice
        missing = width - tf.shape(outputs["probabilities"])[1]
        outputs["probabilities"] = tf.pad(outputs["probabilities"], [[0, 0], [0, missing]])
        return {
            **outputs,
            "choice": tf.gather(tf.pad(choices, _ONE_MORE), outputs["label"], batch_dims=1),
        }

    def from_examples(examples):
        features = {
            "context": tf.io.FixedLenFeature([], tf.string),
            "choices": tf.io.RaggedFeature(tf.string),
        }
        parsed = tf.io.parse_example(examples, features)
        return from_strings(parsed["context"], parsed["choices"].to_tensor())

    short, long, batch = warmup_texts(max_length)
    warmup = [
        {"context": short, "choices": [["one", "two"]]},
        {"context": long, "choices": [["one", *long]]},
        {"context": batch, "choices": [["one", *long, "two", "three"]] * len(batch)},
    ]
    return {
        "serving_default": Signature(from_strings, specs, warmup),
        "ids": ids_signature(
            from_ids,
            encoder=task.encoder,
            tokenizer=task.tokenizer,
            axes=("B", "n", "S"),
        ),
        "examples": Signature(from_examples, text_specs(["examples"])),
    }
