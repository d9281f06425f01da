"""The conditional random field against brute force over all sequences, and by its gradients."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert.readers.schemes import labels_of, transitions
from keras_bert.tasks.tagging.crf import CrfLoss, LinearChainCrf
from keras_bert.tasks.tagging.decode import most_probable
from tests.seeds import make_rng

LABELS = labels_of(["X"], "bioes")  # O, B, I, E, S
COUNT = len(LABELS)
LENGTH = 9
# Words at any positions of a row: none, one, all, the first ones, some in between.
IS_WORD = np.zeros((6, LENGTH), np.bool_)
for row, places in enumerate([[], [4], [0, 1, 2, 3, 4], [1, 2, 4, 7], [0, 8], [2, 3, 5, 6, 8]]):
    IS_WORD[row, places] = True
RNG = make_rng(8)
EMISSIONS = RNG.normal(0, 2, (*IS_WORD.shape, COUNT)).astype("float32")


def make(scheme, seed=2):
    crf = LinearChainCrf(transitions=transitions(LABELS, scheme), name="crf")
    crf.build((None, None, COUNT))
    rng = make_rng(seed)
    for variable in crf.variables:
        variable.assign(rng.normal(0, 0.01, variable.shape))
    return crf


def potentials(crf):
    return [np.asarray(ops.convert_to_numpy(x), np.float64) for x in crf.potentials]


def scores(crf, emissions):
    """Every sequence over the words of a row with its score: emissions (W, C)."""
    start, between, end = potentials(crf)
    sequences = list(itertools.product(range(COUNT), repeat=len(emissions)))
    return sequences, np.array(
        [
            start[s[0]]
            + end[s[-1]]
            + sum(row[label] for row, label in zip(emissions, s, strict=True))
            + sum(between[pair] for pair in itertools.pairwise(s))
            for s in sequences
        ]
    )


@pytest.mark.parametrize("scheme", [None, "bioes"])
def test_likelihood_viterbi_and_marginals_by_brute_force(scheme):
    crf = make(scheme)
    labels = RNG.integers(0, COUNT, IS_WORD.shape)
    log_likelihoods = np.asarray(crf.log_likelihoods(EMISSIONS, labels, IS_WORD))
    best, distribution = map(np.asarray, crf.decode(EMISSIONS, IS_WORD))
    assert not best[~IS_WORD].any() and not distribution[~IS_WORD].any()
    assert log_likelihoods[0] == 0  # no word, no doubt
    for row in range(1, len(IS_WORD)):
        emissions = EMISSIONS[row][IS_WORD[row]].astype("float64")
        sequences, every = scores(crf, emissions)
        partition = np.logaddexp.reduce(every)
        chosen = sequences.index(tuple(labels[row][IS_WORD[row]]))
        assert log_likelihoods[row] == pytest.approx(every[chosen] - partition, rel=1e-5, abs=1e-4)
        winner = sequences[every.argmax()]
        assert tuple(best[row][IS_WORD[row]]) == winner
        probabilities = np.exp(every - partition)
        marginal = [
            sum(p for s, p in zip(sequences, probabilities, strict=True) if s[place] == label)
            for place, label in enumerate(winner)
        ]
        np.testing.assert_allclose(distribution[row][IS_WORD[row]], marginal, atol=1e-5)


def test_decoding_outside_of_a_graph_is_the_same():
    lengths = np.array([1, 4, 9, 6])
    is_word = np.arange(9) < lengths[:, None]
    for scheme in (None, "bioes"):
        crf = make(scheme)
        for emissions in (EMISSIONS[:4], 40 * EMISSIONS[1:5]):
            labels, distribution = map(np.asarray, crf.decode(emissions, is_word))
            best_labels, sure = most_probable(emissions, is_word, potentials(crf))
            np.testing.assert_array_equal(best_labels[is_word], labels[is_word])
            np.testing.assert_allclose(sure[is_word], distribution[is_word], atol=1e-5)


def test_what_is_forbidden_is_never_said_however_likely():
    crf = make("bioes")
    emissions = np.zeros_like(EMISSIONS)
    emissions[..., LABELS.index("I-X")] = 50.0
    best, distribution = crf.decode(emissions, IS_WORD)
    allowed = transitions(LABELS, "bioes")
    for row, is_word in zip(np.asarray(best), IS_WORD, strict=True):
        words = row[is_word]
        assert all(allowed.between[pair] for pair in itertools.pairwise(words))
        assert not len(words) or (allowed.start[words[0]] and allowed.end[words[-1]])
    assert np.isfinite(np.asarray(distribution)).all()


def test_gradients_by_finite_differences():
    """Gradients of the loss by emissions and by what is learned; none by what is between words."""
    crf = make("bioes")
    labels = np.zeros(IS_WORD.shape, "int32")
    labels[3, [1, 2, 4, 7]] = [LABELS.index(tag) for tag in ("B-X", "I-X", "E-X", "S-X")]
    emissions = keras.Variable(EMISSIONS)
    loss = CrfLoss(crf)
    weights = IS_WORD.astype("float32")
    variables = [emissions, *crf.trainable_variables]
    gradients = gradients_of(
        lambda: loss(labels, ops.convert_to_tensor(emissions), weights), variables
    )
    rng = make_rng(1)
    for variable, gradient in zip(variables, gradients, strict=True):
        value = np.asarray(variable.value)
        direction = rng.normal(size=value.shape).astype("float32")
        step = 1e-2 if variable is emissions else 1e-4
        ends = []
        for sign in (1, -1):
            variable.assign(value + sign * step * direction)
            ends.append(float(loss(labels, ops.convert_to_tensor(emissions), weights)))
        variable.assign(value)
        slope = (ends[0] - ends[1]) / (2 * step)
        assert slope == pytest.approx(
            float((gradient * direction).sum()), rel=2e-2, abs=2e-6 / step
        )
        if variable is emissions:
            assert not gradient[~IS_WORD].any() and gradient[IS_WORD].any()
        else:
            forbidden = ~np.asarray(getattr(transitions(LABELS, "bioes"), variable.name))
            assert not gradient[forbidden].any() and gradient.any()


def gradients_of(loss, variables):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        value = loss()
    return [
        tf.convert_to_tensor(gradient).numpy()
        for gradient in tape.gradient(value, [variable.value for variable in variables])
    ]


def test_the_loss_is_a_mean_over_words_in_float32_whatever_the_policy():
    crf = make("bioes")
    labels = np.zeros(IS_WORD.shape, "int32")
    likelihoods = np.asarray(crf.log_likelihoods(EMISSIONS, labels, IS_WORD))
    loss = CrfLoss(crf)
    expected = -likelihoods.sum() / IS_WORD.sum()
    assert float(loss(labels, EMISSIONS, IS_WORD.astype("float32"))) == pytest.approx(expected)
    assert float(loss(labels, EMISSIONS, np.zeros(IS_WORD.shape))) == 0
    mixed = LinearChainCrf(transitions=transitions(LABELS, None), dtype="mixed_bfloat16")
    assert mixed(ops.cast(EMISSIONS, "bfloat16")).dtype == "float32"
    assert {variable.dtype for variable in mixed.variables} == {"float32"}
    again = LinearChainCrf.from_config(crf.get_config())
    assert again.get_config() == crf.get_config()


def test_rejects_rules_of_other_shapes():
    with pytest.raises(ValueError, match=r"must be \(C, C\), \(C,\) and \(C,\)"):
        LinearChainCrf(transitions=(np.ones((2, 3)), [True] * 2, [True] * 2))
