"""Several runs under one output: seeds and sweeps; each is the run that it would be alone."""

import dataclasses
import itertools
import json
import math
import shutil
import signal

import numpy as np
import pytest

import keras_bert.training.finetune as module
from keras_bert.checkpoints import save_folder
from keras_bert.cli.main import main
from keras_bert.inference.evaluate import evaluate
from keras_bert.tasks.training_defaults import training_defaults
from keras_bert.training import frozen
from keras_bert.training.finetune import finetune, sweep
from keras_bert.training.finetuning_settings import finetune_settings
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.series import mean_and_std, run_series
from keras_bert.training.sweep_settings import sweep_settings
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.classification.killed_runs import assert_same_weights


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Reviews whose first word is their label."""
    folder = tmp_path_factory.mktemp("series")
    tokenizer = make_tokenizer(["good", "bad", "film", "plot"])
    save_folder(make_encoder(tokenizer, num_hidden_layers=2), tokenizer, folder / "model")
    rng = make_rng(0)
    for name, count in (("train", 32), ("dev", 23)):
        lines = ["text\tlabel\n"]
        for label in rng.choice(["good", "bad"], count):
            rest = " ".join(rng.choice(["film", "plot"], rng.integers(0, 3)))
            lines.append(f"{label} {rest}\t{label}\n")
        (folder / f"{name}.tsv").write_text("".join(lines))
    return {
        "model": str(folder / "model"),
        "train": str(folder / "train.tsv"),
        "dev": str(folder / "dev.tsv"),
        "batch_size": 16,
        "epochs": 2,
        "freeze_encoder": True,  # a head alone is traced in a moment
        "deterministic": True,
        "seed": 3,
    }


@pytest.fixture(scope="module")
def seeds(given, tmp_path_factory):
    output = tmp_path_factory.mktemp("seeds") / "run"
    told, computed = [], []
    compute = frozen.FrozenExamples

    def note_and_compute(*args, **options):
        computed.append(options)
        return compute(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frozen, "FrozenExamples", note_and_compute)
        metrics = finetune(**given, num_seeds=2, output=output, report=told.append)
    assert len(computed) == 2  # a frozen encoder's outputs on train and dev, for both runs
    return output, metrics, told


def test_seeds_are_repeated_and_the_best_one_s_model_is_kept(seeds, given):
    output, metrics, told = seeds
    assert metrics == json.loads((output / "metrics.json").read_text())
    runs = metrics["runs"]
    assert {name: run["seed"] for name, run in runs.items()} == {
        "seed-3": 3,
        "seed-4": 4,
    }
    accuracies = [run["dev"]["accuracy"] for run in runs.values()]
    assert metrics["mean"]["accuracy"] == pytest.approx(np.mean(accuracies))
    assert metrics["std"]["accuracy"] == pytest.approx(np.std(accuracies, ddof=1))
    best = metrics["kept"]["run"]
    assert best == list(runs)[int(np.argmax([run["metric"] for run in runs.values()]))]
    assert evaluate(model=output, data=given["dev"])["confusion"] == runs[best]["dev"]["confusion"]
    for name in runs:
        left = {path.name for path in (output / "runs" / name).iterdir()}
        assert left == {"logs", "metrics.json", "run.json"}
    assert "Run 2 of 2: seed-4." in told


def test_a_run_of_a_series_is_the_one_that_it_is_alone_also_after_a_stop(
    seeds, given, tmp_path, monkeypatch
):
    output, metrics, _ = seeds
    best = metrics["kept"]["run"]
    alone = finetune(**{**given, "seed": metrics["runs"][best]["seed"]}, output=tmp_path / "alone")
    assert alone["dev"] == metrics["dev"]
    assert_same_weights(output, tmp_path / "alone")

    made = []
    run = module.finetune_on

    def note_and_run(data, settings, report, **options):
        made.append(settings.seed)
        if len(made) == 2:
            raise KeyboardInterrupt
        return run(data, settings, report, **options)

    monkeypatch.setattr(module, "finetune_on", note_and_run)
    with pytest.raises(KeyboardInterrupt, match="Interrupted. .* has 1 finished run. Run"):
        finetune(**given, num_seeds=2, output=tmp_path / "stopped")
    again = finetune(**given, num_seeds=2, output=tmp_path / "stopped")
    assert made == [3, 4, 4]  # the finished one is not repeated
    assert {**again, "seconds": 0, "history": 0, "runs": 0} == {
        **metrics,
        "seconds": 0,
        "history": 0,
        "runs": 0,
    }
    assert_same_weights(output, tmp_path / "stopped")
    made.clear()
    assert finetune(**given, num_seeds=2, output=tmp_path / "stopped") == again and not made


def test_other_settings_are_rejected(seeds, given):
    output, _, _ = seeds
    with raises_input_error("settings: num_seeds 2, now 3. Use the original"):
        finetune(**given, num_seeds=3, output=output)


def test_a_sweep_keeps_the_best_on_dev_and_shows_all(given, tmp_path, capsys):
    output = tmp_path / "run"
    flags = [f"--{name}={given[name]}" for name in ("model", "train", "dev", "seed")]
    tried = ["--learning-rate", "1e-9", "0.05", "--batch-size", "16", "--epochs", "6"]
    tried += ["--metric", "macro_f1"]  # one that Keras's metrics do not give
    command = ["sweep", *flags, "--freeze-encoder", *tried, "--output", str(output)]
    assert main(command) == 0
    told = capsys.readouterr().out
    metrics = json.loads((output / "metrics.json").read_text())
    names = [f"rate-{rate}-batch-16-epochs-6" for rate in ("1e-09", "0.05")]
    assert list(metrics["runs"]) == names
    scores = [run["metric"] for run in metrics["runs"].values()]
    assert scores[0] < max(scores) and metrics["kept"]["run"] == names[np.argmax(scores)]
    measures = evaluate(model=output, data=given["dev"])
    assert measures["macro_f1"] == pytest.approx(max(scores), abs=1e-6)
    (best,) = [line for line in told.splitlines() if " best " in line and "rate" not in line]
    assert "0.05" in best and f"{max(scores):.4f}" in best
    assert f"TensorBoard: tensorboard --logdir {output}/runs\n" in told
    assert told.splitlines()[-1] == f"Next: keras-bert predict --model {output} --data FILE"

    assert main(command) == 0
    assert "finished already" in capsys.readouterr().err


def series_of(scores, given, output, *, report=print):
    """A series of runs whose metrics are given, by their seeds."""

    def one_run(name, settings):
        with RunFolder.of(settings, command="finetune", inputs={}) as run:
            tokenizer = make_tokenizer()
            save_folder(make_encoder(tokenizer, num_hidden_layers=1), tokenizer, run.model)
            record = {"step": 1, "eval": {"accuracy": scores[settings.seed]}}
            best = {"kept": {"step": 1, "epoch": 1}, "best_metric": "accuracy", "history": [record]}
            return run.finish({**best, "dev": {}, "steps": 1, "parameters": 1, "seconds": 1.0})

    settings = finetune_settings("classifier").of({**given, "output": str(output)})
    runs = {f"seed-{n}": dataclasses.replace(settings, seed=n) for n in range(len(scores))}
    options = {"varied": ("seed",), "command": "finetune", "inputs": {}, "report": report}
    return run_series(settings, runs, one_run, **options)


def test_a_run_whose_metric_is_nan_is_not_the_best(given, tmp_path):
    metrics = series_of([math.nan, 0.25, 0.5, math.nan], given, tmp_path / "run")
    assert metrics["kept"]["run"] == "seed-2"
    assert [run["metric"] for run in metrics["runs"].values()] == [None, 0.25, 0.5, None]
    assert metrics == json.loads((tmp_path / "run" / "metrics.json").read_text())


@pytest.mark.usefixtures("interrupts")
def test_a_series_whose_best_model_is_gone_is_not_finished(given, tmp_path):
    def interrupt(line):
        if line.startswith("Run 2"):
            signal.raise_signal(signal.SIGINT)

    output = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        series_of([0.5, 0.25], given, output, report=interrupt)
    shutil.rmtree(output / "runs" / "seed-0" / "model")
    with raises_input_error(f"is missing. To repair it, delete {output}/runs"):
        series_of([0.5, 0.25], given, output)
    shutil.rmtree(output / "runs" / "seed-0")
    assert series_of([0.5, 0.25], given, output)["kept"]["run"] == "seed-0"
    shutil.rmtree(output / "model")
    with raises_input_error("is finished, but the model ... is missing. Restore it"):
        series_of([0.5, 0.25], given, output)


@pytest.mark.parametrize(
    "tried, rates, sizes, epochs",
    [
        ({}, [1e-3, 6e-4, 4e-4], [16, 32], [600, 900, 1200]),
        ({"layers": ["first", "last"]}, [1e-3], [32], [600]),
        ({"layers": ["first", "last"], "batch_size": [4]}, [1e-3], [4], [75]),
        ({"learning_rate": 0.5, "epochs": [1, 2]}, [0.5], [16, 32], [1, 2]),
        ({"model": None, "freeze_encoder": True}, [1e-3, 6e-4, 4e-4], [16, 32], [600, 900, 1200]),
    ],
)
def test_a_sweep_tries_rates_and_epochs_around_the_training_defaults(
    given, tmp_path, monkeypatch, tried, rates, sizes, epochs
):
    if "model" in tried:
        vocab = f"{given['model']}/vocab.txt"
        tried = {**tried, "architecture": "tiny", "vocab": vocab}
    monkeypatch.setattr(module, "run_series", lambda settings, runs, *more, **options: runs)
    files = {name: given[name] for name in ("model", "train", "dev")}
    told = []
    runs = sweep(**{**files, **tried}, output=tmp_path / "run", report=told.append)
    layers = tried.get("layers", ["last"])
    assert [(r.layers, r.learning_rate, r.batch_size, r.epochs) for r in runs.values()] == [
        *itertools.product(layers, rates, sizes, epochs)
    ]
    assert any(line.startswith("Defaults for 32 training ex") for line in told) == (
        "epochs" not in tried
    )


def test_the_default_sweep_of_base_is_the_paper_s():
    defaults = training_defaults(hidden_size=768, is_pretrained=True)
    assert defaults.learning_rates_to_try == [5e-5, 3e-5, 2e-5]
    assert defaults.epochs_to_try(examples=10_000, batch_size=32) == [2, 3, 4]


@pytest.mark.parametrize(
    "tried, message",
    [
        ({"learning_rate": []}, "`learning_rate` is empty. Give at least one value"),
        ({"epochs": [2, 0]}, "`epochs` must be at least 1. Received: 0"),
        ({"batch_size": [16.5]}, "`batch_size` is 16.5. It should be a whole number"),
        ({"epochs": [3, 1], "gradual_unfreezing": True}, "needs `epochs` of 2 or more"),
        ({"task": "poetry"}, "Invalid `task` 'poetry'. Choose from: classifier"),
    ],
)
def test_a_sweep_checks_every_run_before_the_first(tried, message):
    with raises_input_error(message):
        sweep_settings("classifier").of({"train": "a", "dev": "b", "output": "o", **tried})


def test_means_and_deviations_of_metrics_within_metrics():
    runs = [{"f1": 0.5, "strict": {"f1": 0.1}, "n": 3, "best": [1.0]}]
    runs.append({"f1": 0.7, "strict": {"f1": 0.4}, "n": 3, "best": [2.0]})
    means, deviations = mean_and_std(runs)
    assert means == {"f1": pytest.approx(0.6), "strict": {"f1": pytest.approx(0.25)}}
    assert deviations["f1"] == pytest.approx(0.2 / 2**0.5)


def test_rates_that_differ_late_are_runs_of_their_own():
    rates = [5e-5, 5.0000001e-5]
    tried = {"learning_rate": rates, "batch_size": 16, "epochs": 2}
    settings = sweep_settings("classifier").of({"train": "a", "dev": "b", "output": "o", **tried})
    names = [f"rate-{rate}-batch-16-epochs-2" for rate in ("5e-05", "5.0000001e-05")]
    assert list(settings.runs()) == names


def test_standard_input_is_read_once():
    with raises_input_error("`train` and `dev` are both standard input"):
        finetune_settings("classifier").of({"train": "-", "dev": "-", "output": "o"})
