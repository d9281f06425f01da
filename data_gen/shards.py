"""Plans the work, and writes each work item's shard: aside first, so that none is half there.

An item is a bounded amount of whole documents and makes one shard. Items follow from the documents
alone: blocks are put into the order of their hashes, and cut into runs of nearly equal size. So it
does not matter what the files are called, in which order they come, or how many workers there are;
and since the hashes are as good as random, documents that meet in an item come from all over the
corpus, which random next sentences want.

The eval split takes the documents whose hash is below a limit, so that the same document is always
on the same side. Eval items read blocks that train items read, too, and each leaves out the other's
documents: that costs a second reading, which is cheap, and no descriptor for each document.
"""

from typing import NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import GlobalWindows

from data_gen.documents import read
from data_gen.files import new_file
from data_gen.output_folder import owner_of
from data_gen.reading import Block
from data_gen.statistics import Statistics
from keras_bert.base.errors import InputError
from keras_bert.records.folder import shard_name


class Item(NamedTuple):
    """Shard `index` of the `count` shards of a split: its documents are those of `blocks` that are
    on its side of `eval_below`, a limit of their digests."""

    split: str
    index: int
    count: int
    eval_below: int
    blocks: tuple[Block, ...]

    def has(self, document):
        """Whether a document of the item's blocks is on its side."""
        return (document.digest < self.eval_below) == (self.split == "eval")


def eval_limit(eval_fraction):
    """The limit of digests below which a document is in the eval split."""
    return int(eval_fraction * 2**64)


def plan(blocks, *, shard_bytes, eval_below):
    """The items of all blocks of a corpus, train items first.

    `eval_below` is the limit that the blocks were counted with. Where by chance it leaves a split
    empty, it is moved to the nearest document: neither split is empty if there are two different
    documents, and an eval split is asked for; a single document is in the train split.
    """
    blocks = sorted(blocks, key=lambda block: (block.digest, block.size, block.dropped))
    documents = sum(block.documents for block in blocks)
    in_eval = sum(block.eval_documents for block in blocks)
    sizes = [(block.size - block.eval_size, block.eval_size) for block in blocks]
    if eval_below and blocks:
        lowest = min(block.lowest for block in blocks)
        highest = max(block.highest for block in blocks)
        if in_eval == 0:
            eval_below = lowest + 1 if lowest < highest else 0
        elif in_eval == documents:
            eval_below = highest if lowest < highest else 0
        if in_eval in (0, documents) and eval_below:
            # One side has a single hash; its block is read for both, and counted as the other's.
            alone = lowest if in_eval == 0 else highest
            sizes = [_moved(block, alone, in_eval == 0) for block in blocks]
        elif not eval_below:
            sizes = [(block.size, 0) for block in blocks]
    return [
        *_items("train", blocks, [size for size, _ in sizes], shard_bytes, eval_below),
        *_items("eval", blocks, [size for _, size in sizes], shard_bytes, eval_below),
    ]


def _moved(block, digest, to_eval):
    """Sizes (train, eval) of a block if the document with this digest alone is on one side."""
    has_it = digest in (block.lowest, block.highest)
    mine = block.size // block.documents if has_it else 0
    return (block.size - mine, mine) if to_eval else (mine, block.size - mine)


def _items(split, blocks, sizes, shard_bytes, eval_below):
    """Cuts the blocks that hold something of a split into runs of nearly `shard_bytes`."""
    total = sum(sizes)
    if not total:
        return []
    fraction = total / max(1, round(total / shard_bytes))
    runs, before = {}, 0
    for block, size in zip(blocks, sizes, strict=True):
        if size:
            runs.setdefault(int((before + size / 2) / fraction), []).append(block)
            before += size
    return [
        Item(split, index, len(runs), eval_below, tuple(run))
        for index, run in enumerate(runs.values())
    ]


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
        from data_gen.example_builder import ExampleBuilder

        self._builder = ExampleBuilder(self._settings)
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
            if size >= 3 * settings.shard_bytes and len(held) > 1:
                # Not all of it: what is left at the end is never less than an item.
                keep = []
                while size > 2 * settings.shard_bytes and len(held) > 1:
                    keep.append(held.pop())
                    size -= keep[-1].size
                yield held
                held = keep[::-1]
                size = sum(document.size for document in held)
    if held:
        yield held


class CountUnigrams(beam.DoFn):
    """Work items of the train split -> the counts of their tokens, int64 (V,), once a bundle."""

    def __init__(self, settings):
        super().__init__()
        self._settings = settings

    def setup(self):
        # Loads TensorFlow: here, in a worker, and not where the job is described.
        from data_gen.example_builder import ExampleBuilder

        self._builder = ExampleBuilder(self._settings)

    def start_bundle(self):
        self._counts = np.zeros(len(self._settings.vocabulary), np.int64)

    def process(self, item):
        if item.split != "train":
            return
        for group in groups(item, self._settings):
            sentences, _ = self._builder.sentences(group)
            self._counts += np.bincount(sentences.tokens, minlength=len(self._counts))

    def finish_bundle(self):
        yield GlobalWindows.windowed_value(self._counts)


def add_up(counts):
    """The sum of counts; also of none, as a number."""
    return sum(counts, np.int64(0))
