"""Writes a work item's shard: aside first, then under its name, so that none is ever half there."""

import os
import tempfile
import uuid

import apache_beam as beam
from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import GlobalWindows

from data_gen.documents import read
from data_gen.statistics import Statistics
from keras_bert.errors import InputError
from keras_bert.records.folder import shard_name

_COPIED_AT_ONCE = 4 << 20


class WriteShard(beam.DoFn):
    """Takes `work_items.Item`, writes its shard into the output, yields `Statistics`.

    The tokenizer is loaded once. An item that is done again leaves the same bytes. `unigrams` are
    the counts of the corpus where the settings need them. Raises `InputError` where the disk is
    full, or the output cannot be written for another reason.

    The statistics of all items of a bundle are yielded as one: a count for each piece of the
    vocabulary, they are too large to travel once an item, of which there may be thousands.
    """

    def __init__(self, settings):
        super().__init__()
        self._settings = settings

    def setup(self):
        # Loads TensorFlow: here, in a worker, and not where the job is described.
        from data_gen.row_builder import RowBuilder

        self._builder = RowBuilder(self._settings)

    def start_bundle(self):
        self._total = Statistics()

    def process(self, item, unigrams=None):
        import tensorflow as tf

        if self._builder.masker is None:
            self._builder.masker = self._settings.masker(unigrams)
        total = Statistics()
        name = shard_name(item.split, item.index, item.count, self._settings.compression)
        with tempfile.TemporaryDirectory(prefix="keras_bert_") as folder:
            local = os.path.join(folder, "shard")
            try:
                with tf.io.TFRecordWriter(local, self._options()) as writer:
                    for group in groups(item, self._settings):
                        for rows, statistics in self._builder.rows(group, split=item.split):
                            for row in rows:
                                writer.write(row)
                            total.add(statistics)
                total.counters[f"{item.split}/bytes"] += os.path.getsize(local)
                put(local, f"{self._settings.output}/{name}")
            except (OSError, BeamIOError, tf.errors.OpError) as error:
                raise InputError(f"the shard {name} cannot be written: {error}") from error
        for counter, value in total.counters.items():
            Metrics.counter("pretraining_data", counter).inc(value)
        total.shards[item.split, item.index] = total.counters[f"{item.split}/instances"]
        self._total.add(total)

    def finish_bundle(self):
        yield GlobalWindows.windowed_value(self._total)

    def _options(self):
        import tensorflow as tf

        compressed = self._settings.compression == "gzip"
        return tf.io.TFRecordOptions(compression_type="GZIP" if compressed else "")


def groups(item, settings):
    """Yields the documents of an item as lists: all at once, or, from a long stream, some MiB."""
    held, size = [], 0
    for block in item.blocks:
        for document in read(block, reading=settings.reading):
            if not item.has(document):
                continue
            held.append(document)
            size += document.size
            if size >= 3 * settings.item_bytes and len(held) > 1:
                # Not all of it: what is left at the end is never less than an item.
                keep = []
                while size > 2 * settings.item_bytes and len(held) > 1:
                    keep.append(held.pop())
                    size -= keep[-1].size
                yield held
                held = keep[::-1]
                size = sum(document.size for document in held)
    if held:
        yield held


def put(local, path):
    """Copies a local file to `path` on any file system: aside first, then renamed.

    Raises `InputError` where it cannot be written.
    """
    aside = f"{path}.part-{uuid.uuid4().hex}"
    try:
        with open(local, "rb") as source:
            with FileSystems.create(
                aside, "application/octet-stream", CompressionTypes.UNCOMPRESSED
            ) as target:
                while chunk := source.read(_COPIED_AT_ONCE):
                    target.write(chunk)
        FileSystems.rename([aside], [path])
    except (OSError, BeamIOError) as error:
        raise InputError(f"{path} cannot be written: {error}") from None
