"""Few labels: what a classifier learns from 8, 16 and 64 texts of each label, by which way.

    python benchmarks/few_labels.py --output runs/few --counts 8 16 64 --seeds 0 1 2
    python benchmarks/few_labels.py --output runs/few --ways contrastive --rates 3e-5 1e-4 3e-4 \
        --steps 30 60 120 --counts 16 --seeds 0
    python benchmarks/few_labels.py --output runs/few --table
    python benchmarks/few_labels.py --output runs/few --picture few.png

MiniLM on SST-2, and on sentences of eight authors of the books in `../shared/data/books`. The seed
draws the texts, the same for each way; test texts are 500 others. `plain`, `frozen` (the head
alone), `lora` and `contrastive` train for all steps, without dev data; `zero-shot` takes the label
whose description is nearest, and no text. `setfit` is SetFit's own trainer, if it is installed,
with its default settings. A cell is a line of OUTPUT/cells.jsonl; the same command resumes.
"""

import argparse
import itertools
import json
import random
import re
import shutil
import statistics
import time
from pathlib import Path

import numpy as np
import real_tasks
from needed import minilm_folder
from turns import Turns

import keras_bert as kb

TESTED = 500
AUTHORS = {
    "Austen": ("emma", "pride_and_prejudice"),
    "Darwin": ("the_voyage_of_the_beagle",),
    "Dickens": ("bleak_house", "great_expectations"),
    "Dostoevsky": ("crime_and_punishment", "the_brothers_karamazov"),
    "Doyle": ("the_adventures_of_sherlock_holmes",),
    "Melville": ("moby_dick_or_the_whale",),
    "Tolstoy": ("war_and_peace",),
    "Twain": ("adventures_of_huckleberry_finn",),
}
WAYS = ("plain", "frozen", "lora", "contrastive", "zero-shot", "setfit")
_SETTINGS_OF_WAYS = {
    "plain": {},
    "frozen": {"freeze_encoder": True},
    "lora": {"lora_rank": 8},
    "contrastive": {"contrastive": True},
}

# What is drawn, with the defaults of `finetune`.
_SHOWN = {
    "contrastive": "--contrastive",
    "frozen": "head alone",
    "plain": "all weights",
    "zero-shot": "nearest description",
    "lora": "LoRA",
    "setfit": "SetFit's own trainer",
}
_TITLES = {"sst2": "SST-2, two labels", "authors": "sentences of eight authors"}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=real_tasks.DATA)
    parser.add_argument("--data", nargs="+", choices=DATA, default=[*DATA])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS[:5])
    parser.add_argument("--counts", nargs="+", type=int, default=[8, 16, 64])
    parser.add_argument("--rates", nargs="+", type=float, default=[None])
    parser.add_argument("--steps", nargs="+", type=int, default=[None])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--table", action="store_true", help="print the table of what is measured")
    parser.add_argument("--picture", type=Path, help="draw what is measured, NAME.png")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / "cells.jsonl"
    if arguments.table:
        print("\n".join(table(path)))
        return
    if arguments.picture:
        draw(path, arguments.picture)
        return
    turns = Turns(path, {}, lambda line: print(line, flush=True))
    grid = itertools.product(
        *(arguments.seeds, arguments.counts, arguments.data, arguments.ways),
        *(arguments.rates, arguments.steps),
    )
    for seed, count, data, way, rate, steps in grid:
        cell = {"data": data, "count": count, "way": way, "rate": rate, "steps": steps}
        turns.result({**cell, "seed": seed}, lambda **cell: measured(arguments, **cell))


def sst2(folder):
    """-> (texts by label for training, those for the test)."""
    parts = []
    for name in ("train", "test"):
        by_label = {"negative": [], "positive": []}
        for text, label in zip(*real_tasks.sst2(folder / "sst2" / f"{name}.tsv"), strict=True):
            by_label["positive" if str(label) == "1" else "negative"].append(text[0])
        parts.append(by_label)
    return parts


def authors(folder):
    """-> the same of sentences of 8 to 40 words; the last third of each book is for the test."""
    parts = [{name: [] for name in AUTHORS} for _ in range(2)]
    for author, books in AUTHORS.items():
        for book in books:
            text = (folder / "books" / f"{book}.txt").read_text("utf-8", errors="replace")
            sentences = re.split(r"(?<=[.!?])[”\"’]?\s+", " ".join(text.split()))
            sentences = [s for s in sentences if 8 <= len(s.split()) <= 40]
            edge = len(sentences) * 2 // 3
            parts[0][author] += sentences[:edge]
            parts[1][author] += sentences[edge:]
    return parts


DATA = {"sst2": sst2, "authors": authors}
_DESCRIPTIONS = {"sst2": "A {} review of a film.", "authors": "A sentence of a book by {}."}


