"""Entry points of exported tasks over whole texts."""

import functools

import tensorflow as tf

from keras_bert.inputs.tokenized_examples import in_both_orders
from keras_bert.tasks.classification.features import frame_choices
from keras_bert.tasks.signatures import (
    Signature,
    framed,
    ids_signature,
    outputs_in_chunks,
    standard_signatures,
    text_specs,
    traced_on_ids,
    traced_on_texts,
    warmup_texts,
)

_ONE_MORE = [[0, 0], [0, 1]]  # padding at the end of the second axis


def text_signatures(task, *, max_length):
    """The signatures of a `Classifier`, `PairClassifier` or `Regressor`; the first is the default.

    * `serving_default`: `text` (of pairs `text_a` and `text_b`), string (B,), of any length; bytes
      that are not UTF-8 are dropped.
    * `ids`: the encoder's inputs, such as `input_ids`, int32 (B, S), for clients that tokenize;
      (B, 2, S) for a task that reads pairs in both orders.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under each of
      those names.

    A classifier gives `label`, string (B,), the most probable; `score`, float32 (B,), its
    probability; and `probabilities`, float32 (B, C), in the order of `task.labels`. With several
    labels per text, `given`, bool (B, C), marks those over the threshold. A regressor gives
    `score`, float32 (B,).
    """
    outputs_of = _score if "score" in task.output else _label

    axes = ("B", "2", "S") if task.both_orders else ("B", "S")

    @functools.partial(traced_on_ids, encoder=task.encoder, axes=len(axes))
    def from_ids(**inputs):
        return outputs_of(outputs_in_chunks(task, inputs), task)

    texts = task.text_names

    @functools.partial(traced_on_texts, names=texts)
    def from_texts(*strings):
        tokens = [task.tokenizer.tokenize(column) for column in strings]

        def inputs(*tokens):
            return framed(task, list(tokens), max_length=max_length)

        batch = in_both_orders(inputs, *tokens) if task.both_orders else inputs(*tokens)
        return from_ids(**batch)

    warmup = [dict.fromkeys(texts, batch) for batch in warmup_texts(max_length)]
    return standard_signatures(
        from_texts, task=task, warmup=warmup, texts=texts, from_ids=from_ids, axes=axes
    )


def _score(outputs, task):
    return {"score": outputs["score"][:, 0]}


def _label(outputs, task):
    logits = outputs["logits"]  # (B, C)
    probabilities = tf.nn.sigmoid(logits) if task.multi_label else tf.nn.softmax(logits)
    best = tf.argmax(probabilities, axis=-1)
    served = {
        "label": tf.gather(tf.constant(task.labels), best),
        "score": tf.gather(probabilities, best, batch_dims=1),
        "probabilities": probabilities,
    }
    if task.multi_label:
        served["given"] = probabilities > task.threshold
    return served


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
