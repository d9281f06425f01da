"""The pre-training task: its losses by hand, its tied weights, and that a model can learn."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.tasks.pretraining.pretrainer import FillMask, Pretrainer
from tests.seeds import make_rng, shifted
from tests.small_model import make_encoder, make_tokenizer

BATCH, LENGTH, PREDICTIONS, VOCABULARY = 6, 12, 4, 40


def small_config(**changes):
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 16,
    }
    return BertConfig(vocab_size=VOCABULARY, **{**sizes, **changes})


@pytest.fixture(scope="module")
def pretrainer():
    keras.utils.set_random_seed(shifted(3))
    return Pretrainer(BertEncoder(small_config()))


def batch(seed=0):
    generator = make_rng(seed)
    lengths = generator.integers(6, LENGTH + 1, BATCH)
    inputs = {
        "input_ids": generator.integers(5, VOCABULARY, (BATCH, LENGTH)).astype("int32"),
        "input_mask": (np.arange(LENGTH) < lengths[:, None]).astype("int32"),
        "segment_ids": (np.arange(LENGTH) >= lengths[:, None] // 2).astype("int32"),
        "masked_lm_positions": np.sort(generator.integers(0, 6, (BATCH, PREDICTIONS)), axis=1),
    }
    labels = {
        "masked_lm": generator.integers(5, VOCABULARY, (BATCH, PREDICTIONS)),
        "next_sentence": generator.integers(0, 2, BATCH),
    }
    counts = np.array([4, 1, 2, 3, 1, 0])
    weights = {
        "masked_lm": (np.arange(PREDICTIONS) < counts[:, None]).astype("float32"),
        "next_sentence": np.array([1, 1, 1, 1, 1, 0], "float32"),
    }
    return inputs, labels, weights


def by_hand(logits, labels, weights):
    """Mean cross-entropy in nats and mean accuracy over what counts."""
    logits = logits.astype("float64")
    logits = logits - logits.max(axis=-1, keepdims=True)
    log_probabilities = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    nats = -np.take_along_axis(log_probabilities, labels[..., None], axis=-1)[..., 0]
    is_right = logits.argmax(axis=-1) == labels
    return (nats * weights).sum() / weights.sum(), (is_right * weights).sum() / weights.sum()


@pytest.mark.usefixtures("eager")
def test_losses_and_metrics_are_means_over_what_counts(pretrainer):
    inputs, labels, weights = batch()
    logits = pretrainer.predict(inputs, verbose=0)
    assert logits["masked_lm"].shape == (BATCH, PREDICTIONS, VOCABULARY)
    assert logits["next_sentence"].shape == (BATCH, 2)
    expected = {}
    for name in ("masked_lm", "next_sentence"):
        nats, accuracy = by_hand(logits[name], labels[name], weights[name])
        expected |= {f"{name}_loss": nats, f"{name}_accuracy": accuracy}
        expected[f"{name}_cross_entropy"] = nats
    expected["loss"] = expected["masked_lm_loss"] + expected["next_sentence_loss"]
    pretrainer.compile_defaults("sgd", jit_compile=False)
    results = pretrainer.evaluate(
        inputs, labels, sample_weight=weights, batch_size=BATCH, return_dict=True, verbose=0
    )
    assert results == pytest.approx(expected, rel=1e-5)


@pytest.mark.usefixtures("eager")
def test_cross_entropy_over_uneven_batches_is_the_mean_over_all_predictions(pretrainer):
    inputs, labels, weights = batch()
    pretrainer.compile_defaults("sgd", jit_compile=False)

    def results(batch_size):
        return pretrainer.evaluate(
            inputs,
            labels,
            sample_weight=weights,
            batch_size=batch_size,
            return_dict=True,
            verbose=0,
        )

    whole, parts = results(BATCH), results(2)
    for name in ("masked_lm_cross_entropy", "masked_lm_accuracy", "next_sentence_cross_entropy"):
        assert parts[name] == pytest.approx(whole[name], rel=1e-5)
    assert parts["masked_lm_loss"] != pytest.approx(whole["masked_lm_loss"], rel=1e-4)


@pytest.mark.usefixtures("eager")
def test_the_output_embedding_is_the_token_embedding(pretrainer):
    unused = VOCABULARY - 1
    inputs, _, _ = batch()
    inputs["input_ids"] = inputs["input_ids"] % unused
    table = pretrainer.encoder.token_embedding.embeddings
    with_vocabulary = [v for v in pretrainer.variables if VOCABULARY in v.shape]
    assert [v.shape for v in with_vocabulary] == [table.shape, (VOCABULARY,)]  # and the bias
    before = pretrainer.predict(inputs, verbose=0)["masked_lm"]
    original = np.array(table)
    moved = original.copy()
    moved[unused] *= -2.0
    table.assign(moved)
    after = pretrainer.predict(inputs, verbose=0)["masked_lm"]
    table.assign(original)  # the pretrainer is the other tests' too
    np.testing.assert_allclose(after[..., :unused], before[..., :unused], atol=1e-6)
    np.testing.assert_allclose(after[..., unused], -2.0 * before[..., unused], rtol=1e-4)


def test_it_learns_a_batch_by_heart():
    keras.utils.set_random_seed(shifted(5))
    task = Pretrainer(
        BertEncoder(small_config(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    )
    inputs, labels, weights = batch()
    inputs["masked_lm_positions"] = np.tile(np.arange(PREDICTIONS), (BATCH, 1))
    task.compile_defaults(keras.optimizers.Adam(0.01), jit_compile=False)
    batches = tf.data.Dataset.from_tensors((inputs, labels, weights)).repeat()
    history = task.fit(batches, steps_per_epoch=1, epochs=60, shuffle=False, verbose=0).history
    assert history["masked_lm_cross_entropy"][0] > 3.0
    assert history["masked_lm_cross_entropy"][-1] < 0.1
    assert history["next_sentence_accuracy"][-1] == 1.0


def test_an_input_too_many_is_rejected_instead_of_shifting_the_others(pretrainer):
    inputs, _, _ = batch()
    with pytest.raises(ValueError, match="must be a dictionary of"):
        pretrainer({**inputs, "masked_lm_weights": inputs["input_mask"]})


@pytest.mark.usefixtures("eager")
def test_keras_own_file_gives_the_same_logits(tmp_path):
    inputs, _, _ = batch()
    pretrainer = Pretrainer(BertEncoder(small_config()))
    pretrainer.save(tmp_path / "task.keras")
    loaded = keras.models.load_model(tmp_path / "task.keras")
    assert loaded.lm_head.token_embedding is loaded.encoder.token_embedding
    for name, logits in pretrainer.predict(inputs, verbose=0).items():
        np.testing.assert_array_equal(loaded.predict(inputs, verbose=0)[name], logits)


@pytest.mark.parametrize("kind", [FillMask, Pretrainer])
def test_says_plainly_what_is_no_data_folder(kind):
    tokenizer = make_tokenizer()
    task = kind(make_encoder(tokenizer), tokenizer)
    with pytest.raises(InputError, match="There is no data folder train.txt. Make one with"):
        task.dataset("train.txt")