def drawn(folder, data, count, seed):
    """-> (training rows, test rows) of a seed."""
    rng, parts = random.Random(seed), DATA[data](folder)
    rows = [
        [
            {"text": text, "label": label}
            for label, texts in part.items()
            for text in rng.sample(texts, min(size, len(texts)))
        ]
        for part, size in zip(parts, (count, TESTED // len(parts[0])), strict=True)
    ]
    for part in rows:
        rng.shuffle(part)
    return rows


def measured(arguments, *, data, count, way, rate, steps, seed):
    """The accuracy on the test texts in percent, and the seconds of training."""
    train, test = drawn(arguments.folder, data, count, seed)
    model = minilm_folder(data=arguments.folder)
    began = time.perf_counter()
    if way == "zero-shot":
        accuracy = nearest_description(model, data, test)
        return {"accuracy": round(100 * accuracy, 2), "seconds": 0}
    if way == "setfit":
        predicted = setfit_predictions(model, train, test, seed=seed)
        accuracy = np.mean([one == row["label"] for one, row in zip(predicted, test, strict=True)])
    else:
        output = arguments.output / "run"
        shutil.rmtree(output, ignore_errors=True)
        given = {"learning_rate": rate}
        if steps is not None:
            given["epochs"] = -(-steps // -(-len(train) // 32))
        given = {name: value for name, value in given.items() if value is not None}
        metrics = kb.finetune(
            model=model,
            train=train,
            dev=test[:8],  # or training texts would be held back
            output=output,
            seed=seed,
            keep="last",
            max_length=128,
            **given,
            **_SETTINGS_OF_WAYS[way],
        )
        accuracy = kb.evaluate(model=output, data=test)["accuracy"]
        return {"accuracy": round(100 * accuracy, 2), "seconds": round(metrics["seconds"], 1)}
    return {"accuracy": round(100 * accuracy, 2), "seconds": round(time.perf_counter() - began, 1)}


def nearest_description(model, data, test):
    embedder = kb.load_task(model)
    labels = sorted({row["label"] for row in test})
    described = embedder.encode([_DESCRIPTIONS[data].format(label) for label in labels])
    texts = embedder.encode([row["text"] for row in test])
    chosen = np.argmax(embedder.similarity(texts, described), axis=1)
    return np.mean([labels[one] == row["label"] for one, row in zip(chosen, test, strict=True)])


def setfit_predictions(model, train, test, *, seed):
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    classifier = SetFitModel.from_pretrained(str(model))
    trainer = Trainer(
        model=classifier,
        args=TrainingArguments(seed=seed, report_to="none", save_strategy="no"),
        train_dataset=Dataset.from_list(train),
    )
    trainer.train()
    return [str(label) for label in classifier.predict([row["text"] for row in test])]


def cells_of(path):
    """{(data, count): {(way, rate, steps): its cells}}, in the order of the measurements."""
    by_row = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        cell = json.loads(line)
        row = by_row.setdefault((cell["data"], cell["count"]), {})
        row.setdefault((cell["way"], cell["rate"], cell["steps"]), []).append(cell)
    return by_row


def table(path):
    """Lines of Markdown: for each data and count a row, for each way a column."""
    by_row = cells_of(path)
    ways = list(dict.fromkeys(way for row in by_row.values() for way in row))
    names = [
        " ".join(f"{x:g}" if isinstance(x, float | int) else x for x in way if x is not None)
        for way in ways
    ]
    yield f"| data | texts of each label | {' | '.join(names)} |"
    yield "|---" * (2 + len(ways)) + "|"
    for (data, count), row in by_row.items():
        yield f"| {data} | {count} | {' | '.join(shown(row.get(way, [])) for way in ways)} |"


def shown(cells):
    """The mean accuracy with its deviation, and the mean seconds; empty without cells."""
    if not cells:
        return ""
    scores, seconds = ([cell[name] for cell in cells] for name in ("accuracy", "seconds"))
    spread = f" ± {statistics.stdev(scores):.1f}" if len(scores) > 1 else ""
    return f"{statistics.mean(scores):.1f}{spread} ({statistics.mean(seconds):.0f} s)"


def draw(path, picture):
    """Draws the accuracy of each way by the number of texts, with the seeds as points."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    by_row = cells_of(path)
    known = {name for name, _ in by_row}
    names = [name for name in DATA if name in known]
    ways = {(way, None, None): label for way, label in _SHOWN.items()}
    figure, all_axes = pyplot.subplots(1, len(names), figsize=(5 * len(names), 4), squeeze=False)
    for axes, data in zip(all_axes[0], names, strict=True):
        rows = {count: row for (name, count), row in sorted(by_row.items()) if name == data}
        for number, (way, label) in enumerate(ways.items()):
            scores = {
                count: [cell["accuracy"] for cell in row[way]]
                for count, row in rows.items()
                if way in row
            }
            means = [statistics.mean(values) for values in scores.values()]
            if means:
                axes.plot([*scores], means, color=f"C{number}", label=label)
            for count, values in scores.items():
                axes.plot([count] * len(values), values, ".", color=f"C{number}", alpha=0.5)
        axes.set(xscale="log", xlabel="texts per label", title=_TITLES[data], xticks=[*rows])
        axes.set_xticklabels(map(str, rows))
        axes.minorticks_off()
    all_axes[0, 0].set_ylabel("accuracy on 500 texts, %")
    all_axes[0, -1].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(picture, dpi=90)


if __name__ == "__main__":
    main()
