"""The command line: its messages, exit codes and silence."""

import gzip
import io
import json
import os
import shlex
import subprocess
import sys
import warnings

import pytest

from keras_bert.base.errors import InputWarning
from keras_bert.base.terminal import EscapingStream, drawn_on
from keras_bert.cli import main as cli
from keras_bert.cli.command import console, read_flags


def run(*arguments, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.run([sys.executable, "-m", "keras_bert", *arguments], **options)


def test_bad_input_is_one_sentence_and_exit_code_2(tmp_path):
    result = run(
        "vocab", "--input", str(tmp_path / "none"), "--output", str(tmp_path / "v"), "--size", "9"
    )
    assert result.returncode == 2
    assert result.stdout == ""
    # What TensorFlow and Beam print at import is suppressed.
    assert result.stderr.startswith("keras-bert: ")
    assert result.stderr.count("\n") == 1
    assert str(tmp_path / "none") in result.stderr


def test_a_bug_keeps_its_traceback(monkeypatch):
    def fault(arguments):
        raise ValueError("a bug")

    monkeypatch.setattr(cli.COMMANDS["vocab"], "run", fault)
    with pytest.raises(ValueError, match="a bug"):
        cli.main(["vocab", "--input", "x", "--output", "y", "--size", "9"])


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main([command, "--help"])
    assert stopped.value.code == 0
    assert f"usage: keras-bert {command}" in capsys.readouterr().out


def test_a_settings_file_without_end_is_rejected(capsys):
    assert cli.main(["pretrain", "--settings", "/dev/zero"]) == 2
    assert "There is no settings file /dev/zero" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("first", "last", "its_flag", "other_flag"),
    [
        ("tagger", "classifier", "--threshold", "--crf"),
        ("classifier", "tagger", "--crf", "--fields"),
    ],
)
def test_the_last_task_of_a_command_line_sets_the_flags(first, last, its_flag, other_flag, capsys):
    for given in (["--task", first, f"--task={last}"], [f"--task={first}", "--task", last]):
        with pytest.raises(SystemExit):
            cli.main(["finetune", *given, "--help-all"])
        said = capsys.readouterr().out
        assert its_flag in said and other_flag not in said


def test_an_unknown_flag_is_rejected_where_no_beam_job_could_take_it(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["predict", "--model", "m", "--data", "d", "--direct_num_workers=2"])
    assert stopped.value.code == 2
    assert "--direct_num_workers=2" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["vocab", "pretraining-data"])
@pytest.mark.parametrize(
    "given, named",
    [
        (["--vocab-size", "5"], "--vocab-size"),
        (["--vocab_size=5"], "--vocab_size"),
        (["--workers", "-4"], "--workers"),
    ],
)
def test_an_unknown_flag_of_a_data_job_is_reported_before_missing_ones(
    command, given, named, capsys
):
    assert cli.main([command, *given]) == 2
    assert f"option {named}" in capsys.readouterr().err


def test_the_number_of_beam_workers_is_checked(capsys):
    assert cli.main(["vocab", "--direct_num_workers=-4"]) == 2
    assert "--direct_num_workers is -4. It must be 1 or more" in capsys.readouterr().err


def test_the_error_of_an_unknown_flag_names_flags_that_begin_like_it(tmp_path, capsys):
    (tmp_path / "config.json").write_text('{"keras_bert": {"task": "pair-classifier"}}')
    with pytest.raises(SystemExit) as stop:
        cli.main(["predict", "--model", str(tmp_path), "--text", "a pair?"])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert "Unknown arguments: --text a pair?. Did you mean --text-a or --text-b? See" in said
    with pytest.raises(SystemExit):
        cli.main(["finetune", "--train", "a.csv", "--no-header"])
    said = capsys.readouterr().err
    assert "Unknown argument: --no-header. Write it as --header no. See" in said


