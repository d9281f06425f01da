"""A linear-chain conditional random field over words (Lafferty et al. 2001); pure functions.

A sequence of labels y_1 … y_n has the score start[y_1] + Σ emission[t, y_t] +
Σ between[y_t-1, y_t] + end[y_n], and the probability exp(score) / Z, where Z sums over all
sequences. (With a network's outputs as emissions: Lample et al. 2016, section 2.2.)

Legend: B batch, W words, C labels. `mask` bool (B, W) is set at the words of a row, which come
first. Emissions are float32.
"""

from typing import Any, NamedTuple

from keras import ops


class Potentials(NamedTuple):
    """The scores of transitions, float32: `start` (C,), `between` (C, C) from row to column, and
    `end` (C,). `start` and `end` may be (B, C), for each row its own."""

    start: Any
    between: Any
    end: Any


def sequence_scores(emissions, labels, mask, potentials):
    """The score of given labels: (B, W, C), int32 (B, W), bool (B, W) -> (B,)."""
    count = potentials.between.shape[0]
    chosen = ops.one_hot(labels, count, dtype="float32")  # (B, W, C)
    scores = ops.sum(emissions * chosen, axis=-1)
    pairs = labels[:, :-1] * count + labels[:, 1:]
    between = ops.take(ops.reshape(potentials.between, (-1,)), pairs)  # (B, W - 1)
    start = ops.sum(chosen[:, 0] * potentials.start, axis=-1, keepdims=True)  # (B, 1)
    end = ops.sum(chosen * ops.expand_dims(potentials.end, axis=-2), axis=-1)  # (B, W)
    scores = scores + ops.concatenate([start, between], axis=1)
    # The last word is the one that no word follows.
    is_last = ops.logical_and(mask, ops.logical_not(_next(mask)))
    scores = scores + ops.where(is_last, end, 0.0)
    return ops.sum(ops.where(mask, scores, 0.0), axis=1)


def log_partition(emissions, mask, potentials):
    """log Z, by the forward algorithm: (B, W, C), bool (B, W) -> (B,); 0 of a row without words."""
    reached = _forward(emissions, mask, potentials)[-1]
    found = ops.logsumexp(reached + potentials.end, axis=-1)
    return ops.where(mask[:, 0], found, 0.0)


def viterbi(emissions, mask, potentials):
    """The likeliest labels: (B, W, C), bool (B, W) -> int32 (B, W); 0 where no word is."""
    count = potentials.between.shape[0]
    stay = ops.arange(count, dtype="int32")

    def forward(best, step):
        emission, is_word = _parts(step)
        scores = best[:, :, None] + potentials.between  # (B, C, C)
        back = ops.where(is_word, ops.cast(ops.argmax(scores, axis=1), "int32"), stay)
        best = ops.where(is_word, ops.max(scores, axis=1) + emission, best)
        # What a scan collects has the form of what it carries.
        return best, ops.cast(back, "float32")

    best = potentials.start + emissions[:, 0]
    best, back = ops.scan(forward, best, _later_steps(emissions, mask))  # back (W, B, C)
    last = ops.argmax(best + potentials.end, axis=-1, keepdims=True)  # (B, 1)

    def backward(label, pointers):
        before = ops.take_along_axis(pointers, ops.cast(label, "int32"), axis=1)
        return before, before

    last = ops.cast(last, "float32")
    _, labels = ops.scan(backward, last, back, reverse=True)  # (W, B, 1)
    return ops.where(mask, ops.cast(ops.transpose(labels[..., 0]), "int32"), 0)


def marginals(emissions, mask, potentials):
    """The probability of each label at each word: (B, W, C), bool (B, W) -> (B, W, C).

    By the forward-backward algorithm; where no word is, it means nothing.
    """
    forward = _forward(emissions, mask, potentials)  # (W, B, C)

    def backward(after, step):
        emission, is_word = _parts(step)
        before = ops.logsumexp(potentials.between + (after + emission)[:, None, :], axis=2)
        before = ops.where(is_word, before, after)
        return before, before

    last = ops.zeros_like(emissions[:, 0]) + potentials.end
    _, later = ops.scan(backward, last, _later_steps(emissions, mask), reverse=True)
    return ops.transpose(ops.softmax(forward + later, axis=-1), (1, 0, 2))


def _forward(emissions, mask, potentials):
    """log Σ exp(score) over the sequences that end in a label at a word: (W, B, C)."""

    def forward(before, step):
        emission, is_word = _parts(step)
        reached = ops.logsumexp(before[:, :, None] + potentials.between, axis=1) + emission
        reached = ops.where(is_word, reached, before)
        return reached, reached

    first = potentials.start + emissions[:, 0]
    _, reached = ops.scan(forward, first, _later_steps(emissions, mask))
    return ops.concatenate([first[None], reached[:-1]], axis=0)


def _later_steps(emissions, mask):
    """What a scan goes over: (W, B, C + 1), the places after the first, the mask as last column.

    The last step is a place without a word: TensorFlow cannot stack the results of no step. They
    are one tensor because Keras 3.15 cannot scan several whose length it does not know.
    """
    steps = ops.concatenate([emissions, ops.cast(mask, "float32")[..., None]], axis=-1)
    steps = ops.concatenate([steps[:, 1:], ops.zeros_like(steps[:, :1])], axis=1)
    return ops.transpose(steps, (1, 0, 2))


def _parts(step):
    """-> emissions (B, C), and whether there is a word, bool (B, 1)."""
    return step[:, :-1], step[:, -1:] > 0


def _next(mask):
    """(B, W) -> the same of the following word, False after the last."""
    return ops.concatenate([mask[:, 1:], ops.zeros_like(mask[:, :1])], axis=1)
