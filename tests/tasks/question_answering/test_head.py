"""Question answering: the loss by hand, padding that does not matter, learning, saving."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import QuestionAnswerer
from tests.seeds import make_rng, shifted
from tests.small_model import make_encoder, make_tokenizer

LENGTHS = np.array([7, 3, 5, 6])
RNG = make_rng(7)
IDS = RNG.integers(5, 30, (4, 7)).astype("int32")
MASK = (np.arange(7) < LENGTHS[:, None]).astype("int32")
BATCH = {
    "input_ids": IDS,
    "input_mask": MASK,
    "segment_ids": (np.arange(7) > 1).astype("int32") * MASK,
}
ANSWERS = {"start_logits": np.array([2, 1, 4, 0]), "end_logits": np.array([6, 2, 4, 0])}
NAMES = ("start_logits", "end_logits")


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


@pytest.mark.usefixtures("eager")
def test_the_loss_is_the_mean_of_both_over_the_tokens_of_a_row(tokenizer):
    task = QuestionAnswerer(make_encoder(tokenizer, num_hidden_layers=1), tokenizer)
    y = task(BATCH)
    losses, accuracies = {}, {}
    for name in NAMES:
        nats, hits = [], []
        for row, length in enumerate(LENGTHS):
            logits = np.asarray(y[name][row, :length], "float64")
            nats.append(np.log(np.exp(logits).sum()) - logits[ANSWERS[name][row]])
            hits.append(logits.argmax() == ANSWERS[name][row])
        losses[name], accuracies[name] = np.mean(nats), np.mean(hits)
    task.compile_defaults("sgd", jit_compile=False)
    logs = task.evaluate(BATCH, ANSWERS, batch_size=4, return_dict=True, verbose=0)
    assert logs["loss"] == pytest.approx(sum(losses.values()) / 2, rel=1e-5)
    for name in NAMES:
        assert logs[f"{name}_accuracy"] == pytest.approx(accuracies[name])


def test_a_row_answers_the_same_however_far_it_is_padded(tokenizer):
    task = QuestionAnswerer(make_encoder(tokenizer, num_hidden_layers=1), tokenizer)
    batch_outputs = task(BATCH)
    for row, length in enumerate(LENGTHS):
        alone = task({name: x[row : row + 1, :length] for name, x in BATCH.items()})
        for name in NAMES:
            ours = np.asarray(keras.ops.softmax(batch_outputs[name][row]))
            np.testing.assert_allclose(
                ours[:length], np.asarray(keras.ops.softmax(alone[name][0])), atol=1e-5
            )
            assert (ours[length:] == 0).all()


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_learns_where_the_answers_are(dtype, tokenizer):
    encoder = make_encoder(tokenizer, num_hidden_layers=1, hidden_dropout_prob=0.0)
    if dtype != "float32":
        keras.utils.set_random_seed(shifted(5))
        encoder = type(encoder)(encoder.config, dtype=dtype)
    task = QuestionAnswerer(encoder, tokenizer)
    task.compile_defaults(keras.optimizers.Adam(0.01), jit_compile=False)
    batches = tf.data.Dataset.from_tensors((BATCH, ANSWERS)).repeat(40)
    task.fit(batches, shuffle=False, verbose=0)
    for name, y in task(BATCH).items():
        y = np.asarray(keras.ops.cast(y, "float32"))
        np.testing.assert_array_equal(y.argmax(-1), ANSWERS[name])


def test_comes_back_from_keras_own_file(tokenizer, tmp_path):
    task = QuestionAnswerer(make_encoder(tokenizer, num_hidden_layers=1), tokenizer)
    task.save(tmp_path / "task.keras")
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    assert type(loaded) is QuestionAnswerer and loaded.get_config() == task.get_config()
    for name, y in loaded(BATCH).items():
        np.testing.assert_allclose(y, task(BATCH)[name], atol=1e-6)
