"""Vectors of words, from their tokens, and of spans, from their words; mentions and antecedents."""

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
class WordMeans(Layer):
    """The mean of each word's tokens, or its last token.

    Shapes: hidden (B, S, D); starts, ends (B, W) int, ends exclusive -> (B, W, D). A word without a
    token, such as padding, has the vector 0.

    Args:
        last: take the last token, which in a causal encoder is the one that sees the whole word.
    """

    def __init__(self, *, last=False, **kwargs):
        super().__init__(**kwargs)
        self.last = last

    def call(self, hidden, starts, ends):
        token = ops.arange(ops.shape(hidden)[1], dtype="int32")  # (S,)
        starts, ends = ops.cast(starts, "int32"), ops.cast(ends, "int32")
        if self.last:
            starts = ops.maximum(starts, ends - 1)  # not before a word without a token
        inside = (token >= starts[..., None]) & (token < ends[..., None])  # (B, W, S)
        fraction = 1.0 / ops.cast(ops.maximum(ends - starts, 1), hidden.dtype)  # (B, W)
        return ops.matmul(ops.cast(inside, hidden.dtype) * fraction[..., None], hidden)

    def compute_output_shape(self, hidden_shape, starts_shape, ends_shape):
        return (*starts_shape, hidden_shape[-1])


REPRESENTATIONS = ("mean", "biaffine", "attention", "self-attention")
MEAN, BIAFFINE, ATTENTION, SELF_ATTENTION = REPRESENTATIONS


