"""The gains of trained text vectors: MiniLM before and after `keras_bert.finetune`.

    python benchmarks/text_vectors_learned.py --output runs/vectors --seeds 0 1 2
    python benchmarks/text_vectors_learned.py --output runs/vectors --seeds 0 1 2 \
        --rates 3e-5 1e-4 3e-4 --epochs 1 3 --batch-sizes 16 32 64
    python benchmarks/text_vectors_learned.py --output runs/vectors --table

`sts` has 2,400 rated pairs for training and 600 others; `xquad` the English questions with their
paragraphs, of two thirds of the documents and of the others. The seed also chooses the split. What
is not given is as `keras_bert.finetune` has it, and the model of the last step is measured. A cell
is a line of OUTPUT/cells.jsonl; the same command resumes.
"""

import argparse
import itertools
import json
import random
import shutil
import statistics
from pathlib import Path

import real_tasks
from needed import minilm_folder
from turns import Turns

import keras_bert as kb

_METRICS = ("spearman", "ndcg@10", "mrr@10")
_FIELDS = {"fields": "anchor=question,positive=context"}
BEFORE = "before training"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=real_tasks.DATA)
    parser.add_argument("--data", nargs="+", choices=DATA, default=[*DATA])
    parser.add_argument("--rates", nargs="+", type=float, default=[None])
    parser.add_argument("--epochs", nargs="+", type=int, default=[None])
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[None])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--table", action="store_true", help="print the table of what is measured")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / "cells.jsonl"
    turns = Turns(path, {}, lambda line: print(line, flush=True))
    if arguments.table:
        print("\n".join(table(path)))
        return
    grid = itertools.product(arguments.rates, arguments.epochs, arguments.batch_sizes)
    for seed, data, setting in itertools.product(arguments.seeds, arguments.data, [BEFORE, *grid]):
        rate, epochs, batch_size = (setting,) * 3 if setting == BEFORE else setting
        cell = {"data": data, "rate": rate, "epochs": epochs, "batch_size": batch_size}
        turns.result({**cell, "seed": seed}, lambda **cell: measured(arguments, **cell))


def sts(folder, seed):
    """-> (training pairs, other pairs, the settings that read them)."""
    lines = (folder / "sts" / "2015.train.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    pairs = [{"sentence1": a, "sentence2": b, "score": score} for score, a, b in rows if score]
    random.Random(seed).shuffle(pairs)
    return pairs[:2400], pairs[2400:], {}


def xquad(folder, seed):
    """-> (questions with paragraphs, those of other documents, the settings that read them)."""
    documents = [
        [
            {"question": question["question"], "context": paragraph["context"]}
            for paragraph in document["paragraphs"]
            for question in paragraph["qas"]
        ]
        for document in json.loads((folder / "xquad" / "en.json").read_text("utf-8"))["data"]
    ]
    random.Random(seed).shuffle(documents)
    edge = len(documents) * 2 // 3
    train, others = documents[:edge], documents[edge:]
    return sum(train, []), sum(others, []), {**_FIELDS, "max_length": 160}


DATA = {"sts": sts, "xquad": xquad}


def measured(arguments, *, data, rate, epochs, batch_size, seed):
    """The metrics on the other examples, of the model as published or of the last step."""
    train, others, settings = DATA[data](arguments.folder, seed)
    model = minilm_folder(data=arguments.folder)
    if rate == BEFORE:
        metrics = kb.evaluate(kb.load_task(model), others, **settings)
    else:
        output = arguments.output / "run"
        shutil.rmtree(output, ignore_errors=True)
        given = {"learning_rate": rate, "epochs": epochs, "batch_size": batch_size}
        metrics = kb.finetune(
            task="text-embedding",
            model=model,
            train=train,
            dev=others,
            output=output,
            keep="last",
            seed=seed,
            **{name: value for name, value in given.items() if value is not None},
            **settings,
        )["dev"]
    return {name: round(metrics[name], 4) for name in _METRICS if metrics.get(name) is not None}


def table(path):
    """Lines of Markdown: for each data and setting the mean of the seeds ± their deviation."""
    cells = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    rows = {}
    for cell in cells:
        key = tuple(cell[name] for name in ("data", "rate", "epochs", "batch_size"))
        rows.setdefault(key, []).append(cell)
    yield "| data, metric | rate | epochs | batch | before | after |"
    yield "|---|---|---|---|---|---|"
    for (data, *setting), after in sorted(rows.items(), key=str):
        metric = next(name for name in _METRICS if name in after[0])
        if BEFORE in setting:
            continue
        seeds = {cell["seed"] for cell in after}
        before = [cell for cell in rows[(data, *[BEFORE] * 3)] if cell["seed"] in seeds]
        given = " | ".join("default" if value is None else f"{value:g}" for value in setting)
        summaries = (_summary([cell[metric] for cell in part]) for part in (before, after))
        yield f"| {data}, {metric} | {given} | {' | '.join(summaries)} |"


def _summary(scores):
    spread = f" ± {statistics.stdev(scores):.3f}" if len(scores) > 1 else ""
    return f"{statistics.mean(scores):.3f}{spread} ({len(scores)})"


if __name__ == "__main__":
    main()
