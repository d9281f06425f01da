"""How often each piece of a vocabulary stands in the text that it was learned from, as a file.

It lies beside the vocabulary: `vocab.counts.tsv` beside `vocab.txt`, `counts.tsv` in the folder of
a byte-pair encoding. Each line is a piece, a tab and its count, in the order of the ids. Masks
whose replacements follow the frequencies of the pieces are drawn from it.
"""

from pathlib import Path

import numpy as np

from keras_bert.errors import InputError
from keras_bert.text.vocabulary import FILE, decode, read_bytes

_NAME = "counts.tsv"


def counts_path(path, *, is_folder):
    """Where the counts of the vocabulary at `path` (a str, of any file system) lie."""
    return f"{path}/{_NAME}" if is_folder else f"{path.removesuffix('.txt')}.{_NAME}"


def counts_text(vocabulary):
    """The content of the file, for a vocabulary that knows its counts."""
    lines = zip(vocabulary.pieces, vocabulary.counts.tolist(), strict=True)
    return "".join(f"{piece}\t{count}\n" for piece, count in lines)


def read_counts(path, vocabulary):
    """The counts of the vocabulary that was read from `path`: int64 (V,), or None without a file.

    Raises `InputError` where the file is not one of this vocabulary's.
    """
    if (Path(path) / FILE).exists():
        path = Path(path) / FILE
    file = Path(counts_path(str(path).rstrip("/"), is_folder=Path(path).is_dir()))
    if not file.exists():
        return None
    lines = decode(read_bytes(file), file, what="a piece, a tab and its count a line")
    lines = lines.removesuffix("\n")
    counts = []
    for number, line in enumerate(lines.split("\n")):
        piece, _, count = line.rpartition("\t")
        wanted = vocabulary.pieces[number] if number < len(vocabulary) else "no more pieces"
        if piece != wanted or not count.isascii() or not count.isdecimal():
            raise _refusal(file, number + 1, f"is {line!r} where {path} has {wanted!r}")
        counts.append(int(count))
    if len(counts) != len(vocabulary):
        raise _refusal(file, len(counts), f"is the last, and {path} has {len(vocabulary)} pieces")
    counts = np.array(counts, np.int64)
    ordinary = np.delete(counts, vocabulary.special_ids)
    if not ordinary.any():
        raise _refusal(file, 1, "begins a file that counts no ordinary piece")
    return counts


def _refusal(file, number, what):
    return InputError(
        f"{file}, line {number} {what}: these are not the counts of that vocabulary; delete the "
        "file, or learn the vocabulary again"
    )
