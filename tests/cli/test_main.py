"""The command as a user meets it: its messages, exit codes and silence."""

import subprocess
import sys

import pytest

from keras_bert.cli import main as cli


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "keras_bert", *arguments], capture_output=True, text=True
    )


def test_bad_input_is_one_sentence_and_exit_code_2(tmp_path):
    result = run(
        "vocab", "--input", str(tmp_path / "none"), "--output", str(tmp_path / "v"), "--size", "9"
    )
    assert result.returncode == 2
    assert result.stdout == ""
    # What TensorFlow and Beam print at their start is kept away, so this is all there is.
    assert result.stderr.startswith("keras-bert: ")
    assert result.stderr.count("\n") == 1
    assert str(tmp_path / "none") in result.stderr


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch):
    def fault(arguments):
        raise ValueError("a bug")

    monkeypatch.setattr("keras_bert.cli.vocab.run", fault)
    with pytest.raises(ValueError, match="a bug"):
        cli.main(["vocab", "--input", "x", "--output", "y", "--size", "9"])


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main([command, "--help"])
    assert stopped.value.code == 0
    assert f"usage: keras-bert {command}" in capsys.readouterr().out


def test_a_settings_file_without_end_is_none(capsys):
    assert cli.main(["pretrain", "--settings", "/dev/zero"]) == 2
    assert "There is no settings file /dev/zero" in capsys.readouterr().err


def test_an_unknown_flag_is_refused_where_no_beam_job_could_take_it(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["predict", "--model", "m", "--data", "d", "--direct_num_workers=2"])
    assert stopped.value.code == 2
    assert "--direct_num_workers=2" in capsys.readouterr().err


def test_an_unknown_flag_names_those_that_begin_like_it(tmp_path, capsys):
    (tmp_path / "config.json").write_text('{"keras_bert": {"task": "regression"}}')
    with pytest.raises(SystemExit) as stop:
        cli.main(["predict", "--model", str(tmp_path), "--text", "a pair?"])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert "unknown arguments --text a pair? (there is --text-a and --text-b); see" in said
