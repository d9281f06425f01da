"""The embeddings of a file of texts as a file of vectors."""

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from tqdm import tqdm

import keras_bert
from keras_bert.base import files
from keras_bert.base.errors import InputError
from keras_bert.base.settings import takes
from keras_bert.base.terminal import drawn_on
from keras_bert.checkpoints import find_model_folder
from keras_bert.checkpoints.model_folder import fingerprint_of_folder
from keras_bert.inference.embeddings import npz_file, parquet_file
from keras_bert.inference.embeddings.embed import open_embedder, open_texts
from keras_bert.inference.embeddings.settings import EmbedderSettings, EmbedToFileSettings
from keras_bert.text.tokenizer import note_on_unknown

_FORMATS = {
    ".npz": (npz_file.NpzFile, npz_file.is_ours, npz_file.described),
    ".parquet": (parquet_file.ParquetFile, parquet_file.is_ours, parquet_file.described),
}


@takes(EmbedToFileSettings)
def embed_to_file(
    *, progress: bool = False, report: Callable[[str], None] | None = None, **settings
) -> dict[str, int]:
    """Embeds texts and writes the vectors to a Parquet file or a NumPy archive.

    The file appears whole or not at all, and memory does not grow with the number of texts. Where
    it is there already, made of the same files with the same settings, nothing is done. See
    `ParquetFile` for its columns, `NpzFile` for its arrays.

    Args:
        {settings}
        progress: show a progress bar on the standard error stream.
        report: a function that is told in one line how the file was read, and in another at the
            end where the vocabulary does not fit the texts.

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
    made_of = _made_of(settings)
    counts = None if settings.force else _counts_of_finished(output, made_of)
    if counts is not None:
        files.clear_leftovers(output)
        if report is not None:
            report(f"{output} is finished already; nothing is done.")
        return counts
    make = _check_output(output, force=settings.force)
    texts = open_texts(settings.data, settings, report=report)
    embedder = open_embedder(settings.model, **settings.part(EmbedderSettings))
    described = {
        "version": keras_bert.__version__,
        "layers": settings.layers,
        "tokens": settings.tokens,
        "width": embedder.width,
        "made_of": made_of,
    }
    counts = {"texts": 0, "tokens": 0, "width": embedder.width}
    total = _count_lines(settings.data) if progress else None
    with (
        files.new_file(output) as temporary,
        make(temporary, width=embedder.width, settings=described) as file,
        tqdm(total=total, unit=" lines", disable=not progress, file=drawn_on(sys.stderr)) as bar,
    ):
        for found in embedder(texts):
            file.write(found)
            counts["texts"] += 1
            counts["tokens"] += len(found.starts)
            bar.update(found.line - bar.n)
    note = note_on_unknown(embedder.unknown, embedder.tokens)
    if note and report is not None:
        report(f"Note: {note}")
    return counts


def _made_of(settings):
    """A hash of all that the vectors depend on; None where model or texts are no files."""
    if not (isinstance(settings.model, str) and isinstance(settings.data, str)):
        return None
    if not os.path.isfile(settings.data):
        return None
    said = settings.recorded()
    said["model"] = fingerprint_of_folder(Path(find_model_folder(settings.model)))
    with open(settings.data, "rb") as file:
        said["data"] = hashlib.file_digest(file, "sha256").hexdigest()
    del said["output"]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _counts_of_finished(output, made_of):
    """What `embed_to_file` returns of a file that was made of the same already, else None."""
    _, is_ours, described = _FORMATS.get(output.suffix, (None, None, None))
    if made_of is None or described is None or not (output.is_file() and is_ours(output)):
        return None
    settings, texts, tokens = described(output)
    if settings.get("made_of") != made_of:
        return None
    return {"texts": texts, "tokens": tokens, "width": settings["width"]}


def _check_output(output, *, force):
    """The class that writes the file; InputError where there may be none."""
    if output.suffix not in _FORMATS:
        raise InputError(
            f"The output {output} should end in {' or '.join(_FORMATS)}, which says its format."
        )
    if not output.parent.is_dir():
        raise InputError(f"There is no folder {output.parent} for the output {output.name}.")
    make, is_ours, _ = _FORMATS[output.suffix]
    files.check_output_file(output, is_ours=is_ours, force=force)
    return make


def _count_lines(path):
    """How many lines a file has, for a progress bar; None for what is no plain file."""
    if not isinstance(path, str) or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return sum(1 for _ in file)  # the last may end without a line feed
