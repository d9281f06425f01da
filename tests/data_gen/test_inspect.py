"""What a person sees of the rows that a job made, and what a check of all of them finds."""

import re

import numpy as np
import pytest
import tensorflow as tf

from data_gen.pretraining_data import make_pretraining_data
from keras_bert.cli.main import main
from keras_bert.errors import InputError
from keras_bert.records import DataFolder
from keras_bert.records.inspection import read_instances
from keras_bert.records.verification import verify

LENGTH = 48


def make(corpus, files, output, **kwargs):
    make_pretraining_data(
        input=files, vocab=corpus.vocabulary, output=output, form="lines", max_length=LENGTH,
        max_predictions=8, beam_options=["--direct_num_workers=1"], **{"dupe_factor": 1} | kwargs,
    )  # fmt: skip
    return DataFolder.open(output)


SETTINGS = {
    "pairs": {},
    "padded": {"pad": True},
    "whole words": {"mask_unit": "whole-word", "objective": "mlm"},
    "spans": {"objective": "span"},
    "padded spans": {"objective": "span", "pad": True},
    "dynamic": {"masking": "dynamic"},
}


@pytest.fixture(scope="module")
def folders(corpus, corpus_files, tmp_path_factory):
    root = tmp_path_factory.mktemp("folders")
    return {
        name: make(corpus, corpus_files, root / name, **settings)
        for name, settings in SETTINGS.items()
    }


@pytest.mark.parametrize("name", SETTINGS)
def test_what_a_job_writes_obeys_every_law(folders, name):
    counts = verify(folders[name])
    assert counts["train"]["rows"] == folders[name].card["splits"]["train"]["instances"] > 100
    assert (counts["train"]["predictions"] > 0) == (name != "dynamic")


def columns_of(folder):
    """The columns of the only train shard, as `FeatureSpec.encode` takes them."""
    [shard] = folder.shards("train")
    parsed = folder.spec.parse(list(tf.data.TFRecordDataset(shard)))
    return {
        name: (value.values.numpy(), value.row_lengths().numpy())
        if isinstance(value, tf.RaggedTensor)
        else value.numpy()
        for name, value in parsed.items()
    }, shard


def at(columns, name, row, offset):
    """The place of a row's value in the flat values of a column."""
    values, lengths = columns[name]
    return values, int(lengths[:row].sum()) + offset


def spoil(columns, what, vocabulary):
    """Breaks one law in row 7 (which has at least two predictions)."""
    row = 7
    ids, start = at(columns, "input_ids", row, 0)
    end = start + int(columns["input_ids"][1][row]) - 1
    if what == "first":
        ids[start] = 9
    elif what == "last":
        ids[end] = 9
    elif what == "special inside":
        positions, place = at(columns, "masked_lm_positions", row, 0)
        ids[start + positions[place]] = vocabulary.sep_id
    elif what == "id":
        ids[start + 2] = len(vocabulary)
    elif what == "label":
        columns["next_sentence_labels"][row] = 2
    elif what == "segments":
        columns["segment_lengths"][row, 0] -= 1
    elif what == "empty segment":
        columns["segment_lengths"][row] = [2, end - start - 1]
    elif what == "order":
        positions, place = at(columns, "masked_lm_positions", row, 0)
        positions[[place, place + 1]] = positions[[place + 1, place]]
    elif what == "twice":
        positions, place = at(columns, "masked_lm_positions", row, 0)
        positions[place + 1] = positions[place]
    elif what == "outside":
        positions, place = at(columns, "masked_lm_positions", row + 1, -1)
        positions[place] = end - start + 1
    elif what == "masked [SEP]":
        positions, place = at(columns, "masked_lm_positions", row + 1, -1)
        positions[place] = end - start
    elif what == "masked special":
        values, place = at(columns, "masked_lm_ids", row, 0)
        values[place] = vocabulary.unk_id
    elif what == "stray mask":
        positions, place = at(columns, "masked_lm_positions", row, 0)
        free = next(p for p in range(1, 40) if p not in positions[place : place + 8])
        ids[start + free] = vocabulary.mask_id
    return columns


