"""The speed of a whole pre-training step beside keras-nlp's and PyTorch transformers'.

A step is forward, backward, clipping, AdamW and what is measured; masked tokens alone, 15 % of them
predicted, dropout on. A GPT-2 predicts all tokens, and has full rows alone and transformers' as its
peer. Figures are real tokens a second, padding not counted, on full rows and on rows of books as
the data job makes them, in which ours leaves padding out (and, without XLA, takes batches by
tokens), transformers pads to the longest row of a batch (compiled: of all), and keras-nlp to the
same length always, as their own preprocessing does. All contenders take turns in one process, so
that the ratios hold on a busy machine; a figure is the median of its turns. "At most" is what the
kernels alone would come to that no step goes without (kernels.py), for the real tokens and their
predictions, over the fastest other. The share of the machine's matrix rate, measured too, is that
of our better one. TensorFlow uses oneDNN, as it does in our commands, for keras-nlp as well.

The last table is what a run (`fit`, its callbacks, the clock of its input) takes beside its steps,
by the processor's time of the thread that calls them.

On a machine with a GPU and KERAS_BACKEND=jax, `--gpu` measures, one part after the other: whole
steps of base on full rows of 128 and of 512 tokens in bfloat16, with the kernels that take longest;
those of a GPT-2 on rows of 1,024; the encoder's forward pass alone, with weights in the dtype; the
command `pretrain` on text; and texts that are embedded, classified and served (TensorFlow reads the
input of these two; the other parts need none). Steps are given as tokens a second beside
transformers compiled, if torch has the GPU too, and as model FLOPs over the card's matrix rate,
which is given or measured. Most of a point's time is compiling. With `--quick` all of it also runs
on a CPU, as a trial.

    python benchmarks/pretraining_step.py                       # all of it: most of an hour
    python benchmarks/pretraining_step.py --architecture tiny --dtype float32
    python benchmarks/pretraining_step.py --without transformers --without "transformers compiled"
    python benchmarks/pretraining_step.py --fit                 # the last table alone
    python benchmarks/pretraining_step.py --quick               # that it runs
    KERAS_BACKEND=jax python benchmarks/pretraining_step.py --gpu
    KERAS_BACKEND=jax python benchmarks/pretraining_step.py --gpu --part steps --length 128
    KERAS_BACKEND=jax python benchmarks/pretraining_step.py --gpu --quick
"""

import os
import subprocess
import sys

import peers  # noqa: F401

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # keras_bert.cli.cpu
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX shares a GPU with torch

import argparse
import contextlib
import importlib.util
import itertools
import statistics
import tempfile
import time
from pathlib import Path

# What imports TensorFlow is imported when it is used: a machine with a GPU may have JAX alone.
import keras
import numpy as np
from pretraining_contenders import (
    CONTENDERS,
    LEAST,
    MASKED_RATE,
    PEERS,
    POLICIES,
    ROWS,
    VOCABULARY,
    Point,
    contenders_of,
    keras_dataset,
    kernels,
    our_encoder,
    our_model,
    real_tokens,
    transformers_forward_seconds,
    transformers_seconds,
)

from keras_bert.training.costs import flops_per_token

GPU_LENGTHS = (128, 512)
GPU_CAUSAL_LENGTHS = (1024,)
GPU_STEPS, GPU_ROUNDS = 20, 3  # of a turn, and turns: less than compiling takes
ON_GPU = "transformers compiled"
GPU_PARTS = ("steps", "causal", "forward", "commands", "texts")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--architecture", choices=tuple(VOCABULARY), action="append")
    parser.add_argument("--rows", choices=("full", "text"), action="append")
    parser.add_argument("--dtype", choices=tuple(POLICIES), action="append")
    parser.add_argument("--rounds", type=int, help="7, and 3 on a GPU")
    parser.add_argument("--batches", type=int, help="in a turn; by itself some seconds' worth")
    parser.add_argument(
        "--without", choices=PEERS, action="append", default=[], help="leave it out"
    )
    parser.add_argument("--books", type=Path, default=Path("../shared/data/books"))
    parser.add_argument("--quick", action="store_true", help="one round of tiny in float32")
    parser.add_argument("--fit", action="store_true", help="what a run takes beside its steps")
    parser.add_argument("--gpu", action="store_true", help=f"ours under JAX and {ON_GPU}, on a GPU")
    parser.add_argument(
        "--length", type=int, action="append", help="on a GPU, tokens in a row (128 and 512)"
    )
    parser.add_argument(
        "--dropout", type=float, action="append", help="on a GPU, the rate (0.1 and 0)"
    )
    parser.add_argument(
        "--part", choices=GPU_PARTS, action="append", help="on a GPU, this part alone"
    )
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
        arguments.architecture = arguments.architecture or ["tiny"]
        arguments.dtype = arguments.dtype or ["float32"]
        arguments.rounds = arguments.batches = 1
        arguments.batch_tokens = 1024
    if arguments.gpu:
        arguments.rounds = arguments.rounds or GPU_ROUNDS
        measure_gpu(arguments)
        return
    arguments.rounds = arguments.rounds or 7
    if not set(arguments.architecture or ()) <= set(ROWS):
        parser.error("gpt2 is measured on a GPU alone.")
    if arguments.fit:
        measure_fit(arguments.architecture or tuple(ROWS), arguments)
        return
    grid = itertools.product(
        arguments.architecture or tuple(ROWS),
        arguments.rows or ("full", "text"),
        arguments.dtype or tuple(POLICIES),
    )
    # Rows of books are those of a masked LM.
    grid = [point for point in grid if point[1] == "full" or not point[0].startswith("gpt2")]
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
            make_examples(arguments.books, Path(folder) / architecture, architecture)
        for point in grid:
            in_a_process_of_its_own(point, arguments, folder=folder)
    print()
    measure_fit(dict.fromkeys(point[0] for point in grid), arguments)


