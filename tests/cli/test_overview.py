"""`keras-bert` alone, `doctor` and `completion`."""

import configparser
import importlib.util
import json
import os
import shlex
import subprocess
from pathlib import Path

import keras
import pytest
from packaging.requirements import Requirement

from keras_bert import diagnosis
from keras_bert.cli import overview
from keras_bert.cli.main import COMMANDS, SHELLS, completion_script, main, parse
from keras_bert.layers.kernels import fused_attention

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def printed_in(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main([]) == 0
    return capsys.readouterr().out


def next_in(folder, monkeypatch, capsys):
    """The next step that is printed."""
    printed = printed_in(folder, monkeypatch, capsys)
    (line,) = [line for line in printed.splitlines() if line.startswith("Next: ")]
    return line.removeprefix("Next: ")


def assert_shows_where_to_start(folder, monkeypatch, capsys):
    """Checks the text in a folder without outputs: commands that parse, the shortest way first."""
    printed = printed_in(folder, monkeypatch, capsys)
    assert "Next: " not in printed
    lines = [
        line.split(maxsplit=1)[1]
        for line in printed.split("server", 1)[1].splitlines()
        if line.startswith("  keras-bert ")
    ]
    commands = [parse(shlex.split(line)).command for line in lines]
    assert commands == ["finetune", "vocab", "quickstart"]


def make(path, text="{}"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_each_step_leads_to_the_next_one(tmp_path, monkeypatch, capsys):
    assert_shows_where_to_start(tmp_path, monkeypatch, capsys)
    make(tmp_path / "words" / "vocab.txt")
    printed = next_in(tmp_path, monkeypatch, capsys)
    assert (
        printed.startswith("keras-bert pretraining-data") and "--vocab words/vocab.txt" in printed
    )
    make(tmp_path / "pieces" / "tokenizer.json")  # of a unigram model
    assert "--vocab pieces " in next_in(tmp_path, monkeypatch, capsys)
    make(tmp_path / "data" / "dataset_card.json")
    make(tmp_path / "data" / "vocab.txt")  # a part of this data folder
    printed = next_in(tmp_path, monkeypatch, capsys)
    assert printed == "run keras-bert pretraining-data for data again, it was interrupted"
    make(tmp_path / "data" / "COMPLETED")
    assert "pretrain --data data" in next_in(tmp_path, monkeypatch, capsys)
    make(tmp_path / "runs" / "a" / "run.json", json.dumps({"command": "pretrain"}))
    printed = next_in(tmp_path, monkeypatch, capsys)
    assert printed.startswith("keras-bert pretrain --settings runs/a/run.json --output runs/a")
    make(tmp_path / "runs" / "a" / "metrics.json")
    assert "--model runs/a " in next_in(tmp_path, monkeypatch, capsys)
    make(tmp_path / "runs" / "b" / "run.json", json.dumps({"command": "sweep"}))
    make(tmp_path / "runs" / "b" / "metrics.json")
    assert "export --model runs/b" in next_in(tmp_path, monkeypatch, capsys)
    make(tmp_path / "savedmodels" / "b" / "3" / "saved_model.pb")
    assert "keras-bert serve --models savedmodels/b" in next_in(tmp_path, monkeypatch, capsys)


def test_every_command_of_the_pipeline_parses():
    names = {step.command: step.output for step in overview.PIPELINE}
    for step in overview.PIPELINE:
        start = overview.start_of_pretraining(None)
        line = step.arguments.format(**names, start=start).replace("'", "")
        assert parse([step.command, *line.split()]).command == step.command
    assert set(names) <= set(COMMANDS)


def test_files_that_cannot_be_read_are_skipped(tmp_path, monkeypatch, capsys):
    make(tmp_path / "runs" / "a" / "run.json", "[" * 10_000)
    make(tmp_path / "b" / "run.json", '{"command": ["x"]}')
    make(tmp_path / "model" / "vocab.txt")
    make(tmp_path / "model" / "config.json")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert_shows_where_to_start(tmp_path, monkeypatch, capsys)


def test_the_doctor_lists_every_extra_and_how_to_install_it(monkeypatch, capsys):
    setup = configparser.ConfigParser()
    setup.read(REPOSITORY / "setup.cfg")
    extras = set(setup["options.extras_require"]) - {"test", "peers", "benchmarks"}
    assert set(diagnosis.EXTRAS) == extras
    needed = [("tensorflow>=2.21,<2.22", None), ("matplotlib>=3.10", "pictures")]
    needed = [(Requirement(text), extra) for text, extra in needed]
    monkeypatch.setattr(diagnosis, "_requirements", lambda: needed)
    monkeypatch.setattr(diagnosis, "_version", lambda name: None if name == "matplotlib" else "1.0")
    monkeypatch.setattr(diagnosis, "_devices", lambda problems: [("tensorflow", "a device")])
    with pytest.raises(SystemExit) as stopped:  # TensorFlow 1.0 is not supported
        main(["doctor"])
    printed = capsys.readouterr().out
    assert stopped.value.code == 1
    assert "(pip install 'keras-bert-toolkit[pictures]', 74 MB)" in printed
    assert "tensorflow is 1.0, and <2.22,>=2.21 is needed: pip install 'tensorflow" in printed
    assert "has the same import name: pip uninstall keras-bert" in printed


def test_the_doctor_says_that_triton_comes_before_tensorflow(monkeypatch):
    find_spec = importlib.util.find_spec
    for spec, notes in ((None, 0), (object(), 1)):
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda n, s=spec: s if n == "triton" else find_spec(n)
        )
        lines = [line for line in diagnosis.diagnose()["notes"] if "import triton" in line]
        assert len(lines) == notes


def test_the_doctor_reports_the_backend_of_keras_and_what_cannot_be_loaded(monkeypatch):
    def broken():
        raise ValueError("no such library")

    monkeypatch.setattr(diagnosis, "_tensorflow_devices", lambda: "a device")
    monkeypatch.setattr(diagnosis, "_jax_devices", broken)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    problems = []
    printed = dict(diagnosis._devices(problems))
    assert printed["Keras backend"] == f"{keras.config.backend()} (from keras.json)"
    assert printed["tensorflow"] == "a device" and printed["jax"] == "cannot be loaded"
    assert problems == ["jax cannot be loaded: ValueError: no such library"]
    assert printed["backend to take"] == "tensorflow: no GPU or TPU is seen"
    assert printed["fused attention"] == "not in use: it needs a GPU that JAX sees"


@pytest.mark.parametrize(
    "tensorflow_devices, jax_kind, said",
    [
        ("CPU:0, GPU:0", "gpu", "KERAS_BACKEND=jax: it has fused attention on a GPU"),
        ("CPU:0", "tpu", "KERAS_BACKEND=jax: TensorFlow's package has no programs for a TPU"),
        ("CPU:0, GPU:0", "cpu", "tensorflow: JAX sees no GPU. pip install 'keras-bert-toolkit[jax"),
        ("CPU:0", None, "tensorflow: no GPU or TPU is seen"),
    ],
)
def test_the_doctor_says_which_backend_to_take(tensorflow_devices, jax_kind, said):
    assert diagnosis.backend_to_take(tensorflow_devices, jax_kind).startswith(said)


def test_the_doctor_says_why_attention_is_not_fused(monkeypatch):
    pytest.importorskip("jax")
    assert "older than Ampere" in diagnosis._fused_attention("gpu")  # a CPU has no capability
    monkeypatch.setattr(fused_attention, "_capability", lambda: 9.0)
    assert "cuDNN" in diagnosis._fused_attention("gpu")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_completion_script_has_every_command(shell):
    script = completion_script(shell)
    assert all(command in script for command in COMMANDS)


def test_bash_completes_a_flag_and_a_file(tmp_path):
    (tmp_path / "texts.txt").touch()
    (tmp_path / "script").write_text(completion_script("bash"))
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
        printed = subprocess.run(
            ["bash", "-c", ask], capture_output=True, text=True, cwd=tmp_path, env=os.environ
        )
        assert set(printed.stdout.split()) == wanted, printed


def test_the_next_step_is_a_command_for_folders_with_spaces_too(tmp_path, monkeypatch, capsys):
    make(tmp_path / "my runs" / "a" / "run.json", json.dumps({"command": "pretrain"}))
    printed = next_in(tmp_path, monkeypatch, capsys).removesuffix(" (which resumes)")
    assert shlex.split(printed)[2:] == ["--settings", "my runs/a/run.json", "--output", "my runs/a"]
    make(tmp_path / "my runs" / "a" / "metrics.json")
    printed = next_in(tmp_path, monkeypatch, capsys)
    assert "my runs/a" in shlex.split(printed)
