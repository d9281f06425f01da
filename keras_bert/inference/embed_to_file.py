"""The embeddings of a file of texts as a Parquet file or a NumPy archive."""

import contextlib
import hashlib
import json
import math
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import compute, ipc, parquet

import keras_bert
from keras_bert.base import files, ownership
from keras_bert.base.errors import InputError
from keras_bert.base.progress import ProgressBar
from keras_bert.base.settings import takes
from keras_bert.checkpoints import find_model_folder
from keras_bert.checkpoints.model_folder import fingerprint_of_folder
from keras_bert.inference.embed import open_embedder, open_texts
from keras_bert.inference.settings import EmbedderSettings, EmbedToFileSettings, embed_settings
from keras_bert.readers.sources import report_source
from keras_bert.tasks import settings_class, task_class
from keras_bert.text.tokenizer import note_on_unknown

# Numbers that are written together (16 MiB): Parquet row groups of a few texts are slow to read,
# and large ones take memory.
_NUMBERS_PER_GROUP = 1 << 22
# Characters of a token in a NumPy archive: NumPy gives every string the room of the longest.
_LONGEST_TOKEN = 64
# Tokens of a NumPy archive that are strings in memory at the same time.
_TOKENS_TOGETHER = 1 << 16


@takes(EmbedToFileSettings)
def embed_to_file(
    *, progress: bool = False, report: Callable[[str], None] | None = None, **settings
) -> dict[str, int]:
    """Embeds texts and writes the vectors to a Parquet file or a NumPy archive.

    The file appears complete or not at all, and memory does not grow with the number of texts. If
    it already exists and was made from the same files with the same settings, nothing is done. See
    `ParquetFile` for its columns and `NpzFile` for its arrays.

    Args:
        {settings}
        progress: show a progress bar on the standard error stream.
        report: a function that is called with a line on how the file was read, and at the end with
            another one if the vocabulary does not fit the texts.

    `model` may also be a pair of an encoder and its tokenizer, and `data` a list of texts. With
    `task`, `data` is what `keras_bert.finetune` takes as `train`, and the settings by which that
    task reads it take the place of `text_column` and `header`; the file is for the setting
    `features` of `keras_bert.finetune`.

    Returns:
        A dictionary: `texts` and `tokens`, their numbers, and `width`, the size D of a vector.

    Raises:
        InputError: on bad input, or if `output` has another ending, already exists, or cannot be
            written.
    """
    if "text" in settings:
        raise InputError("`text` is called `data` now: a file of texts, or a list of them.")
    settings = embed_settings(settings.get("task")).of(settings)
    output = Path(settings.output)
    made_of = _made_of(settings)
    counts = None if settings.force else _counts_of_finished(output, made_of)
    if counts is not None:
        files.clear_leftovers(output)
        if report is not None:
            report(f"{output} is finished already; nothing is done.")
        return counts
    file_class = _check_output(output, force=settings.force)
    texts = _open_examples(settings, report)
    usual = None if settings.task is None else settings_class(settings.task).MAX_LENGTH
    options = settings.part(EmbedderSettings)
    embedder = open_embedder(settings.model, truncate_at=usual, **options)
    metadata = {
        "version": keras_bert.__version__,
        "task": settings.task,
        "pairs": settings.reads_pairs,
        "layers": settings.layers,
        "tokens": settings.tokens,
        "max_length": embedder.max_length,
        "width": embedder.width,
        "weights": embedder.weights,
        "made_of": made_of,
    }
    counts = {"texts": 0, "tokens": 0, "width": embedder.width}
    total = _count_lines(settings.data) if progress else None
    with (
        files.new_file(output) as temporary,
        file_class(temporary, width=embedder.width, settings=metadata) as file,
        ProgressBar(
            "Embedding", unit="lines", total=total, line_seconds=10, enabled=progress
        ) as bar,
    ):
        for embedding in embedder(texts):
            file.write(embedding)
            counts["texts"] += 1
            counts["tokens"] += len(embedding.starts)
            bar.update(embedding.line)
    note = note_on_unknown(embedder.unknown, embedder.tokens)
    if note and report is not None:
        report(f"Note: {note}")
    return counts


