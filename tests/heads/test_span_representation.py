"""The representations of spans against plain loops over spans and words."""

import keras
import numpy as np
import pytest

from keras_bert.heads.spans import REPRESENTATIONS, SpanRepresentation, WordMeans
from tests.layer_checks import check_layer
from tests.seeds import make_rng

RNG = make_rng(8)
B, W, D, L, UNITS, WIDTHS = 2, 6, 5, 4, 7, 3
WORDS = RNG.normal(size=(B, W, D)).astype("float32")


def make(representation="mean", **options):
    return SpanRepresentation(
        representation=representation,
        units=UNITS,
        max_words=L,
        num_widths=WIDTHS,
        **options,
    )


def by_hand(layer, words, first, last):
    """The vector of one span of a text's words (W, D), as the papers write it."""
    weights = {w.path.split("/", 1)[1]: np.asarray(w.value, "float64") for w in layer.weights}
    span = words[first : last + 1].astype("float64")  # (words of the span, D)
    start = span[0] @ weights["first/kernel"] + weights["first/bias"]
    end = span[-1] @ weights["last/kernel"] + weights["width"][min(last - first, WIDTHS - 1)]
    if layer.concatenates:
        start, end = np.maximum(start, 0), np.maximum(end + weights["last/bias"], 0)
    if layer.representation == "biaffine":
        return np.concatenate([start, end, start * end])
    if layer.representation == "self-attention":
        query, key = (
            span @ weights[f"{n}/kernel"] + weights[f"{n}/bias"] for n in ("query", "key")
        )
        scores = np.exp(query @ key.T / np.sqrt(UNITS))
        attention = scores / scores.sum(axis=1, keepdims=True)  # (words, words)
        outputs = attention @ span @ weights["inside/kernel"]
        return np.concatenate([start, end, outputs.mean(axis=0)])
    fractions = np.full(len(span), 1 / len(span))
    if layer.representation == "attention":
        fractions = np.exp(span @ weights["score/kernel"][:, 0])
        fractions /= fractions.sum()
    return np.maximum(start + end + (fractions @ span) @ weights["inside/kernel"], 0)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_every_span_is_what_a_loop_makes_of_its_words(representation):
    layer = make(representation, name="span")
    vectors = np.asarray(layer(WORDS))
    assert vectors.shape == (B, W, L, UNITS * (3 if layer.concatenates else 1))
    for row in range(B):
        for first in range(W):
            for width in range(min(L, W - first)):
                expected = by_hand(layer, WORDS[row], first, first + width)
                np.testing.assert_allclose(vectors[row, first, width], expected, atol=1e-5)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_given_spans_may_be_longer_than_the_most_words(representation):
    layer = make(representation, name="span")
    firsts, lasts = np.array([[0, 3], [1, 5]], "int32"), np.array([[5, 3], [5, 5]], "int32")
    vectors = np.asarray(layer(WORDS, firsts, lasts))
    for row in range(B):
        for n in range(2):
            expected = by_hand(layer, WORDS[row], firsts[row, n], lasts[row, n])
            np.testing.assert_allclose(vectors[row, n], expected, atol=1e-5)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_a_span_depends_on_its_own_words_alone(representation):
    layer = make(representation, name="span")
    before = np.asarray(layer(WORDS))[0, 1, :2]  # the spans 1 to 1 and 1 to 2
    changed = WORDS.copy()
    changed[:, [0, 3, 4, 5]] = 100.0
    np.testing.assert_array_equal(np.asarray(layer(changed))[0, 1, :2], before)
    padded = np.concatenate([WORDS, np.full((B, 3, D), 7.0, "float32")], axis=1)
    np.testing.assert_allclose(np.asarray(layer(padded))[0, 1, :2], before, atol=1e-6)


def test_scores_far_apart_do_not_spoil_other_spans():
    """Sums of exponentials over the whole row, taken apart again, would lose small ones."""
    layer = make("attention", name="span")
    layer(WORDS)
    layer.score.kernel.assign(np.ones((D, 1)))
    words = WORDS.copy()
    words[:, 0] = 60.0  # e^300 beside e^1
    vectors = np.asarray(layer(words))
    np.testing.assert_allclose(vectors[0, 1, 2], by_hand(layer, words[0], 1, 3), atol=1e-5)


@pytest.mark.parametrize("representation", REPRESENTATIONS[1:])
def test_builds_saves_and_trains(representation, tmp_path):
    check_layer(
        lambda **options: make(representation, **options),
        inputs={"words": WORDS},
        output_shape=(B, W, L, UNITS * (1 if representation == "attention" else 3)),
        tmp_path=tmp_path,
    )


@pytest.mark.only_tensorflow
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_no_gradient_is_a_list_of_rows(representation):
    """Wide spans share a row of the widths: optimizers would square its parts one by one."""
    import tensorflow as tf

    layer = make(representation)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(WORDS, np.array([[0], [1]]), np.array([[5], [5]])))
    gradients = tape.gradient(loss, layer.trainable_variables)
    assert all(isinstance(gradient, tf.Tensor) for gradient in gradients)


def test_rejects_another_representation():
    with pytest.raises(ValueError, match="must be one of .*Received: 'sum'"):
        make("sum")


def test_a_word_is_the_mean_of_its_tokens_or_its_last():
    hidden = RNG.normal(size=(2, 5, 3)).astype("float32")
    starts, ends = np.array([[1, 2, 0], [1, 1, 4]]), np.array([[2, 5, 0], [1, 4, 5]])
    vectors = np.asarray(WordMeans()(hidden, starts, ends))
    zeros = np.zeros(3)
    expected = [
        [hidden[0, 1], hidden[0, 2:5].mean(0), zeros],
        [zeros, hidden[1, 1:4].mean(0), hidden[1, 4]],
    ]
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    vectors = np.asarray(WordMeans(last=True)(hidden, starts, ends))
    expected = [[hidden[0, 1], hidden[0, 4], zeros], [zeros, hidden[1, 3], hidden[1, 4]]]
    np.testing.assert_array_equal(vectors, expected)
    layer = WordMeans.from_config(WordMeans(last=True).get_config())
    assert layer.last
    symbols = [keras.KerasTensor((None, None, 3)), *[keras.KerasTensor((None, None), "int32")] * 2]
    assert layer(*symbols).shape == (None, None, 3)
