"""A data folder opens only when it is whole and made with the vocabulary at hand."""

import json
import os
import shutil
from types import SimpleNamespace

import pytest

from keras_bert.records import DataFolder, DatasetCard, compact, padded
from tests.messages import raises_input_error

CARD = {
    "format_version": 1,
    "objective": "mlm-nsp",
    "masking": "static",
    "rows": "compact",
    "max_length": 16,
    "max_predictions": 3,
    "seed": 5,
    "lowercase": False,
    "settings": {"mask_unit": "token", "masked_rate": 0.15},
    "vocabulary": {"sha256": "ab" * 32, "size": 40},
    "splits": {"train": {"shards": 2}, "eval": {"shards": 0}},
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "dataset_card.json").write_text(json.dumps(CARD))
    (tmp_path / "COMPLETED").touch()
    for index in range(2):
        (tmp_path / f"pretraining_data-train.tfrecord-{index:05d}-of-00002").touch()
    return tmp_path


def test_a_whole_folder_opens(folder):
    data = DataFolder.open(folder)
    assert data.card == DatasetCard.parse(json.dumps(CARD), "card")
    assert data.spec == compact(objective="mlm-nsp", masking="static")
    assert [path.rpartition("/")[2] for path in data.shards("train")] == [
        "pretraining_data-train.tfrecord-00000-of-00002",
        "pretraining_data-train.tfrecord-00001-of-00002",
    ]
    assert data.shards("eval") == []
    assert data.compression == ""
    with pytest.raises(ValueError, match="split"):
        data.shards("test")


def test_the_spec_follows_the_card(folder):
    (folder / "dataset_card.json").write_text(json.dumps(CARD | {"rows": "padded"}))
    expected = padded(objective="mlm-nsp", max_length=16, max_predictions=3)
    assert DataFolder.open(folder).spec == expected


def card(text):
    return lambda folder: (folder / "dataset_card.json").write_text(text)


@pytest.mark.parametrize(
    "change, message",
    [
        (shutil.rmtree, "no data folder"),
        (lambda folder: (folder / "COMPLETED").unlink(), "did not finish"),
        (lambda folder: (folder / "dataset_card.json").unlink(), "no ...dataset_card.json. Run"),
        (card('{"format_version": 1, '), "Could not read the dataset card"),
        (card("[1]"), "not a dataset card"),
        (card(json.dumps(CARD | {"format_version": 99})), "format version 99"),
        (card('{"format_version": 1}'), "it has no objective"),
    ],
)
def test_a_folder_that_is_not_whole_is_rejected(folder, change, message):
    change(folder)
    with raises_input_error(message):
        DataFolder.open(folder)


def test_a_missing_shard_is_named(folder):
    (folder / "pretraining_data-train.tfrecord-00001-of-00002").unlink()
    with raises_input_error("00001-of-00002 is missing"):
        DataFolder.open(folder).shards("train")


@pytest.mark.parametrize(
    "name",
    ["pretraining_data-train.tfrecord-00001-of-00002", "dataset_card.json", "vocab.txt"],
)
def test_a_pipe_is_not_waited_for(folder, name):
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with raises_input_error(f"{name} is a pipe or a device. A file was expected"):
        data = DataFolder.open(folder)
        data.shards("train")
        data.vocabulary()


class Vocabulary(SimpleNamespace):
    def __len__(self):
        return self.size


def test_the_vocabulary_must_be_the_one_of_the_examples(folder):
    data = DataFolder.open(folder)
    data.check_vocabulary(Vocabulary(sha256="ab" * 32, size=40))
    with raises_input_error("another vocabulary (40 tokens... (50 tokens"):
        data.check_vocabulary(Vocabulary(sha256="cd" * 32, size=50))
