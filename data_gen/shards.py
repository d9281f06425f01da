"""Plans the work items, and writes the shard of each.

An item is a bounded amount of whole documents and makes one shard. Items depend on the documents
alone: blocks are ordered by their hashes, and cut into runs of nearly equal size. So the names of
the files, their order and the number of workers do not matter; and since hashes are as good as
random, the documents of an item come from all over the corpus, as random next sentences need.

The eval split has the documents whose hash is below a limit, so that a document is always on the
same side. Eval items read blocks that train items read, too, and each skips the other's documents:
a second reading is cheap, and needs no descriptor per document.
"""

from typing import NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import GlobalWindows

from data_gen.dataset_card import Statistics
from data_gen.documents import read
from data_gen.files import Block, new_file
from data_gen.output_folder import check_owner, owner_of
from keras_bert.records.folder import shard_name


class Item(NamedTuple):
    """Shard `index` of the `count` shards of a split.

    Its documents are those of `blocks` on its side of `eval_below`, a limit of their digests.
    """

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

    `eval_below` is the limit that the blocks were counted with. If it leaves a split empty, it
    is moved to the nearest document: neither split is empty if there are two different documents
    and an eval split is asked for. A single document is in the train split.
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
            # One side has a single hash; its block was counted on the other side.
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
    """Cuts the blocks with documents of a split into runs of nearly `shard_bytes`."""
    total = sum(sizes)
    if not total:
        return []
    item_bytes = total / max(1, round(total / shard_bytes))
    runs, before = {}, 0
    for block, size in zip(blocks, sizes, strict=True):
        if size:
            runs.setdefault(int((before + size / 2) / item_bytes), []).append(block)
            before += size
    return [
        Item(split, index, len(runs), eval_below, tuple(run))
        for index, run in enumerate(runs.values())
    ]


class _OfItems(beam.DoFn):
    """A step over the items of a job, for which each worker loads the tokenizer once."""

    def __init__(self, job):
        super().__init__()
        self._job = job

    def setup(self):
        # TensorFlow is loaded in a worker, not where the job is described.
        from data_gen.example_builder import ExampleBuilder

        self._builder = ExampleBuilder(self._job)


class WriteShard(_OfItems):
    """Takes an `Item`, writes its shard into the output, yields `Statistics` once per bundle.

    A repeated item leaves the same bytes. `unigrams` are the counts of the corpus if the job
    needs them. The statistics of a bundle are yielded as one: with a count per token of the
    vocabulary, they are too large to be sent for each of thousands of items.

    Raises `InputError` if the output cannot be written, or belongs to another job by now.
    """

    def __init__(self, job):
        super().__init__(job)
        # Not in a worker: one that a cluster starts later would take the folder's next owner.
        self._owner = owner_of(job.output)

    def start_bundle(self):
        self._total = Statistics()

    def process(self, item, unigrams=None):
        if self._builder.masker is None:
            self._builder.masker = self._job.masker(unigrams)
        total = Statistics()
        name = shard_name(item.split, item.index, item.count, self._job.compression)
        with new_file(f"{self._job.output}/{name}") as shard:
            self._write(shard, item, total)
            total.counters[f"{item.split}/bytes"] += shard.stat().st_size
            check_owner(self._job.output, self._owner)
        for counter, value in total.counters.items():
            Metrics.counter("pretraining_data", counter).inc(value)
        total.shards[item.split, item.index] = total.counters[f"{item.split}/instances"]
        self._total.add(total)

    def finish_bundle(self):
        yield GlobalWindows.windowed_value(self._total)

    def _write(self, shard, item, total):
        """Writes the examples of an item into a local file, and adds their statistics."""
        import tensorflow as tf

        compressed = self._job.compression == "gzip"
        options = tf.io.TFRecordOptions(compression_type="GZIP" if compressed else "")
        with tf.io.TFRecordWriter(str(shard), options) as writer:
            for group in groups(item, self._job):
                for examples, statistics in self._builder.examples(group, split=item.split):
                    for example in examples:
                        writer.write(example)
                    total.add(statistics)


def groups(item, job):
    """Yields the documents of an item as lists: all at once, or some MiB of a long stream."""
    pending, size = [], 0
    for block in item.blocks:
        for document in read(block, reading=job.reading):
            if not item.has(document):
                continue
            pending.append(document)
            size += document.size
            if size >= 3 * job.shard_bytes and len(pending) > 1:
                # Not all of it: the last group is never smaller than an item.
                keep = []
                while size > 2 * job.shard_bytes and len(pending) > 1:
                    keep.append(pending.pop())
                    size -= keep[-1].size
                yield pending
                pending = keep[::-1]
                size = sum(document.size for document in pending)
    if pending:
        yield pending


class CountUnigrams(_OfItems):
    """Items of the train split -> the counts of their tokens, int64 (V,), one array per bundle."""

    def start_bundle(self):
        self._counts = np.zeros(len(self._job.vocabulary), np.int64)

    def process(self, item):
        if item.split != "train":
            return
        for group in groups(item, self._job):
            sentences, _ = self._builder.sentences(group)
            self._counts += np.bincount(sentences.tokens, minlength=len(self._counts))

    def finish_bundle(self):
        yield GlobalWindows.windowed_value(self._counts)


def add_up(counts):
    """The sum of counts; 0 without any."""
    return sum(counts, np.int64(0))