def _open_examples(settings, report):
    """The examples of the file, read as texts or for a task."""
    if settings.task is None:
        return open_texts(settings.data, settings, report=report)
    examples = task_class(settings.task).read(settings.data, **settings.columns)
    report_source(examples, report)
    return examples


def _made_of(settings):
    """A hash of everything that the vectors depend on; None if model or texts are not files."""
    if not (isinstance(settings.model, str) and isinstance(settings.data, str)):
        return None
    if not os.path.isfile(settings.data):
        return None
    recorded = settings.recorded()
    recorded["model"] = fingerprint_of_folder(Path(find_model_folder(settings.model)))
    with open(settings.data, "rb") as file:
        recorded["data"] = hashlib.file_digest(file, "sha256").hexdigest()
    del recorded["output"]
    return hashlib.sha256(json.dumps(recorded, sort_keys=True).encode()).hexdigest()


def _counts_of_finished(output, made_of):
    """What `embed_to_file` returns for an output that is up to date, else None."""
    file_class = _FORMATS.get(output.suffix)
    if made_of is None or file_class is None:
        return None
    if not (output.is_file() and file_class.is_ours(output)):
        return None
    settings, texts, tokens = file_class.describe(output)
    if settings.get("made_of") != made_of:
        return None
    return {"texts": texts, "tokens": tokens, "width": settings["width"]}


def _check_output(output, *, force):
    """The class that writes the output; `InputError` if it cannot be written there."""
    if output.suffix not in _FORMATS:
        raise InputError(f"The output {output} should end in {' or '.join(_FORMATS)}.")
    if not output.parent.is_dir():
        raise InputError(f"There is no folder {output.parent} for the output {output.name}.")
    file_class = _FORMATS[output.suffix]
    ownership.check_output_file(output, is_ours=file_class.is_ours, force=force)
    return file_class


def _count_lines(path):
    """The number of lines of a file, for a progress bar; None for anything else."""
    if not isinstance(path, str) or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return sum(1 for _ in file)  # the last may end without a line feed


class _EmbeddingWriter:
    """Collects `TextEmbedding`s and passes them on in Arrow tables of limited size.

    A subclass sets `_writer`, which takes the tables.

    Args:
        width: D, the size of a vector.
        settings: a dictionary that describes how the vectors were made.
    """

    def __init__(self, *, width, settings):
        self._width = width
        self._pairs = settings.get("pairs", False)
        vector = pyarrow.list_(pyarrow.float32(), width)
        self._schema = pyarrow.schema(
            [
                ("line", pyarrow.int64()),
                ("fingerprint", pyarrow.int64()),
                ("text", pyarrow.string()),
                *([("text_b", pyarrow.string())] if self._pairs else []),
                ("tokens", pyarrow.list_(pyarrow.string())),
                ("starts", pyarrow.list_(pyarrow.int32())),
                ("ends", pyarrow.list_(pyarrow.int32())),
                ("vectors", pyarrow.list_(vector)),
                ("cls", vector),
                ("mean", vector),
            ],
            metadata={"keras_bert": json.dumps(settings)},
        )
        self._waiting, self._numbers = [], 0

    def __enter__(self):
        return self

    def write(self, embedding):
        """Takes the embedding of the next text."""
        self._waiting.append(embedding)
        self._numbers += embedding.vectors.size + 2 * self._width
        if self._numbers >= _NUMBERS_PER_GROUP:
            self._flush()

    def _flush(self):
        if not self._waiting:
            return
        waiting = self._waiting
        splits = np.concatenate([[0], np.cumsum([len(each.starts) for each in waiting])])
        tokens = [_as_utf8(token) for each in waiting for token in each.tokens]

        def lists(values):
            return pyarrow.ListArray.from_arrays(pyarrow.array(splits, pyarrow.int32()), values)

        def offsets(name):
            values = np.concatenate([getattr(each, name) for each in waiting])
            return lists(pyarrow.array(values, pyarrow.int32()))

        def vectors(name):
            numbers = np.concatenate([getattr(each, name) for each in waiting]).reshape(-1)
            return pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(numbers), self._width)

        texts = [[_as_utf8(each.text) for each in waiting]]
        if self._pairs:
            texts.append([_as_utf8(each.text_b) for each in waiting])
        columns = [
            pyarrow.array([each.line for each in waiting], pyarrow.int64()),
            pyarrow.array([each.fingerprint for each in waiting], pyarrow.int64()),
            *(pyarrow.array(column, pyarrow.string()) for column in texts),
            lists(pyarrow.array(tokens, pyarrow.string())),
            offsets("starts"),
            offsets("ends"),
            lists(vectors("vectors")),
            vectors("cls"),
            vectors("mean"),
        ]
        self._writer.write_table(pyarrow.Table.from_arrays(columns, schema=self._schema))
        self._waiting, self._numbers = [], 0


