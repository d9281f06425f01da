"""Vectors of texts, beside sentence-transformers: sentences per second, one text, training pairs.

    python benchmarks/text_vectors.py                      # 10,000 sentences, about half an hour
    python benchmarks/text_vectors.py --sentences 1000 --rounds 2 --steps 10

Both sides have the published folder of MiniLM, two threads, and sort by length. Sentences are runs
of 19 words of the books in `../shared/data/books`. A training step has 64 pairs (a sentence and its
neighbour) and in-batch negatives. Each side is a process of its own that is asked to work in turns
with the other, so that other work on the machine meets both; what is printed are the medians and
their ratio, above 1 if ours is faster. On a machine with other work only processor seconds with
`--threads 1` compare anything: threads of torch that wait use the processor, too.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

from needed import minilm_folder

DATA = Path("../shared/data")
SIDES = ("ours", "theirs")
WORDS, BATCH = 19, 64


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        work(arguments)
        return
    options = [f"--data={arguments.data}", f"--sentences={arguments.sentences}"]
    options += [f"--steps={arguments.steps}", f"--threads={arguments.threads}"]
    sides = {
        side: subprocess.Popen(
            [sys.executable, __file__, *options, "--one", side],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for side in SIDES
    }
    for what in ("encode", "one", "train"):
        seconds, processor = ({side: [] for side in SIDES} for _ in range(2))
        for turn in range(arguments.rounds + 1):  # the first warms up
            for side in SIDES if turn % 2 else SIDES[::-1]:
                print(what, file=sides[side].stdin, flush=True)
                answer = json.loads(sides[side].stdout.readline())
                if turn:
                    seconds[side].append(answer["seconds"])
                    processor[side].append(answer["processor"])
        counts = {"encode": arguments.sentences, "one": 1, "train": arguments.steps * BATCH}
        for unit, times in (("s", seconds), ("processor second", processor)):
            our_seconds, their_seconds = (statistics.median(times[side]) for side in SIDES)
            print(
                f"{what}: ours {counts[what] / our_seconds:.1f} per {unit}, sentence-transformers "
                f"{counts[what] / their_seconds:.1f}, ratio {their_seconds / our_seconds:.2f}",
                flush=True,
            )
    for process in sides.values():
        process.stdin.close()
        process.wait()


def sentences(data, count):
    """So many runs of WORDS words of the books."""
    words = []
    for book in sorted((data / "books").iterdir()):
        words += book.read_text(encoding="utf-8").split()
        if len(words) >= WORDS * count:
            break
    return [" ".join(words[start : start + WORDS]) for start in range(0, WORDS * count, WORDS)]


def work(arguments):
    """Answers each line of the standard input with the seconds that the work took."""
    texts = sentences(arguments.data, max(arguments.sentences, 2 * BATCH * arguments.steps))
    answers, sys.stdout = sys.stdout, sys.stderr
    jobs = {"ours": our_calls, "theirs": their_calls}[arguments.one](arguments, texts)
    for line in sys.stdin:
        start, processor = time.perf_counter(), time.process_time()
        jobs[line.strip()]()
        took = {
            "seconds": time.perf_counter() - start,
            "processor": time.process_time() - processor,
        }
        print(json.dumps(took), file=answers, flush=True)


def pairs_of(texts, steps):
    count = steps * BATCH
    return list(zip(texts[: 2 * count : 2], texts[1 : 2 * count : 2], strict=True))


def our_calls(arguments, texts):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    import keras_bert as kb

    warnings.simplefilter("ignore")
    embedder = kb.load_task(minilm_folder(data=arguments.data))
    some = texts[: arguments.sentences]
    trained = kb.load_task(minilm_folder(data=arguments.data))
    trained.compile_defaults(learning_rate=2e-5, steps=10**6)
    batches = trained.dataset(pairs_of(texts, arguments.steps), batch_size=BATCH, epochs=1)
    return {
        "encode": lambda: embedder.encode(some),
        "one": lambda: embedder.encode(texts[0]),
        "train": lambda: trained.fit(batches, verbose=0),
    }


def their_calls(arguments, texts):
    import torch

    torch.set_num_threads(arguments.threads)
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.losses import MultipleNegativesRankingLoss

    folder = str(minilm_folder(data=arguments.data))
    model, trained = (SentenceTransformer(folder, device="cpu") for _ in range(2))
    loss = MultipleNegativesRankingLoss(trained)
    optimizer = torch.optim.AdamW(trained.parameters(), lr=2e-5)
    pairs, some = pairs_of(texts, arguments.steps), texts[: arguments.sentences]

    def train():
        """The steps of its trainer, without the trainer's own cost."""
        trained.train()
        for start in range(0, len(pairs), BATCH):
            columns = zip(*pairs[start : start + BATCH], strict=True)
            features = [trained.preprocess([*column]) for column in columns]
            value = loss(features, None)
            optimizer.zero_grad()
            value.backward()
            torch.nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
            optimizer.step()

    return {
        "encode": lambda: model.encode(some, batch_size=32),
        "one": lambda: model.encode(texts[0]),
        "train": train,
    }


if __name__ == "__main__":
    main()
