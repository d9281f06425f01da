"""Embeddings as a NumPy archive: flat arrays, and where each text begins in them."""

import contextlib
import json
import shutil
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from keras_bert.inference.embeddings.parquet_file import as_utf8

# Characters of a token in the array of tokens: NumPy gives every string the room of the longest.
_LONGEST_TOKEN = 64
_TOKENS_AT_ONCE = 1 << 16


class NpzFile:
    """Writes `TextEmbedding`s, in memory that does not grow with their number.

    Arrays (N texts, T tokens in all, D width): `lines` int64 (N,), `row_splits` int64 (N + 1,): the
    tokens of text i are row_splits[i] to row_splits[i + 1]; `tokens` string (T,), cut to 64
    characters; `starts` and `ends` int32 (T,); `vectors` float32 (T, D); `cls` and `mean` float32
    (N, D); `settings`, JSON. How many rows an array has stands at its beginning, so the numbers
    wait in files without a name beside the output, which the system deletes whatever happens. The
    archive is whole at the end of a `with`, unless its body failed.

    Args:
        path: the file, replaced if it is there.
        width: D.
        settings: a dictionary that says how the vectors were made.
    """

    def __init__(self, path, *, width, settings):
        self._path = Path(path)
        self._settings = json.dumps(settings)
        self._open_files = contextlib.ExitStack()
        self._columns = {
            name: _Column(self._new_file(), dtype, shape)
            for name, dtype, shape in (
                ("lines", "int64", ()),
                ("row_splits", "int64", ()),
                ("starts", "int32", ()),
                ("ends", "int32", ()),
                ("vectors", "float32", (width,)),
                ("cls", "float32", (width,)),
                ("mean", "float32", (width,)),
            )
        }
        self._tokens = self._new_file()
        self._longest = 1
        self._count = 0
        self._columns["row_splits"].append([0])

    def write(self, embedding):
        """Takes the embedding of the next text."""
        tokens = [token[:_LONGEST_TOKEN] for token in embedding.tokens]
        self._longest = max([self._longest, *map(len, tokens)])
        self._tokens.write(b"".join(as_utf8(token) + b"\n" for token in tokens))
        self._count += len(tokens)
        self._columns["lines"].append([embedding.line])
        self._columns["row_splits"].append([self._count])
        for name in ("starts", "ends", "vectors"):
            self._columns[name].append(getattr(embedding, name))
        for name in ("cls", "mean"):
            self._columns[name].append(getattr(embedding, name)[None])

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        with self._open_files:
            if error is None:
                self._put_together()

    def _new_file(self):
        file = tempfile.TemporaryFile(dir=self._path.parent)
        return self._open_files.enter_context(file)

    def _put_together(self):
        with zipfile.ZipFile(self._path, "w", allowZip64=True) as archive:
            for name, column in self._columns.items():
                with _entry(archive, name, column.dtype, (column.rows, *column.shape)) as entry:
                    column.copy_to(entry)
            dtype = np.dtype(f"<U{self._longest}")
            with _entry(archive, "tokens", dtype, (self._count,)) as entry:
                for tokens in self._stored_tokens():
                    entry.write(np.array(tokens, dtype).tobytes())
            settings = np.array(self._settings)
            with _entry(archive, "settings", settings.dtype, ()) as entry:
                entry.write(settings.tobytes())

    def _stored_tokens(self):
        """Yields lists of the tokens that were written."""
        self._tokens.seek(0)
        tokens = []
        for line in self._tokens:
            tokens.append(line[:-1].decode("utf-8"))
            if len(tokens) == _TOKENS_AT_ONCE:
                yield tokens
                tokens = []
        yield tokens


class _Column:
    """Rows of one array on their way to the archive."""

    def __init__(self, file, dtype, shape):
        self.dtype = np.dtype(dtype)
        self.shape = shape
        self.rows = 0
        self._file = file

    def append(self, values):
        values = np.ascontiguousarray(values, self.dtype)
        self._file.write(values.tobytes())
        self.rows += len(values)

    def copy_to(self, target):
        self._file.seek(0)
        shutil.copyfileobj(self._file, target, 1 << 20)


def _entry(archive, name, dtype, shape):
    """Opens an array of an archive for its bytes, its header written."""
    entry = archive.open(f"{name}.npy", "w", force_zip64=True)
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(entry, header)
    return entry


def is_ours(path):
    """Whether `NpzFile` wrote the file."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False
    return {"settings.npy", "row_splits.npy", "vectors.npy"} <= names


def described(path):
    """-> (the settings that `NpzFile` wrote into a file of its own, its texts, its tokens)."""
    with np.load(path) as arrays:
        settings = json.loads(str(arrays["settings"]))
        return settings, len(arrays["lines"]), int(arrays["row_splits"][-1])
