"""Signatures of an exported masked language model: texts with [MASK] in, words for it out.

Shapes: B texts, R windows of all texts, M masks of all texts, D hidden size, V vocabulary, K
candidates.
"""

import functools

import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.inputs.framing import frame
from keras_bert.inputs.windows import windows
from keras_bert.tasks.signatures import (
    chunk_size,
    in_chunks,
    standard_signatures,
    traced_on_ids,
    traced_on_texts,
    warmup_texts,
)
from keras_bert.text.vocabulary import MASK

# Masks whose probabilities, V numbers each, are computed at once.
_MASKS_TOGETHER = 256


def fill_mask_signatures(task, *, max_length, top_k):
    """The signatures of a `FillMask` or a `Pretrainer`; the first is the default one.

    * `serving_default`: `text`, string (B,), with any number of [MASK]. A long text is split into
      overlapping windows, and each mask is predicted in the one in which it has most context.
    * `ids`: the encoder's inputs, such as `input_ids`, int32 (B, S), for clients that tokenize.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `text`.

    Each returns for up to n masks per text `pieces`, string (B, n, K), the names of tokens (see
    `Vocabulary.token_name`), the most probable first; `probabilities`, float32 (B, n, K); and
    `lengths`, int32 (B,), the numbers of masks. Padding is "" and 0.
    """
    vocabulary = task.tokenizer.vocabulary
    if vocabulary.mask_id is None:
        raise InputError(f"The tokenizer has no mask token, so {MASK} has no meaning.")
    names = tf.constant([vocabulary.token_name(number) for number in range(len(vocabulary))])
    top_k = min(top_k, len(vocabulary))
    template = task.tokenizer.template
    room, before = template.room(max_length), template.before(0, texts=1)

    def outputs(inputs, is_mask, text, texts):
        """The outputs for windows of `inputs`, masks bool (R, S), and texts (R,), rising."""
        vectors = _vectors(task, {**inputs, "is_mask": is_mask})  # (M, D)
        probabilities, tokens = _most_probable(task, vectors, top_k=top_k)  # (M, K) each
        text_of_mask = tf.gather(text, tf.where(is_mask)[:, 0])  # (M,)
        number = tf.RaggedTensor.from_value_rowids(
            tf.range(tf.size(text_of_mask)), text_of_mask, texts
        )

        def padded(values):
            values = tf.RaggedTensor.from_row_splits(values, number.row_splits)
            return tf.ensure_shape(values.to_tensor(), [None, None, top_k])

        return {
            "pieces": padded(tf.gather(names, tokens)),
            "probabilities": padded(probabilities),
            "lengths": tf.cast(number.row_lengths(), tf.int32),
        }

    @functools.partial(traced_on_texts, names=["text"])
    def from_text(text):
        ids = _ids(text, task.tokenizer)  # ragged (B, None)
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        found = windows(lengths, room, stride=max(1, room // 2))
        inputs = frame(
            [found.rows(ids)],
            tokenizer=task.tokenizer,
            names=task.encoder.input_names,
            max_length=max_length,
        )
        is_core = found.core_of(tf.shape(inputs["input_ids"])[1], offset=before)  # (R, S)
        is_mask = is_core & (inputs["input_ids"] == vocabulary.mask_id)
        return outputs(inputs, is_mask, found.sequence, tf.size(text))

    @functools.partial(traced_on_ids, encoder=task.encoder)
    def from_ids(**inputs):
        input_ids = inputs["input_ids"]
        is_mask = (input_ids == vocabulary.mask_id) & (inputs["input_mask"] > 0)
        count = tf.shape(input_ids)[0]
        return outputs(inputs, is_mask, tf.range(count), count)

    warmup = [{"text": [f"{text} {MASK}" for text in batch]} for batch in warmup_texts(max_length)]
    return standard_signatures(from_text, task=task, warmup=warmup, from_ids=from_ids)


def _ids(texts, tokenizer):
    """The ids of texts (B,) in which a literal [MASK] is the special token: ragged (B, None)."""
    # With a space at both ends, as an empty text would have no part; white space has no token.
    parts = tf.strings.split(tf.strings.join([" ", texts, " "]), MASK)  # ragged (B, parts)
    tokens = tokenizer.tokenize(parts.values)
    follows = tf.ragged.range(parts.row_lengths()).values > 0  # a mask is before it
    masks = tf.repeat(tokenizer.vocabulary.mask_id, tf.size(follows))[:, None]
    masks = tf.ragged.boolean_mask(masks, follows[:, None])
    return parts.with_values(tf.concat([masks, tokens], axis=1)).merge_dims(1, 2)


def _vectors(task, inputs):
    """The encoder's vectors (M, D) at `inputs["is_mask"]`, in chunks.

    Windows without a mask are left out, as a long text may have thousands of them. The first one
    stays, because the encoder takes no empty batch.
    """
    is_read = tf.reduce_any(inputs["is_mask"], axis=1)  # (R,)
    is_read |= tf.range(tf.size(is_read)) == 0
    inputs = {name: tf.boolean_mask(values, is_read) for name, values in inputs.items()}

    def at_masks(some):
        is_mask = some.pop("is_mask")
        hidden = task.encoded(some, training=False)["sequence_output"]
        return {"vectors": tf.boolean_mask(hidden, is_mask)}

    return in_chunks(
        at_masks,
        inputs,
        size=chunk_size(inputs["input_ids"]),
        specs={"vectors": tf.TensorSpec([None, task.config.hidden_size])},
    )["vectors"]


def _most_probable(task, vectors, *, top_k):
    """Vectors (M, D) -> probabilities and ids of the most probable tokens, (M, K) each."""
    known = len(task.tokenizer.vocabulary)  # an embedding may have more rows

    def best(some):
        hidden = some["vectors"][:, None]  # (m, 1, D)
        logits = task.lm_head(hidden, tf.zeros(tf.shape(hidden)[:2], tf.int32))
        probabilities = tf.nn.softmax(tf.cast(logits[:, 0], tf.float32))  # (m, V)
        values, ids = tf.math.top_k(probabilities[:, :known], k=top_k)
        return {"values": values, "ids": ids}

    found = in_chunks(
        best,
        {"vectors": vectors},
        size=_MASKS_TOGETHER,
        specs={
            "values": tf.TensorSpec([None, top_k]),
            "ids": tf.TensorSpec([None, top_k], tf.int32),
        },
    )
    return found["values"], found["ids"]
