"""Entry points of exported tasks over whole texts."""

import functools

import tensorflow as tf

from keras_bert.inputs.tokenized_examples import in_both_orders
from keras_bert.tasks.signatures import (
    framed,
    in_windows,
    outputs_in_chunks,
    standard_signatures,
    traced_on_ids,
    traced_on_texts,
    warmup_texts,
)


def text_signatures(task, *, max_length):
    """The signatures of a `Classifier`, `PairClassifier` or `Regressor`; the first is the default.

    * `serving_default`: `text` (of pairs `text_a` and `text_b`), string (B,), of any length; bytes
      that are not UTF-8 are dropped.
    A text that is too long is cut, or with `long_texts` windows read in windows.
    * `ids`: the encoder's inputs, such as `input_ids`, int32 (B, S), for clients that tokenize;
      (B, 2, S) for a task that reads pairs in both orders.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under each of
      those names.

    A classifier gives `label`, string (B,), the most probable; `score`, float32 (B,), its
    probability; `probabilities`, float32 (B, C); and `labels`, string (B, C), their names, the same
    for each text. With several labels per text, `given`, bool (B, C), marks those over the
    threshold. A regressor gives `score`, float32 (B,).
    """
    outputs_of = _score if "score" in task.output else _label

    reads_lists = getattr(task, "lists", False)  # of which a pair is one with one passage
    axes = ("B", "2", "S") if task.both_orders else ("B", "S")

    def outputs(inputs):
        if reads_lists:
            inputs = {name: x[:, None] for name, x in inputs.items()}
        return outputs_in_chunks(task, inputs)

    @functools.partial(traced_on_ids, encoder=task.encoder, axes=len(axes))
    def from_ids(**inputs):
        return outputs_of(outputs(inputs), task)

    texts = task.text_names

    @functools.partial(traced_on_texts, names=texts)
    def from_texts(*strings):
        tokens = [task.tokenizer.tokenize(column) for column in strings]
        if task.reads_windows:
            return outputs_of(_in_windows(task, *tokens, max_length=max_length), task)

        def inputs(*tokens):
            return framed(task, list(tokens), max_length=max_length)

        batch = in_both_orders(inputs, *tokens) if task.both_orders else inputs(*tokens)
        return from_ids(**batch)

    warmup = [dict.fromkeys(texts, batch) for batch in warmup_texts(max_length)]
    return standard_signatures(
        from_texts, task=task, warmup=warmup, texts=texts, from_ids=from_ids, axes=axes
    )


def _in_windows(task, ids, *, max_length):
    """The outputs of ragged ids (B, None), (B, …) by name, from those of their windows."""
    windows, inputs, _ = in_windows(task, ids, max_length=max_length)
    outputs = outputs_in_chunks(task, inputs)  # (R, …)
    is_max = task.settings.window_pooling == "max"
    pooled = tf.math.segment_max if is_max else tf.math.segment_mean
    return {name: pooled(output, windows.sequence) for name, output in outputs.items()}


def _score(outputs, task):
    score = outputs["score"][:, 0]
    return {"score": tf.sigmoid(score) if task.activation == "sigmoid" else score}


def _label(outputs, task):
    logits = outputs["logits"] / task.temperature  # (B, C)
    probabilities = tf.nn.sigmoid(logits) if task.settings.multi_label else tf.nn.softmax(logits)
    best = tf.argmax(probabilities, axis=-1)
    labels = tf.constant(task.labels)
    served = {
        "label": tf.gather(labels, best),
        "score": tf.gather(probabilities, best, batch_dims=1),
        "probabilities": probabilities,
        "labels": tf.tile(labels[None], [tf.shape(probabilities)[0], 1]),
    }
    if task.settings.multi_label:
        served["given"] = probabilities > task.settings.threshold
    return served
