"""What an exported classifier answers to."""

import tensorflow as tf

from keras_bert.input_pipeline.framing import frame
from keras_bert.tasks.serving_inputs import examples_signature, ids_signature
from keras_bert.tasks.signature import Signature


def classifier_signatures(task, *, max_length):
    """The signatures of a `Classifier`; the first is the default one.

    * `serving_default`: `text`, string (B,), of any length; bytes that are not UTF-8 are dropped.
    * `ids`: `input_ids`, `input_mask`, `segment_ids`, int32 (B, S), for clients that tokenize.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `text`.

    Each gives `label`, string (B,); `score`, float32 (B,), its probability; and `probabilities`,
    float32 (B, C), in the order of `task.labels`.
    """
    labels = tf.constant(task.labels)  # (C,)

    def from_ids(input_ids, input_mask, segment_ids):
        inputs = {"input_ids": input_ids, "input_mask": input_mask, "segment_ids": segment_ids}
        logits = task(inputs, training=False)["logits"]  # (B, C)
        probabilities = tf.nn.softmax(tf.cast(logits, tf.float32), axis=-1)
        best = tf.argmax(probabilities, axis=-1)
        return {
            "label": tf.gather(labels, best),
            "score": tf.gather(probabilities, best, batch_dims=1),
            "probabilities": probabilities,
        }

    def from_text(text):
        tokens = task.tokenizer.tokenize(text)
        batch = frame([tokens], vocabulary=task.tokenizer.vocabulary, max_length=max_length)
        return from_ids(**batch)

    strings = tf.TensorSpec([None], tf.string, name="text")
    return {
        "serving_default": Signature(
            from_text,
            [strings],
            # A single short text and a full batch of long ones: the two ends of what will come.
            warmup=[{"text": ["a text"]}, {"text": ["a text of many words " * max_length] * 8}],
        ),
        "ids": ids_signature(from_ids, config=task.config),
        "examples": examples_signature(from_text, keys=["text"]),
    }