def _as_utf8(text):
    """The text as bytes; half of a surrogate pair, which has no UTF-8, as one question mark."""
    return text.encode("utf-8", "replace")


class ParquetFile(_EmbeddingWriter):
    """Writes `TextEmbedding`s to a Parquet file, in memory that does not grow with their number.

    Columns: `line` int64, `fingerprint` int64 (a hash of the token ids that the model read), `text`
    string (and of pairs `text_b`), `tokens` list of strings, `starts` and `ends` lists of
    int32, `vectors` a list of D float32 each, `cls` and `mean` D float32. The file's metadata has
    the settings as JSON under `keras_bert`.

    The file is complete at the end of a `with`, unless its body failed.

    Args:
        path: the file, replaced if it exists.
        width: D.
        settings: a dictionary that describes how the vectors were made.
    """

    def __init__(self, path, *, width, settings):
        super().__init__(width=width, settings=settings)
        # Python's own file, so that an error of the system is an `OSError`.
        self._file = open(path, "wb")
        self._writer = parquet.ParquetWriter(
            self._file,
            self._schema,
            compression="zstd",
            # Vectors hardly repeat, so a dictionary of them takes time and saves nothing.
            use_dictionary=["tokens.list.element"],
        )

    def __exit__(self, kind, error, traceback):
        with self._file:
            if error is None:
                self._flush()
                self._writer.close()
            else:
                with contextlib.suppress(OSError, pyarrow.ArrowException):
                    self._writer.close()

    @staticmethod
    def is_ours(path):
        """Whether `ParquetFile` wrote the file."""
        try:
            metadata = parquet.read_schema(path).metadata
        except (OSError, pyarrow.ArrowInvalid):
            return False
        return b"keras_bert" in (metadata or {})

    @staticmethod
    def describe(path):
        """The settings in a file of ours, and its numbers of texts and tokens."""
        with parquet.ParquetFile(path) as file:
            settings = json.loads(file.schema_arrow.metadata[b"keras_bert"])
            batches = file.iter_batches(columns=["starts"])
            tokens = sum(len(batch.column(0).flatten()) for batch in batches)
            return settings, file.metadata.num_rows, tokens

    @staticmethod
    def parts(path, name):
        """Yields a column in parts: `line` and `fingerprint` (n,), vectors (n, D)."""
        with parquet.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                column = file.read_row_group(number, columns=[name]).column(0).combine_chunks()
                while pyarrow.types.is_list(column.type):
                    column = column.flatten()
                values = column
                if pyarrow.types.is_fixed_size_list(column.type):
                    values = column.flatten().to_numpy().reshape(-1, column.type.list_size)
                yield np.asarray(values)