_HOSTILE = "\x1b[31m\x07\r\x9b\u202e\u200f\x7f"
_SHOWN = r"\u001b[31m\u0007\u000d\u009b\u202e\u200f\u007f"


def test_control_characters_are_escaped_on_both_outputs(tmp_path):
    result = run("pretrain", "--settings", f"{tmp_path}/{_HOSTILE}")
    assert f"There is no settings file {tmp_path}/{_SHOWN}" in result.stderr
    result = run("predict", f"--{_HOSTILE}")
    assert _SHOWN in result.stderr
    result = subprocess.run(
        [sys.executable, "-c", _PRINTS_LABELS], capture_output=True, check=True, text=True
    )
    assert result.stdout.isascii() and json.loads(result.stdout) == {"label": _HOSTILE}
    assert result.stderr.endswith(f"ValueError: {_SHOWN}\n")


# A command whose result holds a hostile label, and whose traceback does.
_PRINTS_LABELS = f"""
import json
from keras_bert.base.terminal import escape_output
escape_output()
print(json.dumps({{"label": {_HOSTILE!r}}}, ensure_ascii=False))
try:
    raise ValueError({_HOSTILE!r})
except ValueError as error:
    import traceback
    traceback.print_exc()
"""


def test_colours_are_drawn_and_the_text_between_them_escaped(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(sys, "stdout", EscapingStream(written, name="standard output"))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    console().print(f"[b]{_HOSTILE}", style="bold", soft_wrap=True)
    assert written.getvalue() == f"\x1b[1m[b]{_SHOWN}\x1b[0m\n".replace(r"\u0007", "").replace(
        r"\u000d", ""
    )


def test_a_spinner_is_drawn_and_other_text_escaped(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", EscapingStream(written, name="standard error"))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    with console(stderr=True).status("counting"):
        print("\x9b\u202e", file=sys.stderr)
    drawn = written.getvalue()
    assert "\x1b[2K" in drawn and r"\u009b\u202e" in drawn
    assert "\x9b" not in drawn and r"\u001b" not in drawn


def test_a_bar_is_drawn_and_other_text_escaped(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", EscapingStream(written, name="standard error"))
    print("\r", file=sys.stderr)
    print("\r", file=drawn_on(sys.stderr))
    assert written.getvalue() == "\\u000d\n\r\n"


@pytest.mark.parametrize(
    "environment", [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}]
)
def test_input_and_output_are_utf_8_whatever_the_locale_is(environment, tmp_path):
    result = run("pretrain", "--settings", "Köln", env={**os.environ, **environment})
    assert "There is no settings file Köln" in result.stderr


def test_output_that_cannot_be_written_is_one_sentence():
    with open("/dev/full", "w") as full:
        result = run(stdout=full)
    assert result.returncode == 2
    said = "keras-bert: Cannot write to standard output: No space left on device.\n"
    assert result.stderr == said


@pytest.mark.parametrize("words", [["--help"], ["predict", "--help"], ["--version"]])
def test_help_that_cannot_be_written_is_one_sentence(words):
    with open("/dev/full", "w") as full:
        result = run(*words, stdout=full)
    assert result.returncode == 2
    said = "keras-bert: Cannot write to standard output: No space left on device.\n"
    assert result.stderr == said


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_a_reader_that_went_away_is_no_error(words):
    """The case of `keras-bert … | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as pipe:
        result = run(*words, stdout=pipe)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_closed_output_is_an_error_and_not_the_next_file():
    result = run(preexec_fn=lambda: os.close(1), stdout=None)
    assert result.returncode == 2
    assert "standard output is closed" in result.stderr


def test_results_do_not_go_where_errors_would_have_gone():
    result = run("predict", "--nonsense", preexec_fn=lambda: os.close(2))
    assert result.returncode == 2 and result.stdout == ""


def test_bytes_that_are_not_utf_8_are_one_sentence():
    for flag in ("--text", "--data"):
        result = run("predict", "--model", "m", flag, os.fsdecode(b"a\xe9"))
        assert result.returncode == 2
        assert rf"keras-bert: {flag} is 'a\udce9'. It should be UTF-8" in result.stderr


@pytest.mark.parametrize(
    "variable, value, message",
    [
        (
            "KERAS_BACKEND",
            "torch",
            "predict needs tensorflow or jax as the Keras backend. Received: 'torch' from KERAS_",
        ),
        ("KERAS_BACKEND", "nonsense", "Received: 'nonsense' from KERAS_BACKEND."),
        ("PYTHONOPTIMIZE", "2", "cannot be imported without docstrings"),
    ],
)
def test_an_environment_that_libraries_cannot_use_is_one_sentence(variable, value, message):
    result = run("predict", "--model", "m", "--text", "a", env={**os.environ, variable: value})
    assert result.returncode == 2
    assert message in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["doctor"], ["push", "--model", "m", "--to", "a/b"], ["inspect", "f"]]
)
def test_a_backend_that_keras_does_not_have_is_one_sentence(words):
    result = run(*words, env={**os.environ, "KERAS_BACKEND": "nonsense"})
    assert result.returncode == 2 and result.stderr.count("\n") == 1
    assert "Keras has no backend 'nonsense', which KERAS_BACKEND names" in result.stderr
    assert "Expected one of tensorflow, jax, torch, numpy, openvino." in result.stderr


@pytest.mark.parametrize("verbose", [[], ["--verbose"]])
def test_an_unusual_input_is_a_note_of_one_line(verbose, monkeypatch, capsys):
    def warn(settings, arguments):
        warnings.warn("m/config.json: unusual.", InputWarning, stacklevel=2)

    monkeypatch.setattr(cli.COMMANDS["init"], "function", warn)
    assert cli.main(["init", "--output", "a.toml", *verbose]) == 0
    assert capsys.readouterr().err == "Note: m/config.json: unusual.\n"


def test_the_next_step_of_init_reads_the_file(tmp_path, capsys):
    path = tmp_path / "settings.toml"
    assert cli.main(["init", "--output", str(path.with_suffix(".txt"))]) == 2
    assert "Expected a name that ends in .toml" in capsys.readouterr().err
    assert cli.main(["init", "--output", str(path)]) == 0
    written = path.read_text(encoding="utf-8").splitlines()
    assert not [line for line in written if " = " in line and ("\\u" in line or "…" in line)]
    next_step = capsys.readouterr().out.splitlines()[-1].removeprefix("Next: keras-bert ")
    assert cli.main(shlex.split(next_step)) == 2
    assert "There is no model folder FOLDER" in capsys.readouterr().err


def test_memory_that_runs_out_is_one_sentence(monkeypatch, capsys):
    def large(arguments):
        raise MemoryError("Unable to allocate 8.00 TiB")

    monkeypatch.setattr(cli.COMMANDS["vocab"], "run", large)
    assert cli.main(["vocab", "--input", "x", "--output", "y", "--size", "9"]) == 1
    assert "Not enough memory (Unable to allocate 8.00 TiB)" in capsys.readouterr().err


def test_the_memory_of_a_device_that_runs_out_is_one_sentence(monkeypatch, capsys):
    """Training says what fits: tests/training/test_batch_size.py."""
    from keras_bert import programs

    def run(arguments):
        raise RuntimeError("8.00 GiB on GPU 0")

    monkeypatch.setattr(cli.COMMANDS["predict"], "run", run)
    monkeypatch.setattr(programs, "is_out_of_memory", lambda error: "GiB" in str(error))
    assert cli.main(["predict", "--model", "x", "--data", "y"]) == 1
    assert capsys.readouterr().err == (
        "keras-bert: Not enough memory on the device. Free some, or use a smaller batch size, "
        "maximum length or model.\n"
    )
    monkeypatch.setattr(programs, "is_out_of_memory", lambda error: False)
    with pytest.raises(RuntimeError, match="8.00 GiB"):
        cli.main(["predict", "--model", "x", "--data", "y"])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "The text has no other tokens; 500 were requested."),
        (
            ["--min-frequency", "1000000"],
            "No other token occurs 1,000,000 times in the text, and 500 were requested. A lower",
        ),
    ],
)
def test_the_reason_for_a_small_vocabulary_is_reported(flags, message, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("a few words of text\n")
    paths = ["--input", str(tmp_path / "text.txt"), "--output", str(tmp_path / "vocab.txt")]
    options = ["--size", "500", "--direct_num_workers=1"]
    assert cli.main(["vocab", *paths, *options, *flags]) == 0
    assert message in capsys.readouterr().out


def test_a_threshold_without_several_labels_is_rejected(capsys):
    files = ["--model", "m", "--train", "a", "--dev", "b", "--output", "o"]
    assert cli.main(["finetune", *files, "--threshold", "0.7"]) == 2
    assert "--threshold requires --multi-label." in (capsys.readouterr().err)


def test_descriptions_fit_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, parsers = cli.make_parser([])
    lines = [line for parser in parsers.values() for line in parser.format_help().splitlines()]
    # Examples are to be copied, and argparse does not break a list of choices.
    assert [x for x in lines if len(x) > 80 and "keras-bert " not in x and "{" not in x] == []


def huge(path):
    """A compressed file of word vectors whose first line names a million dimensions."""
    with gzip.open(path, "wb") as file:
        file.write(b"999999999999 999999\n" + b"a" * (1 << 20))
    return path


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_the_help_of_a_command_opens_no_broken_model(command, tmp_path, capsys, monkeypatch):
    """Which flags it shows depends on the model, whose errors are for the run of the command."""
    for name, text in {
        "list": '{"keras_bert": {"task": ["tagger"]}}',
        "deep": "[" * 100_000,
        "text": '{"keras_bert": "tagger"}',
        "cut": "{",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(text)
    models = [tmp_path / name for name in ("list", "deep", "text", "cut", "nowhere")]
    for model in [*models, huge(tmp_path / "vectors.gz")]:
        with pytest.raises(SystemExit) as stopped:
            cli.main([command, "--model", str(model), "--help"])
        assert stopped.value.code == 0
        assert "--model" in capsys.readouterr().out

    def no_memory(model):
        raise MemoryError

    monkeypatch.setattr("keras_bert.checkpoints.locations.local_folder", no_memory)
    with pytest.raises(SystemExit) as stopped:
        cli.main([command, "--model", str(tmp_path), "--help"])
    assert stopped.value.code == 0


def test_a_settings_file_of_init_combines_with_the_flags_of_its_task(tmp_path, capsys):
    file = tmp_path / "tagger.toml"
    assert cli.main(["init", "--task", "tagger", "--output", str(file)]) == 0
    arguments = cli.parse(["finetune", "--settings", str(file), "--crf", "--word-column", "w"])
    assert arguments.settings_class.__name__ == "TaggerAndFinetuneSettings"
    assert arguments.crf and arguments.word_column == "w"
    needed = ["--model", "m", "--train", "a", "--dev", "b", "--output", "o"]
    arguments = cli.parse(["finetune", "--crf", "--settings", str(file), *needed])
    assert read_flags(arguments)["task"] == "tagger"
    with pytest.raises(SystemExit):
        cli.main(["finetune", "--settings", str(file), "--help"])
    assert "--crf" in capsys.readouterr().out


def test_only_the_command_that_runs_depends_on_its_arguments(tmp_path):
    (tmp_path / "config.json").write_text('{"keras_bert": {"task": "tagger"}}')
    _, parsers = cli.make_parser(["predict", "--model", str(tmp_path)])
    names = {
        name: parsers[name].get_default("settings_class").names()
        for name in parsers
        if name in ("predict", "evaluate")
    }
    assert "word_column" in names["predict"] and "word_column" not in names["evaluate"]