@keras.saving.register_keras_serializable(package="keras_bert")
class SpanRepresentation(Layer):
    """One vector per span, by one of four representations.

    * "mean": a hidden layer with ReLU over the span's first word, its last word, the mean of its
      words and its width.
    * "attention": the same with a weighted sum in place of the mean, whose weights are a softmax
      over the span of one learned score per word (Lee et al. 2017, section 4, the "head-finding
      attention").
    * "biaffine": two networks of one hidden layer, s of the first word and e of the last word and
      the width, and their product: [s; e; s ∘ e]. A linear layer over that is the biaffine
      classifier of Yu et al. 2020, equation 3, with a diagonal U for each label.
    * "self-attention": [s; e; g] with the same s and e, and g from a self-attention layer over the
      span's words (one head; Vaswani et al. 2017, section 3.2.1), the mean of its outputs (Jurafsky
      and Martin, Speech and Language Processing, on span-based applications).

    Shapes: words (B, W, D) -> (B, W, L, R), of the spans of 1 to L words from each word; with
    firsts, lasts (B, N) int, both inclusive -> (B, N, R), of N spans. Values of spans beyond the
    last word are undefined.

    New weights are Glorot and Bengio's (2010), Keras's default: with the encoder's small ones, two
    stacked layers learn too slowly at the learning rates of an encoder.

    The hidden layer over a concatenation is a sum of layers, each computed once per word and not
    once per span: no tensor is larger than (B, W, L, R), except that "self-attention" has
    (B, W, L, L, L) weights.

    Args:
        representation: one of the four.
        units: size of the hidden layers; R is that, and three times that for "biaffine" and
            "self-attention".
        max_words: L; spans in `firsts` and `lasts` may be longer.
        num_widths: number of widths that have an embedding; wider spans share the last one.

    Raises ValueError for another representation.
    """

    def __init__(self, *, representation, units, max_words, num_widths, **kwargs):
        super().__init__(**kwargs)
        if representation not in REPRESENTATIONS:
            raise ValueError(
                f"`representation` must be one of {REPRESENTATIONS}. Received: {representation!r}."
            )
        self.representation = representation
        self.units = units
        self.max_words = max_words
        self.num_widths = num_widths
        self.first = self._layer(units, "first", use_bias=True)
        # Either two layers whose outputs are concatenated, or the two parts of one layer.
        self.concatenates = representation in (BIAFFINE, SELF_ATTENTION)
        self.last = self._layer(units, "last", use_bias=self.concatenates)
        if representation != BIAFFINE:
            self.inside = self._layer(units, "inside", use_bias=False)
        if representation == ATTENTION:
            self.score = self._layer(1, "score", use_bias=False)
        if representation == SELF_ATTENTION:
            self.query = self._layer(units, "query", use_bias=True)
            self.key = self._layer(units, "key", use_bias=True)

    def _layer(self, units, name, *, use_bias):
        return keras.layers.Dense(units, use_bias=use_bias, name=name, dtype=self.dtype_policy)

    def build(self, words_shape, firsts_shape=None, lasts_shape=None):
        for layer in self._layers:
            layer.build((None, None, words_shape[-1]))
        self.width = self.add_weight(shape=(self.num_widths, self.units), name="width")
        self.built = True

    def call(self, words, firsts=None, lasts=None):
        batch, num_words = ops.shape(words)[:2]
        if firsts is None:
            firsts = ops.tile(ops.arange(num_words, dtype="int32")[None], (batch, 1))  # (B, W)
            return self._spans_from(words, firsts, longest=self.max_words)
        firsts, lasts = ops.cast(firsts, "int32"), ops.cast(lasts, "int32")
        vectors = self._spans_from(words, firsts, longest=num_words, lasts=lasts)  # (B, N, W, R)
        return ops.take_along_axis(vectors, (lasts - firsts)[..., None, None], axis=2)[:, :, 0]

    def _spans_from(self, words, firsts, *, longest, lasts=None):
        """All spans of 1 to L = `longest` words from N words: firsts (B, N) -> (B, N, L, R).

        If `lasts` (B, N) are given, only the spans up to these words are needed.
        """
        width = ops.arange(longest, dtype="int32")  # one less than the words of a span
        reached = ops.minimum(firsts[..., None] + width, ops.shape(words)[1] - 1)  # (B, N, L)
        first = _at(self.first(words), firsts)[:, :, None]  # (B, N, 1, R)
        last = _at(self.last(words), reached)  # (B, N, L, R)
        widths = look_up(self.width, ops.minimum(width, self.num_widths - 1))  # (L, R)
        last = last + ops.cast(widths, last.dtype)
        if self.concatenates:
            first, last = ops.relu(first), ops.relu(last)
        if self.representation == BIAFFINE:
            return ops.concatenate([first + ops.zeros_like(last), last, first * last], axis=-1)
        if self.representation == SELF_ATTENTION:
            inside = width[:, None] >= width  # (L, L)
            if lasts is not None:
                inside = width <= (lasts - firsts)[..., None, None]  # (B, N, 1, L)
            fractions = ops.cast(self._attended(words, reached, inside), self.compute_dtype)
        else:
            fractions = self._fractions(words, reached)  # (…, L, L)
        inside = ops.matmul(fractions, _at(self.inside(words), reached))  # (B, N, L, R)
        if self.concatenates:
            parts = [part + ops.zeros_like(last) for part in (first, last, inside)]
            return ops.concatenate(parts, axis=-1)
        return ops.relu(first + last + inside)

    def _fractions(self, words, reached):
        """The weight of each word in each span that begins at the same word: (…, L, L).

        Row l is the span of l + 1 words, column o the word at offset o in it.
        """
        position = ops.arange(ops.shape(reached)[-1])
        inside = position[:, None] >= position  # (L, L)
        scores = ops.zeros((), "float32")
        if self.representation == ATTENTION:
            scores = ops.cast(_at(self.score(words), reached)[..., 0], "float32")  # (B, N, L)
            scores = scores[:, :, None]  # (B, N, 1, L)
        fractions = ops.softmax(ops.where(inside, scores, -1e9), axis=-1)
        return ops.cast(fractions, self.compute_dtype)

    def _attended(self, words, reached, inside):
        """How much of each word is in the mean output of a self-attention over a span.

        Shapes: inside (…, L, L) or (B, N, 1, L), the words of each span -> the same, (B, N, …, L).
        """
        query, key = (
            ops.cast(_at(layer(words), reached), "float32") for layer in (self.query, self.key)
        )  # (B, N, L, R)
        scores = ops.matmul(query, ops.swapaxes(key, -1, -2)) / self.units**0.5  # (B, N, L, L)
        scores = ops.where(inside[..., None, :], scores[:, :, None], -1e9)
        attention = ops.softmax(scores, axis=-1)  # (B, N, spans, L, L)
        parts = ops.cast(inside, "float32")
        parts = parts / ops.sum(parts, axis=-1, keepdims=True)  # in the mean over the span's words
        return ops.sum(parts[..., None] * attention, axis=-2)

    def compute_output_shape(self, words_shape, firsts_shape=None, lasts_shape=None):
        width = self.units * (3 if self.concatenates else 1)
        if firsts_shape is None:
            return (*words_shape[:2], self.max_words, width)
        return (*firsts_shape, width)


