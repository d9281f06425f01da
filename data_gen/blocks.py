"""The descriptors of text that go from worker to worker."""

from typing import NamedTuple


class Window(NamedTuple):
    """The documents of `path` that begin from byte `start` up to `stop` (None: the end)."""

    path: str
    form: str | None  # None: to be told from the content
    start: int
    stop: int | None
    size: int  # its bytes on disk


class Block(NamedTuple):
    """A run of documents from `start` to `end` of a file (None: to its end).

    The places are bytes of a text file, rows of a Parquet file, records of a tfds shard. A `stream`
    cannot be entered in its middle: it is one block, however long, and read piece by piece.

    `digest` is a hash of what the documents hold, `size` their bytes. `eval_documents` and
    `eval_size` count those with a hash below the limit that was asked for, `lowest` and `highest`
    are the ends of their hashes. `counts` are those of what was left out, (name, number) each.
    `dropped` are the hashes of documents that are read from another block.
    """

    path: str
    form: str
    start: int
    end: int | None
    stream: bool = False
    digest: bytes = b""
    documents: int = 0
    size: int = 0
    eval_documents: int = 0
    eval_size: int = 0
    lowest: int = 2**64
    highest: int = -1
    counts: tuple = ()
    dropped: tuple = ()
