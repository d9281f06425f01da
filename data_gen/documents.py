"""Reads documents from text files, Parquet files and prepared tfds datasets, in bounded parts.

    for window in find(["books/*.txt"]):          # InputError: a missing or empty file
        for block in blocks(window):              # descriptors of about a quarter MiB of text each
            for document in read(block):
                document.text                     # no sentence crosses a newline

A *window* is a stretch of a file that one worker scans, a *block* a run of whole documents that one
worker reads. Both are small descriptors, and only they are sent from worker to worker. The content
of a block depends on the content of its file alone.

`ReadTexts` reads only the text. Prepared datasets are read from disk as TFRecord files: nothing is
downloaded, and tensorflow-datasets is not needed. Text files are in `data_gen.text_files`.
"""

import dataclasses
import hashlib
from collections import Counter
from typing import NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems
from apache_beam.metrics import Metrics

from data_gen import files, text_files
from data_gen.files import Block, Window
from data_gen.settings import Reading
from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, parse_json
from keras_bert.base.formatting import listed
from keras_bert.records.file_formats import (
    INFO,
    PREFIX,
    latest_version,
    not_prepared,
    open_parquet,
    parquet_batches,
    parse_tfds_name,
    shard_paths,
    shard_texts,
    split_info,
)

BLOCK_BYTES = 256 << 10
TEXT_CHARACTERS = 1 << 20

_DEFAULT = Reading()


class Document(NamedTuple):
    """A document from `start` to `end` of its file (see `Block`).

    `digest` is a 64-bit hash of `content`, the document as it is in the file; `size` its bytes.
    """

    digest: int
    content: str
    format: str
    size: int
    start: int
    end: int

    @property
    def text(self):
        """One sentence (format "lines") or one paragraph (others) per line."""
        return text_files.text_of(self.content, self.format)


def find(patterns, input_format=None):
    """Lists the windows of all that the patterns (paths, globs, tfds:NAME/CONFIG:SPLIT) match.

    `input_format` is one of `text_files.FORMATS` for text files, or None to detect it per file.
    Raises `InputError` if a pattern matches nothing, or a file is empty.
    """
    if input_format not in (None, *text_files.FORMATS):
        raise InputError.naming(
            "Invalid {input_format} {!r}. Choose from: {}.",
            input_format,
            ", ".join(text_files.FORMATS),
        )
    patterns = [patterns] if isinstance(patterns, str) else [str(pattern) for pattern in patterns]
    datasets = [pattern for pattern in patterns if pattern.startswith(PREFIX)]
    windows = [window for name in datasets for window in _tfds_windows(name)]
    sizes = files.sizes([pattern for pattern in patterns if pattern not in datasets])
    for path, size in sorted(sizes.items()):
        starts = range(0, size, text_files.WINDOW_BYTES)
        for start, stop in zip(starts, [*starts[1:], None], strict=True):
            windows.append(Window(path, input_format, start, stop, (stop or size) - start))
    return windows


def blocks(window, *, reading=_DEFAULT, block_bytes=BLOCK_BYTES, eval_below=0, digests=None):
    """Scans a window, and yields the blocks of its documents, of `block_bytes` or one document.

    `eval_below` is the limit of `Block.eval_documents`. `digests`, a list, is filled with the
    hashes of each block's documents before the block is yielded.
    """
    for span in _spans(window, reading):
        yield from _blocks_of(span, reading, block_bytes, eval_below, digests)


def _spans(window, reading):
    """The blocks of a window without counts."""
    if window.format == "tfds":
        return [Block(window.path, "tfds", 0, None, stream=True)]
    head = files.head(window.path, text_files.HEAD_BYTES)
    if window.format is None and files.detect(head) == "parquet":
        return _parquet_spans(window, reading)
    return text_files.spans(window, head)


