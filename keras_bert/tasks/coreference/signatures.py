"""The signatures of coreference: texts of any length to clusters of mentions."""

import functools

import tensorflow as tf

from keras_bert.inputs.words import words_of_texts
from keras_bert.tasks.coreference.decode import cluster_numbers
from keras_bert.tasks.coreference.features import document_inputs, document_sequences
from keras_bert.tasks.signatures import (
    outputs_in_chunks,
    standard_signatures,
    traced_on_texts,
    warmup_texts,
)


def coreference_signatures(task, *, max_length):
    """The signatures of a `CoreferenceResolver`; the first is the default one.

    * `serving_default`: `text`, string (B,), of any length; invalid UTF-8 is dropped.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `text`.

    Each returns for the mentions that `predict` finds, in the order of the text, `starts` and
    `ends`, int32 (B, M), in characters; `clusters`, int32 (B, M), the number of each one's cluster
    from 0, in the order of their first mentions; and `lengths`, int32 (B,), their numbers. Padding
    is 0. There is no signature for ids, which do not show where words end.
    """
    tokenizer = task.tokenizer

    @functools.partial(traced_on_texts, names=["text"])
    def from_text(text):
        tokenized, starts, ends = words_of_texts(text, tokenizer)
        ids, columns = document_sequences(
            tokenized, template=tokenizer.template, max_length=max_length
        )
        inputs = document_inputs(
            ids,
            columns,
            tokenizer=tokenizer,
            names=task.encoder.input_names,
            max_length=max_length,
        )
        candidates = outputs_in_chunks(task, inputs)["antecedents"]  # (B, K, 2 + A)
        clusters = cluster_numbers(candidates)  # (B, K)
        is_linked = clusters >= 0
        lengths = tf.reduce_sum(tf.cast(is_linked, tf.int32), axis=1)

        def by_document(x):  # (F,)
            return tf.RaggedTensor.from_row_lengths(x, lengths).to_tensor()

        text_of = tf.cast(tf.where(is_linked)[:, :1], tf.int32)  # (F, 1)
        words = tf.cast(tf.boolean_mask(candidates[..., :2], is_linked), tf.int32)  # (F, 2)
        row = tf.gather(tf.cast(starts.row_splits, tf.int32), text_of)
        first, last = tf.unstack(row + words, axis=1)
        return {
            "starts": by_document(tf.gather(starts.flat_values, first)),
            "ends": by_document(tf.gather(ends.flat_values, last)),
            "clusters": by_document(tf.boolean_mask(clusters, is_linked)),
            "lengths": lengths,
        }

    warmup = [{"text": batch} for batch in warmup_texts(max_length)]
    return standard_signatures(from_text, task=task, warmup=warmup)
