"""Early stopping of fine-tuning: the curves of whole runs, and any rule replayed over them.

    python benchmarks/early_stopping.py --output runs/stopping --counts 100 450 --seeds 0 1
    python benchmarks/early_stopping.py --output runs/stopping --replay

A cell is a run of `keras_bert.finetune` on a cell of default_rates.py with every setting at its
default, but that all epochs are trained: a tenth of the examples is held back as dev data, by which
the run selects its epoch. After each epoch it is also evaluated on a test file that the run does
not see. A cell is a line of OUTPUT/curves.jsonl, with the dev metrics, the test metric and the
seconds of each epoch (training, dev data, checkpoint; by the clock, and of the processor), without
those of the test file; the same command resumes.

A rule ends a run and changes nothing before that, so that a stopped run is the beginning of the
whole one: `--replay` gives, for each cell, the epochs, the seconds and the test metric of the epoch
is kept, of the whole run and of the rule's, and their means. `--rules 3,0.2,0.01 2,0.1,0.02` has
the means of other rules: the least epochs, and the fractions of the epochs and of the loss.
"""

import json
import math
import shutil
import statistics
import time
from types import SimpleNamespace

import keras
from default_rates import DATA, METRICS, examples_of, parser_of_cells, start
from finetuning import minilm
from turns import Turns

from keras_bert.training.parts import early_stopping
from keras_bert.training.selection import best_record

MOST_TEST = 300


def main():
    parser = parser_of_cells(__doc__, counts=[100, 450])
    parser.add_argument("--replay", action="store_true", help="replay the rule of the library")
    parser.add_argument(
        "--rules",
        nargs="+",
        metavar="LEAST,FRACTION,LESS",
        help="replay the rule with other numbers; prints the means of each",
    )
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / "curves.jsonl"
    if arguments.replay:
        print("\n".join(replayed(path)))
        return
    if arguments.rules:
        for numbers in arguments.rules:
            (early_stopping._LEAST, early_stopping._FRACTION, early_stopping._LESS) = (
                float(number) for number in numbers.split(",")
            )
            *_, means = replayed(path)
            print(f"{numbers}: {means}")
        return
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tf.config.threading.set_inter_op_parallelism_threads(arguments.threads)
    turns = Turns(path, {}, lambda line: print(line[:200], flush=True))
    for seed in arguments.seeds:
        for count in arguments.counts:
            for data in arguments.data:
                for model in arguments.models:
                    cell = {"model": model, "data": data, "count": count, "seed": seed}
                    turns.result(cell, lambda **cell: measured(arguments, **cell))


class Test(keras.callbacks.Callback):
    """The seconds of each epoch, and the metric on the test examples after it."""

    def __init__(self, data, examples):
        super().__init__()
        self._data, self._examples = data, examples
        self.metrics, self.labels = [], []
        self.seconds, self.processor_seconds = [], []

    def on_train_begin(self, logs=None):
        self._began = time.perf_counter(), time.process_time()

    def on_epoch_end(self, epoch, logs=None):
        if "val_loss" not in logs:
            return
        began, processor_began = self._began
        self.seconds.append(round(time.perf_counter() - began, 2))
        self.processor_seconds.append(round(time.process_time() - processor_began, 2))
        self._evaluate()
        self._began = time.perf_counter(), time.process_time()

    def _evaluate(self):
        from keras_bert.tasks.outputs import Inference

        task = self.model
        examples = list(task.read(self._examples, inferred_arguments=task.inferred_arguments))
        sequences = task.features(examples, labelled=True)
        outputs = Inference(task, batch_size=64).outputs(sequences)
        metrics = task.official_metrics(task.decode(outputs, sequences), examples)
        name = METRICS.get(DATA[self._data][0], "accuracy" if self._data == "ewt" else "f1")
        self.metrics.append(round(100 * metrics[name], 2))
        if "confusion" in metrics:
            columns = zip(*metrics["confusion"], strict=True)
            self.labels.append(sum(sum(column) > 0 for column in columns))


