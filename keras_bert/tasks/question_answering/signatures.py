"""The signatures of question answering: contexts of any length to answers.

A span is chosen as `best_spans` does, in TensorFlow's operations, so that they run in any server; a
test compares the two. Legend of shapes: B questions, N windows of all of them, P tokens of the
longest window, A tokens of the longest answer.
"""

import functools

import tensorflow as tf

from keras_bert.inputs.framing import Windows
from keras_bert.tasks.question_answering.features import context_windows, question_limit
from keras_bert.tasks.signatures import (
    framed,
    in_chunks,
    outputs_in_chunks,
    standard_signatures,
    traced_on_ids,
    traced_on_texts,
    warmup_texts,
)
from keras_bert.text.ragged import leading

# Windows computed at once: the memory of a long context stays bounded.
_WINDOWS_PER_CHUNK = 32


def question_signatures(task, *, max_length):
    """The signatures of a `QuestionAnswerer`; the first is the default one.

    * `serving_default`: `question` and `context`, string (B,), of any length; bytes that are not
      UTF-8 are dropped.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `question`
      and one under `context`.

    Both give what `predict` does: `answer`, string (B,), a span of the context, or "" for none;
    `start` and `end`, int32 (B,), its characters in the context; `score`, float32 (B,), its
    probability; `null_score`, float32 (B,).

    * `ids`: the encoder's inputs, such as `input_ids`, int32 (B, S), for clients that tokenize and
      split contexts into windows; gives `start_logits` and `end_logits`, float32 (B, S).
    """

    @functools.partial(traced_on_ids, encoder=task.encoder)
    def from_ids(**inputs):
        return outputs_in_chunks(task, inputs)

    names = ("question", "context")

    @functools.partial(traced_on_texts, names=names)
    def from_text(question, context):
        same = tf.debugging.assert_equal(
            tf.shape(question), tf.shape(context), message="Give a context for each question."
        )
        with tf.control_dependencies([same] if same is not None else []):
            question = tf.identity(question)
        return _answers(question, context, task=task, logits_of=from_ids, max_length=max_length)

    warmup = [
        {"question": ["what?"] * len(batch), "context": batch}
        for batch in warmup_texts(2 * max_length)  # of several windows, too
    ]
    return standard_signatures(from_text, task=task, warmup=warmup, texts=names, from_ids=from_ids)


# What `_search` gives per window: the logit of the best span (-inf for none), its first and
# last token in the context, the log-sum-exp of all spans, and the logit of no answer.
_SPANS = {
    "best": tf.TensorSpec([None]),
    "first": tf.TensorSpec([None], tf.int64),
    "last": tf.TensorSpec([None], tf.int64),
    "all": tf.TensorSpec([None]),
    "null": tf.TensorSpec([None]),
}


def _answers(question, context, *, task, logits_of, max_length):
    template = task.tokenizer.template
    room = template.room(max_length, texts=2)
    limit = question_limit(room, task.settings.max_question_length)
    questions = leading(task.tokenizer.tokenize(question), limit)
    tokens = task.tokenizer.tokenize_with_offsets(context)
    windows = context_windows(
        tokens.ids.row_lengths(),
        room - questions.row_lengths(),
        stride=task.stride_of(max_length),
    )

    def search(parts):
        chunk = Windows(**parts)
        segments = [tf.gather(questions, chunk.sequence), chunk.rows(tokens.ids)]
        inputs = framed(task, segments, max_length=max_length)
        starts = tf.gather(questions.row_lengths(), chunk.sequence)
        starts += template.before(1, texts=2)
        return _search(logits_of(**inputs), chunk, starts, longest=task.settings.max_answer_length)

    spans = in_chunks(search, windows._asdict(), size=_WINDOWS_PER_CHUNK, specs=_SPANS)
    return _chosen(
        spans, windows.sequence, context, tokens, null_threshold=task.settings.null_threshold
    )


