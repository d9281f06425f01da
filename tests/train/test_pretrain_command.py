"""The command: the same settings as the call, settings from a file, bad input in one sentence."""

import inspect
import json

import pytest

import keras_bert.train.pretrain as module
from keras_bert.cli import main
from keras_bert.train.run_folder import RunFolder

METRICS = {
    "steps": 10,
    "parameters": 1234567,
    "seconds": 90.0,
    "unigram_entropy": 6.5,
    "eval_at_start": {"masked_lm_loss": 9.7},
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


def test_every_setting_of_the_call_is_a_flag_with_the_same_default(called):
    assert main.main(["pretrain", "--data", "d", "--vocab", "v", "--output", "o", "--steps=7"]) == 0
    given = {"data": "d", "vocab": "v", "output": "o", "steps": 7}
    parameters = inspect.signature(inspect.unwrap(ORIGINAL)).parameters
    assert called == {
        name: given[name] if name in given else parameter.default
        for name, parameter in parameters.items()
    }


ORIGINAL = module.pretrain


def test_it_prints_the_loss_beside_the_unigram_entropy_and_what_to_do_next(called, capsys):
    main.main(["pretrain", "--data", "d", "--vocab", "v", "--output", "runs/a", "--steps", "7"])
    printed = capsys.readouterr().out
    assert "9.700 at the start, 5.250 at the end (from word frequencies alone: 6.500)" in printed
    assert printed.splitlines()[-1].startswith("Next: keras-bert finetune")
    assert "--model runs/a/model" in printed


def test_it_prints_no_next_sentences_where_there_were_none(called, capsys, monkeypatch):
    figures = {"masked_lm_loss": 5.25, "masked_lm_accuracy": 0.2}
    monkeypatch.setitem(METRICS, "eval", figures)
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "o"], "pretrain needs --data, or --settings with the run.json of a run"),
        (["--output", "o", "--settings", "nowhere.json"], "There is no settings file nowhere.json"),
        (["--output", "o", "--steps", "0"], "argument --steps: invalid positive whole number"),
        (
            ["--output", "o", "--steps", "1", "--vocab", "v", "--data", "nowhere"],
            "there is no data folder nowhere",
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


def test_settings_of_a_later_version_are_refused_by_name(capsys, tmp_path):
    RunFolder(tmp_path, command="pretrain", settings={"layers_dropped": 2}, inputs={})
    with pytest.raises(SystemExit) as error:
        main.main(["pretrain", "--settings", str(tmp_path / "run.json"), "--output", "o"])
    assert error.value.code == 2
    assert "has the setting layers_dropped, which pretrain does not know" in capsys.readouterr().err
    assert json.loads((tmp_path / "run.json").read_text())["command"] == "pretrain"
