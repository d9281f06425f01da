"""Several runs compared: by the number of training examples, by layers, and averaged."""

import json

import numpy as np
import pytest
import tensorflow as tf

import keras_bert.training.finetune as module
from keras_bert.checkpoints import load_task, save_folder
from keras_bert.cli.main import main
from keras_bert.inference.predict import predict
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.losses import mean_outputs
from keras_bert.tasks.outputs import Inference
from keras_bert.training.finetune import finetune, sweep
from keras_bert.training.finetuning_examples import read_data, sample, sample_size
from keras_bert.training.finetuning_settings import finetune_settings
from keras_bert.training.sweep_settings import sweep_settings
from tests.eagerly import eagerly
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

COUNT = 40


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    tokenizer = make_tokenizer(["good", "bad", "film", "plot"])
    save_folder(make_encoder(tokenizer), tokenizer, folder / "model")
    rng = make_rng(0)
    for name, count in (("train", COUNT), ("dev", 23)):
        lines = ["text\tlabel\n"]
        for label in rng.choice(["good", "bad"], count):
            rest = " ".join(rng.choice(["film", "plot"], rng.integers(0, 3)))
            lines.append(f"{label} {rest}\t{label}\n")
        (folder / f"{name}.tsv").write_text("".join(lines))
    return {
        "model": str(folder / "model"),
        "train": str(folder / "train.tsv"),
        "dev": str(folder / "dev.tsv"),
        "batch_size": 8,
        "epochs": 1,
        "learning_rate": 0.01,
        "freeze_encoder": True,
        "max_length": 12,
    }


@pytest.fixture(scope="module")
def sizes(given, tmp_path_factory):
    """The output of a run over sizes, stopped once, with its metrics and the runs that it made."""
    output = tmp_path_factory.mktemp("sizes") / "run"
    asked = {"train_fraction": [15, 1], "baseline": "random", "num_seeds": 2, "seed": 4}
    made, run = [], module.finetune_on

    def note_and_run(data, settings, report, **options):
        if len(made) == 3 and settings.output not in made:
            made.append(None)
            raise KeyboardInterrupt
        made.append(settings.output)
        return run(data, settings, report, **options)

    with pytest.MonkeyPatch.context() as patch, eagerly():
        patch.setattr(module, "finetune_on", note_and_run)
        with pytest.raises(KeyboardInterrupt, match="has 3 finished runs"):
            finetune(**given, **asked, output=output)
        said = []
        metrics = finetune(**given, **asked, output=output, report=said.append)
    assert said.count("Training on 15 of the 40 training examples.") == 1  # three were made before
    return output, metrics, [path.rsplit("/", 1)[1] for path in made if path is not None]


def test_there_is_a_run_for_each_size_start_and_seed_and_each_once(sizes):
    output, metrics, made = sizes
    assert metrics == json.loads((output / "metrics.json").read_text())
    assert (
        list(metrics["runs"])
        == made
        == [
            f"{start}train-{size}-seed-{seed}"
            for size in ("15", "1")
            for start in ("", "baseline-")
            for seed in (4, 5)
        ]
    )
    assert not metrics["kept"]["run"].startswith("baseline")
    assert (output / "model" / "config.json").is_file()
    assert load_task(output).labels == ("bad", "good")


def test_the_scores_are_those_of_the_runs(sizes):
    _, metrics, _ = sizes
    curve = metrics["training_sizes"]
    assert list(curve) == ["model", "baseline"]
    for start, points in curve.items():
        assert [point["train_examples"] for point in points] == [15, COUNT]
        for point, size in zip(points, ("15", "1"), strict=True):
            prefix = "baseline-" if start == "baseline" else ""
            seed_metrics = [
                metrics["runs"][f"{prefix}train-{size}-seed-{n}"]["metric"] for n in (4, 5)
            ]
            assert point["metrics"] == seed_metrics
            assert point["mean"] == pytest.approx(np.mean(seed_metrics))
            assert point["std"] == pytest.approx(np.std(seed_metrics, ddof=1))


@pytest.fixture(scope="module")
def opened(given):
    settings = finetune_settings("classifier").of({**given, "output": "none"})
    return settings, read_data(settings, given, lambda line: None)


def test_a_sample_depends_on_the_seed_and_contains_smaller_ones(opened):
    _, data = opened

    def drawn(fraction, seed):
        count = sample_size(fraction, data.train.examples)
        return [example.line for example in sample(data.train.examples, count, seed=seed)]

    assert len(drawn(0.1, 0)) == 4 and len(drawn(15, 0)) == 15
    assert drawn(1, 0) == drawn(COUNT, 3) == list(range(2, COUNT + 2))  # after the header
    assert {*drawn(0.1, 0)} < {*drawn(15, 0)} and drawn(15, 0) == sorted(drawn(15, 0))
    assert drawn(15, 0) != drawn(15, 1)


