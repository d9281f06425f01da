"""What exported tasks over whole texts answer to."""

import functools

import tensorflow as tf

from keras_bert.inputs.framing import frame
from keras_bert.tasks.signatures import (
    Signature,
    examples_signature,
    ids_signature,
    outputs_in_chunks,
    traced_on_ids,
    warmup_texts,
)


def classifier_signatures(task, *, max_length):
    """The signatures of a `Classifier` or a `PairClassifier`; the first is the default one.

    * `serving_default`: `text` (of pairs `text_a` and `text_b`), string (B,), of any length; bytes
      that are not UTF-8 are dropped.
    * `ids`: the encoder's inputs, such as `input_ids`, int32 (B, S), for clients that tokenize.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under each of
      those names.

    Each gives `label`, string (B,), the likeliest; `score`, float32 (B,), its probability; and
    `probabilities`, float32 (B, C), in the order of `task.labels`. Where a text may have several
    labels, `given`, bool (B, C), says which of them have more than the threshold.
    """
    labels = tf.constant(task.labels)  # (C,)

    def answer(outputs):
        logits = outputs["logits"]  # (B, C)
        squash = tf.nn.sigmoid if task.multi_label else tf.nn.softmax
        probabilities = squash(logits)
        best = tf.argmax(probabilities, axis=-1)
        answers = {
            "label": tf.gather(labels, best),
            "score": tf.gather(probabilities, best, batch_dims=1),
            "probabilities": probabilities,
        }
        if task.multi_label:
            answers["given"] = probabilities > task.threshold
        return answers

    return _signatures(task, answer, texts=task.TEXTS, max_length=max_length)


def regressor_signatures(task, *, max_length):
    """The signatures of a `Regressor`, as of a classifier. Each gives `score`, float32 (B,)."""

    def answer(outputs):
        return {"score": outputs["score"][:, 0]}

    texts = ("text",) if task.one_text else ("text_a", "text_b")
    return _signatures(task, answer, texts=texts, max_length=max_length)


def _signatures(task, answer, *, texts, max_length):
    """The three signatures; `answer` is the function of the task's outputs to what is given."""

    @functools.partial(traced_on_ids, encoder=task.encoder)
    def from_ids(**inputs):
        return answer(outputs_in_chunks(task, inputs))

    def answer_texts(*strings):
        tokens = [task.tokenizer.tokenize(column) for column in strings]
        batch = frame(
            tokens,
            tokenizer=task.tokenizer,
            names=task.encoder.input_names,
            max_length=max_length,
        )
        return from_ids(**batch)

    specs = [tf.TensorSpec([None], tf.string, name=name) for name in texts]
    from_texts = tf.function(answer_texts, input_signature=specs, autograph=False)

    def from_named(**strings):
        return from_texts(*(strings[name] for name in texts))

    return {
        "serving_default": Signature(
            from_texts,
            specs,
            warmup=[dict.fromkeys(texts, batch) for batch in warmup_texts(max_length)],
        ),
        "ids": ids_signature(from_ids, encoder=task.encoder, tokenizer=task.tokenizer),
        "examples": examples_signature(from_named, keys=list(texts)),
    }
