"""The speed of a whole pre-training step beside keras-nlp's and PyTorch transformers'.

A step is forward, backward, clipping, AdamW and what is measured; masked tokens alone, 15 % of them
predicted, dropout on. Figures are real tokens a second, padding not counted, on full rows and on
rows of books as the data job makes them, in which ours leaves padding out (and, without XLA, takes
batches by tokens), transformers pads to the longest row of a batch (compiled: of all), and
keras-nlp to the same length always, as their own preprocessing does. All contenders take turns in
one process, so that the ratios hold on a busy machine; a figure is the median of its turns. "At
most" is what the kernels alone would come to that no step goes without (kernels.py), for the real
tokens and their predictions, over the fastest other. The share of the machine's matrix rate,
measured too, is that of our better one. TensorFlow uses oneDNN, as it does in our commands, for
keras-nlp as well.

The last table is what a run (`fit`, its callbacks, the clock of its input) takes beside its steps,
by the processor's time of the thread that calls them.

On a machine with a GPU and KERAS_BACKEND=jax, where no TensorFlow is needed: base on full rows of
128 and of 512 tokens in bfloat16, as sequences a second, and as model FLOPs over the card's matrix
rate, which is given or measured.

    python benchmarks/pretraining_step.py                       # all of it: most of an hour
    python benchmarks/pretraining_step.py --architecture tiny --dtype float32
    python benchmarks/pretraining_step.py --without transformers --without "transformers compiled"
    python benchmarks/pretraining_step.py --fit                 # the last table alone
    python benchmarks/pretraining_step.py --quick               # that it runs
    KERAS_BACKEND=jax python benchmarks/pretraining_step.py --gpu
    KERAS_BACKEND=jax python benchmarks/pretraining_step.py --gpu --quick
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

# What imports TensorFlow is imported where it is used: a machine with a GPU may have JAX alone.
import keras
import numpy as np
from peers import keras_nlp_backbone

from keras_bert.config import BertConfig
from keras_bert.encoder import BertEncoder
from keras_bert.records import DataFolder
from keras_bert.tasks.pretraining.fill_mask import FillMask
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.train.flops import flops_a_token
from keras_bert.train.optimizer import make_optimizer

ROWS = {"tiny": (32, 64), "mini": (32, 128), "base": (16, 128)}  # rows in a batch, tokens in a row
VOCABULARY = {"tiny": 8000, "mini": 8000, "base": 30522}
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
MASKED_RATE = 0.15
BATCHES = {"tiny": 8, "mini": 4, "base": 1}  # of a turn
GPU_LENGTHS = (128, 512)
GPU_STEPS = 20  # of a turn


@dataclasses.dataclass(frozen=True)
class Point:
    architecture: str
    rows: str
    dtype: str
    count: int | None = None  # of batches in a turn, where not as many as usual
    text: Path | None = None  # the data folder of real rows
    sizes: tuple[int, int] | None = None  # rows in a batch, tokens in a row, where not as usual
    dropout: float = 0.1

    @property
    def config(self):
        return BertConfig.preset(
            self.architecture,
            vocab_size=VOCABULARY[self.architecture],
            hidden_act="gelu_new",
            add_pooling_layer=False,
            hidden_dropout_prob=self.dropout,
            attention_probs_dropout_prob=self.dropout,
        )

    @property
    def shape(self):
        return self.sizes or ROWS[self.architecture]

    @property
    def policy(self):
        return POLICIES[self.dtype]

    @property
    def predictions(self):
        return round(MASKED_RATE * self.shape[1])

    def batches(self, *, by_tokens=False):
        """-> a list of (x, y, sample_weight), as our task takes them."""
        count, (size, length) = self.count or BATCHES[self.architecture], self.shape
        if self.rows == "full":
            return [_full_rows(self, np.random.default_rng(n)) for n in range(count)]
        from keras_bert.tasks.pretraining.features import training_dataset

        rows = {"batch_tokens": size * length} if by_tokens else {"batch_size": size}
        folder = DataFolder.open(self.text)
        vocabulary = Vocabulary.from_file(self.text.parent / "vocab.txt")
        dataset = training_dataset(folder, vocabulary=vocabulary, seed=0, **rows)
        return list(dataset.take(count).as_numpy_iterator())


def _full_rows(point, rng):
    size, length = point.shape
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
    parser.add_argument(
        "--without", choices=PEERS, action="append", default=[], help="leave it out"
    )
    parser.add_argument("--books", type=Path, default=Path("../shared/data/books"))
    parser.add_argument("--quick", action="store_true", help="one round of tiny in float32")
    parser.add_argument("--fit", action="store_true", help="what a run takes beside its steps")
    parser.add_argument("--gpu", action="store_true", help="ours alone, on a GPU under JAX")
    parser.add_argument(
        "--batch-tokens", type=int, default=2**15, help="on a GPU, in a step (default: 32768)"
    )
    parser.add_argument(
        "--peak",
        type=float,
        metavar="TFLOPS",
        help="the GPU's matrix rate in the dtype; by itself it is measured",
    )
    parser.add_argument("--here", type=Path, help="do not start a process a point; its rows")
    arguments = parser.parse_args()
    if set(PEERS) <= set(arguments.without):
        parser.error("--without leaves no peer to be beside.")
    if arguments.quick:
        arguments.architecture, arguments.dtype = ["tiny"], ["float32"]
        arguments.rounds = arguments.batches = 1
        arguments.batch_tokens = 1024
    if arguments.gpu:
        measure_gpu(arguments)
        return
    if arguments.fit:
        measure_fit(arguments.architecture or tuple(ROWS), arguments)
        return
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
            measure(point, rounds=arguments.rounds, without=arguments.without)
        return
    contenders = [name for name in CONTENDERS if name not in arguments.without]
    columns = ("point", *contenders, "ours / fastest other", "at most", "GFLOP/s")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    grid = list(grid)
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        for architecture in dict.fromkeys(point[0] for point in grid if point[1] == "text"):
            make_rows(arguments.books, Path(folder) / architecture, architecture)
        for point in grid:
            in_a_process_of_its_own(point, arguments, folder=folder)
    print()
    measure_fit(dict.fromkeys(point[0] for point in grid), arguments)


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
    flags += [word for name in arguments.without for word in ("--without", name)]
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


def measure(point, *, rounds, without=()):
    from keras_bert.train.matrix_rate import matrix_rate

    rate = matrix_rate(point.dtype) / 1e9
    contenders = {name: make for name, make in CONTENDERS.items() if name not in without}
    turns = {name: make(point) for name, make in {**contenders, LEAST: kernels}.items()}
    speeds = {name: [] for name in turns}
    for number in range(rounds + 1):
        for name, (turn, tokens) in turns.items():
            seconds = timed(turn)
            if number:  # the first compiles
                speeds[name].append(tokens / seconds)
    medians = {name: statistics.median(each) for name, each in speeds.items()}
    ours = max(speed for name, speed in medians.items() if name.startswith("ours"))
    others = max(speed for name, speed in medians.items() if not name.startswith(("ours", LEAST)))
    done = ours * flops_of(point) / 1e9
    cells = " | ".join(f"{medians[name]:,.0f}" for name in contenders)
    print(
        f"| {point.architecture} {point.rows} {point.dtype} | {cells} | {ours / others:.2f} | "
        f"{medians[LEAST] / others:.2f} | {done:.0f} of {rate:.0f} |",
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


def measure_fit(architectures, arguments):
    """Prints what a run takes of the thread that calls its steps, beside them."""
    from run_overhead import run_overhead

    print(
        "| point | a step of ours, ms | a run on top of it, ms | % |\n|---|---|---|---|", flush=True
    )
    for architecture in architectures:
        point = Point(architecture, "full", "float32")
        batches = point.batches()
        step, more = run_overhead(
            our_model(point, jit_compile=False),
            keras_dataset(batches),
            tokens_a_step=real_tokens(batches) / len(batches),
            flops_a_token=flops_of(point),
            rounds=1 if arguments.quick else 2 * arguments.rounds,
        )
        print(
            f"| {architecture} full float32 | {1000 * step:.1f} | {1000 * more:.2f} | "
            f"{100 * more / step:.2f} |",
            flush=True,
        )


def measure_gpu(arguments):
    """Prints what whole steps do on the device that JAX has, beside its matrix rate."""
    if keras.backend.backend() != "jax":
        raise SystemExit("The GPU part runs with KERAS_BACKEND=jax.")
    from steps_on_jax import device_name, matrix_rate, step_seconds

    print(f"Device: {device_name()}; {arguments.batch_tokens:,} tokens in a step")
    columns = ("point", "dropout", "a step, ms", "sequences/s", "tokens/s", "TFLOP/s", "% of peak")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    grid = itertools.product(
        arguments.architecture or ("base",),
        arguments.dtype or ("bfloat16",),
        GPU_LENGTHS,
        (0.1, 0.0),  # without dropout, attention may be one fused kernel
    )
    for architecture, dtype, length, dropout in grid:
        sizes = max(1, arguments.batch_tokens // length), length
        point = Point(architecture, "full", dtype, 1, sizes=sizes, dropout=dropout)
        peak = 1e12 * arguments.peak if arguments.peak else matrix_rate(dtype)
        seconds = step_seconds(
            our_model(point, jit_compile=True),
            *point.batches(),
            steps=arguments.batches or GPU_STEPS,
            rounds=arguments.rounds,
        )
        tokens = sizes[0] * length / seconds
        done = tokens * flops_of(point)
        print(
            f"| {architecture} {sizes[0]} × {length} {dtype} | {dropout} | {1000 * seconds:.1f} | "
            f"{sizes[0] / seconds:,.1f} | {tokens:,.0f} | {done / 1e12:.3g} of {peak / 1e12:.3g} | "
            f"{100 * done / peak:.0f} |",
            flush=True,
        )


def our_model(point, *, jit_compile):
    task = FillMask(BertEncoder(point.config, dtype=point.policy), _tokenizer(point))
    optimizer = make_optimizer(
        task,
        learning_rate=1e-4,
        warmup=0.1,
        weight_decay=0.01,
        steps=10**6,
        measures_gradients=keras.backend.backend() == "tensorflow",  # where runs have it
    )
    task.compile_defaults(optimizer, counts_finite=True, jit_compile=jit_compile)
    return task


def _tokenizer(point):
    """What tells masked tokens from others, as in a run; rows that are made up need none."""
    if point.rows == "full":
        return None
    from keras_bert.text.tokenizer import Tokenizer

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
    import tensorflow as tf

    from keras_bert.input_pipeline.datasets import settled

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


def kernels(point):
    """As fast as a step could be at the most: its products, gelu and AdamW, and nothing else."""
    from kernels import Kernels

    config, batches = point.config, point.batches()
    tokens = real_tokens(batches) // len(batches)
    predictions = round(sum(w["masked_lm"].sum() for _, _, w in batches) / len(batches))
    width, wide = config.hidden_size, config.intermediate_size
    block = [(width, 3 * width), (width, width), (width, wide), (wide, width)]
    products = [(tokens, *kernel) for kernel in block] * config.num_hidden_layers
    products += [(predictions, width, width), (predictions, width, config.vocab_size)]
    gelus = [(tokens, wide)] * config.num_hidden_layers + [(predictions, width)]
    weights = our_model(point, jit_compile=False).trainable_variables
    step = Kernels(products, weights, gelus=gelus, dtype=point.dtype).step(gelu=True, adamw=True)

    def turn():
        for _ in batches:
            step()

    return turn, real_tokens(batches)


LEAST = "kernels alone"
CONTENDERS = {
    "ours": ours(False),
    "ours XLA": ours(True),
    "keras-nlp": keras_nlp(False),
    "keras-nlp XLA": keras_nlp(True),
    "transformers": transformers(False),
    "transformers compiled": transformers(True),
}
PEERS = tuple(name for name in CONTENDERS if not name.startswith("ours"))


if __name__ == "__main__":
    main()