def _at(x, numbers):
    """(B, W, X) at the words `numbers` (B, …) -> (B, …, X)."""
    batch = ops.shape(numbers)[0]
    flat = at_positions(x, ops.reshape(numbers, (batch, -1)))
    return ops.reshape(flat, (*ops.shape(numbers), x.shape[-1]))


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
            sums_of_tokens = at_positions(sums, segments * (1 + length) + tokens)
            return ops.reshape(sums_of_tokens, (*ops.shape(tokens), size))

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
        mention_scores = ops.take_along_axis(scores, places, axis=1)  # (B, K)

        before = ops.arange(shape[1])[:, None] - 1 - ops.arange(self.max_antecedents)  # (K, A)
        exists = ops.logical_and(before >= 0, is_candidate[..., None])  # (B, K, A)
        before = ops.maximum(before, 0)
        pairs = self._pair_scores(mentions, before)
        pairs = pairs + mention_scores[..., None] + ops.take(mention_scores, before, axis=1)
        pairs = ops.where(exists, pairs, NEVER)
        first, width = places // longest, places % longest
        ends = ops.stack([first, first + width], axis=-1)  # (B, K, 2)
        ends = ops.where(is_candidate[..., None], ends, -1)
        return ops.concatenate([ops.cast(ends, pairs.dtype), pairs], axis=-1)

    def _candidates(self, scores, count, words):
        """The numbers of the candidates among all spans, rising; their count for padding."""
        most = (_MENTIONS_PER_TEN_WORDS * words + 9) // 10
        best, chosen = ops.top_k(scores, most)  # (B, K)
        most_of_each = (_MENTIONS_PER_TEN_WORDS * count + 9) // 10
        is_candidate = ops.arange(ops.shape(chosen)[1]) < most_of_each[:, None]
        is_candidate = ops.logical_and(is_candidate, best > NEVER)
        return ops.sort(
            ops.where(is_candidate, ops.cast(chosen, "int32"), ops.shape(scores)[1]), axis=1
        )

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
        antecedent_clusters = ops.take(cluster, ops.maximum(before, 0), axis=1)  # (B, K, A)
        is_correct = ops.logical_and(
            antecedent_clusters == cluster[..., None], cluster[..., None] > 0
        )
        is_correct = ops.logical_and(is_correct, before >= 0)
        has_no_antecedent = ops.logical_not(ops.any(is_correct, axis=-1, keepdims=True))
        scores = ops.concatenate([ops.zeros_like(scores[..., :1]), scores], axis=-1)
        is_correct = ops.concatenate([has_no_antecedent, is_correct], axis=-1)
        losses = ops.logsumexp(scores, axis=-1) - ops.logsumexp(
            ops.where(is_correct, scores, NEVER), axis=-1
        )
        losses = ops.where(is_candidate, losses, 0.0)
        count = ops.sum(ops.cast(is_candidate, losses.dtype), axis=1)
        return ops.sum(losses, axis=1) / ops.maximum(count, 1.0)
