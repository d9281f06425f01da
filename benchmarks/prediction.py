"""Many short lines through a classifier, beside the pipeline of `transformers`: speed and memory.

    python benchmarks/prediction.py                     # 100,000 lines, about twenty minutes
    python benchmarks/prediction.py --lines 20000 --rounds 3
    python benchmarks/prediction.py --sides ours        # what memory 100,000 lines take

The lines are the texts of `../shared/data/sst2`, each copy with its number before it. Both sides
have MiniLM's weights with the same head, batches of 32, and print a JSON object a line with label
and score: ours is `keras-bert predict`, theirs the pipeline, fed by a generator. Seconds and memory
are those of whole processes, imports counted in; the sides take turns.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from needed import minilm_folder
from processes import measured

DATA = Path("../shared/data")
LABELS = ("negative", "positive")
SIDES = ("ours", "theirs")
BATCH_SIZE = 32


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=1, help="turns of each side")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--one", nargs=3, metavar=("WHO", "MODEL", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        who, model, file = arguments.one
        {"make": make, "theirs": theirs}[who](model, file)
        return
    minilm = minilm_folder(data=arguments.data)
    with tempfile.TemporaryDirectory() as folder:
        model, file = Path(folder) / "model", Path(folder) / "lines.txt"
        write_lines(file, arguments.data / "sst2", arguments.lines)
        one = [sys.executable, __file__, "--one"]
        subprocess.run([*one, "make", minilm, model], check=True, stderr=subprocess.DEVNULL)
        console = [sys.executable, "-m", "keras_bert.cli.console", "predict"]
        commands = {
            "ours": [*console, "--model", model, "--data", file],
            "theirs": [*one, "theirs", model, file],
        }
        seconds = {side: [] for side in arguments.sides}
        labels = {}
        print(
            "| side | lines | seconds | lines a second | largest process |\n|---|---|---|---|---|"
        )
        for _ in range(arguments.rounds):
            for side in arguments.sides:
                printed, taken, _, memory = measured(commands[side])
                seconds[side].append(taken)
                labels[side] = [json.loads(line)["label"] for line in printed]
                rate = len(printed) / taken
                print(
                    f"| {side} | {len(printed):,} | {taken:.1f} | {rate:.0f} | {memory:,.0f} MiB |",
                    flush=True,
                )
    if any(len(answers) != arguments.lines for answers in labels.values()):
        sys.exit("A side left lines out.")
    if len(labels) < len(SIDES):
        return
    same = sum(map(str.__eq__, labels["ours"], labels["theirs"])) / arguments.lines
    ratio = statistics.median(seconds["theirs"]) / statistics.median(seconds["ours"])
    print(f"\nOurs is {ratio:.2f} times as fast; {same:.2%} of the labels are the same.")


def write_lines(file, folder, count):
    """Texts of SST-2 over and over, a line each."""
    rows = (folder / "train.tsv").read_text(encoding="utf-8").splitlines()
    texts = [row.split("\t")[0] for row in rows]
    with file.open("w", encoding="utf-8") as out:
        for number in range(count):
            copy, place = divmod(number, len(texts))
            out.write(f"{copy} {texts[place]}\n")


def make(minilm, model):
    """Writes a classifier with MiniLM's encoder and a random head."""
    import keras

    import keras_bert as kb

    keras.utils.set_random_seed(0)
    encoder, tokenizer = kb.load(minilm)
    kb.Classifier(encoder, tokenizer, labels=LABELS, max_length=128).save(model)


def theirs(model, file):
    """Prints what the pipeline of `transformers` says of the lines of a file."""
    import transformers

    def lines():
        with open(file, encoding="utf-8") as texts:
            for line in texts:
                yield line.rstrip("\n")

    classify = transformers.pipeline("text-classification", model, truncation=True, max_length=128)
    for found in classify(lines(), batch_size=BATCH_SIZE):
        print(json.dumps(found))


if __name__ == "__main__":
    main()
