"""An exported classifier's speed beside PyTorch transformers and ONNX Runtime, and a soak.

Text in and label out, by the same weights, each in a process of its own with as many threads as
there are cores; all take turns, so that the ratios hold on a busy machine. Ours are SavedModels in
float32 and bfloat16, in processes that have TensorFlow and TensorFlow Text alone; PyTorch has the
fast tokenizer and the model, in both, too; ONNX Runtime the same tokenizer and the graph that
PyTorch exports. Short texts are those of `../shared/data/sst2`, long ones are many of them, joined
and cut.
Needs onnx and onnxruntime (`pip install -e '.[benchmarks]'`).

    python benchmarks/serving.py                            # both sizes: about half an hour
    python benchmarks/serving.py --size minilm --rounds 3
    python benchmarks/serving.py lengths --rounds 6         # one text, by its number of tokens
    python benchmarks/serving.py soak --minutes 10          # the development server under load

Beside one text of so many tokens stand the products of that many rows with the model's weights,
and their biases, one after another in a function of TensorFlow, and nothing else: what no graph
that is made of TensorFlow's products can be faster than. In bfloat16 ours, and these, are told that
weights stay what they are (`TF_ONEDNN_ASSUME_FROZEN_WEIGHTS`), as `keras-bert serve` has it.

The soak asks a MiniLM-sized model at the highest rate that it holds, over REST: short and long
texts, batches, and requests that are wrong. An answer that is not the right one, or memory
that goes on growing, ends it with 1.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import peers  # noqa: F401

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np
from serving_contenders import LABELS, MAX_LENGTH

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "sst2" / "dev.tsv"
# Texts in a turn, and two requests at least: alone, each short one would find the weights of the
# others in the processor's caches, and their threads, which wait by spinning, on its cores.
A_TURN = 10
SIZES = ("minilm", "base")
PEERS = ("transformers", "transformers bfloat16", "ONNX Runtime")
PRODUCTS = ("products float32", "products bfloat16")
LENGTHS = (8, 12, 20, 32, 64, 128)
REFERENCE = "ONNX Runtime"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("mode", nargs="?", choices=("speed", "lengths", "soak"), default="speed")
    parser.add_argument("--size", choices=SIZES, action="append")
    parser.add_argument("--rounds", type=int, default=20, help="turns of each contender")
    parser.add_argument("--precision", action="append", help="of our exports; may be repeated")
    parser.add_argument("--minutes", type=float, default=10.0, help="of the soak")
    arguments = parser.parse_args()
    from needed import minilm_folder

    minilm = minilm_folder(data=DATA)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.mode == "soak":
            from serving_soak import soak

            prepare("minilm", minilm, Path(folder), precisions=["float32"], others=())
            sys.exit(soak(Path(folder), read_texts(), minutes=arguments.minutes))
        precisions = arguments.precision or ["float32", "bfloat16"]
        for size in arguments.size or SIZES:
            place = Path(folder) / size
            prepare(size, minilm, place, precisions=precisions, others=PEERS)
            contenders = [*(f"ours {precision}" for precision in precisions), *PEERS]
            if arguments.mode == "lengths":
                contenders += PRODUCTS
            with started(contenders, place) as workers:
                compared = {"speed": compare, "lengths": compare_lengths}[arguments.mode]
                compared(size, workers, rounds=arguments.rounds)


def prepare(size, minilm, folder, *, precisions, others):
    """Writes what each contender loads; in a process of its own, whose memory ends with it."""
    code = "import serving, sys; serving.write(*map(eval, sys.argv[1:]))"
    arguments = (size, str(minilm), str(folder), tuple(precisions), tuple(others))
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(repr, arguments)],
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )


def write(size, minilm, folder, precisions, others):
    """The model folder, our exports, and the graph for ONNX Runtime, under `folder`."""
    import keras

    import keras_bert as kb
    from keras_bert.exports.saved_model import export_task

    folder = Path(folder)
    keras.utils.set_random_seed(0)
    encoder, tokenizer = kb.load(minilm)
    if size == "base":  # no weights of that size are here; its speed does not depend on them
        config = kb.BertConfig.preset("base", vocab_size=len(tokenizer))
        encoder = kb.BertEncoder(config)
    options = {"labels": LABELS, "max_length": MAX_LENGTH, "pooling": "cls"}
    task = kb.Classifier(encoder, tokenizer, **options)
    task.save(folder / "model")
    for precision in precisions:
        export_task(task, folder / f"ours {precision}", precision=precision)
    if REFERENCE in others:
        write_onnx(folder / "model", folder / "model.onnx")


def write_onnx(model, path):
    """The classifier as ONNX, of any batch and length, by PyTorch's own exporter."""
    import torch
    import transformers

    model = transformers.AutoModelForSequenceClassification.from_pretrained(model).eval()
    model.config.return_dict = False
    ids = torch.ones((2, 8), dtype=torch.long)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    torch.onnx.export(
        model,
        (ids, ids, 0 * ids),
        str(path),
        input_names=names,
        output_names=["logits"],
        dynamic_axes=dict.fromkeys(names, {0: "B", 1: "S"}),
        opset_version=17,
        dynamo=False,  # the other exporter fixes what is computed of the shapes
    )


