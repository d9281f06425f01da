"""How long commands take before they do anything, beside the imports that they cannot do without.

    python benchmarks/start_up.py

A turn runs one `import apache_beam, tensorflow_text` in a fresh interpreter, the help and a wrong
flag of every command, and each data job on a few kilobytes of text, with one worker and with two.
Turns are repeated; what is printed is the median of each program's seconds, by the clock and by the
processor's time (all processes of it), and of the ratio to the import of the same turn. Two to five
minutes on two cores.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from processes import measured

BARE = "import apache_beam, tensorflow_text"
SENTENCES = 400
WORKERS = (1, 2)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--jobs-only", action="store_true", help="leave help and wrong flags out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="keras_bert_benchmark_") as folder:
        programs = dict(data_jobs(Path(folder)))
        if not arguments.jobs_only:
            programs = dict(answers()) | programs
        run(programs[BARE])  # what it reads is in the disk cache from here on
        turns = [
            {name: run(program) for name, program in programs.items()}
            for _ in range(arguments.turns)
        ]
    report(turns)


class Program(NamedTuple):
    """A program to time: its command line, the exit status that it ends with, what it leaves."""

    command: list
    status: int = 0
    leaves: tuple = ()


def answers():
    """Help and a wrong flag, of the whole and of each command."""
    from keras_bert.cli.main import COMMANDS

    yield "--help", Program(ours("--help"))
    for command in COMMANDS:
        yield f"{command} --help", Program(ours(command, "--help"))
        yield f"{command} --wrong", Program(ours(command, "--wrong"), status=2)


def data_jobs(folder):
    """The bare import, and the smallest runs of the two jobs."""
    text, vocab = folder / "text.txt", folder / "vocab.txt"
    lines = (f"It is sentence {n} of some that say next to nothing." for n in range(SENTENCES))
    text.write_text("\n".join(f"{line}\n" * (n % 9 == 0) + line for n, line in enumerate(lines)))
    run(Program(ours("vocab", f"--input={text}", f"--output={vocab}", "--size=60")))
    yield BARE, Program([sys.executable, "-c", BARE])
    for workers in WORKERS:
        words, data = folder / "words", folder / "data"
        flags = [f"--input={text}", f"--direct_num_workers={workers}"]
        yield (
            f"vocab, workers: {workers}",
            Program(
                ours("vocab", *flags, f"--output={words}/vocab.txt", "--size=60"), leaves=(words,)
            ),
        )
        yield (
            f"pretraining-data, workers: {workers}",
            Program(
                ours("pretraining-data", *flags, f"--vocab={vocab}", f"--output={data}"),
                leaves=(data,),
            ),
        )


def ours(*arguments):
    return [sys.executable, "-m", "keras_bert", *arguments]


def run(program):
    """The seconds that a program takes, by the clock and of the processor."""
    _, seconds, processor, _ = measured(program.command, status=program.status)
    for path in program.leaves:
        shutil.rmtree(path)
    return seconds, processor


def report(turns):
    print(f"{'':32}{'seconds':>10}{'processor':>12}{'× the import':>16}{'of processor':>14}")
    for name in turns[0]:
        seconds, processor = (statistics.median(turn[name][k] for turn in turns) for k in (0, 1))
        ratios = [
            statistics.median(turn[name][k] / turn[BARE][k] for turn in turns) for k in (0, 1)
        ]
        print(f"{name:32}{seconds:10.2f}{processor:12.2f}{ratios[0]:16.2f}{ratios[1]:14.2f}")


if __name__ == "__main__":
    main()
