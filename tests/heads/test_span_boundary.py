"""The span-boundary head: the paper's formula in a plain loop, and what it does not read."""

import math

import keras
import numpy as np

from keras_bert.heads.lm_head import SpanBoundary
from tests.layer_checks import check_layer
from tests.seeds import make_rng

RNG = make_rng(6)
WIDTH, VOCABULARY, LONGEST = 8, 11, 3
HIDDEN = RNG.normal(size=(2, 7, WIDTH)).astype("float32")
# Row 0 has a span at 2 and 3 and padding, row 1 one from 1 to 5.
LEFT = np.array([[1, 1, 0], [0, 0, 0]], "int32")
RIGHT = np.array([[4, 4, 0], [6, 6, 6]], "int32")
OFFSET = np.array([[1, 2, 0], [1, 3, 5]], "int32")
INPUTS = {"hidden": HIDDEN, "left": LEFT, "right": RIGHT, "offset": OFFSET}


def make(**options):
    return SpanBoundary(
        token_embedding=keras.layers.Embedding(VOCABULARY, WIDTH, dtype=options.get("dtype")),
        hidden_size=WIDTH,
        max_span_length=LONGEST,
        offset_width=5,
        hidden_act="gelu",
        layer_norm_eps=1e-12,
        initializer_range=0.5,
        **options,
    )


def numbers(variable):
    return np.asarray(variable.value, "float64")


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def by_hand(layer):
    """y = LN(gelu(W2 LN(gelu(W1 [left; right; offset])))) E^T + b, a prediction at a time."""
    logits = np.zeros((*LEFT.shape, VOCABULARY))
    for row, place in np.ndindex(*LEFT.shape):
        offset = min(max(OFFSET[row, place], 1), LONGEST)
        h = np.concatenate(
            [
                HIDDEN[row, LEFT[row, place]],
                HIDDEN[row, RIGHT[row, place]],
                numbers(layer.offset_embedding.embeddings)[offset - 1],
            ]
        )
        for dense, norm in zip(layer.dense_layers, layer.layer_norms, strict=True):
            h = gelu(h @ numbers(dense.kernel) + numbers(dense.bias))
            h = (h - h.mean()) / h.std() * numbers(norm.gamma) + numbers(norm.beta)
        logits[row, place] = numbers(layer.token_embedding.embeddings) @ h + numbers(layer.bias)
    return logits


def test_it_is_the_papers_formula_and_a_layer_like_any_other(tmp_path):
    check_layer(
        make,
        inputs=INPUTS,
        output_shape=(2, 3, VOCABULARY),
        mixed_output="float32",
        tmp_path=tmp_path,
    )
    layer = make()
    layer(*INPUTS.values())
    table = layer.token_embedding.embeddings
    for weight in layer.weights:
        if weight is not table:  # biases and norms start where they do not show
            weight.assign(weight + RNG.normal(size=weight.shape) * 0.3)
    np.testing.assert_allclose(np.asarray(layer(*INPUTS.values())), by_hand(layer), atol=1e-5)
    assert sum(w is table for w in layer.trainable_weights) == 1


def test_it_depends_on_nothing_inside_a_span():
    layer = make()
    before = np.asarray(layer(*INPUTS.values()))
    moved = HIDDEN.copy()
    moved[0, 2:4] += 7
    moved[1, 1:6] -= 9
    np.testing.assert_array_equal(np.asarray(layer(moved, LEFT, RIGHT, OFFSET)), before)
    moved[1, 6] += 1
    after = np.asarray(layer(moved, LEFT, RIGHT, OFFSET))
    assert (np.abs(after - before).max(axis=(1, 2)) > 0.01).tolist() == [False, True]


class Shift(keras.layers.Layer):
    """Adds a weight to every number: a step of SGD leaves their negative gradient there."""

    def build(self, shape):
        self.shift = self.add_weight(shape=HIDDEN.shape, initializer="zeros", name="shift")

    def call(self, x):
        return x + self.shift


def test_the_gradient_reaches_the_boundaries_and_nothing_else_of_the_row():
    layer, shift = make(), Shift()
    symbols = {
        name: keras.Input(batch_shape=x.shape, dtype=str(x.dtype), name=name)
        for name, x in INPUTS.items()
    }
    hidden, *spans = symbols.values()
    model = keras.Model(symbols, layer(shift(hidden), *spans))
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    )
    model.compile(keras.optimizers.SGD(1.0), loss)
    counts = (OFFSET > 0).astype("float32")
    options = {"batch_size": 2, "shuffle": False, "verbose": 0}
    model.fit(INPUTS, np.ones(LEFT.shape), sample_weight=counts, **options)
    moved = np.abs(np.asarray(shift.shift.value)).max(axis=-1) > 1e-6  # (2, 7)
    np.testing.assert_array_equal(moved, [[0, 1, 0, 0, 1, 0, 0], [1, 0, 0, 0, 0, 0, 1]])