def read(block, *, reading=_DEFAULT, counts=None):
    """Yields the documents of a block in their order.

    The Counter `counts` counts what is left out.
    """
    counts = Counter() if counts is None else counts
    elsewhere, seen = frozenset(block.dropped), set()
    for start, end, content in _contents(block, reading, counts):
        for number, part in enumerate(_bounded(content.strip())):
            if number:
                counts[text_files.DOCUMENTS_CUT] += 1
            encoded = part.encode()
            digest = int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "big")
            document = Document(digest, part, block.format, len(encoded), start, end)
            reason = reading.reason_to_drop(document)
            if reading.drop_duplicates and reason is None:
                if digest in seen or digest in elsewhere:
                    reason = "dropped_duplicates"
                seen.add(digest)
            if reason is None:
                yield document
            else:
                counts[reason] += 1


def _contents(block, reading, counts):
    """Yields (start, end, text) for each document of a block."""
    contents = {"parquet": _parquet_contents, "tfds": _tfds_contents}
    return contents.get(block.format, text_files.contents)(block, reading, counts)


def _blocks_of(span, reading, block_bytes, eval_below, digests):
    """Cuts a block without counts into blocks of `block_bytes`; a stream is counted whole."""
    block, hashes, counts = span, hashlib.blake2b(digest_size=16), Counter(dict(span.counts))
    digests = [] if digests is None else digests
    digests.clear()
    # Duplicates are counted like other documents: which of them is kept is not known yet.
    if reading.drop_duplicates:
        reading = dataclasses.replace(reading, drop_duplicates=False)
    for document in read(span, reading=reading, counts=counts):
        # The parts of a very long line have one offset in the file, and stay in one block.
        if block.size >= block_bytes and not span.stream and document.start >= block.end:
            yield block._replace(digest=hashes.digest(), counts=())
            block, hashes = span._replace(start=document.start), hashlib.blake2b(digest_size=16)
            digests.clear()
        hashes.update(document.digest.to_bytes(8, "big"))
        digests.append(document.digest)
        in_eval = document.digest < eval_below
        block = block._replace(
            end=span.end if span.stream else document.end,
            documents=block.documents + 1,
            size=block.size + document.size,
            eval_documents=block.eval_documents + in_eval,
            eval_size=block.eval_size + in_eval * document.size,
            lowest=min(block.lowest, document.digest),
            highest=max(block.highest, document.digest),
        )
    # The last block, which may be empty, has the counts of what was left out.
    yield block._replace(digest=hashes.digest(), counts=tuple(sorted(counts.items())))


def parts(text, longest):
    """Yields a text in parts of at most `longest` characters, cut at newlines or spaces."""
    start = 0
    while len(text) - start > longest:
        end = 1 + max(text.rfind(mark, start, start + longest) for mark in "\n ")
        yield text[start : end or start + longest]
        start = end or start + longest
    yield text[start:]


def _bounded(content):
    """A text in parts of at most `text_files.MAX_DOCUMENT_BYTES`; none if it is empty."""
    if len(content) <= text_files.MAX_DOCUMENT_BYTES // 4:  # a character has up to 4 bytes
        return [content] if content else []
    data = content.encode()
    return (part.decode() for _, _, part in text_files.cut((0, len(data), data)))


class ReadTexts(beam.PTransform):
    """Reads the text of files: a PCollection of str, of at most 2**20 characters each.

    `windows` is what `find` returned. Documents are joined by newlines, as separate sentences
    (format "lines") or paragraphs (others); a long one is cut at a newline or a space. `bad_lines`
    and `text_field` are those of `Reading`.
    """

    def __init__(self, windows, *, bad_lines="error", text_field="text"):
        super().__init__()
        self._windows = windows
        self._reading = Reading(bad_lines=bad_lines, text_field=text_field)

    def expand(self, pipeline):
        return (
            pipeline
            | "Windows" >> beam.Create(self._windows)
            | "SpreadWindows" >> beam.Reshuffle()
            | "Scan" >> beam.FlatMap(blocks, reading=self._reading)
            | "SpreadBlocks" >> beam.Reshuffle()
            | "Read" >> beam.FlatMap(texts, reading=self._reading)
        )


