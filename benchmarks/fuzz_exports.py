"""Texts that nobody thought of, through exported models: what holds of every answer, and how fast.

    python benchmarks/fuzz_exports.py                         a small model a kind, 200,000 texts
    python benchmarks/fuzz_exports.py --models savedmodels    the models in a folder
    python benchmarks/fuzz_exports.py --count 2000            fewer

Hypothesis makes the texts (of any characters, of words and marks that are hard, and of bytes that
are no text) and, if something does not hold, looks for the shortest batch of which it does not.
First come those that are hard by size: a megabyte, 100,000 combining marks, ten thousand at once;
each of them is to be answered, too, and the process is to grow by less than `MOST_MEMORY`.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.exports.fuzzing import Model, ask_hard, fuzz


def export_small(folder):
    """A small model of every kind, with random weights."""
    from keras_bert.exports.saved_model import export_encoder, export_task
    from tests.exports.models import MAKERS, TOKENIZER

    for name, make in MAKERS.items():
        if name == "encoder":
            export_encoder(make(), TOKENIZER, folder / name)
        else:
            export_task(make(), folder / name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, help="a folder of exported models")
    parser.add_argument("--count", type=int, default=200_000, help="texts for each model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", help="the names of some of the models")
    parser.add_argument(
        "--without-hard", action="store_true", help="leave out what is hard by size"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.models or Path(scratch)
        if arguments.models is None:
            export_small(folder)
        names = arguments.only or sorted(p.parent.name for p in folder.glob("*/1"))
        for name in names:
            model = Model(folder / name)
            if not arguments.without_hard:
                ask_hard(name, model)
            start = time.perf_counter()
            asked = fuzz(model, count=arguments.count, seed=arguments.seed)
            seconds = time.perf_counter() - start
            print(f"{name:20} {asked:,} texts in {seconds:.0f} s, no answer wrong", flush=True)


if __name__ == "__main__":
    main()