def test_the_baseline_has_the_sizes_of_the_model_and_random_weights(opened, given):
    settings, data = opened
    asked = settings.of({**vars(settings), "baseline": "random"})
    baseline = module.read_baseline(data, asked, given, lambda line: None)
    model, random = (of.recipe.build(asked, lambda line: None) for of in (data, baseline))
    assert random.config == model.config and random.labels == model.labels
    kernel, other = (task.encoder.blocks[0].weights[0] for task in (model, random))
    assert kernel.shape == other.shape and not np.allclose(kernel, other)
    assert baseline.inputs["model"] != data.inputs["model"]
    assert baseline.inputs["train"] == data.inputs["train"]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"train_fraction": 0.0}, "`train_fraction` must be above 0. Received: 0.0"),
        ({"train_fraction": 2.5}, "a fraction up to 1 or a whole number of examples. Received: 2."),
        ({"train_fraction": [0.1, 0.1]}, "`train_fraction` has a value twice"),
        ({"train_fraction": 99}, "`train_fraction` is 99 examples, but ...train.tsv has 40."),
        ({"baseline": "none/here", "num_seeds": 2}, "none/here"),
        ({"ensemble": True}, "`ensemble` averages the models of several seeds. Give `num_seeds`"),
        ({"ensemble": True, "num_seeds": 2, "baseline": "random"}, "nor `baseline`"),
        ({"hidden_layers": -1}, "`hidden_layers` must be at least 0. Received: -1"),
    ],
)
def test_bad_arguments(changes, message, given, tmp_path):
    with raises_input_error(message):
        finetune(**{**given, **changes}, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_random_start_has_no_random_baseline(given, tmp_path):
    start = {"model": None, "architecture": "tiny", "vocab": f"{given['model']}/vocab.txt"}
    with raises_input_error("`baseline` random is for runs that start from a model"):
        finetune(**{**given, **start}, baseline="random", output=tmp_path / "run")


def test_the_command_prints_a_table_and_draws_a_picture(given, tmp_path, capsys):
    flags = [f"--{name.replace('_', '-')}={given[name]}" for name in ("model", "train", "dev")]
    flags += ["--freeze-encoder", "--epochs=1", "--batch-size=8", "--output", str(tmp_path / "run")]
    with eagerly():
        assert main(["finetune", *flags, "--train-fraction", "8", "1"]) == 0
    out = capsys.readouterr().out
    assert "training examples" in out and "model" in out and "baseline" not in out
    assert (tmp_path / "run" / "pictures" / "training_sizes.png").stat().st_size > 5000
    assert main(["finetune", *flags, "--train-fraction", "99"]) == 2
    assert "--train-fraction is 99 examples" in capsys.readouterr().err


# Layers.


def test_a_sweep_over_layers_compares_them_over_seeds(given, tmp_path, capsys):
    flags = [f"--{name.replace('_', '-')}={given[name]}" for name in ("model", "train", "dev")]
    flags += ["--freeze-encoder", "--epochs=1", "--batch-size=8", "--output", str(tmp_path / "run")]
    tried = ["first", "mix-all"]
    with eagerly():
        assert main(["sweep", *flags, "--num-seeds", "2", "--layers", *tried]) == 0
    out = capsys.readouterr().out
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    names = [f"{x}-rate-0.001-batch-8-epochs-1-seed-{n}" for x in tried for n in (0, 1)]
    assert list(metrics["runs"]) == names
    assert list(metrics["by_layers"]) == tried
    for layers, score in metrics["by_layers"].items():
        runs = [run for run in metrics["runs"].values() if run["layers"] == layers]
        assert score["metrics"] == [run["metric"] for run in runs]
        assert score["mean"] == pytest.approx(np.mean(score["metrics"]))
        assert layers in out
    assert load_task(tmp_path / "run").reader.layers == metrics["kept"]["run"].split("-rate")[0]
    assert (tmp_path / "run" / "pictures" / "layers.png").stat().st_size > 5000


def test_a_sweep_over_layers_has_one_rate_unless_more_are_given():
    given = {"task": "tagger", "train": "a", "dev": "b", "output": "o"}
    given["layers"] = ["first", "mix-last-4"]
    of = sweep_settings("tagger").of
    assert list(of(given).runs()) == [
        "first-rate-None-batch-32-epochs-None",  # until the data are read
        "mix-last-4-rate-None-batch-32-epochs-None",
    ]
    frozen = of({**given, "freeze_encoder": True, "epochs": [2, 3], "scalar_mix_l2": 0.1}).runs()
    assert len(frozen) == 4 and {run["learning_rate"] for run in frozen.values()} == {None}
    assert [run["scalar_mix_l2"] for run in frozen.values()] == [0.0, 0.0, 0.1, 0.1]
    with raises_input_error("`layers` is 'best'. It should be last, "):
        of({**given, "layers": ["last", "best"]})


def test_a_run_over_other_layers_is_the_one_that_it_is_alone(given, tmp_path):
    """Tasks and a frozen encoder's outputs are shared by the runs of a sweep."""
    with eagerly():
        metrics = sweep(**given, layers=["last", "first"], output=tmp_path / "sweep")
        alone = finetune(**given, layers="first", output=tmp_path / "alone")
    (name,) = (name for name in metrics["runs"] if name.startswith("first"))
    assert metrics["runs"][name]["dev"] == alone["dev"]


# Ensembles.


@pytest.fixture(scope="module")
def ensemble(given, tmp_path_factory):
    output = tmp_path_factory.mktemp("ensemble") / "run"
    asked = {"num_seeds": 2, "ensemble": True, "hidden_layers": 1}
    with eagerly():
        return output, finetune(**given, **asked, output=output)


def test_the_savedmodel_gives_the_mean_of_the_probabilities(ensemble, given):
    output, metrics = ensemble
    texts = ["good film", "bad plot", "film"]
    best = metrics["kept"]["run"]
    folders = [
        output / "model" if name == best else output / "runs" / name for name in metrics["runs"]
    ]
    with eagerly():
        answers = [list(predict(model=folder, text=texts)) for folder in folders]
    expected = np.mean([[[*a["probabilities"].values()] for a in one] for one in answers], axis=0)
    assert np.ptp([a["score"] for one in answers for a in one[:1]]) > 1e-4  # they differ
    signature = tf.saved_model.load(str(output / "ensemble" / "1")).signatures["serving_default"]
    outputs = signature(text=tf.constant(texts))
    np.testing.assert_allclose(outputs["probabilities"], expected, atol=1e-5)
    assert metrics["ensemble"]["examples"] == metrics["dev"]["examples"]
    assert load_task(output).settings.hidden_layers == 1


def test_an_ensemble_evaluates_as_its_members_average(ensemble, given):
    output, metrics = ensemble
    task, *others = (load_task(path.parent) for path in sorted(output.glob("**/config.json")))
    examples = list(task.read(given["dev"], inferred_arguments=task.inferred_arguments))
    sequences = task.features(examples)
    with eagerly():
        logits = [Inference(t, batch_size=8).outputs(sequences) for t in (task, *others)]
        task.average_with(others)
        averaged = Inference(task, batch_size=8).outputs(sequences)["logits"]
    mean = np.mean([tf.nn.softmax(one["logits"]).numpy() for one in logits], axis=0)
    np.testing.assert_allclose(tf.nn.softmax(averaged).numpy(), mean, atol=1e-6)
    predictions = task.decode({"logits": averaged}, sequences)
    assert task.official_metrics(predictions, examples)["accuracy"] == pytest.approx(
        metrics["ensemble"]["accuracy"]
    )


def test_means_of_probabilities_and_of_numbers():
    import keras

    rng = make_rng(1)
    logits = rng.normal(0, 3, (2, 4, 5)).astype("float32")  # of two tasks
    outputs = [{"logits": one} for one in logits]

    def mean(loss):
        return np.asarray(mean_outputs(outputs, {"logits": loss})["logits"], "float64")

    counts_of_labels = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(np.exp(mean(counts_of_labels)), softmax.mean(axis=0), atol=1e-6)
    sigmoid = 1 / (1 + np.exp(-logits.astype("float64")))
    averaged = 1 / (1 + np.exp(-mean(keras.losses.BinaryCrossentropy(from_logits=True))))
    np.testing.assert_allclose(averaged, sigmoid.mean(axis=0), atol=1e-6)
    averaged = mean(keras.losses.MeanSquaredError())
    np.testing.assert_allclose(averaged, logits.mean(axis=0), atol=1e-6)


def test_a_crf_has_no_ensemble(given, tmp_path):
    words = tmp_path / "words.conll"
    words.write_text("good B-X\nfilm I-X\n\nbad O\nplot B-X\n\n" * 4)
    asked = {"task": "tagger", "crf": True, "num_seeds": 2, "ensemble": True}
    files = {"train": str(words), "dev": str(words)}
    with raises_input_error("a CRF gives them for whole sequences only. Leave `crf`"):
        finetune(**{**given, **files}, **asked, output=tmp_path / "run")


# A head with a hidden layer.


def test_a_hidden_layer_is_between_the_pooled_vector_and_the_logits():
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer, hidden_dropout_prob=0.0)
    task = Classifier(encoder, tokenizer, labels=["a", "b"], pooling="mean", hidden_layers=2)
    ids = make_rng(0).integers(5, 30, (3, 6)).astype("int32")
    batch = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)}
    x = np.asarray(encoder(batch)["sequence_output"], "float64").mean(axis=1)
    for layer in task.hidden.layers:
        x = np.maximum(x @ np.asarray(layer.kernel, "float64") + np.asarray(layer.bias), 0)
    x = x @ np.asarray(task.classifier.kernel, "float64") + np.asarray(task.classifier.bias)
    np.testing.assert_allclose(np.asarray(task(batch)["logits"]), x, atol=1e-5)
    assert task.architecture == "BertModel"  # BertForSequenceClassification has no such layer
