"""`keras-bert` by itself: the way from text to a served model, and the next step in this folder."""

import dataclasses
import shlex
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.files import parse_json, read_small

# A folder of somebody's may hold anything: so many names are looked at, and no more.
_MOST = 2_000


@dataclasses.dataclass(frozen=True)
class Step:
    """A step of the way: its command, what a newcomer gets of it, and how it is given."""

    command: str
    gives: str
    given: str


# `{…}` is what was found of a former step, or how its output is called in the README.
WAY = (
    Step("vocab", "a vocabulary", "--input 'corpus/*.txt' --output vocab.txt --size 16000"),
    Step(
        "pretraining-data",
        "rows to pre-train on",
        "--input 'corpus/*.txt' --vocab {vocab} --output data",
    ),
    Step(
        "pretrain",
        "a pre-trained encoder",
        "--data {pretraining-data} --vocab {vocab} --architecture mini --steps 10000 "
        "--learning-rate 1e-3 --output runs/pretrained",
    ),
    Step(
        "finetune",
        "a model of your task",
        "--task classifier --model {pretrain} --train train.tsv --dev dev.tsv --output runs/mine",
    ),
    Step("export", "a SavedModel", "--model {finetune} --output savedmodels/mine"),
    Step("serve", "its answers, served", "--models {export}"),  # which writes nothing
)

_NAMES = {
    "vocab": "vocab.txt",
    "pretraining-data": "data",
    "pretrain": "runs/pretrained",
    "finetune": "runs/mine",
    "export": "savedmodels/mine",
}


def run(arguments):
    print("From raw text to a served language model:\n")
    found, unfinished = look_around(Path("."))
    for step in WAY:
        there = found.get(step.command)
        held = f"   {there}" if there else ""
        print(f"  {'✓' if there else ' '} keras-bert {step.command:<17} {step.gives:<22}{held}")
    print()
    print(f"Next: {next_step(found, unfinished)}")
    if not found:
        print("Or see the whole way on text that comes with it: keras-bert quickstart --output DIR")
        print(
            "Or begin with a model that is there: keras-bert finetune --model hf://owner/name "
            "--train train.tsv --dev dev.tsv --output runs/mine"
        )
    print("All commands: keras-bert --help. What is installed, and what is not: keras-bert doctor")


def next_step(found, unfinished):
    """What to do next, as a command where it is one.

    Args:
        found: command -> the path of what it has written here.
        unfinished: the paths of runs that were stopped, the newest last.
    """
    if unfinished:
        path, command = unfinished[-1]
        if command == "pretraining-data":
            return f"the keras-bert {command} that was to write {path} once more"
        run = shlex.quote(f"{path}/run.json")
        return f"keras-bert {command} --settings {run} --output {shlex.quote(path)} (which goes on)"
    done = [number for number, step in enumerate(WAY) if step.command in found]
    step = WAY[done[-1] + 1 if done else 0]
    names = {name: shlex.quote(path) for name, path in (_NAMES | found).items()}
    return f"keras-bert {step.command} {step.given.format(**names)}"


def look_around(folder):
    """-> (command -> path of its newest output below `folder`, unfinished runs: (path, command)).

    Two folders deep: `vocab.txt`, `data/`, `runs/NAME/`, `savedmodels/NAME/`.
    """
    found, unfinished = {}, []
    for path in _by_age(folder):
        command, finished = _made_by(path)
        if command is None:
            continue
        name = str(path.relative_to(folder))
        if finished:
            found["finetune" if command == "sweep" else command] = name
        else:
            unfinished.append((name, command))
    return found, unfinished


def _by_age(folder):
    """What lies in a folder and in its folders, but for what is hidden; the oldest first."""
    paths = []
    for path in [folder, *_visible(folder)]:
        if path.is_dir():
            paths += _visible(path)
    return sorted(paths[:_MOST], key=lambda path: (_time(path), path))


def _visible(folder):
    try:
        return [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    except OSError:  # not ours to look into
        return []


def _time(path):
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _made_by(path):
    """-> (the command that wrote this, whether it has finished); (None, False) where none did."""
    if path.name == "vocab.txt" and path.is_file():
        # That of a model, or of a data folder, is a part of it.
        part_of = ("config.json", "dataset_card.json")
        is_part = any((path.parent / name).exists() for name in part_of)
        return (None, False) if is_part else ("vocab", True)
    if not path.is_dir():
        return None, False
    if (path / "dataset_card.json").is_file():
        return "pretraining-data", (path / "COMPLETED").exists()
    if (path / "run.json").is_file():
        command = _command_of(path / "run.json")
        return command, (path / "metrics.json").exists()
    if any(_is_version(version) for version in _visible(path)):
        return "export", True
    if (path / "merges.txt").is_file() and not (path / "config.json").exists():
        return "vocab", True
    return None, False


def _is_version(path):
    return path.name.isdigit() and (path / "saved_model.pb").exists()


def _command_of(path):
    """The command of a run.json; None where the file is no such."""
    try:
        said = parse_json(read_small(path))
    except (OSError, ValueError, InputError):
        return None
    command = said.get("command") if isinstance(said, dict) else None
    return command if command in ("pretrain", "finetune", "sweep") else None