def make_examples(books, folder, architecture):
    """Writes the rows of a book and their vocabulary into a folder; all books for large ones."""
    from data_gen.pretraining_data import pretraining_data
    from data_gen.vocabulary import learn_vocabulary

    folder.mkdir()
    every = [str(path) for path in sorted(books.glob("*.txt"))]
    size, (_, length) = VOCABULARY[architecture], ROWS[architecture]
    learn_vocabulary(input=every, output=folder / "vocab.txt", size=size)
    pretraining_data(
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
    from keras_bert.training.costs import matrix_rate

    rate = matrix_rate(point.dtype) / 1e9
    makers = {name: CONTENDERS[name] for name in contenders_of(point, without)}
    turns = {name: make(point) for name, make in {**makers, LEAST: kernels}.items()}
    speeds = {name: [] for name in turns}
    for number in range(rounds + 1):
        for name, (turn, tokens) in turns.items():
            seconds = timed(turn)
            if number:  # the first compiles
                speeds[name].append(tokens / seconds)
    medians = {name: statistics.median(rates) for name, rates in speeds.items()}
    ours = max(speed for name, speed in medians.items() if name.startswith("ours"))
    others = max(speed for name, speed in medians.items() if not name.startswith(("ours", LEAST)))
    done = ours * flops_of(point) / 1e9
    cells = " | ".join(
        f"{medians[name]:,.0f}" if name in medians else ""
        for name in CONTENDERS
        if name not in without
    )
    print(
        f"| {point.architecture} {point.rows} {point.dtype} | {cells} | {ours / others:.2f} | "
        f"{medians[LEAST] / others:.2f} | {done:.0f} of {rate:.0f} |",
        flush=True,
    )


def timed(turn):
    begun = time.perf_counter()
    turn()
    return time.perf_counter() - begun


def flops_of(point, task=None):
    """FLOPs of a real token, by the lengths of the rows at hand."""
    lengths = np.concatenate([x["input_mask"].sum(axis=1) for x, _, _ in point.batches()])
    return flops_per_token(
        task or our_model(point, jit_compile=False),
        examples_by_length=np.bincount(lengths),
        masked_rate=MASKED_RATE,
        max_predictions=point.predictions,
        causal_fraction=0.0,
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
            tokens_per_step=real_tokens(batches) / len(batches),
            flops_per_token=flops_of(point),
            rounds=1 if arguments.quick else 2 * arguments.rounds,
        )
        print(
            f"| {architecture} full float32 | {1000 * step:.1f} | {1000 * more:.2f} | "
            f"{100 * more / step:.2f} |",
            flush=True,
        )


def measure_gpu(arguments):
    """Prints what whole steps do on the device that JAX has, beside its matrix rate and a peer."""
    if keras.backend.backend() != "jax":
        raise SystemExit("The GPU part runs with KERAS_BACKEND=jax.")
    from steps_on_jax import device_name

    print(f"Device: {device_name()}; {arguments.batch_tokens:,} tokens in a step")
    for part in arguments.part or GPU_PARTS:
        if part in ("commands", "texts"):
            measure_with_input(part, arguments)
        else:
            measure_part(part, arguments)


def measure_part(part, arguments):
    """Prints the table of whole steps, or of forward passes, and where the steps take longest."""
    from steps_on_jax import matrix_rate

    measure_point = forward_on_gpu if part == "forward" else steps_on_gpu
    unit = "a pass" if part == "forward" else "a step"
    columns = ("point", "dropout", f"{unit}, ms", "tokens/s")
    columns = (*columns, f"{ON_GPU}, tokens/s", "ours / theirs", "TFLOP/s", "% of peak")
    print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    causal = "gpt2-mini" if arguments.quick else "gpt2"
    grid = itertools.product(
        (causal,) if part == "causal" else arguments.architecture or ("base",),
        arguments.dtype or ("bfloat16",),
        # Without dropout, attention may be one fused kernel; a forward pass has none.
        (0.0,) if part == "forward" else arguments.dropout or (0.1, 0.0),
    )
    turns = {"steps": arguments.batches or GPU_STEPS, "rounds": arguments.rounds}
    profiles = []
    for point in points_on_gpu(grid, arguments):
        size, length = point.sizes
        peak = 1e12 * arguments.peak if arguments.peak else matrix_rate(point.dtype)
        seconds, flops, their_seconds, kernels_of_point = measure_point(point, arguments, turns)
        name = f"{point.architecture} {size} × {length} {point.dtype}"
        profiles.append((f"{name}, dropout {point.dropout}", kernels_of_point))
        tokens = size * length / seconds
        done = tokens * flops
        beside = " | "
        if their_seconds is not None:
            beside = f"{size * length / their_seconds:,.0f} | {their_seconds / seconds:.2f}"
        print(
            f"| {name} | {point.dropout} | {1000 * seconds:.1f} | {tokens:,.0f} | {beside} | "
            f"{done / 1e12:.3g} of {peak / 1e12:.3g} | {100 * done / peak:.0f} |",
            flush=True,
        )
    if their_seconds is None and ON_GPU not in arguments.without:
        print(f"\nNot measured: {ON_GPU}, for which torch with this GPU is needed.")
    for name, kernels_of_point in profiles:
        if kernels_of_point:
            print(f"\n{name}: where a step of ours takes longest\n")
            print("| ms | times | kernel |\n|---|---|---|")
        for step_seconds, times, kernel in kernels_of_point:
            print(f"| {1000 * step_seconds:.3f} | {times:.0f} | {kernel[:100]} |")


def measure_with_input(part, arguments):
    """Prints what the commands do, with their input, or a model with texts."""
    if importlib.util.find_spec("tensorflow") is None:
        print(f"\nNot measured: the {part}, whose input TensorFlow reads.")
        return
    from commands_on_gpu import print_commands
    from texts_on_gpu import print_texts

    (architecture, *_), (dtype, *_) = (
        arguments.architecture or ["base"],
        arguments.dtype or ["bfloat16"],
    )
    point = Point(architecture, "full", dtype)
    with tempfile.TemporaryDirectory() as folder:
        if part == "commands":
            print_commands(
                point,
                arguments.length or GPU_LENGTHS,
                batch_tokens=arguments.batch_tokens,
                steps=4 if arguments.quick else 400,
                folder=Path(folder),
            )
            return
        texts, requests = (100, 3) if arguments.quick else (20_000, 100)
        print_texts(point, texts=texts, requests=requests, folder=Path(folder))


def steps_on_gpu(point, arguments, turns):
    """-> (seconds of a step of ours, FLOPs of a token, seconds of transformers', costly kernels).

    The third is None if it is left out.
    """
    from steps_on_jax import costliest_kernels, step_seconds

    model, (batch,) = our_model(point, jit_compile=True), point.batches()
    seconds = step_seconds(model, batch, **turns)
    flops = flops_of(point, model)
    costly = costliest_kernels(model, batch, steps=5)
    del model
    their_seconds = None if ON_GPU in arguments.without else transformers_seconds(point, **turns)
    return seconds, flops, their_seconds, costly


def forward_on_gpu(point, arguments, turns):
    """Measures the encoder's forward pass as `steps_on_gpu` measures steps."""
    from steps_on_jax import forward_seconds

    encoder, ((inputs, _, _),) = our_encoder(point, dtype=point.dtype), point.batches()
    inputs = {name: inputs[name] for name in encoder.input_names}
    seconds = forward_seconds(encoder, inputs, **turns)
    flops = point.config.forward_flops(point.sizes[1]) / point.sizes[1]
    del encoder
    if ON_GPU in arguments.without:
        return seconds, flops, None, ()
    return seconds, flops, transformers_forward_seconds(point, **turns), ()


def points_on_gpu(grid, arguments):
    """The `Point`s of architectures, dtypes and dropouts, at each length."""
    for architecture, dtype, dropout in grid:
        lengths = GPU_CAUSAL_LENGTHS if architecture.startswith("gpt2") else GPU_LENGTHS
        for length in arguments.length or lengths:
            sizes = max(1, arguments.batch_tokens // length), length
            yield Point(architecture, "full", dtype, 1, sizes=sizes, dropout=dropout)


if __name__ == "__main__":
    main()
