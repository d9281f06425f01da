"""Reads documents from text files, Parquet files and prepared tfds datasets, in bounded parts.

    for window in find(["books/*.txt"]):          # InputError: a missing or empty file
        for block in blocks(window):              # descriptors of about a quarter MiB of text each
            for document in read(block):
                document.text                     # no sentence crosses a newline

A *window* is a stretch of a file that one worker scans, a *block* a run of whole documents that one
worker reads. Both are small descriptors, and only they are sent from worker to worker. The content
of a block depends on the content of its file alone.

`ReadTexts` reads only the text.
"""

import dataclasses
import hashlib
from collections import Counter
from typing import NamedTuple

import apache_beam as beam
from apache_beam.metrics import Metrics

from data_gen import files, sources, text_files
from data_gen.settings import Reading
from data_gen.sources import Window
from keras_bert.base.errors import InputError
from keras_bert.records.tfds_folders import PREFIX

BLOCK_BYTES = 256 << 10
TEXT_CHARACTERS = 1 << 20

_SPANS = {"parquet": sources.parquet_spans, "tfds": sources.tfds_spans}
_CONTENTS = {"parquet": sources.parquet_contents, "tfds": sources.tfds_contents}
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
    Raises `InputError` where a pattern matches nothing, or a file is empty.
    """
    if input_format not in (None, *text_files.FORMATS):
        raise InputError(
            f"Invalid `input_format` {input_format!r}. "
            f"Choose from: {', '.join(text_files.FORMATS)}."
        )
    patterns = [patterns] if isinstance(patterns, str) else [str(each) for each in patterns]
    datasets = [pattern for pattern in patterns if pattern.startswith(PREFIX)]
    windows = [window for name in datasets for window in sources.tfds_windows(name)]
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
    if window.format in _SPANS:
        return _SPANS[window.format](window, reading)
    head = files.head(window.path, text_files.HEAD_BYTES)
    if window.format is None and files.detect(head) == "parquet":
        return sources.parquet_spans(window, reading)
    return text_files.spans(window, head)


def read(block, *, reading=_DEFAULT, counts=None):
    """Yields the documents of a block in their order.

    The Counter `counts` counts what is left out.
    """
    counts = Counter() if counts is None else counts
    elsewhere, seen = frozenset(block.dropped), set()
    contents = _CONTENTS.get(block.format, text_files.contents)
    for start, end, content in contents(block, reading, counts):
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
    longest = text_files.MAX_DOCUMENT_BYTES
    if len(content) <= longest // 4:  # a character has up to 4 bytes
        if content:
            yield content
        return
    data = content.encode()
    while len(data) > longest:
        cut = text_files.position_to_cut(data)
        yield data[:cut].decode()
        data = data[cut:]
    yield data.decode()


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
    held, size = [], 0
    for document in read(block, reading=reading):
        for part in parts(document.text, TEXT_CHARACTERS):
            if held and size + len(part) > TEXT_CHARACTERS:
                yield "\n".join(held)
                held, size = [], 0
            held.append(part)
            size += len(part) + 1
    if held:
        yield "\n".join(held)
