"""A linear-chain conditional random field (CRF) over words (Lafferty et al. 2001).

A sequence of labels y_1 … y_n has the score start[y_1] + Σ emission[t, y_t] +
Σ between[y_t-1, y_t] + end[y_n], and the probability exp(score) / Z, where Z sums over all
sequences. (With a network's outputs as emissions: Lample et al. 2016, section 2.2.)

B batch, W words, C labels. `mask` bool (B, W) is set at the words of a sequence, which come first.
Emissions are float32.
"""

from typing import Any, NamedTuple

import keras
from keras import ops


class Potentials(NamedTuple):
    """The scores of transitions, float32: `start` (C,), `between` (C, C) from row to column, and
    `end` (C,). `start` and `end` may be (B, C), different for each sequence."""

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
    """log Z, by the forward algorithm: (B, W, C), bool (B, W) -> (B,); 0 if there are no words."""
    reached = _forward(emissions, mask, potentials)[-1]
    return ops.where(mask[:, 0], ops.logsumexp(reached + potentials.end, axis=-1), 0.0)


def viterbi(emissions, mask, potentials):
    """The most probable labels: (B, W, C), bool (B, W) -> int32 (B, W), 0 after the words."""
    count = potentials.between.shape[0]
    stay = ops.arange(count, dtype="int32")

    def forward(best, step):
        emission, is_word = _parts(step)
        scores = best[:, :, None] + potentials.between  # (B, C, C)
        back = ops.where(is_word, ops.cast(ops.argmax(scores, axis=1), "int32"), stay)
        best = ops.where(is_word, ops.max(scores, axis=1) + emission, best)
        # A scan collects tensors of the type that it carries.
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

    By the forward-backward algorithm; values after the words are undefined.
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
    """The steps of a scan: (W, B, C + 1), the positions after the first, the mask as last column.

    The last one is without a word, as TensorFlow cannot stack the results of zero steps. Emissions
    and mask are one tensor, as Keras 3.15 cannot scan several tensors of unknown length.
    """
    steps = ops.concatenate([emissions, ops.cast(mask, "float32")[..., None]], axis=-1)
    steps = ops.concatenate([steps[:, 1:], ops.zeros_like(steps[:, :1])], axis=1)
    return ops.transpose(steps, (1, 0, 2))


def _parts(step):
    """The emissions (B, C) of a step, and whether there is a word, bool (B, 1)."""
    return step[:, :-1], step[:, -1:] > 0


def _next(mask):
    """(B, W), of the following word; False after the last."""
    return ops.concatenate([mask[:, 1:], ops.zeros_like(mask[:, :1])], axis=1)


# The score of a forbidden transition: exp of it is 0 in float32, and sums of it stay finite.
_FORBIDDEN = -1e4
# A variable is a hundredth of a score. Adam moves every variable by about the learning rate, 5e-5
# in fine-tuning, and within a few thousand steps a score should be able to reach some nats.
_SCALE = 100.0
# KNOWN + y is the label y of a word outside the sequence: larger than any label, and than what a
# caller may use as the label of padding.
KNOWN = 1 << 16


