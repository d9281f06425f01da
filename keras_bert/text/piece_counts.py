"""How often each piece of a vocabulary stands in the text that it was learned from, as a file.

It lies beside the vocabulary: `vocab.counts.tsv` beside `vocab.txt`, `counts.tsv` in the folder of
a byte-pair encoding. Each line is a piece, a tab and its count, in the order of the ids. Masks
whose replacements follow the frequencies of the pieces are drawn from it.
"""

import numpy as np

from keras_bert.base.errors import InputError

NAME = "counts.tsv"


def counts_path(path, *, is_folder):
    """Where the counts of the vocabulary at `path` (a str, of any file system) lie."""
    return f"{path}/{NAME}" if is_folder else f"{path.removesuffix('.txt')}.{NAME}"


def counts_text(vocabulary):
    """The content of the file, for a vocabulary that knows its counts."""
    lines = zip(vocabulary.pieces, vocabulary.counts.tolist(), strict=True)
    return "".join(f"{piece}\t{count}\n" for piece, count in lines)


def parse_counts(text, vocabulary, *, source):
    """The counts of a vocabulary from the content of the file: int64 (V,).

    Raises `InputError`, which calls the file `source`, where it is not one of this vocabulary's.
    """
    counts = []
    for number, line in enumerate(text.removesuffix("\n").split("\n")):
        piece, _, count = line.rpartition("\t")
        wanted = vocabulary.pieces[number] if number < len(vocabulary) else "no more pieces"
        if piece != wanted or not count.isascii() or not count.isdecimal():
            raise _refusal(source, number + 1, f"is {line!r} where its vocabulary has {wanted!r}")
        counts.append(int(count))
    if len(counts) != len(vocabulary):
        pieces = f"its vocabulary has {len(vocabulary)} pieces"
        raise _refusal(source, len(counts), f"is the last, and {pieces}")
    counts = np.array(counts, np.int64)
    ordinary = np.delete(counts, vocabulary.special_ids)
    if not ordinary.any():
        raise _refusal(source, 1, "begins a file that counts no ordinary piece")
    return counts


def _refusal(source, number, what):
    return InputError(
        f"{source}, line {number} {what}: these are not the counts of that vocabulary; delete the "
        "file, or learn the vocabulary again"
    )