@pytest.mark.parametrize(
    "what, message",
    [
        ("first", "does not begin with"),
        ("last", "does not end in"),
        ("special inside", "special token stands inside"),
        ("id", "an id is none"),
        ("label", "label is not 0 or 1"),
        ("segments", "do not sum"),
        ("empty segment", "a segment is empty"),
        ("order", "do not rise"),
        ("twice", "do not rise"),
        ("outside", "is outside it"),
        ("masked [SEP]", "special token is masked"),
        ("masked special", "masked token is a special one"),
        ("stray mask", "where nothing is to be predicted"),
    ],
)
def test_each_offence_is_found_with_its_record(corpus, folders, what, message):
    folder = folders["pairs"]
    columns, shard = columns_of(folder)
    before = open(shard, "rb").read()
    try:
        with tf.io.TFRecordWriter(shard) as writer:
            for record in folder.spec.encode(spoil(columns, what, corpus.vocabulary)):
                writer.write(record)
        with pytest.raises(InputError, match=f"00001, record 7: .*{message}"):
            verify(folder)
    finally:
        open(shard, "wb").write(before)


@pytest.mark.parametrize("how", ["flipped", "cut", "missing record", "other file"])
def test_a_damaged_file_is_found(folders, how):
    folder = folders["pairs"]
    [shard] = folder.shards("train")
    before = open(shard, "rb").read()
    after = {
        "flipped": before[:5000] + bytes([before[5000] ^ 1]) + before[5001:],
        "cut": before[:-3],
        "missing record": before[16 + int.from_bytes(before[:8], "little") :],
        "other file": b"these are no records at all",
    }[how]
    messages = {
        "missing record": "rows, and its card says",
        "other file": "record 0 cannot be read",
    }
    try:
        open(shard, "wb").write(after)
        with pytest.raises(InputError, match=messages.get(how, r"record \d+ cannot be read")):
            verify(folder)
    finally:
        open(shard, "wb").write(before)


def test_wrong_shares_are_found(corpus, corpus_files, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_bert.masking._MASKED", 0.7)
    folder = make(corpus, corpus_files, tmp_path / "data", dupe_factor=20)
    with pytest.raises(InputError, match="are masked: 80% are due"):
        verify(folder)


@pytest.mark.parametrize("name", SETTINGS)
def test_instances_are_what_the_rows_hold(corpus, folders, name):
    folder = folders[name]
    instances = list(read_instances(folder, folder.shards("train"), count=50))
    assert [instance.number for instance in instances] == list(range(50))
    predicted = 0
    for instance in instances:
        tokens = [piece.original or piece.text for piece in instance.pieces]
        parts = " ".join(tokens).removeprefix("[CLS] ").removesuffix(" [SEP]").split(" [SEP] ")
        assert len(parts) == (2 if instance.is_next is not None else 1)
        for number, part in enumerate(parts):
            ids = [corpus.vocabulary.id(word) for word in part.split()]
            assert ids == list(range(ids[0], ids[0] + len(ids)))
            of_segment = [p for p in instance.pieces if p.segment == number]
            assert len(of_segment) == len(ids)
        predicted += sum(piece.original is not None for piece in instance.pieces)
        for before, piece, after in zip(
            instance.pieces, instance.pieces[1:], instance.pieces[2:], strict=False
        ):
            assert (piece.span > 0) == (piece.original is not None and "span" in name)
            if piece.span and before.span != piece.span:
                assert before.boundary and not before.span
            if piece.span and after.span != piece.span:
                assert after.boundary and not after.span
    assert (predicted > 0) == (name != "dynamic")


def test_the_command(folders, capsys):
    path = folders["pairs"].path
    assert main(["inspect", path, "--count", "3"]) == 0
    out = capsys.readouterr().out
    assert out.count("[CLS]") == 3 and re.search(r"\[MASK\]\{w\d+\}", out)
    assert "is next" in out or "random" in out
    assert main(["inspect", folders["pairs"].shards("train")[0], "--count", "1"]) == 0
    assert capsys.readouterr().out.count("[CLS]") == 1
    assert main(["inspect", path, "--verify"]) == 0
    assert "Every row obeys every law" in capsys.readouterr().out
    assert main(["inspect", path + "absent"]) == 2
    assert "no data folder" in capsys.readouterr().err


def test_fates_add_up(folders):
    counts = verify(folders["pairs"])["train"]
    assert counts["masked"] + counts["kept"] + counts["replaced"] == counts["predictions"]
    assert np.isclose(counts["masked"] / counts["predictions"], 0.8, atol=0.1)
