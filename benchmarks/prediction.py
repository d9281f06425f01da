"""Many short lines through a classifier, beside the pipeline of `transformers`: speed and memory.

    python benchmarks/prediction.py                     # 100,000 lines, about twenty minutes
    python benchmarks/prediction.py --lines 20000 --rounds 3
    python benchmarks/prediction.py --sides ours        # what memory 100,000 lines take
    python benchmarks/prediction.py --lines 20000 --sides ours theirs products   # and the floor

The lines are the texts of `../shared/data/sst2`, each copy with its number before it. Both sides
have MiniLM's weights with the same head, batches of 32, and print a JSON object a line with label
and score: ours is `keras-bert predict`, theirs the pipeline, fed by a generator. Seconds and memory
are those of whole processes, imports counted in; the sides take turns.

The products are the floor of ours: for the same batches, made before, those of the dense layers
with as many rows as a batch has tokens without padding (of the last block's, but keys and values,
as many as it has lines), one after another in a function of TensorFlow that does nothing else: no
attention, biases, gelu, LayerNorm, embeddings, tokenizer or JSON.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from needed import minilm_folder
from processes import measured

DATA = Path("../shared/data")
LABELS = ("negative", "positive")
SIDES = ("ours", "theirs")
FLOOR = "products"
BATCH_SIZE = 32
SORTED_TOGETHER = 2048  # of keras_bert.inference.predict


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=1, help="turns of each side")
    parser.add_argument("--sides", nargs="+", choices=(*SIDES, FLOOR), default=SIDES)
    parser.add_argument("--one", nargs=3, metavar=("WHO", "MODEL", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        who, model, file = arguments.one
        {"make": make, "theirs": print_their_predictions, "batches": batches, FLOOR: products}[who](
            model, file
        )
        return
    minilm = minilm_folder(data=arguments.data)
    with tempfile.TemporaryDirectory() as folder:
        model, file = Path(folder) / "model", Path(folder) / "lines.txt"
        write_lines(file, arguments.data / "sst2", arguments.lines)
        one = [sys.executable, __file__, "--one"]
        subprocess.run([*one, "make", minilm, model], check=True, stderr=subprocess.DEVNULL)
        console = [sys.executable, "-m", "keras_bert", "predict"]
        commands = {
            "ours": [*console, "--model", model, "--data", file],
            "theirs": [*one, "theirs", model, file],
            FLOOR: [*one, FLOOR, model, Path(folder) / "batches.jsonl"],
        }
        if FLOOR in arguments.sides:
            counted, *_ = measured([*one, "batches", model, file])
            (Path(folder) / "batches.jsonl").write_text("\n".join(counted))
        seconds = {side: [] for side in arguments.sides}
        labels, alone = {}, []
        print(
            "| side | lines | seconds | lines a second | largest process |\n|---|---|---|---|---|"
        )
        for _ in range(arguments.rounds):
            for side in arguments.sides:
                printed, taken, _, memory = measured(commands[side])
                seconds[side].append(taken)
                if side == FLOOR:
                    alone.append(json.loads(printed[-1]))
                else:
                    labels[side] = [json.loads(line)["label"] for line in printed]
                lines, rate = arguments.lines, arguments.lines / taken
                print(
                    f"| {side} | {lines:,} | {taken:.1f} | {rate:.0f} | {memory:,.0f} MiB |",
                    flush=True,
                )
    if any(len(answers) != arguments.lines for answers in labels.values()):
        sys.exit("A side left lines out.")
    if alone:
        middle = statistics.median(one["seconds"] for one in alone)
        print(
            f"\nThe products alone take {middle:.1f} s, {alone[0]['gflop'] / middle:.0f} GFLOP/s."
        )
    if len(labels) < len(SIDES):
        return
    same = sum(map(str.__eq__, labels["ours"], labels["theirs"])) / arguments.lines
    median = {side: statistics.median(taken) for side, taken in seconds.items()}
    ratio = median["theirs"] / median["ours"]
    print(f"\nOurs is {ratio:.2f} times as fast; {same:.2%} of the labels are the same.")
    if alone:
        floor = median["theirs"] / median[FLOOR]
        print(f"The products, with their process's start, are {floor:.2f} times as fast.")


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
    options = {"labels": LABELS, "max_length": 128, "pooling": "cls"}
    kb.Classifier(encoder, tokenizer, **options).save(model)


def batches(model, file):
    """Prints the tokens and the lines of each batch that ours makes of a file."""
    from keras_bert.checkpoints import load_task
    from keras_bert.inputs.batches import sorted_batches

    task = load_task(Path(model))
    lines = iter(task.read(file, inferred_arguments=task.inferred_arguments, labelled=False))
    while chunk := list(itertools.islice(lines, SORTED_TOGETHER)):
        lengths = task.features(chunk).lengths
        for numbers in sorted_batches(lengths, batch_size=BATCH_SIZE):
            print(json.dumps([int(lengths[numbers].sum()), len(numbers)]))


def products(model, file):
    """Prints the seconds of the products of a file of batches, and how many GFLOP they are."""
    from keras_bert.cli.cpu import configure_cpu

    configure_cpu()
    import tensorflow as tf

    config = json.loads((Path(model) / "config.json").read_text())
    sizes = [json.loads(line) for line in Path(file).read_text().splitlines()]
    wide, inner = config["hidden_size"], config["intermediate_size"]
    # Query, key and value side by side. Kernels by whether their rows are all tokens, or lines.
    block = [(wide, 3 * wide), (wide, wide), (wide, inner), (inner, wide)]
    shapes = [(True, shape) for shape in block * (config["num_hidden_layers"] - 1)]
    shapes += [(True, (wide, 2 * wide)), *((False, shape) for shape in [(wide, wide), *block[1:]])]
    kernels = [(are_tokens, tf.Variable(tf.random.normal(shape))) for are_tokens, shape in shapes]
    most = max(tokens for tokens, _ in sizes)
    inputs = {width: tf.random.normal((most, width)) for width in (wide, inner)}

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([], tf.int32)] * 2)
    def products_of_batch(tokens, lines):
        made = []
        for are_tokens, kernel in kernels:
            with tf.control_dependencies(made[-1:]):  # one after another
                rows = inputs[kernel.shape[0]][: tokens if are_tokens else lines]
                made.append(tf.matmul(rows, kernel)[0, 0])
        return made  # a number of each: what nothing is given back of is not computed

    products_of_batch(*sizes[0])
    start = time.perf_counter()
    for size in sizes:
        products_of_batch(*size)[-1].numpy()
    seconds = time.perf_counter() - start
    all_tokens, all_lines = map(sum, zip(*sizes, strict=True))
    flop = sum(
        2 * (all_tokens if are_tokens else all_lines) * rows * columns
        for are_tokens, (rows, columns) in shapes
    )
    print(json.dumps({"seconds": seconds, "gflop": flop / 1e9}))


def print_their_predictions(model, file):
    """Prints what the pipeline of `transformers` says of the lines of a file."""
    import transformers

    def lines():
        with open(file, encoding="utf-8") as texts:
            for line in texts:
                yield line.rstrip("\n")

    classify = transformers.pipeline("text-classification", model, truncation=True, max_length=128)
    for prediction in classify(lines(), batch_size=BATCH_SIZE):
        print(json.dumps(prediction))


if __name__ == "__main__":
    main()
