"""Reads documents from text files, Parquet files and prepared tfds datasets, in bounded pieces.

    for window in find(["books/*.txt"]):          # InputError: no such file, an empty one
        for block in blocks(window):              # descriptors: about a quarter MiB of text each
            for document in read(block):
                document.text                     # no sentence crosses a newline

A *window* is a stretch of a file that one worker scans, a *block* a run of whole documents that one
worker reads. Both are small descriptors, and only they go from worker to worker. What a block holds
depends on the content of its file alone. `data_gen.forms` says what a document of a text file is.

A job that wants nothing but the text of the files uses `ReadTexts`.
"""

import dataclasses
import hashlib
from collections import Counter
from typing import NamedTuple

import apache_beam as beam
from apache_beam.metrics import Metrics

from data_gen import files, forms, parquet_files, text_files, tfds_folders
from data_gen.reading import Reading, Window
from keras_bert.base.errors import InputError

BLOCK_BYTES = 256 << 10
TOKEN_CHARACTERS = 1 << 20

_SOURCES = {"parquet": parquet_files, "tfds": tfds_folders}
_DEFAULT = Reading()


class Document(NamedTuple):
    """A document from `start` to `end` of its file (see `blocks.Block`).

    `digest` is a 64-bit hash of `content`, the document as it stands there; `size` its bytes.
    """

    digest: int
    content: str
    form: str
    size: int
    start: int
    end: int

    @property
    def text(self):
        """One sentence (form "lines") or one paragraph (others) a line."""
        return forms.text_of(self.content, self.form)


class ReadTexts(beam.PTransform):
    """Reads the text of files: a PCollection of str, of at most 2**20 characters each.

    `windows` is what `find` returned. Documents are joined by newlines, which part sentences (form
    "lines") or paragraphs (others); a long one is cut at a newline or a space. `bad_lines` is as
    for `Reading`, and `text_field`.
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


def find(patterns, form=None):
    """Lists the windows of all that the patterns (paths, globs, tfds:NAME/CONFIG:SPLIT) match.

    `form` is one of `forms.FORMS` for text files, or None to tell it from each file's content.
    Raises `InputError` where a pattern matches nothing, or a file is empty.
    """
    if form is not None and form not in forms.FORMS:
        raise InputError(f"there is no form {form!r}: it is one of {', '.join(forms.FORMS)}")
    patterns = [patterns] if isinstance(patterns, str) else [str(each) for each in patterns]
    windows = []
    for pattern in patterns:
        if pattern.startswith(tfds_folders.PREFIX):
            windows += tfds_folders.windows(pattern)
    sizes = files.sizes([each for each in patterns if not each.startswith(tfds_folders.PREFIX)])
    for path, size in sorted(sizes.items()):
        starts = range(0, size, text_files.WINDOW_BYTES)
        for start, stop in zip(starts, [*starts[1:], None], strict=True):
            windows.append(Window(path, form, start, stop, (stop or size) - start))
    return windows


def blocks(window, *, reading=_DEFAULT, block_bytes=BLOCK_BYTES, eval_below=0, digests=None):
    """Scans a window, and yields the blocks of its documents, of `block_bytes` or one document.

    `eval_below` is the limit of `Block.eval_documents`. `digests`, a list, is filled with the
    hashes of each block's documents before the block is yielded.
    """
    for span in _spans(window, reading):
        yield from _blocks_of(span, reading, block_bytes, eval_below, digests)


def _spans(window, reading):
    if window.form in _SOURCES:
        return _SOURCES[window.form].spans(window, reading)
    head = files.head(window.path, forms.HEAD_BYTES)
    if window.form is None and files.kind(head) == "parquet":
        return parquet_files.spans(window, reading)
    return text_files.spans(window, head)


def read(block, *, reading=_DEFAULT, counts=None):
    """Yields the documents of a block in their order.

    `counts`, a Counter, is told what is left out.
    """
    counts = Counter() if counts is None else counts
    elsewhere, seen = frozenset(block.dropped), set()
    source = _SOURCES.get(block.form, text_files)
    for start, end, content in source.contents(block, reading, counts):
        for number, token in enumerate(_bounded(content.strip())):
            if number:
                counts[text_files.DOCUMENTS_CUT] += 1
            encoded = token.encode()
            digest = int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "big")
            document = Document(digest, token, block.form, len(encoded), start, end)
            reason = reading.reason_to_drop(document)
            if reading.drop_duplicates and reason is None:
                if digest in seen or digest in elsewhere:
                    reason = "dropped_duplicates"
                seen.add(digest)
            if reason is None:
                yield document
            else:
                counts[reason] += 1


def texts(block, *, reading=_DEFAULT):
    """Yields the text of a block in pieces of at most 2**20 characters (see `ReadTexts`).

    What was left out is counted by its reason in Beam's metrics.
    """
    for name, number in block.counts:
        Metrics.counter("documents", name).inc(number)
    held, size = [], 0
    for document in read(block, reading=reading):
        for part in parts(document.text, TOKEN_CHARACTERS):
            if held and size + len(part) > TOKEN_CHARACTERS:
                yield "\n".join(held)
                held, size = [], 0
            held.append(part)
            size += len(part) + 1
    if held:
        yield "\n".join(held)


def _blocks_of(span, reading, block_bytes, eval_below, digests):
    """Cuts a block without counts into blocks of `block_bytes`, or counts it whole (streams)."""
    block, hashes, counts = span, hashlib.blake2b(digest_size=16), Counter(dict(span.counts))
    digests = [] if digests is None else digests
    digests.clear()
    # Duplicates are counted as what they are: which of them is kept is not known yet.
    if reading.drop_duplicates:
        reading = dataclasses.replace(reading, drop_duplicates=False)
    for document in read(span, reading=reading, counts=counts):
        # The pieces of a very long line have one place in the file, and stay in one block.
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
    # What was left out is told with the last block; with an empty one, where nothing is left.
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
    """A text in pieces of at most `forms.MAX_DOCUMENT_BYTES`; none if it is empty."""
    if len(content) <= forms.MAX_DOCUMENT_BYTES // 4:  # a character has up to 4 bytes
        if content:
            yield content
        return
    data = content.encode()
    while len(data) > forms.MAX_DOCUMENT_BYTES:
        cut = forms.position_to_cut(data)
        yield data[:cut].decode()
        data = data[cut:]
    yield data.decode()
