"""Memory and seconds of a training step with in-batch negatives, whole and in chunks.

    python benchmarks/large_batches.py --output runs/large                # about 20 minutes
    python benchmarks/large_batches.py --output runs/large --batch-sizes 64 256 --steps 2
    python benchmarks/large_batches.py --output runs/large --table

MiniLM as published; pairs are runs of 19 words of the books in `../shared/data/books` with their
neighbours (`text_vectors.py`). A cell is a process of its own: after a step that traces the
program, the seconds are the median of the others, and so are those of the processor, which alone
compare anything on a machine with other work. The memory is the highest resident one
of the process, and `above` what it is above that before the first step, with model, data and
TensorFlow. A cell is a line of OUTPUT/cells.jsonl; the same command resumes.
"""

import argparse
import itertools
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from needed import minilm_folder
from text_vectors import sentences
from turns import Turns

DATA = Path("../shared/data")
WHOLE = 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[64, 256, 1024])
    parser.add_argument(
        "--chunk-sizes", nargs="+", type=int, default=[WHOLE, 64], help="0 is the whole batch"
    )
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--table", action="store_true", help="print the table of what is measured")
    parser.add_argument("--one", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(arguments, *arguments.one)))
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / "cells.jsonl"
    if arguments.table:
        print("\n".join(table(path)))
        return
    settings = {"steps": arguments.steps, "threads": arguments.threads}
    turns = Turns(path, settings, lambda line: print(line, flush=True))
    for batch, chunk in itertools.product(arguments.batch_sizes, arguments.chunk_sizes):
        if chunk < batch or chunk == WHOLE:
            turns.result(
                {"batch": batch, "chunk": chunk}, lambda **cell: in_process(arguments, **cell)
            )


def in_process(arguments, *, batch, chunk):
    options = [f"--output={arguments.output}", f"--data={arguments.data}"]
    options += [f"--steps={arguments.steps}", f"--threads={arguments.threads}"]
    command = [sys.executable, __file__, *options, "--one", str(batch), str(chunk)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:  # such as for want of memory
        return {"failed": done.returncode}
    return json.loads(done.stdout.splitlines()[-1])


def measured(arguments, batch, chunk):
    import numpy as np
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    import keras_bert as kb

    texts = sentences(arguments.data, 2 * batch)
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    encoder, tokenizer = kb.load(minilm_folder(data=arguments.data))
    task = kb.TextEmbedder(encoder, tokenizer, chunk_size=chunk or None)
    # As `keras_bert.finetune` compiles it on a CPU.
    task.compile_defaults(learning_rate=2e-5, steps=10**6, jit_compile=False)
    (one,) = task.dataset(pairs, batch_size=batch, epochs=1)
    before, seconds, processor, losses = peak(), [], [], []
    for _ in range(arguments.steps + 1):
        start, used = time.perf_counter(), time.process_time()
        losses.append(float(np.ravel(task.train_on_batch(*one))[0]))
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - used)
    return {
        "seconds": round(statistics.median(seconds[1:]), 2),
        "processor": round(statistics.median(processor[1:]), 2),
        "memory": peak(),
        "above": peak() - before,
        "loss": round(losses[0], 4),
    }


def peak():
    """The highest resident memory of this process so far, MB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def table(path):
    """Lines of Markdown."""
    yield "| batch | at a time | seconds of a step | of the processor | memory of a step |"
    yield "|---|---|---|---|---|"
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        cell = json.loads(line)
        start = f"| {cell['batch']:,} | {cell['chunk'] or 'all'} |"
        if "failed" in cell:
            yield f"{start} failed | | |"
        else:
            seconds = f"{cell['seconds']} | {cell['processor']}"
            yield f"{start} {seconds} | {cell['above'] / 1024:.1f} GB |"


if __name__ == "__main__":
    main()
