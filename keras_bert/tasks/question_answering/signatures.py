"""What an exported question answerer answers to.

The choice among the windows is that of `decode.py`, written with TensorFlow's operations; a test
holds the two against each other. Legend of shapes: B questions, N
windows of all of them, P tokens of the longest piece, A tokens of the longest answer.
"""

import functools
from typing import NamedTuple

import tensorflow as tf

from keras_bert.inputs.framing import frame
from keras_bert.inputs.windows import Windows
from keras_bert.tasks.question_answering.features import context_windows, question_limit
from keras_bert.tasks.signatures import (
    Signature,
    examples_signature,
    ids_signature,
    outputs_in_chunks,
    traced_on_ids,
    traced_on_texts,
    warmup_texts,
)
from keras_bert.text.ragged import leading

# Windows that the model reads at once: a long context must not take the memory of all of them.
_WINDOWS_TOGETHER = 32


def question_signatures(task, *, max_length):
    """The signatures of a `QuestionAnswerer`; the first is the default one.

    * `serving_default`: `question` and `context`, string (B,), of any length; bytes that are not
      UTF-8 are dropped.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `question`
      and one under `context`.

    Both give what `predict` does: `answer`, string (B,), a piece of the context, or "" for none;
    `start` and `end`, int32 (B,), its characters in the context; `score`, float32 (B,), its
    probability; `null_score`, float32 (B,).

    * `ids`: the encoder's inputs, such as `input_ids`, int32 (B, S), for clients that tokenize and
      make windows; gives `start_logits` and `end_logits`, float32 (B, S).
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
        return _answers(question, context, task=task, answer=from_ids, max_length=max_length)

    return {
        "serving_default": Signature(
            from_text,
            [tf.TensorSpec([None], tf.string, name=name) for name in names],
            warmup=[
                {"question": ["what?"] * len(batch), "context": batch}
                for batch in warmup_texts(2 * max_length)  # of several windows, too
            ],
        ),
        "ids": ids_signature(from_ids, encoder=task.encoder, tokenizer=task.tokenizer),
        "examples": examples_signature(from_text, keys=names),
    }


class _Found(NamedTuple):
    """What was found in some windows, (N,) each.

    The logit of the best span (-inf where there is none), its first and last token in the context,
    the logarithm of the sum of all spans' exponentials, and the logit of no answer.
    """

    best: tf.Tensor
    first: tf.Tensor
    last: tf.Tensor
    all: tf.Tensor
    null: tf.Tensor


def _answers(question, context, *, task, answer, max_length):
    template = task.tokenizer.template
    room = template.room(max_length, texts=2)
    limit = question_limit(room, task.max_question_length)
    questions = leading(task.tokenizer.tokenize(question), limit)
    tokens = task.tokenizer.tokenize_with_offsets(context)
    windows = context_windows(
        tokens.ids.row_lengths(),
        room - questions.row_lengths(),
        stride=task.stride_of(max_length),
    )

    def find(numbers):
        some = Windows(*(tf.gather(part, numbers) for part in windows))
        inputs = _inputs(questions, tokens.ids, some, task=task, max_length=max_length)
        starts = tf.gather(questions.row_lengths(), some.sequence)
        starts += template.before(1, texts=2)
        return _search(answer(**inputs), some, starts, longest=task.max_answer_length)

    found = _in_turn(find, tf.size(windows.sequence))
    return _chosen(found, windows.sequence, context, tokens, null_threshold=task.null_threshold)


def _inputs(questions, contexts, windows, *, task, max_length):
    """The model's inputs for some windows."""
    return frame(
        [tf.gather(questions, windows.sequence), windows.rows(contexts)],
        tokenizer=task.tokenizer,
        names=task.encoder.input_names,
        max_length=max_length,
    )


