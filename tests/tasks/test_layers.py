"""Heads over any of the encoder's layers: what they read, and that a run, its folder and its export
agree for each choice, frozen or trained."""

import itertools
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.checkpoints import load_task, save_folder
from keras_bert.exports.saved_model import export
from keras_bert.heads import LAYERS, MIXES, layer_numbers
from keras_bert.inference.evaluate import evaluate
from keras_bert.inference.predict import predict
from keras_bert.optimizers.optimizer import depths
from keras_bert.tasks import finetuned_task_types, task_class
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.tagging.tagger import Tagger
from keras_bert.training.finetune import finetune
from tests.eagerly import eagerly
from tests.encoders.every_kind import LINES, request_of, write_examples
from tests.exports.answers import CHECKS
from tests.little_garbage import keep_from_collector
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

NUM_LAYERS = 5
WORDS = [f"w{number}" for number in range(8)]
TOKENIZER = make_tokenizer(WORDS)
IDS = make_rng(0).integers(5, 30, (3, 7)).astype("int32")
MASK = np.ones_like(IDS)
MASK[1, 5:] = 0
BATCH = {"input_ids": IDS, "input_mask": MASK, "segment_ids": np.zeros_like(IDS)}
# Of hidden states h[0] (the embeddings) to h[5], what a head reads before training.
DEFINITIONS = {
    "last": lambda h: h[5],
    "second-to-last": lambda h: h[4],
    "sum-last-4": lambda h: h[2] + h[3] + h[4] + h[5],
    "concat-last-4": lambda h: np.concatenate([h[5], h[4], h[3], h[2]], axis=-1),
    "sum-all": lambda h: h[1] + h[2] + h[3] + h[4] + h[5],
    "mean-last-4": lambda h: (h[2] + h[3] + h[4] + h[5]) / 4,
    "first": lambda h: h[0],
    "layer-2": lambda h: h[2],
    "mix-last-4": lambda h: 1.5 * (h[2] + h[3] + h[4] + h[5]) / 4,
    "mix-all": lambda h: 1.5 * sum(h) / 6,
}


def deep_encoder():
    return make_encoder(TOKENIZER, num_hidden_layers=NUM_LAYERS, hidden_dropout_prob=0.0)


@pytest.fixture(scope="module")
def encoder():
    """One for all tasks that are not trained."""
    return deep_encoder()


def make(kind, layers, encoder=None, **options):
    encoder = encoder or deep_encoder()
    task = kind(encoder, TOKENIZER, labels=["a", "b"], layers=layers, **options)
    if task.reader.scalar_mix is not None:
        task.reader.scalar_mix.gamma.assign(1.5)
    return task


def read_by_hand(task, layers):
    states = task.encoder(BATCH, outputs=("hidden_states",))["hidden_states"]
    return DEFINITIONS[layers]([np.asarray(state, "float64") for state in states])


def linear(task, x):
    return x @ np.asarray(task.classifier.kernel, "float64") + np.asarray(task.classifier.bias)


def test_every_choice_is_tested():
    assert {*DEFINITIONS} - {"layer-2"} == {*LAYERS, *MIXES}


@pytest.mark.parametrize("layers", DEFINITIONS)
def test_a_tagger_reads_the_layers(layers, encoder):
    task = make(Tagger, layers, encoder)
    expected = linear(task, read_by_hand(task, layers))
    logits = np.asarray(task(BATCH)["logits"])
    np.testing.assert_allclose(logits[MASK > 0], expected[MASK > 0], atol=1e-4)


@pytest.mark.parametrize("layers", DEFINITIONS)
def test_a_classifier_reads_the_layers(layers, encoder):
    hidden = read_by_hand(task := make(Classifier, layers, encoder, pooling="mean"), layers)
    means = [row[mask > 0].mean(axis=0) for row, mask in zip(hidden, MASK, strict=True)]
    logits = np.asarray(task(BATCH)["logits"])
    np.testing.assert_allclose(logits, linear(task, np.stack(means)), atol=1e-4)

    first = read_by_hand(task := make(Classifier, layers, encoder, pooling="cls"), layers)[:, 0]
    if layers != "concat-last-4":  # too wide for the pooler
        pooler = task.transform.dense
        first = np.tanh(first @ np.asarray(pooler.kernel, "float64") + np.asarray(pooler.bias))
    assert (task.transform is None) == (layers == "concat-last-4")
    np.testing.assert_allclose(np.asarray(task(BATCH)["logits"]), linear(task, first), atol=1e-4)


@pytest.mark.parametrize("layers", ["first", "layer-2", "second-to-last", "concat-last-4"])
def test_what_the_head_does_not_read_is_not_trained(layers):
    """Weight decay would shrink it, and layer-wise rates count from the highest layer read."""
    task = make(Classifier, layers, pooling="mean")
    highest = max(task.reader.numbers)
    trained = {id(variable) for variable in task.trainable_variables}
    for number, group in enumerate(task.encoder.layer_groups):
        weights = [v for layer in group for v in layer.trainable_variables]
        assert all((id(v) in trained) == (number <= highest) for v in weights)
    assert max(depths(task, task.trainable_variables)) == highest + 1
    task.compile_defaults(keras.optimizers.SGD(0.1), jit_compile=False)
    before = [np.array(variable) for variable in task.trainable_variables]
    with eagerly():
        task.fit(BATCH, {"logits": np.array([0, 1, 0])}, verbose=0)
    after = task.trainable_variables
    same = [np.array_equal(x, y) for x, y in zip(before, after, strict=True)]
    unmoved = [v.path for v, is_same in zip(after, same, strict=True) if is_same]
    assert not [path for path in unmoved if "kernel" in path or "classifier" in path]


