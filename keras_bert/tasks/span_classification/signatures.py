"""Signatures of exported models of spans and relations."""

import functools

import tensorflow as tf

from keras_bert.inputs.tokenized_examples import PAD_TO
from keras_bert.inputs.words import sequences_around, word_sequences, words_of_texts
from keras_bert.tasks.signatures import (
    framed,
    outputs_in_chunks,
    standard_signatures,
    traced_on_texts,
    warmup_at,
    warmup_texts,
)
from keras_bert.tasks.span_classification.decode import tie_break
from keras_bert.text.ragged import per_value


def span_signatures(task, *, max_length):
    """The signatures of a `SpanClassifier`; the first is the default one.

    * `serving_default`: `text`, string (B,), of any length; invalid UTF-8 is dropped.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `text`.

    Each returns for the spans that `predict` finds, in their order, `labels`, string (B, M);
    `scores`, float32 (B, M); `starts` and `ends`, int32 (B, M), in characters of the text; and
    `lengths`, int32 (B,), their numbers. Padding is "" and 0. There is no signature for ids, which
    do not show where words end.
    """
    labels = tf.constant(task.labels)

    @functools.partial(traced_on_texts, names=["text"])
    def from_text(text):
        tokenized, starts, ends = words_of_texts(text, task.tokenizer)
        template = task.tokenizer.template
        sequences = word_sequences(tokenized, template=template, max_length=max_length)
        inputs = _inputs(sequences, task=task, max_length=max_length)
        logits = outputs_in_chunks(task, inputs)["logits"]  # (R, W, L, C)
        probabilities = tf.nn.softmax(logits, axis=-1)[..., 1:]
        scores = tf.reduce_max(probabilities, axis=-1)  # (R, W, L)
        spans = _found(sequences, scores, threshold=task.found_above)  # (F, 3)
        scores = tf.gather_nd(scores, spans)
        label = tf.argmax(tf.gather_nd(probabilities, spans), axis=-1)
        text_of = tf.gather(sequences.text, spans[:, 0])  # (F,)
        in_text = tf.gather(sequences.first, spans[:, 0]) + spans[:, 1]
        first = tf.gather(tf.cast(starts.row_splits, tf.int32), text_of) + in_text  # of all words
        last = first + spans[:, 2]
        if task.settings.flat:
            turn = tie_break(tf.cast(in_text, tf.int64))
            words = tf.size(starts.flat_values)
            selected = _without_overlaps(first, last, scores, turn, words=words)
            text_of, first, last, scores, label = (
                tf.boolean_mask(x, selected) for x in (text_of, first, last, scores, label)
            )
        spans_of_text = tf.RaggedTensor.from_value_rowids(
            tf.range(tf.size(text_of)), text_of, tf.size(text)
        )

        def padded(x):
            return spans_of_text.with_values(x).to_tensor()

        return {
            "labels": padded(tf.gather(labels, label)),
            "scores": padded(scores),
            "starts": padded(tf.gather(starts.flat_values, first)),
            "ends": padded(tf.gather(ends.flat_values, last)),
            "lengths": tf.cast(spans_of_text.row_lengths(), tf.int32),
        }

    warmup = [{"text": batch} for batch in warmup_texts(max_length)]
    return standard_signatures(from_text, task=task, warmup=warmup)


def relation_signatures(task, *, max_length):
    """The signatures of a `RelationClassifier`; the first is the default one.

    * `serving_default`: `text`, string (B,), and int32 (B,) `head_start`, `head_end`, `tail_start`,
      `tail_end`, the two spans in characters of the text. A span is widened to whole words.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with a string under `text` and a
      number under each of the other names.

    Each returns `label`, string (B,); `score`, float32 (B,), its probability; and `probabilities`,
    float32 (B, C), in the order of `task.labels`. A span without a word is an error; if the two are
    too far apart for a sequence, the label is "" and the numbers are 0. There is no signature for
    ids, which do not show where words end.
    """
    labels = tf.constant(task.labels)
    names = ("head_start", "head_end", "tail_start", "tail_end")

    @functools.partial(traced_on_texts, names=["text"], numbers=names)
    def from_text(text, head_start, head_end, tail_start, tail_end):
        tokenized, starts, ends = words_of_texts(text, task.tokenizer)
        firsts, afters = whole_words(
            starts, ends, from_=[head_start, tail_start], to=[head_end, tail_end]
        )
        low, high = tf.reduce_min(firsts, axis=1), tf.reduce_max(afters, axis=1)
        sequences, missing = sequences_around(
            tokenized, low, high, template=task.tokenizer.template, max_length=max_length
        )
        first, last = sequences.first[:, None], sequences.end[:, None] - 1
        spans = {
            "span_firsts": tf.clip_by_value(firsts, first, last) - first,
            "span_lasts": tf.clip_by_value(afters - 1, first, last) - first,
        }
        inputs = _inputs(sequences, task=task, max_length=max_length) | spans
        logits = outputs_in_chunks(task, inputs)["logits"]  # (B, C)
        fits = missing == 0  # (B,)
        probabilities = tf.where(fits[:, None], tf.nn.softmax(logits, axis=-1), 0.0)
        label = tf.gather(labels, tf.argmax(probabilities, axis=-1))
        return {
            "label": tf.where(fits, label, ""),
            "score": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
            "labels": tf.tile(labels[None], [tf.shape(probabilities)[0], 1]),
        }

    warmup = warmup_at(dict(zip(names, (0, 1, 2, 6), strict=True)), max_length)
    return standard_signatures(from_text, task=task, warmup=warmup, numbers=names)