def _search(logits, windows, token_starts, *, longest):
    """`_Found` of some windows, whose pieces begin at those positions of their rows."""
    count = tf.size(windows.sizes)
    row = tf.shape(logits["start_logits"], tf.int64)[1]
    before = tf.range(tf.cast(count, tf.int64)) * row + token_starts
    positions = tf.ragged.range(
        before, before + windows.sizes
    )  # (N, tokens) in all logits of the batch
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
    # Where no window has a token, there is something to choose, too: nothing, at -inf.
    sums = tf.pad(sums, [[0, 0], [0, 1]], constant_values=-float("inf"))
    position = tf.argmax(sums, axis=1)
    firsts = windows.starts + position // longest
    null = logits["start_logits"][:, 0] + logits["end_logits"][:, 0]
    return _Found(
        best=tf.reduce_max(sums, axis=1),
        first=firsts,
        last=firsts + position % longest,
        all=tf.reduce_logsumexp(sums, axis=1),
        null=null,
    )


def _in_turn(find, count):
    """`find(numbers)` for the numbers up to `count`, some at a time: `_Found` of them all.

    Unlike `in_chunks`, it finds nothing where there is nothing: no window has no row.
    """
    dtypes = _Found(tf.float32, tf.int64, tf.int64, tf.float32, tf.float32)
    turns = -(-count // _WINDOWS_TOGETHER)
    arrays = [
        tf.TensorArray(dtype, turns, infer_shape=False, element_shape=[None]) for dtype in dtypes
    ]

    def one(turn, *arrays):
        first = turn * _WINDOWS_TOGETHER
        found = find(tf.range(first, tf.minimum(first + _WINDOWS_TOGETHER, count)))
        return turn + 1, *(array.write(turn, x) for array, x in zip(arrays, found, strict=True))

    _, *arrays = tf.while_loop(
        lambda turn, *_: turn < turns, one, (0, *arrays), parallel_iterations=1
    )
    return _Found(*(array.concat() for array in arrays))


def _chosen(found, texts, context, tokens, *, null_threshold):
    """The outputs, of what was found in the windows of each text."""
    best = tf.math.segment_max(found.best, texts)  # (B,)
    null = tf.math.segment_min(found.null, texts)
    there = best > -float("inf")
    numbers = tf.range(tf.size(texts))
    at_best = tf.where(found.best == tf.gather(best, texts), numbers, tf.int32.max)
    window = tf.math.segment_min(at_best, texts)  # the first of equal ones
    may_be_none = null_threshold is not None
    null_score = tf.where(there, null - best, 0.0)
    is_none = ~there | (null_score > null_threshold if may_be_none else False)

    # Probabilities, counted from the highest logit, so that nothing overflows.
    top = tf.maximum(best, null) if may_be_none else tf.where(there, best, 0.0)
    of_none = tf.exp(null - top) if may_be_none else tf.zeros_like(top)
    total = tf.math.segment_sum(tf.exp(found.all - tf.gather(top, texts)), texts) + of_none
    chosen = tf.where(is_none, of_none, tf.exp(best - top))
    score = tf.math.divide_no_nan(chosen, total)

    token = tokens.ids.row_splits[:-1] + tf.gather(found.first, window)
    last = tokens.ids.row_splits[:-1] + tf.gather(found.last, window)
    start, byte_start = (_at(x, token, is_none) for x in (tokens.starts, tokens.byte_starts))
    end, byte_end = (_at(x, last, is_none) for x in (tokens.ends, tokens.byte_ends))
    return {
        "answer": tf.strings.substr(context, byte_start, byte_end - byte_start),
        "start": start,
        "end": end,
        "score": score,
        "null_score": null_score,
    }


def _at(values, tokens, is_none):
    """The values of these tokens (B,), counted over all texts; 0 where there is no answer."""
    values = tf.pad(values.flat_values, [[0, 1]])  # where no text has a token, there is one, too
    nowhere = tf.cast(tf.size(values) - 1, tokens.dtype)
    return tf.where(is_none, 0, tf.gather(values, tf.minimum(tokens, nowhere)))