@pytest.mark.parametrize("layers", ["concat-last-4", "mix-last-4", "layer-2"])
def test_comes_back_from_a_folder_and_from_keras_own_file(layers, tmp_path):
    task = make(Classifier, layers)
    task.save(tmp_path / "folder")
    task.save(tmp_path / "task.keras")
    expected = np.asarray(task(BATCH)["logits"])
    for loaded in (
        load_task(tmp_path / "folder"),
        keras.saving.load_model(tmp_path / "task.keras"),
    ):
        assert loaded.reader.layers == layers
        np.testing.assert_allclose(np.asarray(loaded(BATCH)["logits"]), expected, atol=1e-6)
    config = json.loads((tmp_path / "folder" / "config.json").read_text())
    assert config["architectures"] == ["BertModel"]  # its class would read the last layer
    assert config["keras_bert"]["layers"] == layers
    config["keras_bert"]["layers"] = "penultimate"
    (tmp_path / "folder" / "config.json").write_text(json.dumps(config))
    with raises_input_error("config.json, under keras_bert: `layers` is 'penulti"):
        load_task(tmp_path / "folder")


def test_a_folder_with_a_mix_and_no_name_of_layers_has_a_mix_of_all(tmp_path):
    task = make(Classifier, "mix-all", layer_mix={"layer_norm_eps": 1e-6, "l2": 0.5})
    task.save(tmp_path / "folder")
    config = json.loads((tmp_path / "folder" / "config.json").read_text())
    del config["keras_bert"]["layers"]
    (tmp_path / "folder" / "config.json").write_text(json.dumps(config))
    loaded = load_task(tmp_path / "folder")
    assert (loaded.reader.layers, loaded.reader.mix) == ("mix-all", task.reader.mix)
    np.testing.assert_array_equal(loaded(BATCH)["logits"], task(BATCH)["logits"])


@pytest.mark.parametrize(
    "choice, message",
    [
        ("concat-last-4", "needs a model of at least 4 layers. Received: a model with 3."),
        ("mix-last-4", "needs a model of at least 4 layers. Received: a model with 3."),
        ("layer-9", "needs a model of at least 9 layers. Received: a model with 3."),
    ],
)
def test_rejects_more_layers_than_there_are(choice, message):
    with raises_input_error(message):
        layer_numbers(choice, layers=3)


def test_rejects_the_options_of_a_mix_for_other_layers():
    with pytest.raises(ValueError, match="is for a learned mix, .*Received: layers='first'"):
        make(Classifier, "first", layer_mix={"l2": 0.5})


# Runs.


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    path = tmp_path_factory.mktemp("start") / "model"
    encoder = make_encoder(TOKENIZER, num_hidden_layers=NUM_LAYERS, hidden_size=8)
    save_folder(encoder, TOKENIZER, path)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = make_rng(3)
    texts = [" ".join(rng.choice(WORDS, length)) for length in (4, 5, 6, 10, 7, 11, 5) * 2]
    return {kind: write_examples(folder / kind, kind, texts) for kind in LINES}


def check_run(kind, layers, frozen, start, data, folder):
    """The metrics of a run are those of its folder, and its export answers as `predict` does."""
    output = folder / "run"
    with eagerly():
        metrics = finetune(
            task=kind,
            model=start,
            train=data,
            dev=data,
            output=output,
            epochs=1,
            batch_size=7,
            max_length=24,
            learning_rate=0.02,
            layers=layers,
            freeze_encoder=frozen,
        )
        evaluation = evaluate(model=output, data=data)
        answers = list(predict(model=output, data=data))
    assert evaluation["examples"] == metrics["dev"]["examples"]
    for name, value in metrics["dev"].items():
        if isinstance(value, float):
            assert evaluation[name] == pytest.approx(value, rel=1e-4, abs=1e-5), name
    assert load_task(output).reader.layers == layers
    assert ("scalar_mix" in metrics) == (layers in MIXES)
    version = export(model=output, output=folder / "served")
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]
    answered = signature(**request_of(kind, data, answers))
    for number, answer in enumerate(answers):
        CHECKS[kind]({name: column[number].numpy() for name, column in answered.items()}, answer)
    keep_from_collector()


# A trained tagger over a wider vector; others are slow. Mixes are among the products of
# tests/encoders/test_products.py, and what each choice reads and trains is tested above.
EVERY = list(itertools.product(DEFINITIONS, ("classifier", "tagger"), (True, False)))
QUICK = [("concat-last-4", "tagger", False)]


@pytest.mark.parametrize("layers, kind, frozen", QUICK)
def test_a_run_its_folder_and_its_export_agree(layers, kind, frozen, start, files, tmp_path):
    check_run(kind, layers, frozen, start, files[kind], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("layers, kind, frozen", [row for row in EVERY if row not in QUICK])
def test_so_does_every_other_combination(layers, kind, frozen, start, files, tmp_path):
    check_run(kind, layers, frozen, start, files[kind], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("kind", sorted({*finetuned_task_types()} - {"classifier", "tagger"}))
def test_every_kind_of_task_reads_four_layers(kind, frozen, start, files, tmp_path):
    assert task_class(kind).TASK_TYPE == kind
    if kind == "text-embedding" and frozen:
        pytest.skip("without a layer of its own there is nothing to train")
    check_run(kind, "concat-last-4", frozen, start, files[kind], tmp_path)
