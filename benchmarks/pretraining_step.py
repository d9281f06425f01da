"""The speed of a whole pre-training step beside keras-nlp's and PyTorch transformers'.

A step is forward, backward, clipping, AdamW and what is measured; masked tokens alone, 15 % of them
predicted, dropout on. Figures are real tokens a second, padding not counted, on full rows and on
rows of books as the data job makes them, in which ours leaves padding out (and, without XLA, takes
batches by tokens), transformers pads to the longest row of a batch (compiled: of all), and
keras-nlp to the same length always, as their own preprocessing does. All contenders take turns in
one process, so that the ratios hold on a busy machine; a figure is the median of its turns. The
share of the machine's matrix rate, measured too, is that of our better one. TensorFlow uses
oneDNN, as it does in our commands, for keras-nlp as well.

The last table is what `fit`, as a run calls it, takes beside the steps that it calls, by the
processor's time of the thread that calls them.

    python benchmarks/pretraining_step.py                       # all of it: most of an hour
    python benchmarks/pretraining_step.py --architecture tiny --dtype float32
    python benchmarks/pretraining_step.py --quick               # that it runs
"""

import os
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # keras_bert.cli.cpu

import argparse
import contextlib
import dataclasses
import itertools
import statistics
import tempfile
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from peers import keras_nlp_backbone

from keras_bert.config import BertConfig
from keras_bert.encoder import BertEncoder
from keras_bert.input_pipeline.datasets import settled
from keras_bert.records import DataFolder
from keras_bert.tasks.pretraining.features import training_dataset
from keras_bert.tasks.pretraining.fill_mask import FillMask
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.train.flops import flops_a_token
from keras_bert.train.loop import StepCallbacks
from keras_bert.train.matrix_rate import matrix_rate
from keras_bert.train.optimizer import make_optimizer

ROWS = {"tiny": (32, 64), "mini": (32, 128), "base": (16, 128)}  # rows in a batch, tokens in a row
VOCABULARY = {"tiny": 8000, "mini": 8000, "base": 30522}
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
MASKED_RATE = 0.15
BATCHES = {"tiny": 8, "mini": 4, "base": 1}  # of a turn
STEPS_OF_FIT = 50  # of an entry of a run's curve


@dataclasses.dataclass(frozen=True)
class Point:
    architecture: str
    rows: str
    dtype: str
    count: int | None = None  # of batches in a turn, where not as many as usual
    text: Path | None = None  # the data folder of real rows

    @property
    def config(self):
        size = VOCABULARY[self.architecture]
        return BertConfig.preset(
            self.architecture, vocab_size=size, hidden_act="gelu_new", add_pooling_layer=False
        )

    @property
    def policy(self):
        return POLICIES[self.dtype]

    @property
    def predictions(self):
        return round(MASKED_RATE * ROWS[self.architecture][1])

    def batches(self, *, by_tokens=False):
        """-> a list of (x, y, sample_weight), as our task takes them."""
        size, length = ROWS[self.architecture]
        count = self.count or BATCHES[self.architecture]
        if self.rows == "full":
            return [_full_rows(self, np.random.default_rng(n)) for n in range(count)]
        rows = {"batch_tokens": size * length} if by_tokens else {"batch_size": size}
        folder = DataFolder.open(self.text)
        vocabulary = Vocabulary.from_file(self.text.parent / "vocab.txt")
        dataset = training_dataset(folder, vocabulary=vocabulary, seed=0, **rows)
        return list(dataset.take(count).as_numpy_iterator())


def _full_rows(point, rng):
    size, length = ROWS[point.architecture]
    ids = rng.integers(1000, VOCABULARY[point.architecture], (size, length), "int32")
    positions = np.argsort(rng.random((size, length - 1)), axis=1)[:, : point.predictions] + 1
    inputs = {
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": np.zeros_like(ids),
        "masked_lm_positions": np.sort(positions, axis=1).astype("int32"),
    }
    labels = rng.integers(1000, VOCABULARY[point.architecture], positions.shape, "int32")
    return inputs, {"masked_lm": labels}, {"masked_lm": np.ones(positions.shape, "float32")}


