"""The commands and calls for pairs and scores, from files to what is handed in."""

import json

import pytest
import tensorflow as tf
from sklearn.metrics import accuracy_score, f1_score

from keras_bert import Regressor, evaluate, finetune, predict
from keras_bert.checkpoints import load_task
from keras_bert.cli.main import main, parse
from keras_bert.cli.task_types import resolve_glue
from keras_bert.training.selection import best_metric_value
from tests.eagerly import eagerly
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

WORDS = {"1": ["same", "equal"], "0": ["other", "unlike"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A vocabulary, an architecture, and a task of GLUE that can be learned."""
    folder = tmp_path_factory.mktemp("glue")
    tokenizer = make_tokenizer(["same", "equal", "other", "unlike", "film", "plot"])
    tokenizer.vocabulary.save(folder / "vocab.txt")
    config = make_encoder(tokenizer, num_hidden_layers=1, initializer_range=0.1).config
    (folder / "config.json").write_text(json.dumps(config.to_dict()))
    rng = make_rng(1)
    (folder / "MRPC").mkdir()
    for name, count in (("train", 64), ("dev", 21), ("test", 5)):
        first = "index" if name == "test" else "Quality"
        lines = [f"{first}\t#1 ID\t#2 ID\t#1 String\t#2 String"]
        for number in range(count):
            label = "10"[number % 3 == 0]
            texts = f"film {rng.choice(['plot', 'film'])}", f'"{rng.choice(WORDS[label])} plot'
            start = number if name == "test" else label
            lines.append("\t".join([str(start), "1", "2", *texts]))
        (folder / "MRPC" / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def arguments(folder):
    return {
        "architecture": folder / "config.json",
        "vocab": folder / "vocab.txt",
        "max_length": 16,
        "batch_size": 8,
        "learning_rate": 5e-3,
        "epochs": 2,
    }


@pytest.fixture(scope="module")
def run(folder, arguments):
    output = folder / "run"
    flags = [part for k, v in arguments.items() for part in (f"--{k.replace('_', '-')}", str(v))]
    command = ["finetune", "--glue", "mrpc", "--glue-dir", str(folder), "--output", str(output)]
    assert main([*command, *flags]) == 0
    return output


@pytest.mark.usefixtures("eager")
def test_a_task_of_glue_by_its_name(run, folder, capsys):
    settings = json.loads((run / "run.json").read_text())["settings"]
    assert (settings["task"], settings["glue"]) == ("pair-classifier", "MRPC")
    assert settings["metric"] == "accuracy_and_f1"
    metrics = json.loads((run / "metrics.json").read_text())
    scores = [entry["eval"]["accuracy_and_f1"] for entry in metrics["history"] if "eval" in entry]
    assert metrics["dev"]["accuracy_and_f1"] == pytest.approx(max(scores), abs=1e-6)
    assert (
        main(["evaluate", "--json", "--model", str(run), "--glue", "MRPC", "--data", str(folder)])
        == 0
    )
    measures = json.loads(capsys.readouterr().out)
    official = measures.pop("glue")
    assert list(official) == ["task", "F1", "Accuracy", "score"]
    assert official["F1"] == measures["f1"] and official["Accuracy"] == measures["accuracy"]
    assert official["score"] == pytest.approx(measures["accuracy_and_f1"])
    assert measures["confusion"] == metrics["dev"]["confusion"]


def test_files_of_glue_are_of_its_kind_without_its_folder():
    arguments = parse(["finetune", "--glue", "sts-b", "--train", "a.tsv", "--dev", "b.tsv"])
    resolve_glue(arguments)
    resolved = vars(arguments)
    assert {name: resolved[name] for name in ("task", "glue", "metric", "train", "dev")} == {
        "task": "regression",
        "glue": "STS-B",
        "metric": "pearson_and_spearman",
        "train": "a.tsv",
        "dev": "b.tsv",
    }


def test_runs_of_a_series_are_compared_by_the_metric_that_was_chosen(run):
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["best_metric"] == "accuracy_and_f1"  # no figure of the class
    assert best_metric_value(metrics) == pytest.approx(metrics["dev"]["accuracy_and_f1"], abs=1e-6)


@pytest.mark.usefixtures("eager")
def test_the_file_to_hand_in(run, folder, tmp_path, capsys):
    command = ["predict", "--model", str(run), "--glue", "MRPC", "--data", str(folder)]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "index\tprediction"
    said = [answer["label"] for answer in predict(model=run, data=folder / "MRPC" / "test.tsv")]
    assert lines[1:] == [f"{number}\t{label}" for number, label in enumerate(said)]
    assert main([*command, "--output", str(tmp_path / "hand in")]) == 0
    written = tmp_path / "hand in" / "MRPC.tsv"
    assert written.read_text().splitlines() == lines
    assert capsys.readouterr().out == f"Wrote {written}\n"
    pair = ["--text-a", "film", "--text-b", "plot", "--output", str(tmp_path)]
    assert main(["predict", "--model", str(run), *pair]) == 2
    assert "--output must be a file NAME.csv" in capsys.readouterr().err


def test_any_number_of_labels_a_text_from_training_to_answers(folder, arguments, tmp_path, capsys):
    """`evaluate` says what scikit-learn makes of the lines that `predict` writes."""
    rng = make_rng(3)
    words = {"alike": "same", "apart": "other", "long": "film"}
    for name, count in (("train", 96), ("dev", 23)):
        lines = ["text\tlabel"]
        for _ in range(count):
            given = [label for label in words if rng.random() < 0.4]
            text = " ".join(["plot", *rng.permutation([words[label] for label in given])])
            lines.append(f"{text}\t{'|'.join(given)}")
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    run, dev = tmp_path / "run", str(tmp_path / "dev.tsv")
    metrics = finetune(
        **{**arguments, "epochs": 4, "learning_rate": 0.01},
        train=tmp_path / "train.tsv",
        dev=dev,
        output=run,
        multi_label=True,
        class_weights="balanced",
        pooling="mean",
    )
    assert metrics["best_metric"] == "micro_f1" and metrics["dev"]["micro_f1"] > 0.75
    with eagerly():
        assert main(["evaluate", "--json", "--model", str(run), "--data", dev]) == 0
    measures = json.loads(capsys.readouterr().out)
    assert measures["labels"] == metrics["dev"]["labels"] and measures["examples"] == 23
    with eagerly():
        assert main(["predict", "--model", str(run), "--data", dev]) == 0
    predictions = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected, said = (
        [[label in answer[name] for label in sorted(words)] for answer in predictions]
        for name in ("expected", "labels")
    )
    for average in ("micro", "macro"):
        their_f1 = f1_score(expected, said, average=average, zero_division=0)
        assert measures[f"{average}_f1"] == pytest.approx(their_f1)
    assert measures["subset_accuracy"] == pytest.approx(accuracy_score(expected, said))


@pytest.mark.usefixtures("eager")
def test_pairs_as_flags(run, capsys):
    pair = ["--text-a", "film", "--text-b", "other plot"]
    assert main(["predict", "--model", str(run), *pair]) == 0
    (answer,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (answer["text_a"], answer["text_b"]) == ("film", "other plot")


def test_bad_input(run, folder, arguments, tmp_path, capsys):
    assert main(["finetune", "--glue-dir", str(folder), "--output", str(tmp_path / "run")]) == 2
    assert "--glue-dir requires --glue" in capsys.readouterr().err
    command = ["finetune", "--glue", "AX", "--glue-dir", str(folder), "--model", str(run)]
    assert main([*command, "--output", str(tmp_path / "run")]) == 2
    assert "GLUE's AX has no training file" in capsys.readouterr().err
    files = [f"--{part}={folder}/MRPC/{part}.tsv" for part in ("train", "dev")]
    command = ["finetune", "--glue", "mrpc", *files, "--output", str(tmp_path / "run")]
    assert main([*command, "--task", "classifier", "--model", str(run)]) == 2
    assert "MRPC is a pair-classifier task, with two texts" in capsys.readouterr().err
    with raises_input_error("as pairs of texts: line 1 has 2 columns"):
        (tmp_path / "texts.tsv").write_text("text\tlabel\na text\tham\nanother\tspam\n")
        evaluate(model=run, data=tmp_path / "texts.tsv")
    with raises_input_error('line 2: unknown label "maybe"..."0", "1"'):
        (tmp_path / "pairs.tsv").write_text(
            "text_a\ttext_b\tlabel\na text\tb c\tmaybe\nanother\tb\tperhaps\n"
        )
        evaluate(model=run, data=tmp_path / "pairs.tsv")
    with raises_input_error(
        "`metric` must be one of micro_f1... with several labels...Received: f1"
    ):
        finetune(
            **arguments,
            train=tmp_path / "t.tsv",
            dev=tmp_path / "t.tsv",
            output=tmp_path / "run",
            multi_label=True,
            metric="f1",
        )
    assert not (tmp_path / "run").exists()


def test_scores_in_any_range_of_a_frozen_encoders_means(folder, arguments, tmp_path):
    """The head alone, which reads the mean of the tokens: nothing is trained twice in the tests."""
    rng = make_rng(2)
    for name, count in (("train", 48), ("dev", 15)):
        lines = ["score\ttext_a\ttext_b\n"]
        for number in range(count):
            label = "10"[number % 3 == 0]
            points = {"1": 900, "0": 400}[label] + rng.integers(0, 50)
            lines.append(f"{points}\tfilm plot\t{rng.choice(WORDS[label])}\n")
        (tmp_path / f"{name}.tsv").write_text("".join(lines) + "\tno score\there\n")
    told = []
    metrics = finetune(
        **{**arguments, "epochs": 3, "learning_rate": 0.02},
        task="regression",
        train=tmp_path / "train.tsv",
        dev=tmp_path / "dev.tsv",
        output=tmp_path / "run",
        freeze_encoder=True,
        pooling="mean",
        report=told.append,
    )
    scores = metrics["history"][-1]["eval"]
    assert scores["loss"] == pytest.approx(scores["mse"] / 256**2, rel=1e-3)  # in units of 256
    notes = [line for line in told if "1 row without a score, left out" in line]
    assert len(notes) == 2
    dev = metrics["dev"]
    # Scores that nothing was learned of are correlated by 0.76 with 15 others once in 2,000 times.
    assert dev["examples"] == 15 and dev["pearson"] > 0.76
    assert type(load_task(tmp_path / "run" / "model")) is Regressor
    with eagerly():
        again = evaluate(model=tmp_path / "run", data=tmp_path / "dev.tsv", show_errors=1)
        predictions = list(predict(model=tmp_path / "run", data=tmp_path / "dev.tsv"))
    (worst,) = again.pop("errors")
    assert worst["error"] > 0 and again["pearson"] == pytest.approx(dev["pearson"])
    assert again["mse"] == pytest.approx(dev["mse"], rel=1e-4)
    assert len(predictions) == 16 and "expected" not in predictions[-1]


def scored(folder, count, *, seed):
    """A file of pairs whose scores are about 400 and 900."""
    rng = make_rng(seed)
    lines = ["score\ttext_a\ttext_b\n"]
    for number in range(count):
        label = "10"[number % 3 == 0]
        points = {"1": 900, "0": 400}[label] + rng.integers(0, 50)
        lines.append(f"{points}\tfilm plot\t{rng.choice(WORDS[label])}\n")
    path = folder / f"{count}.tsv"
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"pooling": "both"}, marks=pytest.mark.slow),
        {"pooling": "mean", "layers": "mix-all"},
        {"pooling": "both", "freeze_encoder": True},
        pytest.param({"pooling": "cls", "layers": "mix-all"}, marks=pytest.mark.slow),
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_scores_are_those_of_the_run_wherever_the_model_goes(options, folder, arguments, tmp_path):
    """The head computes in units of 256; a folder has its weights in the range of the scores."""
    dev = scored(tmp_path, 15, seed=1)
    run = tmp_path / "run"
    train = scored(tmp_path, 24, seed=2)
    with eagerly():
        metrics = finetune(
            **{**arguments, "epochs": 1},
            **options,
            task="regression",
            train=train,
            dev=dev,
            output=run,
        )
    pair = ("film plot", "same")
    load_task(run).save(tmp_path / "again")
    load_task(tmp_path / "again").export(tmp_path / "export")
    with eagerly():
        for path in (run, tmp_path / "again"):
            measures = evaluate(model=path, data=dev)
            assert measures["mse"] == pytest.approx(metrics["dev"]["mse"], rel=1e-4)
        (answer,) = predict(model=run, data=[pair])
    assert 100 < answer["score"] < 1200
    served = tf.saved_model.load(str(tmp_path / "export" / "1")).signatures["serving_default"]
    outputs = served(
        **{k: tf.constant([v]) for k, v in zip(("text_a", "text_b"), pair, strict=True)}
    )
    assert float(outputs["score"][0]) == pytest.approx(answer["score"], rel=1e-4)


def test_a_folder_that_lost_the_scale_of_its_scores_is_rejected(folder, tmp_path):
    """Version 0.1.0 wrote it so; the run's run.json has the scale."""
    tokenizer = make_tokenizer(["same", "film"])
    task = Regressor(make_encoder(tokenizer), tokenizer, pooling="mean", mean=600.0, scale=256.0)
    expected = predict(model=task, data=[("film", "same")])
    task.scale = 1.0
    task.save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    assert config["keras_bert"].pop("scale") == 1.0
    path.write_text(json.dumps(config))
    with raises_input_error("earlier version ... left out the scale of the head"):
        load_task(tmp_path / "model")
    config["keras_bert"]["scale"] = 256
    path.write_text(json.dumps(config))
    (answer,), (wanted,) = predict(model=tmp_path / "model", data=[("film", "same")]), expected
    assert answer["score"] == pytest.approx(wanted["score"], rel=1e-5)
    config["keras_bert"]["scale"] = "256"
    path.write_text(json.dumps(config))
    with raises_input_error("`scale` is '256'. Expected a number above 0"):
        load_task(tmp_path / "model")