def measured(arguments, *, model, data, count, seed):
    """The curves of a cell."""
    import keras_bert as kb

    train, test = examples_of(arguments, data, count, seed)
    test = test[:MOST_TEST]
    output = arguments.output / "run"
    shutil.rmtree(output, ignore_errors=True)
    on_test = Test(data, test)
    if model == "mini":
        start_settings = {"architecture": "mini", "vocab": str(minilm() / "vocab.txt")}
    elif model == "minilm":
        start_settings = {"model": str(minilm())}
    else:
        start(arguments, model, seed)  # makes the folder
        start_settings = {"model": str(arguments.output / "quickstart" / "pretrained")}
    metrics = kb.finetune(
        task=DATA[data][0],
        train=train,
        output=str(output),
        seed=seed,
        max_length=128,
        patience=0,
        callbacks=[on_test],
        **start_settings,
    )
    shutil.rmtree(output)
    evaluated = [record for record in metrics["history"] if "eval" in record]
    return {
        "metric": metrics["best_metric"],
        "epochs": len(evaluated),
        "kept": metrics["kept"]["epoch"],
        "eval": [record["eval"] for record in evaluated],
        "train_loss": [round(record["train"]["loss"], 4) for record in evaluated],
        "seconds": on_test.seconds,
        "processor_seconds": on_test.processor_seconds,
        "test": on_test.metrics,
        "test_labels": on_test.labels,
        "dev_examples": metrics["dev"]["examples"],
        "steps": metrics["steps"],
    }


def replayed(path):
    """Lines of Markdown: each cell as it was trained, and as the rule of the library ends it."""
    rows, whole, stopped, lost = [], [], [], []
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        cell = json.loads(line)
        labels = [*cell["test_labels"], *[2] * cell["epochs"]]  # of dev they were not recorded
        records = [
            {"number": number, "eval": {**metrics, "predicted_labels": labels[number]}}
            for number, metrics in enumerate(cell["eval"])
        ]
        settings = SimpleNamespace(
            patience=None,
            epochs=cell["epochs"],
            keep="best",
            gradual_unfreezing=False,
            contrastive=False,
        )
        rule = early_stopping.EarlyStopping(cell["metric"], early_stopping.patience_of(settings))
        lengths = range(1, len(records) + 1)
        end = next((n for n in lengths if rule.is_over(records[:n])), len(records))
        scores = [
            cell["test"][best_record(part, cell["metric"])["number"]]
            for part in (records, records[:end])
        ]
        name = f"{cell['data']} | {cell['model']} | {cell['count']} | {cell['seed']}"
        seconds = [
            sum(cell["processor_seconds"][:number]) if "processor_seconds" in cell else math.nan
            for number in (len(records), end)
        ]
        times = " | ".join("–" if math.isnan(x) else f"{x:.0f}" for x in seconds)
        rows.append(f"| {name} | {len(records)} | {end} | {times} | {scores[0]} | {scores[1]} |")
        whole.append(scores[0])
        lost.append(scores[0] - scores[1])
        stopped.append((scores[1], end / len(records), seconds[1] / seconds[0]))
    yield (
        "| data | model | examples | seed | epochs | of the rule | processor seconds | of the rule "
        "| test metric | of the rule |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    yield from rows
    scores, fractions, time_fractions = zip(*stopped, strict=True)
    timed = [fraction for fraction in time_fractions if not math.isnan(fraction)]
    time_text = f" and {statistics.mean(timed):.0%} of the time" if timed else ""
    yield (
        f"The means: {statistics.mean(whole):.2f} and {statistics.mean(scores):.2f}, in "
        f"{statistics.mean(fractions):.0%} of the epochs{time_text}; the most that a cell loses is "
        f"{max(lost):.2f}."
    )


if __name__ == "__main__":
    main()
