"""The command: the same settings as the call, settings from a file, bad input in one sentence."""

import dataclasses
import inspect
import json
from pathlib import Path

import pytest

import keras_bert.training.pretrain as module
from keras_bert.base.settings import about
from keras_bert.cli import main
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.settings import PretrainSettings

METRICS = {
    "steps": 10,
    "parameters": 1234567,
    "seconds": 90.0,
    "unigram_entropy": 6.5,
    "eval_at_start": {"masked_lm_loss": 9.7},
    "health": {"is_healthy": None, "sentence": "Too early to say (10 steps)."},
    "eval": {"masked_lm_loss": 5.25, "masked_lm_accuracy": 0.2, "next_sentence_accuracy": 0.9},
}


@pytest.fixture()
def called(monkeypatch):
    """The keyword arguments with which the command called `pretrain`."""
    arguments = {}

    def pretrain(**given):
        arguments.update(given)
        return METRICS

    monkeypatch.setattr(module, "pretrain", pretrain)
    return arguments


def test_what_is_given_is_passed_on_and_defaults_stand_in_the_settings(called):
    assert main.main(["pretrain", "--data", "d", "--output", "o", "--steps=7"]) == 0
    assert called.pop("report") is not None
    assert called == {"data": "d", "output": "o", "steps": 7}
    parameters = inspect.signature(ORIGINAL).parameters
    for field in dataclasses.fields(PretrainSettings):
        default = parameters[field.name].default
        assert default == (
            inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
        )
        assert f"{field.name}: {about(field).help.split()[0]}" in ORIGINAL.__doc__


ORIGINAL = module.pretrain


def test_several_values_are_phases_also_from_a_file(called, tmp_path):
    flags = ["--data", "d", "e", "--steps", "7", "8", "--batch-size", "4", "--vocab", "v"]
    assert main.main(["pretrain", *flags, "--output", "o"]) == 0
    assert called.pop("report") is not None
    given = {"data": ["d", "e"], "steps": [7, 8], "batch_size": 4, "vocab": "v", "output": "o"}
    assert called == given
    settings = PretrainSettings.of(given)
    assert [(phase.data, phase.steps, phase.batch_size) for phase in settings.phases] == [
        ("d", 7, 4),
        ("e", 8, 4),
    ]
    recorded = settings.recorded()
    assert recorded["data"] == [str(Path("d").absolute()), str(Path("e").absolute())]
    assert settings.paths() == ["d", "e", "v"]
    RunFolder(tmp_path, command="pretrain", settings=recorded, inputs={})
    file = str(tmp_path / "run.json")
    assert main.main(["pretrain", "--settings", file, "--output", "o"]) == 0
    assert called["data"] == recorded["data"] and called["steps"] == [7, 8]


def test_it_prints_the_loss_beside_the_unigram_entropy_and_what_to_do_next(called, capsys):
    main.main(["pretrain", "--data", "d", "--vocab", "v", "--output", "runs/a", "--steps", "7"])
    printed = capsys.readouterr().out
    assert "9.700 at the start, 5.250 at the end (unigram baseline: 6.500)" in printed
    assert "Too early to say (10 steps).\n" in printed
    assert printed.splitlines()[-1].startswith("Next: keras-bert finetune")
    assert "--model runs/a/model" in printed
    main.main(["pretrain", "--data", "d", "--vocab", "v", "--output", "my runs", "--steps", "7"])
    printed = capsys.readouterr().out
    assert "--logdir 'my runs/logs'\n" in printed and "--model 'my runs/model' " in printed


@pytest.mark.parametrize(
    ("metrics", "step"),
    [
        (
            {"skip_gram_loss": 2.0},
            "nearest --model runs/a/model --word WORD, or keras-bert finetune",
        ),
        ({"causal_lm_loss": 5.0}, "generate --model runs/a/model --prompt"),
        (
            {"causal_lm_loss": 5.0, "masked_lm_loss": 5.0},
            "finetune --task classifier --model runs/",
        ),
    ],
)
def test_what_to_do_next_depends_on_what_was_trained(called, capsys, monkeypatch, metrics, step):
    for name in ("eval", "eval_at_start"):
        monkeypatch.setitem(METRICS, name, metrics)
    main.main(["pretrain", "--data", "d", "--output", "runs/a", "--steps", "7"])
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"Next: keras-bert {step}")


def test_it_prints_no_next_sentences_where_there_were_none(called, capsys, monkeypatch):
    metrics = {"masked_lm_loss": 5.25, "masked_lm_accuracy": 0.2}
    monkeypatch.setitem(METRICS, "eval", metrics)
    main.main(["pretrain", "--data", "d", "--vocab", "v", "--output", "runs/a", "--steps", "7"])
    assert "accuracy at the end: masked tokens 20.0 %\n" in capsys.readouterr().out


