"""A head trained on features that were computed once equals one trained with the encoder held."""

import keras
import numpy as np
import pytest

from keras_bert.base.errors import InputError
from keras_bert.readers.texts import TextSource
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.question_answering.question_answerer import QuestionAnswerer
from keras_bert.tasks.tagging.tagger import Tagger
from keras_bert.training.frozen import FrozenExamples, freeze
from tests.seeds import make_rng, shifted
from tests.small_model import make_encoder, make_tokenizer

RNG = make_rng(8)
EXAMPLES = [
    (" ".join(RNG.choice(["bank", "river", "a", "money"], RNG.integers(0, 9))), "ab"[i % 2])
    for i in range(21)
]


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(["bank", "river"])


@pytest.fixture(scope="module")
def texts(tokenizer):
    task = make(tokenizer, mixed=False)
    return task.features(list(TextSource(EXAMPLES)), labelled=True)


def make(tokenizer, *, mixed):
    # Without dropout, so that training with and without the encoder is the same arithmetic.
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    encoder = make_encoder(tokenizer, num_hidden_layers=2, **still)
    keras.utils.set_random_seed(shifted(2))
    mix = {"layer_norm_eps": 1e-6, "l2": 0.1} if mixed else None
    return Classifier(encoder, tokenizer, labels=["a", "b"], max_length=12, layer_mix=mix)


@pytest.mark.parametrize("mixed", [pytest.param(False, marks=pytest.mark.slow), True])
def test_trains_the_same_weights_to_the_same_values(mixed, tokenizer, texts, tmp_path):
    frozen_task, trained = (make(tokenizer, mixed=mixed) for _ in range(2))
    freeze(frozen_task)
    frozen_task.compile_defaults(keras.optimizers.SGD(0.1), jit_compile=False)
    frozen_task.fit(texts.training_batches(steps=4, seed=shifted(1), epochs=2), epochs=1, verbose=0)
    expected = [np.array(w) for w in frozen_task.weights]

    features, head = freeze(trained)
    rows = []
    frozen = FrozenExamples(
        texts, features, head, batch_size=5, folder=tmp_path, on_batch=rows.append
    )
    assert sum(rows) == len(texts) and max(rows) == 5
    assert list(tmp_path.iterdir()) == []
    before = {w.path: np.array(w) for w in trained.weights}
    head.compile(
        optimizer=keras.optimizers.SGD(0.1), loss=trained.default_losses(), jit_compile=False
    )
    head.fit(frozen.training_batches(steps=4, seed=shifted(1), epochs=2), epochs=1, verbose=0)
    moved = {w.path for w in trained.weights if not np.array_equal(before[w.path], np.array(w))}
    names = {"pooler/dense/kernel", "pooler/dense/bias", "classifier/kernel", "classifier/bias"}
    assert moved == (names | {"scalar_mix/scores", "scalar_mix/gamma"} if mixed else names)
    for weight, value in zip(trained.weights, expected, strict=True):
        np.testing.assert_allclose(np.array(weight), value, atol=1e-5, err_msg=weight.path)


@pytest.mark.parametrize("mixed", [False, True])
def test_the_head_gives_the_tasks_own_answers(mixed, tokenizer, texts):
    task = make(tokenizer, mixed=mixed)
    features, head = freeze(task)
    frozen = FrozenExamples(texts, features, head, batch_size=4)
    sizes = [state.shape[1] for state in features.output.values()]
    assert sizes == ([1, 1, 1] if mixed else [1])  # [CLS] alone is kept
    for (x, y), (head_inputs, also_y) in zip(
        texts.evaluation_batches(batch_size=8), frozen.evaluation_batches(batch_size=8), strict=True
    ):
        np.testing.assert_array_equal(y["logits"], also_y["logits"])
        np.testing.assert_allclose(
            np.asarray(head(head_inputs)["logits"]), np.asarray(task(x)["logits"]), atol=1e-5
        )


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("kind", ["tagger", "question-answerer"])
def test_a_head_over_all_tokens_gives_the_tasks_own_answers(kind, mixed, tokenizer, texts):
    """One of them reads the mask of the tokens, too, beside the encoder's outputs."""
    encoder = make_encoder(tokenizer)
    options = {"labels": ["a", "b", "c"]} if kind == "tagger" else {}
    options["layer_mix"] = {"layer_norm_eps": 1e-6, "l2": 0.0} if mixed else None
    task = (Tagger if kind == "tagger" else QuestionAnswerer)(encoder, tokenizer, **options)
    features, head = freeze(task)
    frozen = FrozenExamples(texts, features, head, batch_size=4)
    for (x, _), (head_inputs, _) in zip(
        texts.training_batches(steps=5, seed=shifted(1)),
        frozen.training_batches(steps=5, seed=shifted(1)),
        strict=True,
    ):
        assert ("input_mask" in head_inputs) == (kind == "question-answerer")
        mask = np.asarray(x["input_mask"], bool)
        expected, outputs = task(x), head(head_inputs)
        for name in expected:
            np.testing.assert_allclose(
                np.asarray(outputs[name])[mask], np.asarray(expected[name])[mask], atol=1e-5
            )


def test_a_full_disk_is_said_before_the_encoder_runs(tokenizer, texts, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    features, head = freeze(make(tokenizer, mixed=False))
    with pytest.raises(InputError, match="Could not reserve 0 MiB .* No space left on device"):
        FrozenExamples(texts, features, head, batch_size=4)
