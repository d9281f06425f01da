"""Writes a work item's shard: aside first, then under its name, so that none is ever half there."""

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import GlobalWindows

from data_gen.documents import read
from data_gen.new_file import new_file
from data_gen.output_folder import owner_of
from data_gen.statistics import Statistics
from keras_bert.base.errors import InputError
from keras_bert.records.folder import shard_name


class WriteShard(beam.DoFn):
    """Takes `work_items.Item`, writes its shard into the output, yields `Statistics`.

    The tokenizer is loaded once. An item that is done again leaves the same bytes. `unigrams` are
    the counts of the corpus where the settings need them. Raises `InputError` where the disk is
    full, or the output cannot be written for another reason, or belongs to another job by now.

    The statistics of all items of a bundle are yielded as one: a count for each piece of the
    vocabulary, they are too large to travel once an item, of which there may be thousands.
    """

    def __init__(self, settings):
        super().__init__()
        self._settings = settings

    def setup(self):
        # TensorFlow is loaded where rows are made, not where the job is described.
        from data_gen.row_builder import RowBuilder

        self._builder = RowBuilder(self._settings)
        self._owner = owner_of(self._settings.output)

    def start_bundle(self):
        self._total = Statistics()

    def process(self, item, unigrams=None):
        if self._builder.masker is None:
            self._builder.masker = self._settings.masker(unigrams)
        total = Statistics()
        name = shard_name(item.split, item.index, item.count, self._settings.compression)
        with new_file(f"{self._settings.output}/{name}") as shard:
            self._write(shard, item, total)
            total.counters[f"{item.split}/bytes"] += shard.stat().st_size
            if owner_of(self._settings.output) != self._owner:
                # This job was killed, and its worker lives on beside a new one.
                raise InputError(f"{self._settings.output} is another job's by now")
        for counter, value in total.counters.items():
            Metrics.counter("pretraining_data", counter).inc(value)
        total.shards[item.split, item.index] = total.counters[f"{item.split}/instances"]
        self._total.add(total)

    def finish_bundle(self):
        yield GlobalWindows.windowed_value(self._total)

    def _write(self, shard, item, total):
        """Writes the rows of an item into a local file, and adds what they are to `total`."""
        import tensorflow as tf

        compressed = self._settings.compression == "gzip"
        options = tf.io.TFRecordOptions(compression_type="GZIP" if compressed else "")
        with tf.io.TFRecordWriter(str(shard), options) as writer:
            for group in groups(item, self._settings):
                for rows, statistics in self._builder.rows(group, split=item.split):
                    for row in rows:
                        writer.write(row)
                    total.add(statistics)


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