@keras.saving.register_keras_serializable(package="keras_bert")
class LinearChainCrf(keras.layers.Layer):
    """A linear-chain CRF over some positions of a sequence, the words.

    Shapes: emissions (B, S, C) -> the same in float32 (B batch, S positions, C labels).

    As a layer of the model, its transition scores are trained through `CrfLoss` and stored in a
    model folder. Transitions are from word to word: other positions (further tokens of a word,
    padding) are skipped. Everything is float32 under any dtype policy.

    Args:
        transitions: the `Transitions` that the scheme allows, or the three lists of its fields.

    Attributes: the variables `between` (C, C), `start` (C,) and `end` (C,), hundredths of scores.
    """

    def __init__(self, *, transitions, **kwargs):
        super().__init__(**{**kwargs, "dtype": "float32"})
        between, start, end = transitions
        self.allowed = [
            [list(map(bool, row)) for row in between],
            [*map(bool, start)],
            [*map(bool, end)],
        ]
        count = len(start)
        if len(end) != count or any(len(row) != count for row in [between, *between]):
            raise ValueError(
                "`transitions` must be (C, C), (C,) and (C,). "
                f"Received: {len(between)} rows, {count} and {len(end)}."
            )

    def build(self, emissions_shape):
        count = len(self.allowed[1])
        self.between = self.add_weight(shape=(count, count), initializer="zeros", name="between")
        self.start = self.add_weight(shape=(count,), initializer="zeros", name="start")
        self.end = self.add_weight(shape=(count,), initializer="zeros", name="end")
        self.built = True

    def call(self, emissions):
        return ops.cast(emissions, "float32")

    def compute_output_shape(self, emissions_shape):
        return emissions_shape

    @property
    def potentials(self):
        """`Potentials`: the learned scores, and very low ones for forbidden transitions."""
        between, start, end = (
            ops.where(ops.convert_to_tensor(allowed, "bool"), _SCALE * learned, _FORBIDDEN)
            for allowed, learned in zip(
                self.allowed, (self.between, self.start, self.end), strict=True
            )
        )
        return Potentials(start, between, end)

    def log_likelihoods(self, emissions, labels, is_word):
        """The log-probability of each sequence's labels, in nats; 0 if it has no word.

        A sequence may be a part of a sentence. Then its first position, which is not a word, has
        the label KNOWN + y, where y is the label of the word before the part, and a later position
        that is not a word has that of the word after the part. The result is the probability of the
        labels given these two, so that transitions between parts are trained as well. (The sum over
        the parts of a sentence is the block pseudo-likelihood of Besag 1975.)

        Shapes: emissions (B, S, C), labels int (B, S), is_word bool (B, S) -> (B,).
        """
        labels = ops.cast(labels, "int32")
        potentials = self._conditioned(labels, is_word)
        order, mask = _words_first(is_word)
        emissions = _gathered(ops.cast(emissions, "float32"), order)
        labels = ops.where(mask, ops.take_along_axis(labels, order, axis=1), 0)
        scores = sequence_scores(emissions, labels, mask, potentials)
        return scores - log_partition(emissions, mask, potentials)

    def _conditioned(self, labels, is_word):
        """`Potentials` with transitions from and to known words in `start` and `end`, (B, C)."""
        start, between, end = self.potentials
        neighbours = ops.where(is_word, -1, labels - KNOWN)  # (B, S), negative if there is none
        before = neighbours[:, :1]  # (B, 1)
        after = ops.max(neighbours[:, 1:], axis=1, keepdims=True, initial=-1)

        def given(label, potential, transitions):
            chosen = ops.take(transitions, ops.maximum(label[:, 0], 0), axis=0)  # (B, C)
            return ops.where(label >= 0, chosen, potential)

        return Potentials(
            given(before, start, between), between, given(after, end, ops.transpose(between))
        )

    def decode(self, emissions, is_word):
        """The most probable labels by Viterbi's algorithm, and their marginal probabilities.

        Shapes: emissions (B, S, C), is_word bool (B, S) -> int32 (B, S), float32 (B, S); both are 0
        at positions that are not words.
        """
        order, mask = _words_first(is_word)
        words = _gathered(ops.cast(emissions, "float32"), order)
        potentials = self.potentials
        labels = viterbi(words, mask, potentials)
        probabilities = marginals(words, mask, potentials)
        probabilities = ops.take_along_axis(probabilities, labels[..., None], axis=2)[..., 0]
        position = ops.maximum(ops.cumsum(ops.cast(is_word, "int32"), axis=1) - 1, 0)
        labels, probabilities = (
            ops.take_along_axis(x, position, axis=1) for x in (labels, probabilities)
        )
        return ops.where(is_word, labels, 0), ops.where(is_word, probabilities, 0.0)

    def get_config(self):
        return {**super().get_config(), "transitions": self.allowed}


def _words_first(is_word):
    """bool (B, S) -> the positions with those of words first, int32 (B, S), and their mask."""
    length = ops.shape(is_word)[1]
    position = ops.arange(length, dtype="int32")
    # All keys differ, as not every backend's sort is stable.
    order = ops.cast(ops.argsort(ops.where(is_word, position, position + length), axis=1), "int32")
    return order, ops.take_along_axis(is_word, order, axis=1)


def _gathered(x, order):
    return ops.take_along_axis(x, order[..., None], axis=1)


class CrfLoss(keras.losses.Loss):
    """The negative log-likelihood of the labels, in nats per word.

    Called with labels int (B, S), emissions (B, S, C) and sample weights (B, S); a position whose
    weight is not 0 is a word. It is the sum over a batch divided by its number of words, comparable
    with the mean cross-entropy of words. With the reduction "none" it is each sequence's part of
    the sum, (B,).

    Args:
        crf: the `LinearChainCrf`, whose scores are trained by the loss.
    """

    def __init__(self, crf, name="crf_loss"):
        super().__init__(name=name, reduction="mean_with_sample_weight", dtype="float32")
        self.crf = crf

    def __call__(self, y_true, y_pred, sample_weight=None):
        labels = ops.convert_to_tensor(y_true)
        if sample_weight is None:
            sample_weight = ops.ones_like(labels)
        is_word = ops.not_equal(ops.convert_to_tensor(sample_weight), 0)
        words = ops.sum(ops.cast(is_word, "float32"))
        likelihoods = self.crf.log_likelihoods(y_pred, labels, is_word)
        if self.reduction == "none":
            return -likelihoods
        return -ops.sum(likelihoods) / ops.maximum(words, 1.0)
