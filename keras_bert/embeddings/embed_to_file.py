"""The embeddings of a file of texts as a file of vectors."""

import contextlib
import os
from pathlib import Path

from tqdm import tqdm

import keras_bert
from keras_bert.embeddings import npz_file, parquet_file
from keras_bert.embeddings.embed import open_embedder, open_texts
from keras_bert.errors import InputError

_FORMATS = {
    ".npz": (npz_file.NpzFile, npz_file.is_ours),
    ".parquet": (parquet_file.ParquetFile, parquet_file.is_ours),
}


def embed_to_file(
    *,
    model,
    output,
    data=None,
    text=None,
    layers="last",
    tokens="words-mean",
    max_length=None,
    batch_size=32,
    text_column=None,
    header=None,
    force=False,
    progress=False,
    report=None,
):
    """Embeds texts and writes the vectors to a Parquet file or a NumPy archive.

    The file appears whole or not at all, and memory does not grow with the number of texts.

    Args:
        model, data, text, text_column, header, report: see `embed`.
        output: the file to write: NAME.parquet (see `ParquetFile` for its columns) or NAME.npz (see
            `NpzFile` for its arrays).
        layers, tokens, max_length, batch_size: see `Embedder`.
        force: replace a file that this function wrote before.
        progress: show a progress bar on the standard error stream.

    Returns:
        A dictionary: `texts` and `tokens`, how many there were, and `width`, D of the vectors.

    Raises:
        InputError: on bad input, or where `output` has another ending or is there already.
    """
    output = Path(output)
    make = _check_output(output, force=force)
    examples = open_texts(data, text, text_column=text_column, header=header, report=report)
    embedder = open_embedder(
        model, layers=layers, tokens=tokens, max_length=max_length, batch_size=batch_size
    )
    settings = {
        "version": keras_bert.__version__,
        "layers": layers,
        "tokens": tokens,
        "width": embedder.width,
    }
    aside = output.with_name(f"{output.name}.part")
    counts = {"texts": 0, "tokens": 0, "width": embedder.width}
    total = _count_lines(data) if progress else None
    with contextlib.ExitStack() as stack:
        stack.callback(aside.unlink, missing_ok=True)
        bar = stack.enter_context(tqdm(total=total, unit=" lines", disable=not progress))
        try:
            file = make(aside, width=embedder.width, settings=settings)
        except OSError as error:
            raise InputError(f"{output} could not be written: {error.strerror}.") from error
        for found in embedder(examples):
            file.write(found)
            counts["texts"] += 1
            counts["tokens"] += len(found.starts)
            bar.update(found.line - bar.n)
        file.close()
        os.replace(aside, output)
    return counts


def _check_output(output, *, force):
    """The class that writes the file; InputError where there may be none."""
    if output.suffix not in _FORMATS:
        raise InputError(
            f"The output {output} should end in {' or '.join(_FORMATS)}, which says its format."
        )
    if not output.parent.is_dir():
        raise InputError(f"There is no folder {output.parent} for the output {output.name}.")
    make, is_ours = _FORMATS[output.suffix]
    if output.exists():
        if not force:
            raise InputError(f"{output} is there already; give another name, or --force.")
        if not is_ours(output):
            raise InputError(
                f"{output} is no file of embeddings from this command, so it is not replaced; give "
                "another name."
            )
    return make


def _count_lines(path):
    """How many lines a file has, for a progress bar; None for what is no plain file."""
    if path is None or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
