"""Work items follow from the documents alone, and neither split takes the other's."""

import random

import pytest

from data_gen.documents import Document
from data_gen.files import Block
from data_gen.shards import Item, eval_limit, plan
from tests.seeds import shifted

MEBI = 1 << 20


def make_blocks(count, size=MEBI // 4, fraction=0.1, seed=0):
    """Blocks of ten documents with random hashes, counted as `documents.blocks` counts them."""
    rng = random.Random(shifted(seed))
    limit = eval_limit(fraction)
    blocks, digests = [], []
    for number in range(count):
        hashes = [rng.getrandbits(64) for _ in range(10)]
        digests.append(hashes)
        inside = sum(value < limit for value in hashes)
        blocks.append(
            Block(
                path=f"file{number}",
                format="lines",
                start=0,
                end=size,
                digest=rng.randbytes(16),
                documents=10,
                size=size,
                eval_documents=inside,
                eval_size=inside * size // 10,
                lowest=min(hashes),
                highest=max(hashes),
            )
        )
    return blocks, digests, limit


def document(digest):
    return Document(digest, "text", "lines", 4, 0, 4)


def test_items_are_of_about_the_size_asked_for_and_hold_everything_once():
    blocks, _, limit = make_blocks(203)
    items = plan(blocks, shard_bytes=2 * MEBI, eval_below=limit)
    train = [item for item in items if item.split == "train"]
    assert len(train) == round(sum(b.size - b.eval_size for b in blocks) / (2 * MEBI))
    assert [item.index for item in train] == list(range(len(train)))
    assert {item.count for item in train} == {len(train)}
    planned_blocks = [block for item in train for block in item.blocks]
    assert sorted(planned_blocks) == sorted(blocks)
    for item in train:
        size = sum(block.size - block.eval_size for block in item.blocks)
        assert 1.6 * MEBI < size < 2.4 * MEBI
    planned_blocks = [block for item in items if item.split == "eval" for block in item.blocks]
    assert sorted(planned_blocks) == sorted(block for block in blocks if block.eval_documents)


def test_order_and_names_do_not_matter():
    blocks, _, limit = make_blocks(60)
    expected = plan(blocks, shard_bytes=MEBI, eval_below=limit)
    shuffled = [block._replace(path=f"other{i}") for i, block in enumerate(blocks)]
    random.Random(shifted(1)).shuffle(shuffled)
    got = plan(shuffled, shard_bytes=MEBI, eval_below=limit)
    nameless = [
        [item._replace(blocks=tuple(b._replace(path="") for b in item.blocks)) for item in items]
        for items in (expected, got)
    ]
    assert nameless[0] == nameless[1]


@pytest.mark.parametrize("fraction", [0.0, 1e-15, 0.3, 1 - 1e-15])
def test_every_document_is_in_one_split_and_no_split_is_empty(fraction):
    blocks, digests, limit = make_blocks(5, fraction=fraction)
    items = plan(blocks, shard_bytes=MEBI, eval_below=limit)
    splits = {"train": set(), "eval": set()}
    for item in items:
        for block in item.blocks:
            hashes = digests[blocks.index(block)]
            splits[item.split] |= {value for value in hashes if item.has(document(value))}
    assert not splits["train"] & splits["eval"]
    assert splits["train"] | splits["eval"] == {v for hashes in digests for v in hashes}
    assert splits["train"]
    assert bool(splits["eval"]) == (fraction > 0)
    if fraction == 1e-15:
        assert len(splits["eval"]) == 1
    if fraction > 0.9:
        assert len(splits["train"]) == 1


@pytest.mark.parametrize("fraction", [0.02, 0.999])
def test_a_single_document_is_in_the_train_split(fraction):
    block = make_blocks(1)[0][0]._replace(
        documents=1, lowest=2**63, highest=2**63, eval_documents=0
    )
    if fraction > 0.9:
        block = block._replace(eval_documents=1, eval_size=block.size)
    [item] = plan([block], shard_bytes=MEBI, eval_below=eval_limit(fraction))
    assert item == Item("train", 0, 1, 0, (block,))
    assert item.has(document(2**63))


def test_a_document_longer_than_an_item_is_an_item():
    blocks, _, limit = make_blocks(12, fraction=0.0)
    blocks[5] = blocks[5]._replace(size=30 * MEBI, documents=1)
    items = plan(blocks, shard_bytes=MEBI, eval_below=limit)
    assert sorted(b for item in items for b in item.blocks) == sorted(blocks)
    assert max(len(item.blocks) for item in items) < 12


def test_nothing_makes_no_items():
    assert plan([], shard_bytes=MEBI, eval_below=0) == []
