"""`keras-bert` alone: the pipeline from text to a served model, and the next step."""

import contextlib
import shlex
from pathlib import Path
from typing import NamedTuple

from keras_bert.base.errors import InputError
from keras_bert.base.files import parse_json, read_small
from keras_bert.cli.command import as_run_here
from keras_bert.cli.data_commands import new_encoder

# The current folder may hold anything: at most so many names are looked at.
_MOST = 2_000


class Step(NamedTuple):
    """A step of the pipeline: its command, what it gives, its arguments, a name for its output.

    `{…}` in the arguments is the output of an earlier step, or the start of pre-training.
    """

    command: str
    gives: str
    arguments: str
    output: str = ""


PIPELINE = (
    Step(
        "vocab",
        "a vocabulary",
        "--input 'corpus/*.txt' --output vocab.txt --size 16000",
        output="vocab.txt",
    ),
    Step(
        "pretraining-data",
        "examples to pre-train on",
        "--input 'corpus/*.txt' --vocab {vocab} --output data",
        output="data",
    ),
    Step(
        "pretrain",
        "a pre-trained encoder",
        "--data {pretraining-data} {start} --steps 10000 --output runs/pretrained",
        output="runs/pretrained",
    ),
    Step(
        "finetune",
        "a model of your task",
        "--task classifier --model {pretrain} --train train.tsv --dev dev.tsv --output runs/mine",
        output="runs/mine",
    ),
    Step(
        "export", "a SavedModel", "--model {finetune} --output savedmodels/mine", "savedmodels/mine"
    ),
    Step("serve", "a server", "--models {export}"),
)


def show():
    print("From raw text to a served language model:\n")
    outputs, unfinished = look_around(Path("."))
    for step in PIPELINE:
        output = outputs.get(step.command)
        mark, path = ("✓", f"   {output}") if output else (" ", "")
        print(f"  {mark} keras-bert {step.command:<17} {step.gives:<24}{path}")
    if outputs or unfinished:
        print(f"\nNext: {as_run_here(next_step(outputs, unfinished))}")
    else:
        print("\nStart with a published model and your own CSV:")
        finetune = (
            "  keras-bert finetune --model hf://google-bert/bert-base-uncased --train train.csv "
            "--dev dev.csv --output runs/mine"
        )
        print(as_run_here(finetune))
        print("Pre-train on your own text:")
        print(f"  {as_run_here(next_step(outputs, unfinished))}")
        print("Run every step on sample data:")
        print(as_run_here("  keras-bert quickstart --output quickstart"))
    print(as_run_here("All commands: keras-bert --help. Check the installation: keras-bert doctor"))


def next_step(outputs, unfinished):
    """The next step, as a command if it is one; the arguments are what `look_around` returns."""
    if unfinished:
        path, command = unfinished[-1]
        if command == "pretraining-data":
            return f"run keras-bert {command} for {path} again, it was interrupted"
        run = shlex.quote(f"{path}/run.json")
        return f"keras-bert {command} --settings {run} --output {shlex.quote(path)} (which resumes)"
    done = [number for number, step in enumerate(PIPELINE) if step.command in outputs]
    step = PIPELINE[done[-1] + 1 if done else 0]
    names = {step.command: step.output for step in PIPELINE} | outputs
    names = {command: shlex.quote(path) for command, path in names.items()}
    names["start"] = start_of_pretraining(outputs.get("pretraining-data"))
    return f"keras-bert {step.command} {step.arguments.format(**names)}"


def start_of_pretraining(data):
    """The flags that start pre-training on a data folder, or None, from random weights."""
    from keras_bert.records.folder import CARD, DatasetCard
    from keras_bert.text.vocabulary_files import load_vocabulary

    flags = mini = "--architecture mini"
    if data is not None:
        with contextlib.suppress(InputError, OSError):
            card = DatasetCard.parse(Path(data, CARD).read_bytes(), CARD)
            flags = new_encoder(card, load_vocabulary(data), architecture="mini")
    return f"{mini} --learning-rate 1e-3" if flags == mini else flags


def look_around(folder):
    """-> ({command: path of its newest output}, [(path of an unfinished run, command)]).

    Two folders deep: `vocab.txt`, `data/`, `runs/NAME/`, `savedmodels/NAME/`; the newest last.
    """
    outputs, unfinished = {}, []
    for path in _by_age(folder):
        command, is_finished = _writer_of(path)
        if command is None:
            continue
        name = str(path.relative_to(folder))
        if is_finished:
            outputs["finetune" if command == "sweep" else command] = name
        else:
            unfinished.append((name, command))
    return outputs, unfinished


def _by_age(folder):
    """The contents of a folder and of its folders, except hidden ones; the oldest first."""
    paths = []
    for path in [folder, *_visible(folder)]:
        if path.is_dir():
            paths += _visible(path)
    return sorted(paths[:_MOST], key=lambda path: (_time(path), path))


def _visible(folder):
    try:
        return [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    except OSError:  # no permission
        return []


def _time(path):
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _writer_of(path):
    """-> (the command that wrote this, whether it has finished); (None, False) if none did."""
    if path.name == "vocab.txt" and path.is_file():
        # The vocabulary of a model or of a data folder is a part of it.
        wholes = ("config.json", "dataset_card.json")
        is_part = any((path.parent / name).exists() for name in wholes)
        return (None, False) if is_part else ("vocab", True)
    if not path.is_dir():
        return None, False
    if (path / "dataset_card.json").is_file():
        return "pretraining-data", (path / "COMPLETED").exists()
    if (path / "run.json").is_file():
        return _command_of(path / "run.json"), (path / "metrics.json").exists()
    if any(p.name.isdigit() and (p / "saved_model.pb").exists() for p in _visible(path)):
        return "export", True
    learned = ("merges.txt", "tokenizer.json")  # byte-pair encoding, unigram
    if not (path / "config.json").exists() and any((path / name).is_file() for name in learned):
        return "vocab", True
    return None, False


def _command_of(path):
    """The command of a run.json; None if the file is not of a run."""
    try:
        run = parse_json(read_small(path))
    except (OSError, ValueError, InputError):
        return None
    command = run.get("command") if isinstance(run, dict) else None
    return command if command in ("pretrain", "finetune", "sweep") else None