class NpzFile(_EmbeddingWriter):
    """Writes `TextEmbedding`s to a NumPy archive, in memory that does not grow with their number.

    Arrays (N texts, T tokens in all, D numbers per vector): `lines` and `fingerprints` int64 (N,)
    (a hash of the token ids that the model read), `row_splits` int64
    (N + 1,), with the tokens of text i from row_splits[i] to row_splits[i + 1]; `tokens` string
    (T,), cut to 64 characters; `starts` and `ends` int32 (T,); `vectors` float32 (T, D); `cls` and
    `mean` float32 (N, D); `settings`, JSON.

    The archive is complete at the end of a `with`, unless its body failed. An array begins with its
    shape, so until then the embeddings are in an unnamed file in the folder of the output, which
    the system deletes in any case. (`numpy.savez` would need all of them in memory.)

    Args:
        path: the file, replaced if it exists.
        width: D.
        settings: a dictionary that describes how the vectors were made.
    """

    def __init__(self, path, *, width, settings):
        super().__init__(width=width, settings=settings)
        self._path = path
        self._file = tempfile.TemporaryFile(dir=Path(path).parent)
        self._writer = ipc.new_file(self._file, self._schema)

    def __exit__(self, kind, error, traceback):
        with self._file:
            if error is None:
                self._flush()
                self._writer.close()
                with zipfile.ZipFile(self._path, "w", allowZip64=True) as archive:
                    self._write_arrays(archive)

    def _write_arrays(self, archive):
        width = self._width
        splits = [np.zeros(1, np.int64)]
        for column in self._column("starts"):
            splits.append(splits[-1][-1] + column.offsets.to_numpy()[1:].astype(np.int64))
        lines = (column.to_numpy() for column in self._column("line"))
        texts, tokens = sum(map(len, splits)) - 1, int(splits[-1][-1])
        _write_array(archive, "lines", np.int64, (texts,), lines)
        hashes = (column.to_numpy() for column in self._column("fingerprint"))
        _write_array(archive, "fingerprints", np.int64, (texts,), hashes)
        _write_array(archive, "row_splits", np.int64, (texts + 1,), splits)
        for name, dtype, shape in (
            ("starts", np.int32, (tokens,)),
            ("ends", np.int32, (tokens,)),
            ("vectors", np.float32, (tokens, width)),
            ("cls", np.float32, (texts, width)),
            ("mean", np.float32, (texts, width)),
        ):
            columns = self._column(name)
            numbers = (compute.list_flatten(c, recursive=True).to_numpy() for c in columns)
            _write_array(archive, name, dtype, shape, numbers)
        lengths = (compute.utf8_length(column.values) for column in self._column("tokens"))
        longest = max((compute.max(each).as_py() or 1 for each in lengths), default=1)
        dtype = np.dtype(f"<U{min(longest, _LONGEST_TOKEN)}")  # cuts longer strings
        strings = (
            np.array(column.values[start : start + _TOKENS_TOGETHER].to_pylist(), dtype)
            for column in self._column("tokens")
            for start in range(0, len(column.values), _TOKENS_TOGETHER)
        )
        _write_array(archive, "tokens", dtype, (tokens,), strings)
        settings = np.array(self._schema.metadata[b"keras_bert"].decode())
        _write_array(archive, "settings", settings.dtype, (), [settings])

    def _column(self, name):
        """Yields the arrays of a column, one per table that was written."""
        fields = [self._schema.get_field_index(name)]
        reader = ipc.open_file(self._file, options=ipc.IpcReadOptions(included_fields=fields))
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number).column(0)

    @staticmethod
    def is_ours(path):
        """Whether `NpzFile` wrote the file."""
        try:
            with zipfile.ZipFile(path) as archive:
                names = set(archive.namelist())
        except (OSError, zipfile.BadZipFile):
            return False
        return {"settings.npy", "row_splits.npy", "vectors.npy"} <= names

    @staticmethod
    def describe(path):
        """The settings in a file of ours, and its numbers of texts and tokens."""
        with np.load(path) as arrays:
            settings = json.loads(str(arrays["settings"]))
            return settings, len(arrays["lines"]), int(arrays["row_splits"][-1])

    @staticmethod
    def parts(path, name):
        """Yields an array in parts, by the name of its column in `ParquetFile`."""
        name = {"line": "lines", "fingerprint": "fingerprints"}.get(name, name)
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as entry:
            np.lib.format.read_magic(entry)
            shape, _, dtype = np.lib.format.read_array_header_1_0(entry)
            numbers = math.prod(shape[1:])
            size, rows = dtype.itemsize * numbers, max(1, _NUMBERS_PER_GROUP // numbers)
            for _ in range(0, shape[0], rows):
                yield np.frombuffer(entry.read(rows * size), dtype).reshape(-1, *shape[1:])
            entry.read(1)  # at the end of an array its checksum is compared


def _write_array(archive, name, dtype, shape, parts):
    """Writes an array of an archive in parts."""
    dtype = np.dtype(dtype)
    with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
        descr = np.lib.format.dtype_to_descr(dtype)
        header = {"descr": descr, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(entry, header)
        for part in parts:
            entry.write(np.ascontiguousarray(part, dtype).tobytes())


_FORMATS = {".npz": NpzFile, ".parquet": ParquetFile}


class FeaturesFile:
    """What `embed_to_file` wrote for the training examples of a task.

    Args:
        path: the file.

    Attributes: `path`; `layers`, `tokens`, `max_length`, `width` and `weights` (see
    `weights_fingerprint`), how the vectors were made; `lines` and `fingerprints`, int64 (N,), of
    the N texts (see `TextEmbedding`).

    Raises InputError: the file is missing, damaged, or not one of `embed_to_file`.
    """

    def __init__(self, path):
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError(f"The features file {path} does not exist. Write it with `embed`.")
        self._format = _FORMATS.get(self.path.suffix)
        if self._format is None or not self._format.is_ours(self.path):
            raise InputError(
                f"{path} is not a complete file of `embed`, a {' or '.join(_FORMATS)}. Write one "
                "with `embed`."
            )
        with self._reading():
            settings, count, _ = self._format.describe(self.path)
            if "weights" not in settings:
                raise InputError(
                    f"{path} was written by an earlier version, which did not record the model. "
                    "Write it again."
                )
            names = ("layers", "tokens", "max_length", "width", "weights")
            self.layers, self.tokens, self.max_length, self.width, self.weights = (
                settings[name] for name in names
            )
            none = [np.zeros(0, np.int64)]
            self.lines, self.fingerprints = (
                np.concatenate([*none, *self._format.parts(self.path, name)])
                for name in ("line", "fingerprint")
            )
        if not len(self.lines) == len(self.fingerprints) == count:
            raise self.damaged()

    def vectors(self, name):
        """Yields `cls`, `mean` or `vectors` (those of all tokens) in parts, float32 (n, D)."""
        with self._reading():
            for part in self._format.parts(self.path, name):
                is_ours = part.dtype == np.float32 and part.shape[1:] == (self.width,)
                if not (is_ours and np.isfinite(part).all()):
                    raise self.damaged()
                yield part

    def damaged(self):
        """The `InputError` for a file that was damaged after `embed_to_file` wrote it."""
        return InputError(f"{self.path} is damaged. Write it again with `embed`.")

    @property
    def fingerprint(self):
        """A hash of what the vectors depend on."""
        made_of = self.weights, self.layers, self.tokens, self.max_length
        digest = hashlib.sha256(json.dumps(made_of).encode())
        digest.update(self.fingerprints.tobytes())
        return digest.hexdigest()

    @contextlib.contextmanager
    def _reading(self):
        try:
            yield
        except InputError:
            raise
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise self.damaged() from error
