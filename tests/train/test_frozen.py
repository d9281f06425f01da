"""A head trained on features that were computed once equals one trained with the encoder held."""

import keras
import numpy as np
import pytest

from keras_bert.errors import InputError
from keras_bert.input_pipeline.classification import TokenizedTexts
from keras_bert.input_pipeline.given_texts import GivenTexts
from keras_bert.tasks.classifier import Classifier
from keras_bert.tasks.fill_mask import FillMask
from keras_bert.tasks.mixed_encoder import MixedEncoder
from keras_bert.train.frozen import FrozenTexts, freeze
from tests.small_model import make_encoder, make_tokenizer

RNG = np.random.default_rng(8)
EXAMPLES = [
    (" ".join(RNG.choice(["bank", "river", "a", "money"], RNG.integers(0, 9))), "ab"[i % 2])
    for i in range(21)
]


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(["bank", "river"])


@pytest.fixture(scope="module")
def texts(tokenizer):
    return TokenizedTexts.from_examples(
        GivenTexts(EXAMPLES), tokenizer=tokenizer, labels=["a", "b"], max_length=12
    )


def make(tokenizer, *, mixed):
    # Without dropout, so that training with and without the encoder is the same arithmetic.
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    encoder = make_encoder(tokenizer, **still)
    if mixed:
        encoder = MixedEncoder(encoder, layer_norm_eps=1e-6, l2=0.1)
    keras.utils.set_random_seed(2)
    return Classifier(encoder, tokenizer, labels=["a", "b"], max_length=12)


@pytest.mark.parametrize("mixed", [False, True])
def test_trains_the_same_weights_to_the_same_values(mixed, tokenizer, texts, tmp_path):
    held, trained = (make(tokenizer, mixed=mixed) for _ in range(2))
    freeze(held)
    held.compile_defaults(keras.optimizers.SGD(0.1), jit_compile=False)
    held.fit(texts.training_batches(steps=4, seed=1, epochs=2), epochs=1, verbose=0)
    expected = [np.array(w) for w in held.weights]

    features, head = freeze(trained)
    rows = []
    frozen = FrozenTexts(texts, features, batch_size=5, folder=tmp_path, on_batch=rows.append)
    assert sum(rows) == len(texts) and max(rows) == 5
    assert list(tmp_path.iterdir()) == []
    before = {w.path: np.array(w) for w in trained.weights}
    head.compile(
        optimizer=keras.optimizers.SGD(0.1), loss=trained.default_losses(), jit_compile=False
    )
    head.fit(frozen.training_batches(steps=4, seed=1, epochs=2), epochs=1, verbose=0)
    moved = {w.path for w in trained.weights if not np.array_equal(before[w.path], np.array(w))}
    names = {"pooler/dense/kernel", "pooler/dense/bias", "classifier/kernel", "classifier/bias"}
    assert moved == (names | {"scalar_mix/scores", "scalar_mix/gamma"} if mixed else names)
    for weight, value in zip(trained.weights, expected, strict=True):
        np.testing.assert_allclose(np.array(weight), value, atol=1e-5, err_msg=weight.path)


@pytest.mark.parametrize("mixed", [False, True])
def test_the_head_gives_the_tasks_own_answers(mixed, tokenizer, texts):
    task = make(tokenizer, mixed=mixed)
    features, head = freeze(task)
    frozen = FrozenTexts(texts, features, batch_size=4)
    sizes = [state.shape[1] for state in features.output.values()]
    assert sizes == ([1, 1, 1] if mixed else [1])  # [CLS] alone is kept
    for (x, y), (kept, also_y) in zip(
        texts.evaluation_batches(batch_size=8), frozen.evaluation_batches(batch_size=8), strict=True
    ):
        np.testing.assert_array_equal(y["logits"], also_y["logits"])
        np.testing.assert_allclose(
            np.asarray(head(kept)["logits"]), np.asarray(task(x)["logits"]), atol=1e-5
        )
    assert frozen.fingerprint == texts.fingerprint


def test_a_head_over_all_tokens_has_the_features_of_all_tokens(tokenizer, texts):
    encoder = make_encoder(tokenizer)
    task = make(tokenizer, mixed=False)
    inputs = task.feature_inputs()
    hidden = encoder(inputs)["sequence_output"]
    output = keras.layers.GlobalMaxPooling1D()(keras.layers.Dense(2)(hidden))
    tokens = keras.Model(inputs, {"logits": output})
    tokens.encoder = encoder
    features, head = freeze(tokens)
    frozen = FrozenTexts(texts, features, batch_size=4)
    (kept, _), (x, _) = (
        next(iter(rows.training_batches(steps=5, seed=1))) for rows in (frozen, texts)
    )
    expected = np.asarray(encoder(x)["sequence_output"])
    mask = np.asarray(x["input_mask"], bool)
    (states,) = (np.asarray(state) for state in kept.values())
    np.testing.assert_allclose(states[mask[:, : states.shape[1]]], expected[mask], atol=1e-5)
    assert head(kept)["logits"].shape == (len(states), 2)


def test_refuses_a_head_that_reads_more_than_the_encoder(tokenizer):
    with pytest.raises(ValueError, match="Received: FillMask"):
        freeze(FillMask(make_encoder(tokenizer), tokenizer))


def test_a_full_disk_is_said_before_the_encoder_runs(tokenizer, texts, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    features, _ = freeze(make(tokenizer, mixed=False))
    with pytest.raises(InputError, match="no room for 0 MiB .* No space left on device"):
        FrozenTexts(texts, features, batch_size=4)
