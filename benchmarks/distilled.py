"""Students of a fine-tuned MiniLM on SST-2, beside the same students on labels alone.

    python benchmarks/distilled.py --output runs/distilled --seeds 0 1 2
    python benchmarks/distilled.py --output runs/distilled --table

The teacher is MiniLM fine-tuned by `keras_bert.finetune` on the 6,920 sentences of SST-2, the seed
that is best on the dev set. A student learns its answers for these and for 50,000 sentences of the
books in `../shared/data/books`, which have no label. Accuracy is that on the test set. A cell is a
line of OUTPUT/cells.jsonl; the same command resumes. `--train N --unlabelled N` tries it small.
"""

import argparse
import random
import re
import shutil
import statistics
import time
from pathlib import Path

import tensorflow as tf
import tensorflow_text  # noqa: F401 registers the tokenizers' operations
from needed import minilm_folder
from real_tasks import DATA
from turns import Turns

import keras_bert as kb

TEACHER, DISTILLED, ALONE, INT8 = "teacher", "distilled", "labels alone", "teacher, int8"
STUDENTS = {
    "tiny": {"architecture": "tiny"},
    "mini": {"architecture": "mini"},
    "layers 0 2 4": {"keep_layers": [0, 2, 4]},
}
_LENGTH = {"max_length": 64}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=DATA)
    parser.add_argument("--students", nargs="+", choices=STUDENTS, default=[*STUDENTS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--train", type=int, default=6920)
    parser.add_argument("--unlabelled", type=int, default=50_000)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--table", action="store_true", help="print the table of what is measured")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    settings = {name: getattr(arguments, name) for name in ("train", "unlabelled", "epochs")}
    path = arguments.output / "cells.jsonl"
    turns = Turns(path, settings, lambda line: print(line, flush=True))
    if arguments.table:
        print("\n".join(table(turns, arguments)))
        return
    minilm = minilm_folder(data=arguments.folder)
    labelled = read(arguments.folder / "sst2" / "train.tsv")[: arguments.train]
    sentences = book_sentences(arguments.folder / "books", arguments.unlabelled)
    texts = [*labelled, *({"text": sentence, "label": None} for sentence in sentences)]
    teacher = arguments.output / "teacher"
    turns.result(
        {"model": TEACHER, "seed": 0}, lambda model, seed: taught(arguments, minilm, labelled)
    )
    exported(turns, arguments, teacher, {"model": INT8, "seed": 0}, precision="int8")
    for seed in arguments.seeds:
        for name in arguments.students:
            for how, data in ((DISTILLED, texts), (ALONE, labelled)):
                turn = {"model": name, "how": how, "seed": seed}
                turns.result(
                    turn,
                    lambda model, how, seed, data=data: student(
                        arguments, teacher, data, model=model, how=how, seed=seed
                    ),
                )
    print("\n".join(table(turns, arguments)))


def read(path):
    """The labelled sentences of a file of SST-2."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return [{"text": text, "label": label} for text, label in rows]


def book_sentences(folder, count):
    """So many sentences of the books, in a random order of seed 0."""
    sentences = []
    for path in sorted(folder.glob("*.txt")):
        text = " ".join(path.read_text(encoding="utf-8", errors="replace").split())
        sentences += [s for s in re.split(r"(?<=[.!?])\s+(?=[A-Z\"'])", text) if 20 < len(s) < 300]
    sentences = sorted({*sentences})
    random.Random(0).shuffle(sentences)
    return sentences[:count]


def taught(arguments, minilm, labelled):
    dev = read(arguments.folder / "sst2" / "dev.tsv")
    output = arguments.output / "teacher"
    kb.finetune(
        model=minilm,
        train=labelled,
        dev=dev,
        num_seeds=len(arguments.seeds),
        epochs=arguments.epochs,
        output=output,
        **_LENGTH,
    )
    return measured(arguments, output)


def student(arguments, teacher, data, *, model, how, seed):
    """The accuracy of a student, its size and speed, and the minutes of its training."""
    output = arguments.output / f"{model.replace(' ', '-')}-{how.replace(' ', '-')}-{seed}"
    dev = read(arguments.folder / "sst2" / "dev.tsv")
    begin = time.perf_counter()
    # On labels alone, too, by the command of distillation: with a label's loss as the only one.
    kb.distill(
        teacher=teacher,
        data=data,
        dev=dev,
        label_weight=1.0 if how == ALONE else 0.5,
        seed=seed,
        epochs=arguments.epochs,
        output=output,
        **STUDENTS[model],
    )
    minutes = (time.perf_counter() - begin) / 60
    result = {**measured(arguments, output), "minutes": round(minutes, 1)}
    shutil.rmtree(output)
    return result


def exported(turns, arguments, folder, turn, **options):
    def work(**turn):
        return measured(arguments, folder, **options)

    return turns.result(turn, work)


def measured(arguments, folder, **options):
    """Accuracy on the test set, megabytes of the SavedModel, its texts per processor second."""
    test = read(arguments.folder / "sst2" / "test.tsv")
    texts, labels = [row["text"] for row in test], [row["label"] for row in test]
    place = arguments.output / "export"
    shutil.rmtree(place, ignore_errors=True)
    version = kb.export(model=folder, output=place, **options)
    size = sum(path.stat().st_size for path in Path(version).rglob("*") if path.is_file())
    answer = tf.saved_model.load(str(version)).signatures["serving_default"]
    batches = [texts[n : n + 32] for n in range(0, len(texts), 32)]
    answer(text=tf.constant(batches[0]))
    begin = time.process_time()
    given = [x for batch in batches for x in answer(text=tf.constant(batch))["label"].numpy()]
    seconds = time.process_time() - begin
    correct = sum(one.decode() == other for one, other in zip(given, labels, strict=True))
    shutil.rmtree(place)
    return {
        "accuracy": round(100 * correct / len(labels), 2),
        "megabytes": round(size / 1e6, 1),
        "texts_per_second": round(len(texts) / seconds),
    }


def table(turns, arguments):
    """The lines of a table; a cell that is not measured is empty."""
    yield "| model | accuracy, % | SavedModel, MB | texts/processor-second | minutes |"
    yield "|---|---|---|---|---|"
    rows = [{"model": TEACHER}, {"model": INT8}]
    rows += [{"model": n, "how": how} for n in arguments.students for how in (DISTILLED, ALONE)]
    for row in rows:
        cells = [line for line in turns.lines() if row.items() <= line.items()]
        yield "| " + " | ".join([", ".join(row.values()), *map(str, summary(cells))]) + " |"


def summary(cells):
    """The cells of a row: accuracy with its deviation, size, speed, minutes."""
    if not cells:
        return [""] * 4
    accuracies = [cell["accuracy"] for cell in cells]
    accuracy = f"{statistics.mean(accuracies):.1f}"
    if len(accuracies) > 1:
        accuracy += f" ± {statistics.stdev(accuracies):.1f}"
    speed = round(statistics.median(cell["texts_per_second"] for cell in cells))
    minutes = [cell["minutes"] for cell in cells if "minutes" in cell]
    return [
        f"{accuracy} ({len(cells)})",
        cells[0]["megabytes"],
        f"{speed:,}",
        f"{statistics.mean(minutes):.1f}" if minutes else "",
    ]


if __name__ == "__main__":
    main()
