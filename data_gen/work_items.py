"""Plans the work: which documents make which shard.

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

from data_gen.reading import Block


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


def plan(blocks, *, item_bytes, eval_below):
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
        *_items("train", blocks, [size for size, _ in sizes], item_bytes, eval_below),
        *_items("eval", blocks, [size for _, size in sizes], item_bytes, eval_below),
    ]


def _moved(block, digest, to_eval):
    """Sizes (train, eval) of a block if the document with this digest alone is on one side."""
    has_it = digest in (block.lowest, block.highest)
    mine = block.size // block.documents if has_it else 0
    return (block.size - mine, mine) if to_eval else (mine, block.size - mine)


def _items(split, blocks, sizes, item_bytes, eval_below):
    """Cuts the blocks that hold something of a split into runs of nearly `item_bytes`."""
    total = sum(sizes)
    if not total:
        return []
    share = total / max(1, round(total / item_bytes))
    runs, before = {}, 0
    for block, size in zip(blocks, sizes, strict=True):
        if size:
            runs.setdefault(int((before + size / 2) / share), []).append(block)
            before += size
    return [
        Item(split, index, len(runs), eval_below, tuple(run))
        for index, run in enumerate(runs.values())
    ]
