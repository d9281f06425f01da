"""Tasks that a pre-trained encoder is to learn, from few examples and from many.

Tags (UD English EWT), entities (WNUT-17) and sentiment (SST-2) of `../shared/data`, fine-tuned by
the library's own call, the epoch kept that is best on dev, and measured on test.
"""

import itertools
import shutil
import tempfile
from pathlib import Path

import real_tasks

# The kind, the file to train on and how many of its examples (None is all), the file of test (None
# is that beside train; UD has no train, and what follows the first of its dev is dev), epochs, and
# what else is tried beside the rates.
POOLINGS = ({"pooling": "cls"}, {"pooling": "mean"})
EWT, SST, WNUT = "ud_english_ewt", "sst2", "wnut17"
TASKS = {
    "tags, 100 sentences": ("tagger", f"{EWT}/dev.conllu", 100, f"{EWT}/test.conllu", 40, [{}]),
    "tags, 400 sentences": ("tagger", f"{EWT}/dev.conllu", 400, f"{EWT}/test.conllu", 15, [{}]),
    "entities, all 3,394 sentences": ("tagger", f"{WNUT}/train.conll", None, None, 6, [{}]),
    "sentiment, 500 sentences": ("classifier", f"{SST}/train.tsv", 500, None, 10, POOLINGS),
    "sentiment, all 6,920 sentences": ("classifier", f"{SST}/train.tsv", None, None, 3, POOLINGS),
}


def best(run, *, rates, seeds, others=None, **turn):
    """-> (the metrics of test, one per seed; the choice that is best on dev with seed 0).

    `run(**turn, choice=, seed=)` fine-tunes, or returns a former result; `task` is one of `turn`.
    `others` are the choices besides the rate, by default the task's.
    """
    others = TASKS[turn["task"]][-1] if others is None else others
    choices = [{"learning_rate": rate} | other for other, rate in itertools.product(others, rates)]
    choice = max(choices, key=lambda choice: run(**turn, choice=choice, seed=0)["dev"])
    return [run(**turn, choice=choice, seed=seed)["test"] for seed in range(seeds)], choice


def tuned(weights, *, task, choice, seed, data, output):
    """Fine-tunes from `weights` (settings); returns the figures of dev and test, and seconds."""
    from keras_bert.inference.evaluate import evaluate
    from keras_bert.training.finetune import finetune

    kind, *_, epochs, _ = TASKS[task]
    train, dev, test = files(task, data=data, output=output)
    run = Path(tempfile.mkdtemp(prefix="finetuned-", dir=output))  # others may run beside it
    settings = {"epochs": epochs, "batch_size": 16, "seed": seed, **choice, **weights}
    if kind == "classifier":
        settings |= real_tasks.SST2_COLUMNS
    metrics = finetune(task=kind, train=train, dev=dev, output=run, **settings)
    metric = "f1" if "entities" in task else "accuracy"
    measured = evaluate(model=run, data=test)
    shutil.rmtree(run)
    return {"dev": metrics["dev"][metric], "test": measured[metric], "seconds": metrics["seconds"]}


def files(task, *, data, output):
    """The files of train, dev and test; of UD, which has two, dev is what train leaves."""
    _, train, count, test, _, _ = TASKS[task]
    train = data / train
    first = train if count is None else real_tasks.first_examples(train, count, output)
    if test is None:
        return first, *(train.with_stem(name) for name in ("dev", "test"))
    rest = output / f"after-{count}-{train.name}"
    rest.write_text(train.read_text(encoding="utf-8")[len(first.read_text(encoding="utf-8")) :])
    test = real_tasks.first_examples(data / test, 1000, output)
    return first, real_tasks.first_examples(rest, 300, output), test
