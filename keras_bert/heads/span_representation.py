"""Vectors of words, from their tokens, and of spans, from their words."""

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.kernels.gathering import at_positions, look_up


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

        Where `lasts` (B, N) are given, only the spans up to these words are needed.
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


def _at(values, numbers):
    """(B, W, X) at the words `numbers` (B, …) -> (B, …, X)."""
    batch = ops.shape(numbers)[0]
    flat = at_positions(values, ops.reshape(numbers, (batch, -1)))
    return ops.reshape(flat, (*ops.shape(numbers), values.shape[-1]))
