"""All intact records of a damaged data folder are recovered in their order, and counted."""

import gzip
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.records import DataFolder, compact
from keras_bert.records.examples import readable_examples
from keras_bert.records.folder import CARD
from tests.pretraining_folder import make_data_folder

EXAMPLES = 40  # in two shards


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Folders without damage, by whether they are compressed."""
    root = tmp_path_factory.mktemp("whole")
    plain = make_data_folder(root / "plain", rows=EXAMPLES, eval_examples=3, shards=2)
    packed = make_data_folder(
        root / "packed", rows=EXAMPLES, eval_examples=3, shards=2, compression="gzip"
    )
    for shard in packed.glob("*-of-*"):
        shard.with_name(f"{shard.name}.gz").write_bytes(gzip.compress(shard.read_bytes()))
    return {"": plain, "GZIP": packed}


def records(folder, shard):
    return [each.numpy() for each in tf.data.TFRecordDataset(shard, folder.compression)]


def starts(data):
    """Where each record of a file's bytes starts: its length, a checksum, itself, a checksum."""
    found = [0]
    while found[-1] < len(data):
        found.append(found[-1] + 16 + int.from_bytes(data[found[-1] : found[-1] + 8], "little"))
    return found


def flipped(data, position):
    return data[:position] + bytes([data[position] ^ 4]) + data[position + 1 :]


ALL = list(range(20))


@pytest.mark.parametrize(
    "change, kept",
    [
        (lambda data: flipped(data, starts(data)[7] + 20), ALL[:7] + ALL[8:]),
        (lambda data: flipped(data, starts(data)[8] - 1), ALL[:7] + ALL[8:]),  # its checksum
        (lambda data: flipped(data, starts(data)[7] + 1), ALL[:7]),  # its length
        (lambda data: data[: starts(data)[12] + 5], ALL[:12]),
        (lambda data: data[: starts(data)[12]], ALL[:12]),
        (lambda data: b"these are no records at all", []),
        (lambda data: b"", []),
    ],
)
def test_what_is_whole_is_kept(whole, tmp_path, change, kept):
    shutil.copytree(whole[""], tmp_path / "data")
    folder = DataFolder.open(tmp_path / "data")
    first, shard = folder.shards("train")
    before = records(folder, shard)
    with open(shard, "rb") as file:
        data = file.read()
    with open(shard, "wb") as file:
        file.write(change(data))
    examples = readable_examples(folder, tmp_path / "recovered")
    assert examples.shards("train")[0] == first and examples.shards("eval") == folder.shards("eval")
    assert records(examples, examples.shards("train")[1]) == [before[number] for number in kept]
    assert examples.left_out == {shard.rpartition("/")[2]: 20 - len(kept)}
    card = examples.card.splits["train"]
    assert card.instances == 20 + len(kept) and card.shard_instances == (20, len(kept))
    assert examples.card.splits["eval"] == folder.card.splits["eval"]

    shutil.rmtree(tmp_path / "data")  # decided once: nothing is read again
    shutil.copytree(whole[""], tmp_path / "data")
    again = readable_examples(folder, tmp_path / "recovered")
    assert again.left_out == examples.left_out and again.card == examples.card


def test_a_compressed_shard_is_kept_up_to_its_damage(whole, tmp_path):
    shutil.copytree(whole["GZIP"], tmp_path / "data")
    folder = DataFolder.open(tmp_path / "data")
    shard = folder.shards("train")[0]
    before = records(folder, shard)
    with open(shard, "rb") as file:
        data = file.read()
    with open(shard, "wb") as file:
        file.write(data[: len(data) // 2])
    examples = readable_examples(folder, tmp_path / "recovered")
    kept = records(examples, examples.shards("train")[0])
    assert 0 < len(kept) < 20 and kept == before[: len(kept)]
    assert (
        sum(examples.left_out.values())
        == 20 - len(kept)
        == EXAMPLES - examples.card.splits["train"].instances
    )


def test_a_record_of_another_spec_is_left_out(whole, tmp_path):
    shutil.copytree(whole[""], tmp_path / "data")
    folder = DataFolder.open(tmp_path / "data")
    shard = folder.shards("train")[1]
    before = records(folder, shard)
    columns = {"input_ids": (np.array([1, 2]), np.array([2])), "segment_lengths": np.array([[2]])}
    [other] = compact(objective="mlm", masking="dynamic").encode(columns)
    with tf.io.TFRecordWriter(shard) as writer:
        for record in [*before[:5], other, *before[6:]]:
            writer.write(record)
    examples = readable_examples(folder, tmp_path / "recovered")
    assert records(examples, examples.shards("train")[1]) == before[:5] + before[6:]


def test_without_damage_nothing_changes(whole, tmp_path):
    folder = DataFolder.open(whole[""])
    examples = readable_examples(folder, tmp_path / "recovered")
    assert examples.left_out == {} and examples.card == folder.card
    assert examples.shards("train") == folder.shards("train")


def test_damage_where_examples_are_not_counted_and_a_split_without_examples_are_rejected(
    whole, tmp_path
):
    shutil.copytree(whole[""], tmp_path / "data")
    folder = DataFolder.open(tmp_path / "data")
    for shard in folder.shards("train"):
        with open(shard, "wb") as file:
            file.write(b"these are no records at all")
    with pytest.raises(InputError, match="No record of the train split of .*/data can be read"):
        readable_examples(folder, tmp_path / "recovered")
    card = json.loads((tmp_path / "data" / CARD).read_text())
    del card["splits"]["train"]["shard_instances"]
    (tmp_path / "data" / CARD).write_text(json.dumps(card))
    with pytest.raises(InputError, match="record 0 cannot be read"):
        readable_examples(DataFolder.open(tmp_path / "data"), tmp_path / "others")
    assert not list(tmp_path.glob("*others*"))
