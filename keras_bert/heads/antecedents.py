"""Mentions and their antecedents in a document (Lee et al. 2017)."""

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.kernels.gathering import at_positions, look_up

# The score of what is not a candidate.
NEVER = -1e9
# Candidate mentions per ten words, of which the others are pruned (Lee et al. 2017, section 5).
_MENTIONS_PER_TEN_WORDS = 4
# Distances in candidate mentions from which on a bucket begins.
_BUCKETS = (1, 2, 3, 4, 5, 8, 16, 32, 64)


@keras.saving.register_keras_serializable(package="keras_bert")
class DocumentWords(Layer):
    """The mean of the tokens of each of a document's words, which are in several sequences.

    Shapes: hidden (B n, S, D), the sequences of all documents; grouped (B, n, S), for the number
    of sequences; segments (B, W) int, the sequence of each word; starts, ends (B, W) int, its
    tokens there, ends exclusive -> (B, W, D). A word without a token, such as padding, has the
    vector 0.

    A mean is a difference of two sums from the beginning of the sequence, in float32: a matrix of
    words by tokens, as in `WordMeans`, would grow with the square of a document's length.

    Args:
        last: take the last token, see `WordMeans`.
    """

    def __init__(self, *, last=False, **kwargs):
        super().__init__(**kwargs)
        self.last = last

    def call(self, hidden, grouped, segments, starts, ends):
        batch, count, length = ops.shape(grouped)
        segments, starts, ends = (ops.cast(x, "int32") for x in (segments, starts, ends))
        if self.last:
            starts = ops.maximum(starts, ends - 1)  # not before a word without a token
        sums = ops.cumsum(ops.cast(hidden, "float32"), axis=1)
        sums = ops.concatenate([ops.zeros_like(sums[:, :1]), sums], axis=1)  # (B n, 1 + S, D)
        size = sums.shape[-1]
        sums = ops.reshape(sums, (batch, count * (1 + length), size))

        def up_to(tokens):
            found = at_positions(sums, segments * (1 + length) + tokens)
            return ops.reshape(found, (*ops.shape(tokens), size))

        tokens = ops.cast(ops.maximum(ends - starts, 1), "float32")[..., None]
        return ops.cast((up_to(ends) - up_to(starts)) / tokens, self.compute_dtype)

    def compute_output_shape(
        self, hidden_shape, grouped_shape, segments_shape, starts_shape, ends_shape
    ):
        return (*segments_shape, hidden_shape[-1])


