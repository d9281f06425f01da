"""The layer that holds what a conditional random field learns."""

import keras
from keras import ops

from keras_bert.tasks.tagging import crf

# The score of what a scheme forbids: exp of it is 0 in float32, and sums of it stay finite.
_FORBIDDEN = -1e4
# A variable holds a hundredth of a score. Adam moves every variable by about its rate, 5e-5 for an
# encoder that is fine-tuned, and in its few thousand steps a score should get as far as some nats.
_SCALE = 100.0
# The label y of a word beside those of a row is written KNOWN + y: far above all labels, and above
# what somebody may write where there is none.
KNOWN = 1 << 16


@keras.saving.register_keras_serializable(package="keras_bert")
class LinearChainCrf(keras.layers.Layer):
    """A linear-chain conditional random field over some positions of a row, the words.

    Shapes: emissions (B, S, C) -> the same, float32: B batch, S positions, C labels.

    It stands in the model so that `fit` trains its scores of transitions, through `CrfLoss`, and a
    folder keeps them; what they mean is asked by its methods. Transitions are from word to word:
    positions between words (other pieces of a word, padding) are passed over. Everything is float32
    under any policy.

    Args:
        transitions: `Transitions`, or the three lists of its fields: what the scheme allows.

    Attributes: `between` (C, C), `start` (C,), `end` (C,), the variables: scores in hundreds.
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
                f"Received: {len(between)} rows, {count} and {len(end)}"
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
        """`Potentials`: what was learned, and very low scores for what is forbidden."""
        between, start, end = (
            ops.where(ops.convert_to_tensor(allowed, "bool"), _SCALE * learned, _FORBIDDEN)
            for allowed, learned in zip(
                self.allowed, (self.between, self.start, self.end), strict=True
            )
        )
        return crf.Potentials(start, between, end)

    def log_likelihoods(self, emissions, labels, is_word):
        """The log-probability of each row's labels, in nats; 0 of a row without a word.

        A row may hold a part of a sequence. Then its first position, which is not a word, has the
        label KNOWN + y, where y is the label of the word before its own, and a later position that
        is not a word has that of the word after them. The probability is that of the row's labels
        given these two, so that the row neither begins nor ends what it does not, and the
        transitions to other rows' words are trained. (The sum over the rows of a sequence is the
        block pseudo-likelihood of Besag 1975.)

        Shapes: emissions (B, S, C), labels int (B, S), is_word bool (B, S) -> (B,).
        """
        labels = ops.cast(labels, "int32")
        potentials = self._potentials_beside(labels, is_word)
        order, mask = _words_first(is_word)
        emissions = _gathered(ops.cast(emissions, "float32"), order)
        labels = ops.where(mask, ops.take_along_axis(labels, order, axis=1), 0)
        found = crf.sequence_scores(emissions, labels, mask, potentials)
        return found - crf.log_partition(emissions, mask, potentials)

    def _potentials_beside(self, labels, is_word):
        """`Potentials` whose `start` and `end`, (B, C), are transitions from and to known words."""
        start, between, end = self.potentials
        known = ops.where(is_word, -1, labels - KNOWN)  # (B, S), the label where there is one
        before = known[:, :1]  # (B, 1)
        after = ops.max(known[:, 1:], axis=1, keepdims=True, initial=-1)

        def beside(label, potential, rows):
            chosen = ops.take(rows, ops.maximum(label[:, 0], 0), axis=0)  # (B, C)
            return ops.where(label >= 0, chosen, potential)

        return crf.Potentials(
            beside(before, start, between), between, beside(after, end, ops.transpose(between))
        )

    def decode(self, emissions, is_word):
        """The likeliest labels and how likely each one is at its word.

        Shapes: emissions (B, S, C), is_word bool (B, S) -> labels int32 (B, S) by Viterbi's
        algorithm, probabilities float32 (B, S), the marginal ones; both 0 where no word is.
        """
        order, mask = _words_first(is_word)
        words = _gathered(ops.cast(emissions, "float32"), order)
        potentials = self.potentials
        labels = crf.viterbi(words, mask, potentials)
        chances = crf.marginals(words, mask, potentials)
        chances = ops.take_along_axis(chances, labels[..., None], axis=2)[..., 0]
        place = ops.maximum(ops.cumsum(ops.cast(is_word, "int32"), axis=1) - 1, 0)
        labels, chances = (ops.take_along_axis(x, place, axis=1) for x in (labels, chances))
        return ops.where(is_word, labels, 0), ops.where(is_word, chances, 0.0)

    def get_config(self):
        return {**super().get_config(), "transitions": self.allowed}


def _words_first(is_word):
    """bool (B, S) -> the positions of a row with its words first, int32 (B, S), and their mask."""
    length = ops.shape(is_word)[1]
    place = ops.arange(length, dtype="int32")
    # Numbers that all differ: not every backend's sort keeps the order of equal ones.
    order = ops.cast(ops.argsort(ops.where(is_word, place, place + length), axis=1), "int32")
    return order, ops.take_along_axis(is_word, order, axis=1)


def _gathered(x, order):
    return ops.take_along_axis(x, order[..., None], axis=1)
