"""The embeddings of a file of texts as a file of vectors."""

import os
from pathlib import Path

from tqdm import tqdm

import keras_bert
from keras_bert import files
from keras_bert.embeddings import npz_file, parquet_file
from keras_bert.embeddings.embed import open_embedder, open_texts
from keras_bert.embeddings.settings import EmbedderSettings, EmbedToFileSettings
from keras_bert.errors import InputError
from keras_bert.settings import takes

_FORMATS = {
    ".npz": (npz_file.NpzFile, npz_file.is_ours),
    ".parquet": (parquet_file.ParquetFile, parquet_file.is_ours),
}


@takes(EmbedToFileSettings)
def embed_to_file(*, progress=False, report=None, **settings):
    """Embeds texts and writes the vectors to a Parquet file or a NumPy archive.

    The file appears whole or not at all, and memory does not grow with the number of texts. See
    `ParquetFile` for its columns, `NpzFile` for its arrays.

    Args:
        {settings}
        progress: show a progress bar on the standard error stream.
        report: a function that is told in one line how the file was read.

    `model` may also be a pair of an encoder and its tokenizer, and `data` a list of texts.

    Returns:
        A dictionary: `texts` and `tokens`, how many there were, and `width`, D of the vectors.

    Raises:
        InputError: on bad input, or where `output` has another ending, is there already, or cannot
            be written.
    """
    if "text" in settings:
        raise InputError("`text` is called `data` now: a file of texts, or a list of them.")
    settings = EmbedToFileSettings.of(settings)
    output = Path(settings.output)
    make = _check_output(output, force=settings.force)
    texts = open_texts(settings.data, settings, report=report)
    embedder = open_embedder(settings.model, **settings.part(EmbedderSettings))
    described = {
        "version": keras_bert.__version__,
        "layers": settings.layers,
        "tokens": settings.tokens,
        "width": embedder.width,
    }
    counts = {"texts": 0, "tokens": 0, "width": embedder.width}
    total = _count_lines(settings.data) if progress else None
    with (
        files.new_file(output) as aside,
        make(aside, width=embedder.width, settings=described) as file,
        tqdm(total=total, unit=" lines", disable=not progress) as bar,
    ):
        for found in embedder(texts):
            file.write(found)
            counts["texts"] += 1
            counts["tokens"] += len(found.starts)
            bar.update(found.line - bar.n)
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
    files.check_output_file(output, is_ours=is_ours, force=force)
    return make


def _count_lines(path):
    """How many lines a file has, for a progress bar; None for what is no plain file."""
    if not isinstance(path, str) or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