@keras.saving.register_keras_serializable(package="keras_bert")
class AntecedentScores(Layer):
    """The candidate mentions of a document, and the score of each antecedent that they may have.

    A span's mention score s_m is that of a network of one hidden layer. The spans with the highest
    ones are candidates, four for ten words, in the order of the text; those that cross may both be.
    The score of a candidate j as the antecedent of i is s_m(i) + s_m(j) + s_a(i, j), with s_a a
    network of one hidden layer over [g_i; g_j; g_i ∘ g_j] and their distance, and that of no
    antecedent is 0 (Lee et al. 2017, section 4).

    Shapes: spans (B, W, L, R), of the spans of 1 to L words from each word; ends (B, W) int, which
    is 0 for padding -> (B, K, 2 + A) float32: the first and the last word of K candidates (-1 and
    -1 for padding, which comes last) and the scores of the A candidates before each, the nearest
    first (-1e9 without one).

    Args:
        units: size of the hidden layers.
        max_antecedents: A.
    """

    def __init__(self, *, units, max_antecedents, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.max_antecedents = max_antecedents
        self.mention_hidden = self._layer(units, "mention_hidden", activation="relu")
        self.mention_score = self._layer(1, "mention_score")
        self.anaphor = self._layer(units, "anaphor")
        self.antecedent = self._layer(units, "antecedent", use_bias=False)
        self.product = self._layer(units, "product", use_bias=False)
        self.pair_score = self._layer(1, "pair_score")

    def _layer(self, units, name, **options):
        return keras.layers.Dense(units, name=name, dtype=self.dtype_policy, **options)

    def build(self, spans_shape, ends_shape):
        hidden = (self.mention_score, self.pair_score)
        for layer in self._layers:
            layer.build((None, self.units if layer in hidden else spans_shape[-1]))
        self.distance = self.add_weight(shape=(len(_BUCKETS), self.units), name="distance")
        self.built = True

    def call(self, spans, ends):
        _, words, longest, size = (*ops.shape(spans)[:3], spans.shape[-1])
        scores = self.mention_score(self.mention_hidden(spans))[..., 0]  # (B, W, L)
        is_word = ends > 0  # (B, W)
        last = ops.arange(words)[:, None] + ops.arange(longest)  # (W, L)
        count = ops.sum(ops.cast(is_word, "int32"), axis=1)  # (B,)
        inside = last < count[:, None, None]  # (B, W, L)
        scores = ops.reshape(ops.where(inside, scores, NEVER), (-1, words * longest))
        chosen = self._candidates(ops.stop_gradient(scores), count, words)  # (B, K)
        is_candidate = chosen < words * longest
        places = ops.where(is_candidate, chosen, 0)
        shape = ops.shape(places)
        at = at_positions(ops.reshape(spans, (-1, words * longest, size)), places)
        mentions = ops.reshape(at, (*shape, size))  # (B, K, R)
        of_mention = ops.take_along_axis(scores, places, axis=1)  # (B, K)

        before = ops.arange(shape[1])[:, None] - 1 - ops.arange(self.max_antecedents)  # (K, A)
        exists = ops.logical_and(before >= 0, is_candidate[..., None])  # (B, K, A)
        before = ops.maximum(before, 0)
        pairs = self._pair_scores(mentions, before)
        pairs = pairs + of_mention[..., None] + ops.take(of_mention, before, axis=1)
        pairs = ops.where(exists, pairs, NEVER)
        first, width = places // longest, places % longest
        ends = ops.stack([first, first + width], axis=-1)  # (B, K, 2)
        ends = ops.where(is_candidate[..., None], ends, -1)
        return ops.concatenate([ops.cast(ends, pairs.dtype), pairs], axis=-1)

    def _candidates(self, scores, count, words):
        """The numbers of the candidates among all spans, rising; their count for padding."""
        most = (_MENTIONS_PER_TEN_WORDS * words + 9) // 10
        values, chosen = ops.top_k(scores, most)  # (B, K)
        most_of_each = (_MENTIONS_PER_TEN_WORDS * count + 9) // 10
        kept = ops.arange(ops.shape(chosen)[1]) < most_of_each[:, None]
        kept = ops.logical_and(kept, values > NEVER)
        return ops.sort(ops.where(kept, ops.cast(chosen, "int32"), ops.shape(scores)[1]), axis=1)

    def _pair_scores(self, mentions, before):
        """s_a: (B, K, R), int (K, A) -> (B, K, A); a sum of layers is one of a concatenation."""
        offset = ops.arange(1, self.max_antecedents + 1)
        bucket = ops.sum(ops.cast(offset[:, None] >= ops.array(_BUCKETS), "int32"), axis=1) - 1
        product = mentions[:, :, None] * ops.take(mentions, before, axis=1)  # (B, K, A, R)
        hidden = (
            self.anaphor(mentions)[:, :, None]
            + ops.take(self.antecedent(mentions), before, axis=1)
            + self.product(product)
            + look_up(self.distance, bucket)
        )
        return self.pair_score(ops.relu(hidden))[..., 0]

    def compute_output_shape(self, spans_shape, ends_shape):
        return (spans_shape[0], None, 2 + self.max_antecedents)


@keras.saving.register_keras_serializable(package="keras_bert")
class AntecedentLoss(keras.losses.Loss):
    """-log of the probability that is on a mention's right antecedents, in nats per candidate.

    The probabilities are a softmax over the scores of a candidate's antecedents and 0 for none. The
    right ones are all candidates before it in its cluster, or 0 if there is none, as for a span
    that is not a mention (Lee et al. 2017, section 3.2).

    Shapes: labels (B, W, L), the number of the cluster of the span of 1 to L words from each word,
    from 1, and 0 for those that are not mentions; outputs (B, K, 2 + A) of `AntecedentScores` ->
    (B,), the mean over the candidates of each document.
    """

    def __init__(self, reduction="sum_over_batch_size", name="antecedent_loss", dtype=None):
        super().__init__(name=name, reduction=reduction, dtype=dtype)

    def call(self, y_true, y_pred):
        first, last = (ops.cast(y_pred[..., n], "int32") for n in (0, 1))  # (B, K)
        scores = y_pred[..., 2:]  # (B, K, A)
        is_candidate = first >= 0
        _, words, longest = ops.shape(y_true)
        places = ops.where(is_candidate, first * longest + last - first, 0)
        clusters = ops.reshape(ops.cast(y_true, "int32"), (-1, words * longest))
        cluster = ops.take_along_axis(clusters, places, axis=1)  # (B, K)
        before = ops.arange(ops.shape(scores)[1])[:, None] - 1 - ops.arange(scores.shape[-1])
        theirs = ops.take(cluster, ops.maximum(before, 0), axis=1)  # (B, K, A)
        right = ops.logical_and(theirs == cluster[..., None], cluster[..., None] > 0)
        right = ops.logical_and(right, before >= 0)
        none = ops.logical_not(ops.any(right, axis=-1, keepdims=True))
        scores = ops.concatenate([ops.zeros_like(scores[..., :1]), scores], axis=-1)
        right = ops.concatenate([none, right], axis=-1)
        losses = ops.logsumexp(scores, axis=-1) - ops.logsumexp(
            ops.where(right, scores, NEVER), axis=-1
        )
        losses = ops.where(is_candidate, losses, 0.0)
        count = ops.sum(ops.cast(is_candidate, losses.dtype), axis=1)
        return ops.sum(losses, axis=1) / ops.maximum(count, 1.0)
