"""gzip and Parquet, for jobs and for labelled files: how they begin, and how they are read.

Both take an open binary file, of this machine or of Beam's file systems.
"""

import contextlib
import gzip
import zlib

from keras_bert.base.errors import InputError, reason_of

GZIP, PARQUET = b"\x1f\x8b", b"PAR1"  # how such a file begins
ROWS_PER_BATCH = 1024


@contextlib.contextmanager
def gzip_errors(name):
    """Raises an InputError that names the file where it is damaged or cut short."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{name} is not a complete gzip file ({error}).") from None


def decompressed(file):
    """A binary file, decompressed. Read it within `gzip_errors`."""
    return gzip.GzipFile(fileobj=file)


@contextlib.contextmanager
def open_parquet(file, name):
    """Opens a Parquet file; InputError where it is damaged, then and when it is read."""
    import pyarrow
    from pyarrow import parquet

    try:
        yield parquet.ParquetFile(file)
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"Could not read {name} as a Parquet file: {reason_of(error)}.") from None


def parquet_batches(file, name, **part):
    """Yields the record batches of a Parquet file; `part` are arguments of `iter_batches`."""
    with open_parquet(file, name) as opened:
        yield from opened.iter_batches(ROWS_PER_BATCH, **part)
