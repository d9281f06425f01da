"""Signatures of exported semantic role taggers: texts and predicates in, roles out."""

import functools

import tensorflow as tf

from keras_bert.inputs.framing import windows
from keras_bert.inputs.words import words_of_texts
from keras_bert.tasks.signatures import (
    framed,
    outputs_in_chunks,
    standard_signatures,
    traced_on_texts,
    warmup_at,
)
from keras_bert.tasks.span_classification.signatures import whole_words
from keras_bert.tasks.tagging.features import marked_inputs, repeated_tokens
from keras_bert.tasks.tagging.signatures import tagged_words


def role_signatures(task, *, max_length):
    """The signatures of a `SemanticRoleTagger`; the first is the default one.

    * `serving_default`: `text`, string (B,), and `predicate_start` and `predicate_end`, int32 (B,),
      in characters of the text. The predicate is widened to whole words; without one it is an
      error.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with a string under `text` and a
      number under each of the other names.

    Each returns what a `Tagger` does: `words` and `tags`, string (B, W); `scores`, float32 (B, W);
    `starts` and `ends`, int32 (B, W); and `lengths`, int32 (B,). A text of any length is split into
    windows, as in `predict`. There is no signature for ids, which do not show where words end.
    """
    names = ("predicate_start", "predicate_end")
    template = task.tokenizer.template
    room, before = template.room(max_length, texts=2), template.before(0, texts=2)

    @functools.partial(traced_on_texts, names=["text"], numbers=names)
    def from_text(text, predicate_start, predicate_end):
        words, starts, ends = words_of_texts(text, task.tokenizer)
        first, after = whole_words(starts, ends, from_=[predicate_start], to=[predicate_end])
        counts = tf.cast(words.ids.row_lengths(), tf.int32)
        # The first token of each word, and after the last one.
        edges = tf.concat([words.firsts, counts[:, None]], axis=1)
        marked = tf.gather(edges, tf.concat([first, after], axis=1), batch_dims=1)  # (B, 2)
        repeated = repeated_tokens(marked, room)
        parts = windows(counts, room - repeated, stride=tf.maximum(1, (room - repeated) // 2))
        second = tf.cast(words.ids.row_starts(), tf.int32) + marked[:, 0]
        second = tf.ragged.range(second, second + repeated)
        second = tf.gather(
            second.with_values(tf.gather(words.ids.values, second.values)), parts.sequence
        )
        inputs = framed(task, [parts.rows(words.ids), second], max_length=max_length)
        inputs |= marked_inputs(parts, marked, repeated, template=template)
        logits = outputs_in_chunks(task, inputs)["logits"]  # (R, S, C)
        in_core = parts.core_of(tf.shape(logits)[1], offset=before)
        return tagged_words(task, text, words, (starts, ends), tf.boolean_mask(logits, in_core))

    warmup = warmup_at(dict(zip(names, (0, 1), strict=True)), max_length)
    return standard_signatures(from_text, task=task, warmup=warmup, numbers=names)
