"""The record that cannot be read is named, in words that are not TensorFlow's."""

import gzip
import json
import os
import re
import struct

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.cli.main import main
from keras_bert.records import DataFolder, compact
from keras_bert.records.folder import CARD
from keras_bert.records.shard_reader import (
    damage_is_named,
    damage_of,
    find_damage,
    read_examples,
    reject_lost_records,
)
from keras_bert.tasks.pretraining.features import training_dataset
from tests.pretraining_folder import MAX_LENGTH, VOCABULARY, make_data_folder
from tests.seeds import shifted

EXAMPLES = 40


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


def changed_folder(whole, compression, change, tmp_path):
    """A folder whose second shard's bytes are changed, and that shard."""
    tmp_path.mkdir(exist_ok=True)
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


def header(length):
    """The beginning of a record of so many bytes: its length and a checksum, a CRC-32C."""
    check = 0xFFFFFFFF
    for byte in struct.pack("<Q", length):
        check ^= byte
        for _ in range(8):
            check = check >> 1 ^ (0x82F63B78 if check & 1 else 0)
    check ^= 0xFFFFFFFF
    check = ((check >> 15 | check << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return struct.pack("<QI", length, check)


def test_a_record_begins_as_tensorflow_writes_it(tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "file")) as writer:
        writer.write(b"a" * 300)
    assert (tmp_path / "file").read_bytes().startswith(header(300))


def other_length(data):
    """With another length of the record 7, which the checksum does not fit."""
    start = starts(data)[7]
    return data[:start] + bytes([data[start] ^ 4]) + data[start + 1 :]


def starts(data):
    """The starts of the records in a file's bytes: its length, a checksum, itself, a checksum."""
    positions = [0]
    while positions[-1] < len(data):
        start = positions[-1]
        positions.append(start + 16 + int.from_bytes(data[start : start + 8], "little"))
    return positions


@pytest.mark.parametrize(
    "compression, change, number",
    [
        ("", flipped, r"9|10|11"),
        ("", other_length, "7"),
        ("", lambda data: data[:-3], "19"),
        ("", lambda data: data[:-3] + header(5)[:11], "19"),
        ("", lambda data: data + header(5)[:11], "20"),
        ("", lambda data: b"these are no records at all", "0"),
        ("GZIP", flipped, r"\d+"),
        ("GZIP", lambda data: b"not compressed at all", "0"),
        ("GZIP", lambda data: data[: len(data) // 2], r"\d+"),
        # TensorFlow's reader would end the process.
        ("", lambda data: header(1 << 62) + data, "0"),
        ("", lambda data: data[: starts(data)[7]] + header(1 << 40) + data, "7"),
        ("", lambda data: data + header(1 << 62), "20"),
        ("GZIP", lambda data: gzip.compress(header(1 << 62) + b"0" * 99), "0"),
        ("GZIP", lambda data: gzip.compress(header(1 << 14)), "0"),
    ],
)
def test_the_damaged_record_is_named(whole, tmp_path, compression, change, number):
    folder, shard = changed_folder(whole, compression, change, tmp_path)
    sentence = (
        rf"{re.escape(shard)}, record ({number}) cannot be read: the file is damaged or cut "
        r"there\. Make the data again with keras-bert pretraining-data --force\."
    )
    error = find_damage(folder, "train")
    assert re.fullmatch(sentence, str(error))
    assert str(damage_of(folder, shard)) == str(error)
    with pytest.raises(InputError, match=sentence):
        list(read_examples(folder, shard))
    assert damage_of(folder, folder.shards("train")[0]) is None
    assert find_damage(folder, "eval") is None


def without_its_end(data):
    """Without the last record."""
    return data[: starts(data)[-2]]


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_examples_that_are_lost_between_records_are_counted(whole, tmp_path, compression):
    def change(data):
        if compression:
            return gzip.compress(without_its_end(gzip.decompress(data)))
        return without_its_end(data)

    folder, shard = changed_folder(whole, compression, change, tmp_path)
    card = json.loads((tmp_path / CARD).read_text())
    card["splits"]["train"]["shard_instances"] = [20, 20]
    (tmp_path / CARD).write_text(json.dumps(card))
    message = str(find_damage(DataFolder.open(tmp_path), "train"))
    assert message.startswith(f"{shard} has 19 examples, the dataset card 20. ")
    assert damage_of(folder, shard) is None


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_a_cut_shard_is_told_by_its_size_alone(whole, tmp_path, compression, monkeypatch):
    def write_card(folder):
        card = json.loads((tmp_path / CARD).read_text())
        sizes = (os.stat(shard).st_size for shard in folder.shards("train"))
        card["splits"]["train"] |= {"shard_instances": [20, 20], "bytes": sum(sizes)}
        (tmp_path / CARD).write_text(json.dumps(card))
        return DataFolder.open(tmp_path)

    folder, shard = changed_folder(whole, compression, lambda data: data, tmp_path)
    folder = write_card(folder)
    with monkeypatch.context() as patch:
        patch.setattr(tf.data, "TFRecordDataset", None)  # nothing is read
        reject_lost_records(folder)
    with open(shard, "rb") as file:
        data = file.read()
    if compression:
        cut = gzip.compress(without_its_end(gzip.decompress(data)))
        longer = gzip.compress(gzip.decompress(data), compresslevel=1) + gzip.compress(b"")
    else:
        cut, longer = without_its_end(data), None
    with open(shard, "wb") as file:
        file.write(cut)
    with pytest.raises(InputError, match=f"{shard} has 19 examples, the dataset card 20. "):
        reject_lost_records(folder)
    if longer:  # compressed again by somebody: all examples are there
        with open(shard, "wb") as file:
            file.write(longer)
        reject_lost_records(folder)


def test_a_record_that_is_not_an_example_is_named(whole, tmp_path):
    other = compact(objective="mlm", masking="dynamic")
    columns = {"input_ids": (np.array([1, 2]), np.array([2])), "segment_lengths": np.array([[2]])}
    folder, shard = changed_folder(whole, "", lambda data: data, tmp_path)
    records = [record.numpy() for record in tf.data.TFRecordDataset(shard)]
    [records[7]] = other.encode(columns)
    with tf.io.TFRecordWriter(shard) as writer:
        for record in records:
            writer.write(record)
    assert re.search(
        "00001-of-00002, record 7 .*is not an example as", str(find_damage(folder, "train"))
    )


def no_subwords(features):
    features.feature["input_ids"].int64_list.value[3] = len(VOCABULARY)


def negative(features):
    features.feature["input_ids"].int64_list.value[3] = -1


def another_original(features):
    features.feature["masked_lm_ids"].int64_list.value[0] = len(VOCABULARY)


def position_outside(features):
    features.feature["masked_lm_positions"].int64_list.value[0] = MAX_LENGTH


def no_tokens(features):
    del features.feature["input_ids"]


def too_many_tokens(features):
    features.feature["input_ids"].int64_list.value.extend([7] * MAX_LENGTH)


def no_positions(features):
    del features.feature["masked_lm_positions"]


def segments_of_nothing(features):
    features.feature["segment_lengths"].int64_list.value[:] = [1 << 20, -(1 << 20)]


def floats(features):
    features.feature["input_ids"].float_list.value[:] = [1.5, 2.5]


BROKEN = {
    no_subwords: "an id is not in the vocabulary",
    negative: "an id is not in the vocabulary",
    another_original: "a masked id is not in the vocabulary",
    position_outside: "a masked position is outside it",
    no_tokens: "it is empty",
    too_many_tokens: "it is longer than the maximum length",
    no_positions: "have different numbers of values",
    segments_of_nothing: "its segments do not sum to its length",
    floats: "cannot be read: it is not an example as",
    None: "cannot be read: it is not an example as",  # bytes that are not a protocol buffer
}


def with_broken_example(shard, change):
    """Writes a shard anew, whose record 7 is changed and has a valid checksum."""
    records = [record.numpy() for record in tf.data.TFRecordDataset(shard)]
    example = tf.train.Example.FromString(records[7])
    if change is None:
        records[7] = b"\xff" * 20
    else:
        change(example.features)
        records[7] = example.SerializeToString()
    with tf.io.TFRecordWriter(shard) as writer:
        for record in records:
            writer.write(record)


@pytest.mark.parametrize("change", BROKEN)
def test_a_broken_example_with_a_valid_checksum_is_one_sentence(whole, tmp_path, capsys, change):
    folder, shard = changed_folder(whole, "", lambda data: data, tmp_path / "data")
    with_broken_example(shard, change)
    expected = f"{shard}, record 7.* {BROKEN[change]}"
    assert re.match(expected, str(find_damage(folder, "train")))
    for flags in (["--count", "40"], ["--verify"]):
        assert main(["inspect", folder.path, *flags]) == 2
        assert re.match(f"keras-bert: {expected}", capsys.readouterr().err)


def test_inspect_of_a_vocabulary_that_lost_its_end_is_one_sentence(whole, tmp_path, capsys):
    folder, _ = changed_folder(whole, "", lambda data: data, tmp_path)
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(vocabulary.read_text().split()[:-9]) + "\n")
    assert main(["inspect", folder.path]) == 2
    assert "were made with another vocabulary" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change, batch",
    [
        # One of them in batches of tokens, the others in batches of examples.
        pytest.param(change, batch, marks=() if is_quick else pytest.mark.slow)
        for change in (no_subwords, another_original, too_many_tokens, None)
        for batch in ({"batch_size": 8}, {"batch_tokens": 64})
        for is_quick in [("batch_tokens" in batch) == (change is too_many_tokens)]
    ],
)
def test_training_names_the_record(whole, tmp_path, batch, change):
    folder, shard = changed_folder(whole, "", lambda data: data, tmp_path)
    with_broken_example(shard, change)
    with pytest.raises(InputError, match=f"{shard}, record 7.* {BROKEN[change]}"):
        with damage_is_named(folder):
            dataset = training_dataset(folder, vocabulary=VOCABULARY, seed=shifted(0), **batch)
            for _ in dataset.take(20):
                pass


def test_training_names_an_example_that_it_cannot_mask(tmp_path):
    folder = make_data_folder(tmp_path / "data", rows=EXAMPLES, eval_examples=3, masking="dynamic")
    folder = DataFolder.open(folder)
    with_broken_example(folder.shards("train")[0], no_subwords)
    with pytest.raises(InputError, match="record 7: an id is not in the vocabulary"):
        with damage_is_named(folder):
            for _ in training_dataset(
                folder, vocabulary=VOCABULARY, seed=shifted(0), batch_size=8
            ).take(9):
                pass