def whole_words(starts, ends, *, from_, to):
    """Spans of characters, widened to whole words: the first word and the one after the last.

    A span without a word is an error.

    Args:
        starts, ends: the characters of each text's words, ragged int32 (B, None).
        from_, to: lists of int32 (B,), the characters of P spans of each text.

    Returns:
        Two int32 (B, P).
    """
    firsts = tf.stack([_count(ends, position) for position in from_], axis=1)
    afters = tf.stack([_count(starts, position - 1) for position in to], axis=1)
    check = tf.debugging.assert_less(firsts, afters, message="A span must hold a word.")
    with tf.control_dependencies([check] if check is not None else []):
        return tf.identity(firsts), tf.identity(afters)


def _count(positions, most):
    """How many of the `positions` of each text, ragged (B, None), are at most `most` (B,): (B,)."""
    counted = positions.values <= per_value(most, positions)
    return tf.reduce_sum(positions.with_values(tf.cast(counted, tf.int32)), axis=1)


def _inputs(sequences, *, task, max_length):
    """The inputs of a task for `WordSequences`, without those on spans; W is at least 1."""
    inputs = framed(task, [sequences.ids], max_length=max_length, multiple_of=PAD_TO)
    words = tf.maximum(tf.reduce_max(sequences.end - sequences.first), 1)
    shape = tf.stack([tf.size(sequences.text), words])
    inputs["word_starts"] = sequences.starts.to_tensor(shape=shape)
    inputs["word_ends"] = sequences.ends.to_tensor(shape=shape)
    return inputs


def _found(sequences, scores, *, threshold):
    """The (sequence, first word, width - 1) int32 (F, 3) of spans over the threshold, in order.

    Shapes: scores (R, W, L). A sequence must own the first word of a span and have the last.
    """
    first = tf.range(tf.shape(scores)[1])[:, None]  # (W, 1)
    last = first + tf.range(tf.shape(scores)[2])  # (W, L)
    owned, owned_end, count = (
        (word - sequences.first)[:, None, None]
        for word in (sequences.owned, sequences.owned_end, sequences.end)
    )
    is_inside = (first >= owned) & (first < owned_end) & (last < count)  # (R, W, L)
    return tf.cast(tf.where(is_inside & (scores > threshold)), tf.int32)


def _without_overlaps(first, last, scores, turn, *, words):
    """bool (F,): the spans that do not overlap with a more probable one that is kept.

    Shapes: all (F,), in the order of first and last words; equal `scores` are ordered by `turn`.

    As `decode.without_overlaps`, for all texts at once, whose words are numbered consecutively. One
    span after another would take minutes in a text of a megabyte. So each round keeps the spans
    that are more probable than all that they overlap with, and drops those.
    """
    count = tf.size(scores)
    order = tf.argsort(turn, stable=True)
    order = tf.gather(order, tf.argsort(-tf.gather(scores, order), stable=True))
    rank = tf.math.invert_permutation(order)
    inside = tf.ragged.range(first, last + 1)
    word, span = inside.flat_values, tf.cast(inside.value_rowids(), tf.int32)  # (P,), all pairs

    def select(is_open, selected):
        ranks = tf.where(tf.gather(is_open, span), tf.gather(rank, span), count)  # (P,)
        best = tf.gather(tf.math.unsorted_segment_min(ranks, word, words), word)  # (P,)
        wins = is_open & _all(best == tf.gather(rank, span), span)  # (F,)
        is_free = tf.math.unsorted_segment_max(
            tf.cast(tf.gather(wins, span), tf.int32), word, words
        )
        is_free = tf.gather(is_free, word) < 1  # (P,)
        return is_open & _all(is_free, span), selected | wins

    nothing = tf.zeros_like(first, tf.bool)
    _, selected = tf.while_loop(
        lambda is_open, selected: tf.reduce_any(is_open), select, [~nothing, nothing]
    )
    return selected


def _all(flags, groups):
    """bool (P,) and the rising numbers (P,) of their groups -> bool (F,), all of a group."""
    return tf.math.segment_min(tf.cast(flags, tf.int32), groups) > 0
