"""The cost of a CRF in a step of a tagger: WNUT-17's sentences, MiniLM's weights, batches of 16.

    python benchmarks/crf_fraction.py

trains two taggers, which differ in the CRF alone, on the same batches in turns, and prints the
median of the steps and of their ratios.
"""

import argparse
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import real_tasks
from needed import minilm_folder

import keras_bert as kb


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=real_tasks.DATA)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=16)
    arguments = parser.parse_args()
    minilm = minilm_folder(data=arguments.data)
    train = arguments.data / "wnut17" / "train.conll"
    taggers = {crf: tagger(minilm, train, crf=crf) for crf in (False, True)}
    batches = taggers[False].dataset(train, batch_size=arguments.batch_size)
    seconds = {crf: [] for crf in taggers}
    for number, (inputs, labels, weights) in enumerate(batches.take(10 + arguments.steps)):
        for crf, task in taggers.items():
            started = time.perf_counter()
            task.train_on_batch(inputs, labels, weights)
            if number >= 10:  # widths of rows are traced when they first come
                seconds[crf].append(time.perf_counter() - started)
    without, with_crf = (1e3 * statistics.median(taken) for taken in seconds.values())
    ratios = [b / a for a, b in zip(*seconds.values(), strict=True)]
    print(f"A step takes {without:.0f} ms without a CRF and {with_crf:.0f} with one (medians).")
    print(f"The CRF is {1 - 1 / statistics.median(ratios):.1%} of its step.")


def tagger(minilm, train, *, crf):
    """A compiled tagger of a file's tags over a fresh encoder."""
    encoder, tokenizer = kb.load(minilm)
    labels = kb.Tagger.infer_arguments(list(kb.Tagger.read(train)))["labels"]
    task = kb.Tagger(encoder, tokenizer, labels=labels, crf=crf)
    task.compile_defaults()
    return task


if __name__ == "__main__":
    main()