@contextlib.contextmanager
def started(contenders, folder):
    """{name: its Worker}, each with its first answer given."""
    workers = {}
    try:
        for name in contenders:  # one after another: they would slow each other down
            workers[name] = Worker(name, folder)
            workers[name].loading = workers[name].read()
        yield workers
    finally:
        for worker in workers.values():
            worker.end()


def compare(size, workers, *, rounds):
    """Prints the table of a size: all contenders in turn, at every point."""
    print(f"\n{size}: seconds to the first answer, from the process's start (and from the load):")
    seconds = {name: worker.loading for name, worker in workers.items()}
    print(", ".join(f"{n} {s['seconds']:.1f} ({s['load']:.1f})" for n, s in seconds.items()))
    print("\n| texts | contender | p50 ms | p95 | p99 | examples/s | p50 to ONNX's | rate |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for title, batches in points(rounds).items():
        measure_point(title, batches, workers)
    if "ours float32" in workers:
        measure_tokenization(workers["ours float32"])


def compare_lengths(size, workers, *, rounds):
    """Prints the table of a size: the p50 of one text by its tokens, all contenders in turn."""
    print(
        f"\n{size}: p50 of one text, ms (over ONNX Runtime's)\n\n| tokens | {' | '.join(workers)} |"
    )
    print("|---" * (1 + len(workers)) + "|", flush=True)
    for length in LENGTHS:
        texts = [[" ".join(["good"] * (length - 2))]] * A_TURN  # a token each, [CLS] and [SEP]
        seconds = {name: [] for name in workers}
        for _ in range(rounds):
            for name, worker in workers.items():
                seconds[name] += worker.ask({"batches": texts})["seconds"]
        p50 = {name: 1e3 * np.median(taken) for name, taken in seconds.items()}
        cells = [f"{taken:.1f} ({taken / p50[REFERENCE]:.2f})" for taken in p50.values()]
        print(f"| {length} | {' | '.join(cells)} |", flush=True)


def points(rounds):
    """{title: batches of texts}, a batch for each turn."""
    texts = read_texts()
    short = [text for text in texts if len(text.split()) < 40]
    long = " ".join(texts).split()
    long = [" ".join(long[n : n + 200]) for n in range(0, 200 * 32 * 4, 200)]  # over 128 tokens
    take = np.random.default_rng(0).choice
    return {
        "1 short": [[str(take(short))] for _ in range(10 * rounds)],
        "1 of 128 tokens": [[str(take(long))] for _ in range(5 * rounds)],
        "32 short, mixed": [take(short, 32).tolist() for _ in range(rounds)],
        "32 of 128 tokens": [take(long, 32).tolist() for _ in range(max(2, rounds // 2))],
    }


def read_texts():
    """The texts of SST-2's dev file, in its order."""
    return [line.split("\t")[0] for line in DATA.read_text(encoding="utf-8").splitlines()]


def measure_point(title, batches, workers):
    seconds = {name: [] for name in workers}
    labels = {name: [] for name in workers}
    requests = max(2, A_TURN // len(batches[0]))
    for start in range(0, len(batches), requests):
        for name, worker in workers.items():
            answer = worker.ask({"batches": batches[start : start + requests]})
            seconds[name] += answer["seconds"]
            labels[name] += answer["labels"]
    expected = labels["transformers"]
    for name, taken in seconds.items():
        same = np.mean([one == other for one, other in zip(labels[name], expected, strict=True)])
        p50, p95, p99 = (1e3 * np.percentile(taken, fraction) for fraction in (50, 95, 99))
        rate = sum(map(len, batches)) / sum(taken)
        slower = np.percentile(taken, 50) / np.percentile(seconds[REFERENCE], 50)
        faster = sum(seconds[REFERENCE]) / sum(taken)
        note = "" if same == 1 else f" ({same:.1%} of its labels are float32's)"
        row = (f"{p50:.1f}", f"{p95:.1f}", f"{p99:.1f}", f"{rate:.1f}", f"{slower:.2f}")
        row = (*row, f"{faster:.2f}{note}")
        print(f"| {title} | {name} | {' | '.join(row)} |", flush=True)
        if name == "ours float32" and same < 0.999:
            sys.exit(f"{name} gives other labels than transformers: {same:.2%} are the same.")


def measure_tokenization(worker):
    """Prints what of our time is tokenization: strings against the ids of the same texts."""
    for title, batches in points(5).items():
        fractions = [worker.ask({"tokenization": batch})["share"] for batch in batches]
        print(f"Tokenization, {title}: {np.median(fractions):.1%} of the time.", flush=True)


class Worker:
    """A contender in a process of its own, asked over its standard input."""

    def __init__(self, name, folder):
        script = Path(__file__).with_name("serving_contenders.py")
        command = [sys.executable, "-W", "ignore", str(script), name, str(folder)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, question):
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self.read()

    def read(self):
        line = self._process.stdout.readline()
        if not line:
            sys.exit("A contender has ended; what it said is above.")
        return json.loads(line)

    def end(self):
        self._process.stdin.close()
        self._process.wait()


if __name__ == "__main__":
    main()