def texts(block, *, reading=_DEFAULT):
    """Yields the text of a block in parts of at most 2**20 characters (see `ReadTexts`).

    What is left out is counted by its reason in Beam's metrics.
    """
    for name, number in block.counts:
        Metrics.counter("documents", name).inc(number)
    pending, size = [], 0
    for document in read(block, reading=reading):
        for part in parts(document.text, TEXT_CHARACTERS):
            if pending and size + len(part) > TEXT_CHARACTERS:
                yield "\n".join(pending)
                pending, size = [], 0
            pending.append(part)
            size += len(part) + 1
    if pending:
        yield "\n".join(pending)


def _parquet_spans(window, reading):
    """A block per row group, which can be read on its own; `start` is the number of the group."""
    if window.start:
        return  # the first window has the whole file
    path, column = window.path, reading.text_field
    with files.open_file(path) as stream, open_parquet(stream, path) as file:
        groups, schema = file.num_row_groups, file.schema_arrow
    if column not in schema.names:
        raise InputError.naming(
            "{} has no column {}. Set {text_field} to the column of the text, one of {}.",
            path,
            column,
            listed(schema.names),
        )
    dtype = schema.field(column).type
    if not (pa.types.is_string(dtype) or pa.types.is_large_string(dtype)):
        raise InputError.naming(
            "The column {} of {} has the type {}. Set {text_field} to a column of strings.",
            column,
            path,
            dtype,
        )
    for group in range(groups):
        yield Block(path, "parquet", group, group + 1, stream=True)


def _parquet_contents(block, reading, counts):
    """The documents are in a column of strings; offsets are rows of the group."""
    part = {"row_groups": [*range(block.start, block.end)], "columns": [reading.text_field]}
    row = 0
    with files.open_file(block.path) as stream:
        for batch in parquet_batches(stream, block.path, **part):
            for text in batch.column(0).to_pylist():
                if text is None:
                    counts["empty_rows"] += 1
                else:
                    yield row, row + 1, text
                row += 1


def _tfds_windows(name):
    """The shards of `tfds:NAME/CONFIG:SPLIT` (see `TfdsName`) as windows.

    Raises `InputError` for a dataset or a split that is not prepared.
    """
    dataset = parse_tfds_name(name)
    folder = dataset.folder
    folder = f"{folder}/{dataset.version or _latest(folder, name)}"
    info = _read_info(folder, name)
    split = split_info(info, dataset.split, folder=folder)
    paths = shard_paths(info, split, folder=folder)
    for path in paths:
        if not FileSystems.exists(path):
            raise InputError(f"{path} is missing. Prepare the dataset {name} again.")
    size = int(split.get("numBytes", 0)) // max(1, len(paths))
    return [Window(path, "tfds", 0, None, size) for path in paths]


def _tfds_contents(block, reading, counts):
    """The offsets are numbers of records."""
    for number, text in enumerate(shard_texts(block.path, reading.text_field)):
        yield number, number + 1, text


def _latest(folder, name):
    """The highest version in a dataset's folder."""
    try:
        matches = FileSystems.match([f"{folder}/*/{INFO}"])[0].metadata_list
    except (BeamIOError, ValueError) as error:
        raise InputError(f"Could not list {folder}: {error}.") from None
    version = latest_version(match.path.split("/")[-2] for match in matches)
    if version is None:
        raise not_prepared(name, folder)
    return version


def _read_info(folder, name):
    try:
        with FileSystems.open(f"{folder}/{INFO}") as file:
            return parse_json(file.read())
    except (BeamIOError, OSError):
        raise InputError(
            f"{name} is not prepared: there is no {folder}/{INFO}. Prepare the dataset again."
        ) from None
    except NotJson as error:
        raise InputError(f"{folder}/{INFO} is not JSON: {error}.") from None
