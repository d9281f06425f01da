"""What text vectors learn: MiniLM trained by `keras_bert.finetune`, before and after.

    python benchmarks/text_vectors_learned.py --output runs/vectors --rates 3e-5 1e-4 3e-4
    python benchmarks/text_vectors_learned.py --output runs/vectors --data xquad --seeds 0 1 2

`sts` has 2,400 rated pairs for training and 600 others; `xquad` the English questions with their
paragraphs, of two thirds of the documents and of the others. A cell is one epoch, and a line of
OUTPUT/cells.jsonl; the same command resumes.
"""

import argparse
import json
import random
import shutil
from pathlib import Path

import real_tasks
from needed import minilm_folder
from turns import Turns

import keras_bert as kb

_METRICS = ("spearman", "ndcg@10", "mrr@10")
_FIELDS = {"fields": "anchor=question,positive=context"}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=real_tasks.DATA)
    parser.add_argument("--data", nargs="+", choices=DATA, default=[*DATA])
    parser.add_argument("--rates", nargs="+", type=float, default=[1e-4])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    turns = Turns(arguments.output / "cells.jsonl", {}, lambda line: print(line, flush=True))
    for seed in arguments.seeds:
        for data in arguments.data:
            for rate in (None, *arguments.rates):  # None is before training
                cell = {"data": data, "rate": rate, "seed": seed}
                turns.of(cell, lambda **cell: measured(arguments, **cell))


def sts(folder):
    """-> (training pairs, other pairs, the settings that read them)."""
    lines = (folder / "sts" / "2015.train.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    pairs = [{"sentence1": a, "sentence2": b, "score": score} for score, a, b in rows if score]
    random.Random(0).shuffle(pairs)
    return pairs[:2400], pairs[2400:], {}


def xquad(folder):
    """-> (questions with paragraphs, those of other documents, the settings that read them)."""
    documents = [
        [
            {"question": question["question"], "context": paragraph["context"]}
            for paragraph in document["paragraphs"]
            for question in paragraph["qas"]
        ]
        for document in json.loads((folder / "xquad" / "en.json").read_text("utf-8"))["data"]
    ]
    random.Random(0).shuffle(documents)
    edge = len(documents) * 2 // 3
    train, others = documents[:edge], documents[edge:]
    return sum(train, []), sum(others, []), {**_FIELDS, "max_length": 160}


DATA = {"sts": sts, "xquad": xquad}


def measured(arguments, *, data, rate, seed):
    """The metrics on the other examples, of the model as published or trained at a rate."""
    train, others, settings = DATA[data](arguments.folder)
    model = minilm_folder(data=arguments.folder)
    if rate is None:
        metrics = kb.evaluate(kb.load_task(model), others, **settings)
    else:
        output = arguments.output / "run"
        shutil.rmtree(output, ignore_errors=True)
        metrics = kb.finetune(
            task="text-embedding",
            model=model,
            train=train,
            dev=others,
            output=output,
            epochs=1,
            batch_size=32,
            learning_rate=rate,
            seed=seed,
            **settings,
        )["dev"]
    return {name: round(metrics[name], 4) for name in _METRICS if metrics.get(name) is not None}


if __name__ == "__main__":
    main()
