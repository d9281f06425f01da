"""The batches of pre-training: every row once an epoch, an order that seed and epoch fix, a place
that the step fixes, and masks that are never in two bodies."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.errors import InputError
from keras_bert.input_pipeline import pretraining
from keras_bert.input_pipeline.pretraining import (
    evaluation_dataset,
    pretraining_dataset,
    training_dataset,
)
from keras_bert.masking import Masker, row_keys, unmask
from keras_bert.records import DataFolder, pad, padded
from tests.pretraining_folder import (
    MAX_LENGTH,
    MAX_PREDICTIONS,
    VOCABULARY,
    make_data_folder,
)

ROWS, EVAL_ROWS, BATCH = 100, 21, 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("static") / "rows"
    return DataFolder.open(make_data_folder(path, rows=ROWS, eval_rows=EVAL_ROWS))


@pytest.fixture(scope="module")
def dynamic_folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("dynamic") / "rows"
    return DataFolder.open(
        make_data_folder(path, rows=ROWS, eval_rows=EVAL_ROWS, masking="dynamic")
    )


@pytest.fixture(params=["static", "dynamic"])
def either(request, folder, dynamic_folder):
    return folder if request.param == "static" else dynamic_folder


def flat(batches):
    """A list of {name: array} of all that batches hold."""
    result = []
    for x, y, weights in batches:
        parts = {"x": x, "y": y, "w": weights}
        result.append({f"{p}/{n}": np.array(v) for p, d in parts.items() for n, v in d.items()})
    return result


def train(folder, count, *, seed=3, first_step=0, batch_size=BATCH):
    dataset = training_dataset(
        folder, vocabulary=VOCABULARY, batch_size=batch_size, seed=seed, first_step=first_step
    )
    return flat(dataset.take(count))


def evaluate(folder, **options):
    return flat(evaluation_dataset(folder, vocabulary=VOCABULARY, batch_size=BATCH, **options))


def originals(batches):
    """The rows as they were before masking, one `bytes` each."""
    rows = []
    for batch in batches:
        counts = batch["w/masked_lm"].sum(axis=1).astype(int)
        filled = np.arange(MAX_PREDICTIONS) < counts[:, None]
        restored = unmask(
            batch["x/input_ids"],
            (batch["x/masked_lm_positions"][filled], counts),
            (batch["y/masked_lm"][filled],),
        )
        rows += [row.tobytes() for row in restored]
    return rows


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_each_epoch_holds_every_row_once_in_another_order(folder):
    rows = originals(train(folder, 3 * ROWS // 4, batch_size=4))
    epochs = [rows[:ROWS], rows[ROWS : 2 * ROWS], rows[2 * ROWS :]]
    assert len(set(epochs[0])) > 0.9 * ROWS
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(epochs[2])
    assert len({tuple(epoch) for epoch in epochs}) == 3
    stored = [record for record in originals(train(folder, 1, batch_size=ROWS, seed=4))]
    assert sorted(stored) == sorted(epochs[0]) and stored != epochs[0]


@pytest.mark.parametrize("window", [1 << 15, 16])
@pytest.mark.parametrize("first_step", [1, 12, 13, 25, 40])
def test_the_place_in_the_data_is_a_function_of_the_step(either, first_step, window, monkeypatch):
    # 12.5 batches are an epoch, so batches that span two epochs are among these.
    monkeypatch.setattr(pretraining, "_WINDOW", window)
    keras.utils.set_random_seed(1)
    expected = train(either, first_step + 4)[first_step:]
    keras.utils.set_random_seed(2)  # the process's own seed must not matter
    assert_same(train(either, 4, first_step=first_step), expected)


def test_windows_are_shuffled_apart(folder, monkeypatch):
    monkeypatch.setattr(pretraining, "_WINDOW", 16)
    small = originals(train(folder, ROWS // 4, batch_size=4))
    monkeypatch.undo()
    assert sorted(small) == sorted(originals(train(folder, ROWS // 4, batch_size=4)))
    monkeypatch.setattr(pretraining, "_ROWS_OF_A_SHARD", 1)
    monkeypatch.setattr(pretraining, "_WINDOW", 16)
    orders = []
    for first in range(0, 64, 16):  # the same permutation in each window would show here
        rows = originals(train(folder, 16, batch_size=1, first_step=first))
        orders.append(tuple(np.argsort(rows)))
    assert len(set(orders)) == 4


def test_shapes_are_static_in_training_and_evaluation(either):
    for split, options in (("train", {"seed": 0}), ("eval", {})):
        x, y, weights = pretraining_dataset(
            either, split=split, vocabulary=VOCABULARY, batch_size=BATCH, **options
        ).element_spec
        for name in ("input_ids", "input_mask", "segment_ids"):
            assert x[name].shape == (BATCH, MAX_LENGTH)
        assert x["masked_lm_positions"].shape == (BATCH, MAX_PREDICTIONS)
        assert y["masked_lm"].shape == weights["masked_lm"].shape == (BATCH, MAX_PREDICTIONS)
        assert y["next_sentence"].shape == weights["next_sentence"].shape == (BATCH,)


def test_evaluation_counts_every_row_once_and_what_fills_up_the_last_batch_not(either):
    batches = evaluate(either)
    assert len(batches) == 3
    weights = np.concatenate([batch["w/next_sentence"] for batch in batches])
    np.testing.assert_array_equal(weights, np.arange(24) < EVAL_ROWS)
    for batch in batches:
        empty = batch["w/next_sentence"] == 0
        assert not batch["w/masked_lm"][empty].any()
        assert batch["w/masked_lm"][~empty].any(axis=1).all()
    assert_same(evaluate(either), batches)
    assert_same(evaluate(either, batches=2), batches[:2])
    assert_same(evaluate(either, batches=9), batches)


def test_dynamic_masks_are_fresh_in_each_epoch_and_are_the_maskers(dynamic_folder):
    batches = train(dynamic_folder, 2 * ROWS // 4, batch_size=4, seed=9)
    seen = {}
    for batch in batches:
        for row in range(4):
            one = {name: value[row : row + 1] for name, value in batch.items()}
            seen.setdefault(originals([one])[0], []).append(one)
    changed = 0
    masker = Masker(vocabulary=VOCABULARY, unit="token", rate=0.15, max_predictions=MAX_PREDICTIONS)
    for original, (first, second) in [item for item in seen.items() if len(item[1]) == 2]:
        changed += (first["x/masked_lm_positions"] != second["x/masked_lm_positions"]).any()
        ids = np.frombuffer(original, np.int32)[None]
        for epoch, one in enumerate((first, second)):
            lengths = one["x/input_mask"].sum(axis=1)
            expected = masker.mask(ids, lengths, row_keys(ids, lengths, seed=9, epoch=epoch))
            np.testing.assert_array_equal(one["x/input_ids"], expected.input_ids)
            count = int(one["w/masked_lm"].sum())
            np.testing.assert_array_equal(one["y/masked_lm"][0, :count], expected.ids[0])
    assert changed > 0.7 * ROWS


def test_dynamic_and_static_rows_give_the_same_batches_for_the_same_masks(folder, dynamic_folder):
    # The static rows of the test folder were masked with the data's seed (0) and epoch 0, as
    # evaluation masks the dynamic ones.
    assert_same(evaluate(dynamic_folder), evaluate(folder))


def test_padded_rows_give_the_same_batches_as_compact_ones(folder, tmp_path):
    path = make_data_folder(tmp_path / "rows", rows=ROWS, eval_rows=EVAL_ROWS)
    card = {**json.loads((path / "dataset_card.json").read_text()), "rows": "padded"}
    (path / "dataset_card.json").write_text(json.dumps(card))
    spec = padded(objective="mlm-nsp", max_length=MAX_LENGTH, max_predictions=MAX_PREDICTIONS)
    for shard in path.glob("*.tfrecord-*"):
        records = [record.numpy() for record in tf.data.TFRecordDataset(str(shard))]
        dense = pad(folder.spec.parse(records), MAX_LENGTH, MAX_PREDICTIONS)
        with tf.io.TFRecordWriter(str(shard)) as writer:
            for record in spec.encode({name: value.numpy() for name, value in dense.items()}):
                writer.write(record)
    padded_folder = DataFolder.open(path)
    assert_same(evaluate(padded_folder), evaluate(folder))
    assert_same(train(padded_folder, 15), train(folder, 15))


def test_a_split_without_training_rows_is_refused(tmp_path):
    empty = DataFolder.open(make_data_folder(tmp_path / "rows", rows=0, eval_rows=3))
    with pytest.raises(InputError, match="has no training rows"):
        training_dataset(empty, vocabulary=VOCABULARY, batch_size=2, seed=0)


def test_an_unknown_split_is_refused(folder):
    with pytest.raises(ValueError, match="Received: 'test'"):
        pretraining_dataset(folder, split="test", vocabulary=VOCABULARY, batch_size=2)
