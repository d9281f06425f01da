"""What an exported classifier answers to."""

import tensorflow as tf

from keras_bert.input_pipeline.framing import frame
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

    def from_ids_checked(input_ids, input_mask, segment_ids):
        fits = tf.debugging.assert_less_equal(
            tf.shape(input_ids)[1],
            task.config.max_length,
            message=f"A row may have at most {task.config.max_length} ids.",
        )
        with tf.control_dependencies([fits]):
            return from_ids(tf.identity(input_ids), input_mask, segment_ids)

    def from_examples(examples):
        parsed = tf.io.parse_example(examples, {"text": tf.io.FixedLenFeature([], tf.string)})
        return from_text(parsed["text"])

    strings = tf.TensorSpec([None], tf.string, name="text")
    ids = [
        tf.TensorSpec([None, None], tf.int32, name=name)
        for name in ("input_ids", "input_mask", "segment_ids")
    ]
    serialized = tf.TensorSpec([None], tf.string, name="examples")
    return {
        "serving_default": Signature(
            from_text,
            [strings],
            # A single short text and a full batch of long ones: the two ends of what will come.
            warmup=[{"text": ["a text"]}, {"text": ["a text of many words " * max_length] * 8}],
        ),
        "ids": Signature(from_ids_checked, ids),
        "examples": Signature(from_examples, [serialized]),
    }