def test_settings_come_from_a_file_and_flags_win(called, tmp_path):
    settings = {"data": "d", "vocab": "v", "steps": 70, "seed": 3, "deterministic": True}
    RunFolder(tmp_path, command="pretrain", settings=settings, inputs={})
    file = str(tmp_path / "run.json")
    assert main.main(["pretrain", "--seed", "4", "--settings", file, "--output", "o"]) == 0
    assert {name: called[name] for name in settings} == {**settings, "seed": 4}
    assert main.main(["pretrain", "--settings", file, "--steps", "71", "--output", "o"]) == 0
    assert {name: called[name] for name in settings} == {**settings, "steps": 71}
    # In either order, and also if the flag is what the setting is by itself.
    for flags in (["--seed", "0", "--settings", file], ["--settings", file, "--seed", "0"]):
        assert main.main(["pretrain", *flags, "--output", "o"]) == 0
        assert {name: called[name] for name in settings} == {**settings, "seed": 0}


def test_a_removed_setting_of_an_earlier_file_is_an_error_where_it_changed_something(
    called, tmp_path, capsys
):
    settings = {"data": "d", "vocab": "v", "steps": 70, "bad_records": "error"}
    RunFolder(tmp_path / "a", command="pretrain", settings=settings, inputs={})
    file = str(tmp_path / "a" / "run.json")
    assert main.main(["pretrain", "--settings", file, "--output", "o"]) == 0
    assert called["steps"] == 70 and "bad_records" not in called
    settings["bad_records"] = "skip"
    RunFolder(tmp_path / "b", command="pretrain", settings=settings, inputs={})
    file = str(tmp_path / "b" / "run.json")
    assert main.main(["pretrain", "--settings", file, "--output", "o"]) == 2
    assert "`bad_records` was removed. A damaged shard is an error" in capsys.readouterr().err


def test_a_flag_takes_the_place_of_what_the_file_has_instead_of_it(called, tmp_path, capsys):
    settings = {"data": "d", "vocab": "v", "minutes": 5.0, "batch_tokens": 512, "model": "m"}
    # A run also records what stands in place of none of them.
    defaults = {"steps": None, "batch_size": 32, "architecture": None}
    RunFolder(tmp_path, command="pretrain", settings={**settings, **defaults}, inputs={})
    command = ["pretrain", "--settings", str(tmp_path / "run.json"), "--output", "o"]
    assert main.main(command) == 0
    del called["report"]
    assert called == {**settings, "output": "o"}
    called.clear()
    instead = ["--steps", "7", "--batch-size", "8", "--architecture", "mini"]
    assert main.main([*command, *instead]) == 0
    del called["report"]
    flags = {"steps": 7, "batch_size": 8, "architecture": "mini", "output": "o"}
    assert called == {"data": "d", "vocab": "v", **flags}
    assert main.main([*command, "--steps", "7", "--minutes", "8"]) == 2
    assert "Give one of --steps, --epochs and --minutes" in capsys.readouterr().err
    assert main.main([*command, "--batch-size", "32", "--batch-tokens", "512"]) == 2
    assert "Give either --batch-size (examples per step) or --batch" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "o"], "Missing required arguments: --data."),
        (["--output", "o", "--settings", "nowhere.json"], "There is no settings file nowhere.json"),
        (
            ["--output", "o", "--steps", "0", "--data", "d", "--vocab", "v"],
            "keras-bert: --steps must be at least 1. Received: 0.",
        ),
        (["--steps", "x"], "Argument --steps: 'x' is not a whole number. See keras-bert pretrain"),
        (
            ["--output", "o", "--steps", "1", "--vocab", "v", "--data", "nowhere"],
            "There is no data folder nowhere",
        ),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        code = main.main(["pretrain", *arguments])
    except SystemExit as error:  # argparse's way
        code = error.code
    printed = capsys.readouterr().err
    assert code == 2 and message in printed and "Traceback" not in printed
    assert list(tmp_path.iterdir()) == []


def test_settings_of_a_later_version_are_rejected_by_name(capsys, tmp_path):
    RunFolder(tmp_path, command="pretrain", settings={"layers_dropped": 2}, inputs={})
    code = main.main(["pretrain", "--settings", str(tmp_path / "run.json"), "--output", "o"])
    assert code == 2
    assert "Unknown setting layers_dropped of pretrain in" in capsys.readouterr().err
    assert json.loads((tmp_path / "run.json").read_text())["command"] == "pretrain"
