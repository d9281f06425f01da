"""The whole line, very small, as a person runs it: in a process of its own, by the command."""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from keras_bert.base.ownership import files_below, held_names
from keras_bert.cli.main import main
from keras_bert.inference.evaluate import evaluate
from keras_bert.samples.quickstart import (
    _NAMES,
    SENTENCES,
    QuickstartSizes,
    _is_written,
    quickstart,
)

REPOSITORY = Path(__file__).resolve().parent.parent
SIZES = {
    "packages": [],
    "vocabulary": 400,
    "max_length": 32,
    "steps": 4,
    "batch_size": 8,
    "tagged": [50],
    "tagger_steps": 1,
    "epochs": 1,
    "finetune_batch_size": 64,
}
# The command with other sizes, for which it has no flags, and with graphs as the tests have them.
CODE = """
import json, sys
from keras_bert.samples import quickstart
from keras_bert.cli.main import main
sizes, as_written = json.loads(sys.argv[1])
Sizes = quickstart.QuickstartSizes

def make_sizes():
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": as_written})
    return Sizes(**sizes)

quickstart.QuickstartSizes = make_sizes
sys.exit(main(["quickstart", *sys.argv[2:]]))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory, _graphs_as_written):
    """A finished quickstart: (output folder, what it printed, what went to standard error)."""
    output = tmp_path_factory.mktemp("quickstart") / "out"
    given = json.dumps([SIZES, _graphs_as_written])
    done = subprocess.run(
        [sys.executable, "-c", CODE, given, "--output", str(output), "--seed", "3"],
        cwd=REPOSITORY,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return output, done.stdout, done.stderr


def test_everything_is_left_in_the_output_folder(run):
    output, _, _ = run
    for name in (
        "text/manual/lambda.txt",
        "messages/test.tsv",
        "tags/test.conll",
        "vocab.txt",
        "pretraining-data/COMPLETED",
        "pretrained/model/model.safetensors",
        "taggers/50-random/model/model.safetensors",
        "taggers/50-pretrained/model/model.safetensors",
        "spam/model/model.safetensors",
        "savedmodels/spam/1/saved_model.pb",
        "ask.py",
        "results.json",
    ):
        assert (output / name).is_file(), name
    assert len((output / "vocab.txt").read_text(encoding="utf-8").splitlines()) == 400
    labelled = (output / "messages" / "train.tsv").read_text(encoding="utf-8").splitlines()[1:]
    unlabelled = (output / "text" / "messages.txt").read_text(encoding="utf-8").splitlines()
    assert [row.split("\t")[0] for row in labelled] == [line for line in unlabelled if line]
    tagged = [
        (output / "tags" / name).read_text("utf-8") for name in ("train.conll", "train-50.conll")
    ]
    assert tagged[0].split("\n\n")[:50] == tagged[1].removesuffix("\n").split("\n\n")


def test_every_file_that_it_leaves_is_known_to_force(run):
    output, _, _ = run
    assert {*held_names(output)} <= {*_NAMES}
    left = [path.relative_to(output).as_posix() for path in files_below(output, _NAMES)]
    assert len(left) > 100 and [path for path in left if not _is_written(path)] == []


def test_the_results_are_those_of_the_single_steps(run):
    output, _, _ = run
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    metrics = json.loads((output / "pretrained" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["steps"] == 4
    assert results["masked_lm"]["start"] == metrics["eval_at_start"]["masked_lm_loss"]
    assert results["masked_lm"]["end"] == metrics["eval"]["masked_lm_loss"]
    card = json.loads((output / "pretraining-data" / "dataset_card.json").read_text("utf-8"))
    assert results["masked_lm"]["unigram_entropy"] == card["unigram_entropy"]
    assert results["spam"]["examples"] == 210
    (tags,) = results["tags"]
    assert (tags["sentences"], tags["words"]) == (50, 1255)
    assert results["seed"] == 3
    assert results["total_seconds"] >= sum(results["seconds"].values())
    for run, start in (("taggers/50-pretrained", "pretrained"), ("taggers/50-random", "random")):
        settings = json.loads((output / run / "run.json").read_text(encoding="utf-8"))["settings"]
        assert (settings["model"] is None) == (start == "random")
        measured = evaluate(model=output / run, data=output / "tags" / "test.conll")
        assert measured["accuracy"] == tags[start]


def test_it_prints_steps_commands_and_the_table(run):
    output, printed, _ = run
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    for command in ("vocab", "pretraining-data", "pretrain", "finetune", "evaluate", "export"):
        assert f"$ keras-bert {command} " in printed
    loss, (tags,), spam = results["masked_lm"], results["tags"], results["spam"]
    for metric in (
        *(f"{loss[name]:.2f}" for name in ("start", "end", "unigram_entropy")),
        *(f"{100 * tags[name]:.1f} %" for name in ("pretrained", "random")),
        f"{100 * spam['accuracy']:.1f} %",
    ):
        assert re.search(rf"│\s+{re.escape(metric)} │", printed), metric
    for sentence in SENTENCES:
        assert re.search(rf"│ … {sentence} +│ +(spam|ham) ", printed), sentence


def test_the_libraries_are_kept_out_of_sight(run):
    _, printed, errors = run
    for noise in ("oneDNN", "cuda", "absl", "WARNING", "Warning", "apache_beam"):
        assert noise not in printed + errors


def test_the_commands_that_it_prints_are_valid(run):
    # The printed lines, parsed by the real parser: a renamed flag would break them.
    import shlex

    from keras_bert.cli.main import parse

    _, printed, _ = run
    commands = re.findall(r"^ +\$ keras-bert (.+)$", printed, re.MULTILINE)
    assert len(commands) == 10
    for command in commands:
        assert parse(shlex.split(command)).beam_options == []


def test_the_saved_model_answers_without_keras_bert(run, monkeypatch, capsys):
    """The quickstart asked it in a process of its own; here an import of ours would fail."""
    output, _, _ = run
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    for name in ("keras_bert", "data_gen"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(sys, "argv", [str(output / "ask.py"), results["savedmodel"], *SENTENCES])
    runpy.run_path(sys.argv[0], run_name="__main__")
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["text"] for answer in answers] == list(SENTENCES)
    for answer, before in zip(answers, results["answers"], strict=True):
        assert answer["label"] == before["label"]
        assert answer["score"] == pytest.approx(before["score"], abs=1e-5)


def test_the_same_again_is_finished_and_another_rejected_unless_forced(run, capsys):
    output, _, _ = run
    before = (output / "results.json").read_bytes()
    told = []
    assert quickstart(
        output, seed=3, sizes=QuickstartSizes(**SIZES), report=told.append
    ) == json.loads(before)
    assert told == [f"The quickstart in {output} is already finished; these are its results."]
    assert main(["quickstart", "--output", str(output)]) == 2
    message = capsys.readouterr().err
    assert "quickstart already" in message and "--force" in message
    assert message.count("\n") == 1
    assert (output / "results.json").read_bytes() == before


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_folder_of_other_things_is_never_touched(tmp_path, capsys, force):
    (tmp_path / "settings.json").write_text('{"colour": "blue"}')
    (tmp_path / "text").mkdir()
    assert main(["quickstart", "--output", str(tmp_path), *force]) == 2
    assert "holds something else" in capsys.readouterr().err
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["settings.json", "text"]


def test_forcing_deletes_only_what_a_quickstart_wrote(tmp_path, monkeypatch):
    (tmp_path / "settings.json").write_text('{"command": "quickstart"}')
    (tmp_path / "results.json").write_text("{}")
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "savedmodels" / "spam" / "1").mkdir(parents=True)

    def stop(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr("keras_bert.samples.quickstart.write_manual", stop)
    with pytest.raises(
        KeyboardInterrupt, match="Interrupted after 0 steps .* Run the same command again to resume"
    ):
        quickstart(tmp_path, force=True)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["mine.txt", "settings.json"]
    assert json.loads((tmp_path / "settings.json").read_text())["steps"] == QuickstartSizes().steps