def _search(logits, windows, token_starts, *, longest):
    """`_SPANS` of windows whose tokens begin at `token_starts` in their sequences."""
    count = tf.size(windows.sizes)
    length = tf.shape(logits["start_logits"], tf.int64)[1]
    before = tf.range(tf.cast(count, tf.int64)) * length + token_starts
    # (N, tokens): positions in the flattened logits.
    positions = tf.ragged.range(before, before + windows.sizes)
    starts, ends = (
        tf.gather(tf.reshape(logits[name], [-1]), positions).to_tensor(-float("inf"))  # (N, P)
        for name in ("start_logits", "end_logits")
    )
    width = tf.shape(ends)[1]
    starts = tf.where(windows.core_of(width, offset=0), starts, -float("inf"))
    ends = tf.pad(ends, [[0, 0], [0, longest]], constant_values=-float("inf"))
    further = tf.range(width)[:, None] + tf.range(longest)  # (P, A)
    sums = starts[:, :, None] + tf.gather(ends, further, axis=1)  # (N, P, A)
    sums = tf.reshape(sums, tf.stack([count, width * longest]))
    # One more column at -inf, so that windows without a token have something to choose.
    sums = tf.pad(sums, [[0, 0], [0, 1]], constant_values=-float("inf"))
    position = tf.argmax(sums, axis=1)
    firsts = windows.starts + position // longest
    # A slice, because without windows there is no first position to index.
    null = tf.reduce_sum(logits["start_logits"][:, :1] + logits["end_logits"][:, :1], axis=1)
    return {
        "best": tf.reduce_max(sums, axis=1),
        "first": firsts,
        "last": firsts + position % longest,
        "all": tf.reduce_logsumexp(sums, axis=1),
        "null": null,
    }


def _chosen(spans, texts, context, tokens, *, null_threshold):
    """The outputs, from the best spans of the windows; `texts` (N,) is the text of each window."""
    best = tf.math.segment_max(spans["best"], texts)  # (B,)
    null = tf.math.segment_min(spans["null"], texts)
    there = best > -float("inf")
    numbers = tf.range(tf.size(texts))
    at_best = tf.where(spans["best"] == tf.gather(best, texts), numbers, tf.int32.max)
    window = tf.math.segment_min(at_best, texts)  # the first one in ties
    may_be_none = null_threshold is not None
    null_score = tf.where(there, null - best, 0.0)
    is_none = ~there | (null_score > null_threshold if may_be_none else False)

    # Probabilities, from logits minus the highest one, so that nothing overflows.
    top = tf.maximum(best, null) if may_be_none else tf.where(there, best, 0.0)
    null_weight = tf.exp(null - top) if may_be_none else tf.zeros_like(top)
    total = tf.math.segment_sum(tf.exp(spans["all"] - tf.gather(top, texts)), texts) + null_weight
    chosen = tf.where(is_none, null_weight, tf.exp(best - top))
    score = tf.math.divide_no_nan(chosen, total)

    token = tokens.ids.row_splits[:-1] + tf.gather(spans["first"], window)
    last = tokens.ids.row_splits[:-1] + tf.gather(spans["last"], window)
    start, byte_start = (_at(x, token, is_none) for x in (tokens.starts, tokens.byte_starts))
    end, byte_end = (_at(x, last, is_none) for x in (tokens.ends, tokens.byte_ends))
    return {
        "answer": tf.strings.substr(context, byte_start, byte_end - byte_start),
        "start": start,
        "end": end,
        "score": score,
        "null_score": null_score,
    }


def _at(numbers, tokens, is_none):
    """The values of tokens (B,), numbered over all texts; 0 for no answer."""
    numbers = tf.pad(numbers.flat_values, [[0, 1]])  # at least one, if no text has a token
    nowhere = tf.cast(tf.size(numbers) - 1, tokens.dtype)
    return tf.where(is_none, 0, tf.gather(numbers, tf.minimum(tokens, nowhere)))
