"""Signatures of an exported encoder: the embeddings of texts.

Shapes: B texts, T tokens of the longest text (words or subword tokens), S positions of a sequence,
D the size of a vector.
"""

import functools

import tensorflow as tf

from keras_bert.inference.embed import layers_model
from keras_bert.inputs.framing import frame
from keras_bert.inputs.words import cut, ends_word
from keras_bert.tasks.signatures import (
    Signature,
    chunk_size,
    examples_signature,
    ids_signature,
    in_chunks,
    traced_on_ids,
    traced_on_texts,
    warmup_texts,
)
from keras_bert.text.ragged import kept, leading


def encoder_signatures(encoder, tokenizer, *, layers, tokens, max_length):
    """The signatures of an encoder with its tokenizer; the first is the default one.

    * `serving_default`: `text`, string (B,), which is cut to the maximum length.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `text`.

    Both return what `embed` does with the same `layers` and `tokens`: `embeddings`, float32
    (B, T, D); `tokens`, string (B, T), as they are in the text; `starts` and `ends`, int32 (B, T),
    their characters; `mask`, int32 (B, T), 0 after a text's tokens; `sentence`, float32 (B, D), the
    mean over [CLS], the text's subword tokens and [SEP]; and `cls`, float32 (B, D). With the tokens
    "none" there are `sentence` and `cls` alone.

    * `ids`: the encoder's inputs, such as `input_ids`, int32 (B, S), for clients that tokenize.
      Returns `embeddings` (B, S, D) at all positions, `sentence` and `cls`.

    Raises `InputError` if the model has too few layers.
    """
    vectors_of = layers_model(encoder, layers)
    width = vectors_of.output.shape[-1]

    @functools.partial(traced_on_ids, encoder=encoder)
    def from_ids(**inputs):
        vectors = in_chunks(
            lambda some: {"vectors": vectors_of(some, training=False)},
            inputs,
            size=chunk_size(inputs["input_ids"]),
            specs={"vectors": tf.TensorSpec([None, None, width])},
        )["vectors"]  # (B, S, D)
        is_token = tf.cast(inputs["input_mask"] > 0, tf.float32)[..., None]  # (B, S, 1)
        sums = tf.reduce_sum(vectors * is_token, axis=1)
        sentence = tf.math.divide_no_nan(sums, tf.reduce_sum(is_token, axis=1))
        return {"embeddings": vectors, "sentence": sentence, "cls": vectors[:, 0]}

    @functools.partial(traced_on_texts, names=["text"])
    def from_text(text):
        found = tokenizer.tokenize_with_offsets(text)
        ids, starts, ends, begins = (
            leading(values, tokenizer.template.room(max_length))
            for values in (found.ids, found.starts, found.ends, found.word_starts)
        )
        outputs = from_ids(
            **frame([ids], tokenizer=tokenizer, names=encoder.input_names, max_length=max_length)
        )
        before = tokenizer.template.before(0, texts=1)
        vectors = outputs.pop("embeddings")[:, before:]
        if tokens == "none":
            return outputs
        subwords = tf.RaggedTensor.from_row_splits(
            tf.boolean_mask(vectors, tf.sequence_mask(ids.row_lengths(), tf.shape(vectors)[1])),
            ids.row_splits,
        )
        if tokens == "subwords":
            begins = tf.ones_like(begins)
        starts = kept(starts, begins.values)
        ends = kept(ends, ends_word(begins.values))
        if tokens == "words-mean":
            word = tf.cumsum(tf.cast(begins.values, tf.int32)) - 1  # of each token
            embedded = tf.math.segment_mean(subwords.values, word)
        else:
            embedded = tf.boolean_mask(subwords.values, begins.values)
        return {
            **outputs,
            "embeddings": tf.ensure_shape(
                starts.with_values(embedded).to_tensor(), [None, None, width]
            ),
            "tokens": cut(text, starts, ends).to_tensor(""),
            "starts": starts.to_tensor(),
            "ends": ends.to_tensor(),
            "mask": tf.ones_like(starts).to_tensor(),
        }

    return {
        "serving_default": Signature(
            from_text,
            [tf.TensorSpec([None], tf.string, name="text")],
            warmup=[{"text": batch} for batch in warmup_texts(max_length)],
        ),
        "ids": ids_signature(from_ids, encoder=encoder, tokenizer=tokenizer),
        "examples": examples_signature(from_text, keys=["text"]),
    }
