"""What an exported masked language model answers to: texts with [MASK], words in its place out.

Legend of shapes: B texts, R rows of all of them, M masks of all of them, D width, V vocabulary, K
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

    * `serving_default`: `text`, string (B,), in which a literal [MASK] is the special piece, any
      number of times. Of a text longer than a row, each mask is answered in one of several rows
      that overlap, where it has most context.
    * `ids`: the encoder's inputs, such as `input_ids`, int32 (B, S), for clients that tokenize.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `text`.

    Each gives for up to n masks a text `tokens`, string (B, n, K), the likeliest first;
    `probabilities`, float32 (B, n, K); and `lengths`, int32 (B,), how many masks there are, 0 where
    there is none. What is behind them is "" and 0. The pieces have the names of
    `Vocabulary.token_name`.
    """
    vocabulary = task.tokenizer.vocabulary
    if vocabulary.mask_id is None:
        raise InputError(f"The tokenizer has no mask token, so {MASK} is not predicted.")
    names = tf.constant([vocabulary.token_name(number) for number in range(len(vocabulary))])
    top_k = min(top_k, len(vocabulary))
    template = task.tokenizer.template
    room, before = template.room(max_length), template.before(0, texts=1)

    def answer(inputs, is_asked, text, texts):
        """The outputs: of rows, bool (R, S), and the text of each row (R,), rising."""
        vectors = _vectors(task, {**inputs, "is_asked": is_asked})  # (M, D)
        probabilities, tokens = _most_probable(task, vectors, top_k=top_k)  # (M, K) each
        of_mask = tf.gather(text, tf.where(is_asked)[:, 0])  # (M,)
        number = tf.RaggedTensor.from_value_rowids(tf.range(tf.size(of_mask)), of_mask, texts)
        shape = [None, None, top_k]

        def padded(values):
            values = tf.RaggedTensor.from_row_splits(values, number.row_splits)
            return tf.ensure_shape(values.to_tensor(), shape)

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
        is_asked = is_core & (inputs["input_ids"] == vocabulary.mask_id)
        return answer(inputs, is_asked, found.sequence, tf.size(text))

    @functools.partial(traced_on_ids, encoder=task.encoder)
    def from_ids(**inputs):
        input_ids = inputs["input_ids"]
        is_asked = (input_ids == vocabulary.mask_id) & (inputs["input_mask"] > 0)
        count = tf.shape(input_ids)[0]
        return answer(inputs, is_asked, tf.range(count), count)

    masked = [[f"{text} {MASK}" for text in batch] for batch in warmup_texts(max_length)]
    warmup = [{"text": batch} for batch in masked]
    return standard_signatures(from_text, task=task, warmup=warmup, from_ids=from_ids)


def _ids(texts, tokenizer):
    """The ids of texts (B,) in which a literal [MASK] is the special piece: ragged (B, None)."""
    # A space more at both ends, since an empty text would have no part; white space has no token.
    parts = tf.strings.split(tf.strings.join([" ", texts, " "]), MASK)  # ragged (B, parts)
    tokens = tokenizer.tokenize(parts.values)
    follows = tf.ragged.range(parts.row_lengths()).values > 0  # a mask stands before it
    masks = tf.repeat(tokenizer.vocabulary.mask_id, tf.size(follows))[:, None]
    masks = tf.ragged.boolean_mask(masks, follows[:, None])
    return parts.with_values(tf.concat([masks, tokens], axis=1)).merge_dims(1, 2)


def _vectors(task, inputs):
    """The encoder's vectors (M, D) where `inputs["is_asked"]`, of rows in turn.

    A row in which nothing is asked is left out, since a long text may have thousands of them; but
    the first one stays, as the encoder takes no batch without a row.
    """
    is_read = tf.reduce_any(inputs["is_asked"], axis=1)  # (R,)
    is_read |= tf.range(tf.size(is_read)) == 0
    inputs = {name: tf.boolean_mask(values, is_read) for name, values in inputs.items()}

    def asked(some):
        is_asked = some.pop("is_asked")
        hidden = task.encoded(some, training=False)["sequence_output"]
        return {"vectors": tf.boolean_mask(hidden, is_asked)}

    return in_chunks(
        asked,
        inputs,
        size=chunk_size(inputs["input_ids"]),
        specs={"vectors": tf.TensorSpec([None, task.config.hidden_size])},
    )["vectors"]


def _most_probable(task, vectors, *, top_k):
    """Vectors (M, D) -> the probabilities and numbers of the likeliest pieces, (M, K) each."""
    known = len(task.tokenizer.vocabulary)  # an embedding may have more rows

    def best(some):
        hidden = some["vectors"][:, None]  # (m, 1, D)
        logits = task.lm_head(hidden, tf.zeros(tf.shape(hidden)[:2], tf.int32))
        probabilities = tf.nn.softmax(tf.cast(logits[:, 0], tf.float32))  # (m, V)
        values, numbers = tf.math.top_k(probabilities[:, :known], k=top_k)
        return {"values": values, "numbers": numbers}

    found = in_chunks(
        best,
        {"vectors": vectors},
        size=_MASKS_TOGETHER,
        specs={
            "values": tf.TensorSpec([None, top_k]),
            "numbers": tf.TensorSpec([None, top_k], tf.int32),
        },
    )
    return found["values"], found["numbers"]
