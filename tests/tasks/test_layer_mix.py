"""A learned mix of the encoder's layers under any task, frozen or not, and from its folder."""

import json
import shutil

import keras
import numpy as np
import pytest

from keras_bert.checkpoints import load, load_task
from keras_bert.checkpoints.convert import convert
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.pretraining.pretrainer import FillMask
from tests.messages import raises_input_error
from tests.peers import transformers
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

IDS = make_rng(0).integers(5, 30, (6, 7)).astype("int32")
BATCH = {"input_ids": IDS, "input_mask": np.ones_like(IDS), "segment_ids": np.zeros_like(IDS)}


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


MIX = {"layer_norm_eps": 1e-6, "l2": 0.25}


def make(kind, tokenizer, *, layers=1, mix=MIX, **options):
    encoder = make_encoder(tokenizer, num_hidden_layers=layers)
    task = kind(encoder, tokenizer, layer_mix=mix, **options)
    task.reader.scalar_mix.scores.assign([0.5, -1.0, 1.5][: layers + 1])
    task.reader.scalar_mix.gamma.assign(1.3)
    return task


@pytest.fixture(scope="module")
def tasks(tokenizer):
    """One over the mix of each kind of encoder output: whole texts, and masked tokens."""
    return {
        Classifier: make(Classifier, tokenizer, labels=["a", "b"]),
        FillMask: make(FillMask, tokenizer),
    }


@pytest.fixture(scope="module")
def saved(tasks, tmp_path_factory):
    """The folder of each of them."""
    root = tmp_path_factory.mktemp("saved")
    for kind, task in tasks.items():
        task.save(root / kind.TASK_TYPE)
    return {kind: root / kind.TASK_TYPE for kind in tasks}


def test_the_head_reads_the_mix_and_the_pooler_over_it(tokenizer):
    plain = {"layer_norm_eps": None, "l2": 0.0}
    task = make(Classifier, tokenizer, layers=2, mix=plain, labels=["a", "b"])
    states = task.encoder(BATCH, outputs=("hidden_states",))["hidden_states"]
    fractions = np.exp([0.5, -1.0, 1.5]) / np.exp([0.5, -1.0, 1.5]).sum()
    expected = 1.3 * sum(s * np.asarray(h) for s, h in zip(fractions, states, strict=True))
    pooler = task.transform.dense
    pooled = np.tanh(expected[:, 0] @ np.asarray(pooler.kernel.value))
    logits = pooled @ np.asarray(task.classifier.kernel.value)
    np.testing.assert_allclose(np.asarray(task(BATCH)["logits"]), logits, atol=1e-5)
    with pytest.raises(ValueError, match="Received"):
        task({**BATCH, "masked_lm_positions": IDS})


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.usefixtures("eager")
def test_is_trained_with_the_task_and_the_encoder_only_if_asked(frozen, tokenizer):
    task = make(Classifier, tokenizer, labels=["a", "b"])
    task.encoder.trainable = not frozen
    before = {w.path: np.array(w.value) for w in task.weights}
    task.compile_defaults(keras.optimizers.Adam(0.01), jit_compile=False)
    task.fit(BATCH, {"logits": np.arange(6) % 2}, verbose=0)
    moved = {w.path for w in task.weights if not np.array_equal(before[w.path], np.array(w.value))}
    head = {"scalar_mix/scores", "scalar_mix/gamma", "classifier/kernel", "classifier/bias"}
    head |= {"pooler/dense/kernel", "pooler/dense/bias"}
    assert head <= moved
    assert (moved == head) == frozen


@pytest.mark.parametrize("kind", [Classifier, FillMask])
def test_a_folder_gives_it_back_and_the_encoder_without_it(kind, tasks, saved):
    task, loaded = tasks[kind], load_task(saved[kind])
    assert loaded.reader.mix == MIX
    batch = BATCH
    if kind is FillMask:
        batch = {**BATCH, "masked_lm_positions": np.ones((6, 1), "int32")}
    (name,) = task.output
    np.testing.assert_array_equal(np.asarray(loaded(batch)[name]), np.asarray(task(batch)[name]))
    encoder, _ = load(saved[kind])
    np.testing.assert_array_equal(
        np.asarray(encoder(BATCH)["sequence_output"]),
        np.asarray(task.encoder(BATCH)["sequence_output"]),
    )


@pytest.mark.peers
def test_transformers_takes_it_for_an_encoder_alone(saved):
    """Its class for the task would compute something else: the head over the last layer."""
    config = json.loads((saved[FillMask] / "config.json").read_text())
    assert config["architectures"] == ["BertModel"]
    _, loading = transformers.BertModel.from_pretrained(saved[FillMask], output_loading_info=True)
    unexpected = set(loading.pop("unexpected_keys"))
    assert {"keras_bert.scalar_mix.scores", "keras_bert.scalar_mix.gamma"} <= unexpected
    assert all(name.startswith("keras_bert.") for name in unexpected)
    assert not any(loading.values())


def test_comes_back_from_keras_own_file(tasks, tmp_path):
    task = tasks[Classifier]
    task.save(tmp_path / "task.keras")
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    np.testing.assert_allclose(
        np.asarray(loaded(BATCH)["logits"]), np.asarray(task(BATCH)["logits"]), atol=1e-6
    )


@pytest.mark.parametrize(
    "mix, sentence",
    [
        ({"l2": -1.0, "layer_norm_eps": None}, "invalid scalar_mix"),
        ({"x": 1}, "invalid scalar_mix"),
        ({"l2": "a", "layer_norm_eps": None}, "invalid scalar_mix"),
    ],
)
def test_rejects_a_folder_whose_mix_cannot_be(mix, sentence, saved, tmp_path):
    folder = shutil.copytree(saved[Classifier], tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config["keras_bert"]["scalar_mix"] = mix
    (folder / "config.json").write_text(json.dumps(config))
    with raises_input_error(sentence):
        load_task(folder)


def test_is_converted_to_a_folder_and_rejected_by_what_has_no_place_for_it(saved, tmp_path):
    assert convert(saved[Classifier], tmp_path / "copy")["left_out"] == []
    assert load_task(tmp_path / "copy").reader.mix == MIX
    for to in ("google", "keras-nlp"):
        with raises_input_error(f"reads the layers mix-all, which the format {to} cannot"):
            convert(saved[Classifier], tmp_path / to, to=to)