def real_tokens(batches):
    return sum(int(x["input_mask"].sum()) for x, _, _ in batches)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--architecture", choices=tuple(ROWS), action="append")
    parser.add_argument("--rows", choices=("full", "text"), action="append")
    parser.add_argument("--dtype", choices=tuple(POLICIES), action="append")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batches", type=int, help="in a turn; by itself some seconds' worth")
    parser.add_argument("--books", type=Path, default=Path("../shared/data/books"))
    parser.add_argument("--quick", action="store_true", help="one round of tiny in float32")
    parser.add_argument("--here", type=Path, help="do not start a process a point; its rows")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.architecture, arguments.dtype = ["tiny"], ["float32"]
        arguments.rounds = arguments.batches = 1
    grid = itertools.product(
        arguments.architecture or tuple(ROWS),
        arguments.rows or ("full", "text"),
        arguments.dtype or tuple(POLICIES),
    )
    if not arguments.here and not arguments.books.is_dir():
        print(f"Not measured on text: there is no folder {arguments.books} of books.")
        grid = [point for point in grid if point[1] != "text"]
    if arguments.here:
        for architecture, rows, dtype in grid:
            text = arguments.here / architecture / "data"
            point = Point(architecture, rows, dtype, arguments.batches, text)
            measure(point, rounds=arguments.rounds)
        return
    print(f"| point | {' | '.join(CONTENDERS)} | ours / fastest other | GFLOP/s |")
    print("|---|" + "---|" * len(CONTENDERS) + "---|---|", flush=True)
    grid = list(grid)
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        for architecture in dict.fromkeys(point[0] for point in grid if point[1] == "text"):
            make_rows(arguments.books, Path(folder) / architecture, architecture)
        for point in grid:
            in_a_process_of_its_own(point, arguments, folder=folder)
    print(
        "\n| point | a step of ours, ms | `fit` on top of it, ms | % |\n|---|---|---|---|",
        flush=True,
    )
    for architecture in dict.fromkeys(point[0] for point in grid):
        rounds = 1 if arguments.quick else 2 * arguments.rounds
        measure_fit(Point(architecture, "full", "float32"), rounds=rounds)


def make_rows(books, folder, architecture):
    """Writes the rows of a book and their vocabulary into a folder; all books for large ones."""
    from data_gen.pretraining_data import make_pretraining_data
    from data_gen.vocabulary import learn_vocabulary

    folder.mkdir()
    every = [str(path) for path in sorted(books.glob("*.txt"))]
    size, (_, length) = VOCABULARY[architecture], ROWS[architecture]
    learn_vocabulary(input=every, output=folder / "vocab.txt", size=size)
    make_pretraining_data(
        input=every[:2],
        vocab=folder / "vocab.txt",
        output=folder / "data",
        objective="mlm",
        masking="dynamic",
        max_length=length,
        max_predictions=round(MASKED_RATE * length),
    )


def in_a_process_of_its_own(point, arguments, *, folder):
    names = ("--architecture", "--rows", "--dtype")
    flags = [str(x) for pair in zip(names, point, strict=True) for x in pair]
    flags += ["--batches", str(arguments.batches)] if arguments.batches else []
    command = [
        sys.executable,
        __file__,
        "--here",
        folder,
        "--rounds",
        str(arguments.rounds),
        *flags,
    ]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def measure(point, *, rounds):
    rate = matrix_rate(point.dtype) / 1e9
    turns = {name: make(point) for name, make in CONTENDERS.items()}
    speeds = {name: [] for name in turns}
    for number in range(rounds + 1):
        for name, (turn, tokens) in turns.items():
            seconds = timed(turn)
            if number:  # the first compiles
                speeds[name].append(tokens / seconds)
    medians = {name: statistics.median(each) for name, each in speeds.items()}
    ours = max(speed for name, speed in medians.items() if name.startswith("ours"))
    others = max(speed for name, speed in medians.items() if not name.startswith("ours"))
    done = ours * flops_of(point) / 1e9
    cells = " | ".join(f"{medians[name]:,.0f}" for name in CONTENDERS)
    print(
        f"| {point.architecture} {point.rows} {point.dtype} | {cells} | {ours / others:.2f} | "
        f"{done:.0f} of {rate:.0f} |",
        flush=True,
    )


def timed(turn):
    begun = time.perf_counter()
    turn()
    return time.perf_counter() - begun


def flops_of(point):
    """FLOPs of a real token, by the lengths of the rows at hand."""
    lengths = np.concatenate([x["input_mask"].sum(axis=1) for x, _, _ in point.batches()])
    return flops_a_token(
        point.config,
        outputs=("masked_lm",),
        rows_by_length=np.bincount(lengths),
        masked_rate=MASKED_RATE,
        max_predictions=point.predictions,
        causal_share=0.0,
    )


def measure_fit(point, *, rounds):
    """Prints what `fit`, as a run calls it, takes of the thread that calls the steps."""
    model, dataset = our_model(point, jit_compile=False), keras_dataset(point.batches())
    model.make_train_function()
    iterator = iter(dataset)
    callbacks = StepCallbacks([], model=model, batches_a_step=1)

    def steps():
        for _ in range(STEPS_OF_FIT):
            logs = model.train_function(iterator)
        float(logs["loss"])

    def fit():
        model.fit(dataset, steps_per_epoch=STEPS_OF_FIT, callbacks=callbacks, verbose=0)

    steps(), fit()
    pairs = [(both_clocks(steps), both_clocks(fit)) for _ in range(rounds)]
    step = 1000 * statistics.median(alone[0] for alone, _ in pairs) / STEPS_OF_FIT
    more = statistics.median(within[1] - alone[1] for alone, within in pairs)
    more *= 1000 / STEPS_OF_FIT
    print(
        f"| {point.architecture} full {point.dtype} | {step:.1f} | {more:.2f} | "
        f"{100 * more / step:.2f} |",
        flush=True,
    )


