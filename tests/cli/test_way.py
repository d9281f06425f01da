"""`keras-bert` by itself, its doctor and its completion."""

import configparser
import json
import os
import shlex
import subprocess
from pathlib import Path

import keras
import pytest
from packaging.requirements import Requirement

from keras_bert.cli import diagnosis, way
from keras_bert.cli.completion import SHELLS, completion
from keras_bert.cli.main import COMMANDS, main, parse

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def said_in(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main([]) == 0
    return capsys.readouterr().out


def next_in(folder, monkeypatch, capsys):
    """The command that is named as the next one, parsed as the shell would."""
    said = said_in(folder, monkeypatch, capsys)
    (line,) = [line for line in said.splitlines() if line.startswith("Next: ")]
    return line.removeprefix("Next: ")


def make(path, text="{}"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_each_step_leads_to_the_next_one(tmp_path, monkeypatch, capsys):
    assert next_in(tmp_path, monkeypatch, capsys).startswith("keras-bert vocab --input")
    make(tmp_path / "words" / "vocab.txt")
    said = next_in(tmp_path, monkeypatch, capsys)
    assert said.startswith("keras-bert pretraining-data") and "--vocab words/vocab.txt" in said
    make(tmp_path / "rows" / "dataset_card.json")
    make(tmp_path / "rows" / "vocab.txt")  # of these rows: no other one
    said = next_in(tmp_path, monkeypatch, capsys)
    assert said == "the keras-bert pretraining-data that was to write rows once more"
    make(tmp_path / "rows" / "COMPLETED")
    assert "pretrain --data rows" in next_in(tmp_path, monkeypatch, capsys)
    make(tmp_path / "runs" / "a" / "run.json", json.dumps({"command": "pretrain"}))
    said = next_in(tmp_path, monkeypatch, capsys)
    assert said.startswith("keras-bert pretrain --settings runs/a/run.json --output runs/a")
    make(tmp_path / "runs" / "a" / "metrics.json")
    assert "--model runs/a " in next_in(tmp_path, monkeypatch, capsys)
    make(tmp_path / "runs" / "b" / "run.json", json.dumps({"command": "sweep"}))
    make(tmp_path / "runs" / "b" / "metrics.json")
    assert "export --model runs/b" in next_in(tmp_path, monkeypatch, capsys)
    make(tmp_path / "savedmodels" / "b" / "3" / "saved_model.pb")
    assert "keras-bert serve --models savedmodels/b" in next_in(tmp_path, monkeypatch, capsys)


def test_every_command_of_the_way_is_one(monkeypatch, tmp_path):
    for step in way.WAY:
        line = step.given.format(**way._NAMES).replace("'", "")
        assert parse([step.command, *line.split()]).command == step.command
    assert {step.command for step in way.WAY} <= set(COMMANDS)


def test_what_it_cannot_read_is_passed_over(tmp_path, monkeypatch, capsys):
    make(tmp_path / "runs" / "a" / "run.json", "[" * 10_000)
    make(tmp_path / "b" / "run.json", '{"command": ["x"]}')
    make(tmp_path / "model" / "vocab.txt")
    make(tmp_path / "model" / "config.json")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert next_in(tmp_path, monkeypatch, capsys).startswith("keras-bert vocab")


def test_the_doctor_knows_every_extra_and_says_how_to_get_it(monkeypatch, capsys):
    setup = configparser.ConfigParser()
    setup.read(REPOSITORY / "setup.cfg")
    extras = set(setup["options.extras_require"]) - {"test", "benchmarks"}
    assert set(diagnosis.EXTRAS) == extras
    needed = [("tensorflow>=2.21,<2.22", None), ("huggingface_hub>=2.4", "hub")]
    needed = [(Requirement(text), extra) for text, extra in needed]
    monkeypatch.setattr(diagnosis, "_requirements", lambda: needed)
    monkeypatch.setattr(diagnosis, "_version", lambda name: None if "hub" in name else "1.0")
    monkeypatch.setattr(diagnosis, "_devices", lambda problems: [("tensorflow", "a device")])
    with pytest.raises(SystemExit) as stopped:  # nothing goes with a TensorFlow 1.0
        main(["doctor"])
    said = capsys.readouterr().out
    assert stopped.value.code == 1
    assert "(pip install 'keras-bert-toolkit[hub]')" in said
    assert "tensorflow is 1.0, and <2.22,>=2.21 is needed: pip install 'tensorflow" in said
    assert "has the same import name: pip uninstall keras-bert" in said


def test_the_doctor_says_what_keras_takes_and_what_cannot_be_loaded(monkeypatch):
    def broken():
        raise ValueError("no such library")

    monkeypatch.setattr(diagnosis, "_of_tensorflow", lambda: "a device")
    monkeypatch.setattr(diagnosis, "_of_jax", broken)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    problems = []
    said = dict(diagnosis._devices(problems))
    assert said["Keras's backend"] == f"{keras.config.backend()}, as keras.json says"
    assert said["tensorflow"] == "a device" and said["jax"] == "cannot be loaded"
    assert problems == ["jax cannot be loaded: ValueError: no such library"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_is_told_every_command(shell):
    script = completion(shell)
    assert all(command in script for command in COMMANDS)


def test_bash_completes_a_flag_and_a_file(tmp_path):
    (tmp_path / "texts.txt").touch()
    (tmp_path / "script").write_text(completion("bash"))
    for words, wanted in [
        (("keras-bert", "pretr"), {"pretrain", "pretraining-data"}),
        (("keras-bert", "export", "--mod"), {"--model"}),
        (("keras-bert", "export", "--model", "tex"), {"texts.txt"}),
    ]:
        ask = (
            f"source {tmp_path}/script; COMP_WORDS=({' '.join(words)}); "
            f"COMP_CWORD={len(words) - 1}; _shtab_keras_bert keras-bert '{words[-1]}' "
            f"'{words[-2]}'; echo ${{COMPREPLY[@]}}"
        )
        said = subprocess.run(
            ["bash", "-c", ask], capture_output=True, text=True, cwd=tmp_path, env=os.environ
        )
        assert set(said.stdout.split()) == wanted, said


def test_the_next_step_is_a_command_for_folders_with_spaces_too(tmp_path, monkeypatch, capsys):
    make(tmp_path / "my runs" / "a" / "run.json", json.dumps({"command": "pretrain"}))
    said = next_in(tmp_path, monkeypatch, capsys).removesuffix(" (which goes on)")
    assert shlex.split(said)[2:] == ["--settings", "my runs/a/run.json", "--output", "my runs/a"]
    make(tmp_path / "my runs" / "a" / "metrics.json")
    said = next_in(tmp_path, monkeypatch, capsys)
    assert "my runs/a" in shlex.split(said)
