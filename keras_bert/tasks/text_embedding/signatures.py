"""Entry points of an exported text embedder: plain texts, queries, documents, and a size."""

import functools

import tensorflow as tf

from keras_bert.inputs.framing import frame
from keras_bert.tasks.signatures import (
    Signature,
    outputs_in_chunks,
    standard_signatures,
    text_specs,
    traced_on_ids,
    traced_on_texts,
    warmup_texts,
)
from keras_bert.tasks.text_embedding import DOCUMENT, QUERY
from keras_bert.tasks.text_embedding.features import lowercased, prompt_tokens


def embedding_signatures(task, *, max_length):
    """The signatures of a `TextEmbedder`; the first is the default.

    * `serving_default`: `text`, string (B,), behind the default prompt; longer texts are cut, and
      bytes that are not UTF-8 are dropped.
    * `query`, `document`: `text` behind the prompts of these names.
    * `sized`: as the default, and `size`, int32 (B,): the numbers of a vector after its size are 0,
      and those after the largest size are left out.
    * `ids`: the encoder's inputs, such as `input_ids`, int32 (B, S), for clients that tokenize.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `text`.

    Each gives `embedding`, float32 (B, D), with D the setting `size` of the task, if there is one.
    """
    width = task.size_of(None)

    @functools.partial(traced_on_ids, encoder=task.encoder)
    def from_ids(**inputs):
        return _embedding(task, inputs, skipped=0)[:, :width]

    @functools.partial(traced_on_texts, names=("text", "prompt"))
    def vectors(text, prompt):
        ids = task.tokenizer.tokenize(lowercased(task, tf.strings.join([prompt, text])))
        inputs = frame(
            [ids],
            tokenizer=task.tokenizer,
            names=task.encoder.input_names,
            max_length=max_length,
        )
        if not task.HEAD_INPUTS:
            return from_ids(**inputs)
        skipped = prompt_tokens(task, prompt)
        return _embedding(task, inputs, skipped=skipped)[:, :width]

    def behind(role):
        prompt = task.settings.prompt_of(role)

        def from_text(text):
            return {"embedding": vectors(text, tf.fill(tf.shape(text), prompt))}

        return from_text

    def sized(text, size):
        vector = behind(None)(text)["embedding"]
        size = tf.clip_by_value(size, 1, width)
        is_kept = tf.range(width) < size[:, None]  # (B, D)
        largest = tf.reduce_max(tf.concat([size, [1]], axis=0))
        return {"embedding": tf.where(is_kept, vector, 0.0)[:, :largest]}

    warmup = [{"text": batch} for batch in warmup_texts(max_length)]
    signatures = standard_signatures(
        behind(None),
        task=task,
        warmup=warmup,
        from_ids=lambda **inputs: {"embedding": from_ids(**inputs)},
    )
    one_text = text_specs(["text"])
    return {
        **signatures,
        QUERY: Signature(behind(QUERY), one_text, warmup),
        DOCUMENT: Signature(behind(DOCUMENT), one_text, warmup),
        "sized": Signature(
            sized,
            text_specs(["text"], ["size"]),
            [{**inputs, "size": [width] * len(inputs["text"])} for inputs in warmup],
        ),
    }


def _embedding(task, inputs, *, skipped):
    """Inputs (B, S) by name, and int32 (B,) or 0, the tokens of the prompts -> (B, D)."""
    inputs = {name: x[:, None] for name, x in inputs.items()}
    if task.HEAD_INPUTS:
        batch = tf.shape(inputs["input_ids"])[0]
        inputs["prompt_tokens"] = tf.zeros([batch, 1], tf.int32) + tf.reshape(skipped, [-1, 1])
    return outputs_in_chunks(task, inputs)["embedding"][:, 0]