def both_clocks(turn):
    """Seconds that a turn takes, and of the processor those of the thread that calls it."""
    begun = time.thread_time()
    return timed(turn), time.thread_time() - begun


def our_model(point, *, jit_compile):
    task = FillMask(BertEncoder(point.config, dtype=point.policy), _tokenizer(point))
    optimizer = make_optimizer(
        task,
        learning_rate=1e-4,
        warmup=0.1,
        weight_decay=0.01,
        steps=10**6,
        measures_gradients=True,
    )
    task.compile_defaults(optimizer, counts_finite=True, jit_compile=jit_compile)
    return task


def _tokenizer(point):
    """What tells masked tokens from others, as in a run; rows that are made up need none."""
    if point.rows == "full":
        return None
    vocabulary = Vocabulary.from_file(point.text.parent / "vocab.txt")
    return Tokenizer.from_vocab(vocabulary, lowercase=True)


def ours(jit_compile):
    def make(point):
        batches = point.batches(by_tokens=not jit_compile)
        return keras_turn(our_model(point, jit_compile=jit_compile), batches)

    return make


def keras_nlp(jit_compile):
    def make(point):
        from keras_nlp.models import BertMaskedLM

        backbone = keras_nlp_backbone(point.config, dtype=point.policy)
        model = BertMaskedLM(backbone, preprocessor=None, dtype=point.policy)
        optimizer = keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0)
        optimizer.build(model.trainable_variables)
        model.compile(optimizer=optimizer, jit_compile=jit_compile)
        names = {"input_ids": "token_ids", "input_mask": "padding_mask"}
        names |= {"masked_lm_positions": "mask_positions"}
        batches = [
            (
                {names.get(name, name): values for name, values in x.items()},
                *y.values(),
                *w.values(),
            )
            for x, y, w in point.batches()
        ]
        turn, _ = keras_turn(model, batches, tokens=real_tokens(point.batches()))
        return turn, real_tokens(point.batches())

    return make


def keras_turn(model, batches, *, tokens=None):
    """-> (a function that trains on all batches, their real tokens)."""
    model.make_train_function()
    iterator = iter(keras_dataset(batches))

    def turn():
        for _ in batches:
            logs = model.train_function(iterator)
        float(logs["loss"])  # when it is there, the work is done

    return turn, real_tokens(batches) if tokens is None else tokens


def keras_dataset(batches):
    """The batches again and again, out of memory; shapes are static where all have the same."""

    def spec(*arrays):
        shape = tuple(
            n[0] if len(set(n)) == 1 else None for n in zip(*map(np.shape, arrays), strict=True)
        )
        return tf.TensorSpec(shape, arrays[0].dtype)

    signature = tf.nest.map_structure(spec, *batches)
    dataset = tf.data.Dataset.from_generator(lambda: batches, output_signature=signature)
    return settled(dataset.cache().repeat())


def transformers(compiled):
    def make(point):
        import torch
        import transformers as peer

        config = peer.BertConfig(**point.config.to_dict())
        model = peer.BertForMaskedLM(config).train()
        called = torch.compile(model) if compiled else model
        optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01, fused=True)
        half = torch.autocast("cpu", torch.bfloat16, enabled=point.dtype == "bfloat16")
        batches = [_for_torch(*batch, as_long=compiled) for batch in point.batches()]

        def turn():
            for inputs in batches:
                with half:
                    loss = called(**inputs).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            loss.item()

        return turn, real_tokens(point.batches())

    return make


def _for_torch(x, y, weights, *, as_long):
    """A batch as its own collator gives it: padded to its longest row; -100 is no label."""
    import torch

    labels = np.full_like(x["input_ids"], -100)
    rows, places = np.nonzero(weights["masked_lm"])
    labels[rows, x["masked_lm_positions"][rows, places]] = y["masked_lm"][rows, places]
    width = x["input_ids"].shape[1] if as_long else int(x["input_mask"].sum(axis=1).max())
    names = {"input_ids": "input_ids", "attention_mask": "input_mask"}
    arrays = {name: x[source] for name, source in names.items()} | {"labels": labels}
    return {name: torch.tensor(array[:, :width]).long() for name, array in arrays.items()}


CONTENDERS = {
    "ours": ours(False),
    "ours XLA": ours(True),
    "keras-nlp": keras_nlp(False),
    "keras-nlp XLA": keras_nlp(True),
    "transformers": transformers(False),
    "transformers compiled": transformers(True),
}


if __name__ == "__main__":
    main()
