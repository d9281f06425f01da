"""The record that cannot be read is named, in words that are not TensorFlow's."""

import gzip
import json
import os
import re

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.errors import InputError
from keras_bert.records import DataFolder, compact
from keras_bert.records.damage import damage_of, find_damage, refuse_lost_rows
from keras_bert.records.folder import CARD
from keras_bert.records.rows import read_rows
from tests.pretraining_folder import make_data_folder

ROWS = 40


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Folders without damage, by whether they are compressed."""
    root = tmp_path_factory.mktemp("whole")
    plain = make_data_folder(root / "plain", rows=ROWS, eval_rows=3, shards=2)
    packed = make_data_folder(root / "packed", rows=ROWS, eval_rows=3, shards=2, compression="gzip")
    for shard in packed.glob("*-of-*"):
        shard.with_name(f"{shard.name}.gz").write_bytes(gzip.compress(shard.read_bytes()))
    return {"": plain, "GZIP": packed}


def of_bytes(whole, compression, change, tmp_path):
    """A folder whose second shard's bytes are changed, and that shard."""
    for file in whole[compression].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    folder = DataFolder.open(tmp_path)
    shard = folder.shards("train")[1]
    with open(shard, "rb") as file:
        before = file.read()
    with open(shard, "wb") as file:
        file.write(change(before))
    return folder, shard


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


COMPRESSED = "the compressed file is damaged there"


@pytest.mark.parametrize(
    "compression, change, number, what",
    [
        ("", flipped, r"9|10|11", "its bytes are not those that were written"),
        ("", lambda data: data[:-3], "19", "the file ends inside it"),
        ("", lambda data: b"these are no records at all", "0", "its bytes are not .*"),
        ("GZIP", flipped, r"\d+", COMPRESSED),
        ("GZIP", lambda data: b"not compressed at all", "0", COMPRESSED),
    ],
)
def test_the_damaged_record_is_named(whole, tmp_path, compression, change, number, what):
    folder, shard = of_bytes(whole, compression, change, tmp_path)
    sentence = (
        rf"{re.escape(shard)}, record ({number}) cannot be read: {what}; make the data again with "
        "keras-bert pretraining-data --force"
    )
    found = find_damage(folder, "train")
    assert re.fullmatch(sentence, str(found))
    assert str(damage_of(folder, shard)) == str(found)
    with pytest.raises(InputError, match=sentence):
        list(read_rows(folder, shard))
    assert damage_of(folder, folder.shards("train")[0]) is None
    assert find_damage(folder, "eval") is None


def without_its_end(data):
    """Without the last record: length and its checksum, the record and its checksum."""
    start = 0
    while (end := start + 16 + int.from_bytes(data[start : start + 8], "little")) < len(data):
        start = end
    return data[:start]


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_rows_that_are_lost_between_records_are_counted(whole, tmp_path, compression):
    def change(data):
        if compression:
            return gzip.compress(without_its_end(gzip.decompress(data)))
        return without_its_end(data)

    folder, shard = of_bytes(whole, compression, change, tmp_path)
    card = json.loads((tmp_path / CARD).read_text())
    card["splits"]["train"]["shard_instances"] = [20, 20]
    (tmp_path / CARD).write_text(json.dumps(card))
    said = str(find_damage(DataFolder.open(tmp_path), "train"))
    assert said.startswith(f"{shard} has 19 rows, and the dataset card says 20; ")
    assert damage_of(folder, shard) is None


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_a_cut_shard_is_told_by_its_size_alone(whole, tmp_path, compression, monkeypatch):
    def write_card(folder):
        card = json.loads((tmp_path / CARD).read_text())
        sizes = (os.stat(shard).st_size for shard in folder.shards("train"))
        card["splits"]["train"] |= {"shard_instances": [20, 20], "bytes": sum(sizes)}
        (tmp_path / CARD).write_text(json.dumps(card))
        return DataFolder.open(tmp_path)

    folder, shard = of_bytes(whole, compression, lambda data: data, tmp_path)
    folder = write_card(folder)
    with monkeypatch.context() as patch:
        patch.setattr(tf.data, "TFRecordDataset", None)  # nothing is read
        refuse_lost_rows(folder)
    with open(shard, "rb") as file:
        data = file.read()
    if compression:
        cut = gzip.compress(without_its_end(gzip.decompress(data)))
        longer = gzip.compress(gzip.decompress(data), compresslevel=1) + gzip.compress(b"")
    else:
        cut, longer = without_its_end(data), None
    with open(shard, "wb") as file:
        file.write(cut)
    with pytest.raises(InputError, match=f"{shard} has 19 rows, and the dataset card says 20; "):
        refuse_lost_rows(folder)
    if longer:  # packed anew by somebody: all rows are there
        with open(shard, "wb") as file:
            file.write(longer)
        refuse_lost_rows(folder)


def test_a_record_that_is_no_row_is_named(whole, tmp_path):
    other = compact(objective="mlm", masking="dynamic")
    columns = {"input_ids": (np.array([1, 2]), np.array([2])), "segment_lengths": np.array([[2]])}
    folder, shard = of_bytes(whole, "", lambda data: data, tmp_path)
    records = [record.numpy() for record in tf.data.TFRecordDataset(shard)]
    [records[7]] = other.encode(columns)
    with tf.io.TFRecordWriter(shard) as writer:
        for record in records:
            writer.write(record)
    assert re.search("00001-of-00002, record 7 .*is no row of", str(find_damage(folder, "train")))
