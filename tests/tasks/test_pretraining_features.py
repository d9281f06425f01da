"""The batches of pre-training: every example once per epoch, an order that depends on seed and
epoch, a position that depends on the step, and masks from one implementation."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.records import MASKINGS, OBJECTIVES, DataFolder, padded
from keras_bert.records.masking import Masker, example_keys
from keras_bert.records.padding import pad
from keras_bert.records.specs import SPAN_FEATURES
from keras_bert.tasks.pretraining import features as pretraining
from keras_bert.tasks.pretraining.features import (
    evaluation_dataset,
    pretraining_dataset,
    training_dataset,
)
from tests.pretraining_folder import (
    MAX_LENGTH,
    MAX_PREDICTIONS,
    VOCABULARY,
    make_data_folder,
)
from tests.seeds import shifted
from tests.unmasked import unmask

ROWS, EVAL_EXAMPLES, BATCH = 100, 21, 8
PREDICTIONS = 2  # of a row of MAX_LENGTH tokens, at the rate of the folder


# The label of the rows with two segments.
SENTENCES = {"mlm-nsp": "next_sentence", "mlm-sop": "sentence_order"}
KINDS = [(objective, masking) for objective in OBJECTIVES for masking in MASKINGS]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One folder for each objective and way of masking; the rows before masking are the same."""
    root = tmp_path_factory.mktemp("rows")
    sizes = {"rows": ROWS, "eval_examples": EVAL_EXAMPLES}
    return {
        kind: DataFolder.open(
            make_data_folder(root / "-".join(kind), objective=kind[0], masking=kind[1], **sizes)
        )
        for kind in KINDS
    }


@pytest.fixture(scope="module")
def folder(folders):
    return folders["mlm-nsp", "static"]


@pytest.fixture(scope="module")
def dynamic_folder(folders):
    return folders["mlm-nsp", "dynamic"]


@pytest.fixture(params=KINDS, ids="-".join)
def any_folder(request, folders):
    return folders[request.param]


@pytest.fixture(scope="module")
def evaluated(folders):
    """The evaluation batches of each folder."""
    return {kind: evaluate(folder) for kind, folder in folders.items()}


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
        filled = np.arange(PREDICTIONS) < counts[:, None]
        restored = unmask(
            batch["x/input_ids"],
            (batch["x/masked_lm_positions"][filled], counts),
            (batch["y/masked_lm"][filled],),
        )
        rows += [row.tobytes() for row in restored]
    return rows


def assert_same(actual, expected):
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_each_epoch_holds_every_row_once_in_another_order(folder):
    rows = originals(train(folder, 3 * ROWS // 20, batch_size=20))
    epochs = [rows[:ROWS], rows[ROWS : 2 * ROWS], rows[2 * ROWS :]]
    assert len(set(epochs[0])) > ROWS / 2  # some short rows are equal by their draw
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(epochs[2])
    assert len({tuple(epoch) for epoch in epochs}) == 3
    stored = [record for record in originals(train(folder, 1, batch_size=ROWS, seed=4))]
    assert sorted(stored) == sorted(epochs[0]) and stored != epochs[0]


# 12.5 batches are an epoch, so batches that span two epochs are among these.
PLACES = [
    (("mlm-nsp", "static"), 1 << 15, [1, 12, 13, 25, 40]),
    (("mlm-nsp", "static"), 16, [12, 13, 40]),
    (("span", "dynamic"), 1 << 15, [12, 13, 40]),
]


@pytest.mark.parametrize("kind, window, first_steps", PLACES)
def test_the_place_in_the_data_is_a_function_of_the_step(
    kind, window, first_steps, folders, monkeypatch
):
    monkeypatch.setattr(pretraining, "_WINDOW", window)
    keras.utils.set_random_seed(shifted(1))
    uninterrupted = train(folders[kind], 44)
    keras.utils.set_random_seed(shifted(2))  # the process's own seed must not matter
    for step in first_steps:
        assert_same(train(folders[kind], 4, first_step=step), uninterrupted[step : step + 4])


def test_windows_are_shuffled_apart(folder, monkeypatch):
    monkeypatch.setattr(pretraining, "_WINDOW", 16)
    small = originals(train(folder, ROWS // 4, batch_size=4))
    monkeypatch.undo()
    assert sorted(small) == sorted(originals(train(folder, ROWS // 4, batch_size=4)))
    monkeypatch.setattr(pretraining, "_RECORDS_OF_A_SHARD", 1)
    monkeypatch.setattr(pretraining, "_WINDOW", 16)
    rows = originals(train(folder, 64, batch_size=1))
    # The same permutation in each window would show here.
    orders = {tuple(np.argsort(rows[first : first + 16])) for first in range(0, 64, 16)}
    assert len(orders) == 4


def test_batches_hold_what_their_objective_has_in_static_shapes(any_folder):
    objective = any_folder.card.objective
    for split, options in (("train", {"seed": shifted(0)}), ("eval", {})):
        x, y, weights = pretraining_dataset(
            any_folder, split=split, vocabulary=VOCABULARY, batch_size=BATCH, **options
        ).element_spec
        rows = dict.fromkeys(("input_ids", "input_mask", "segment_ids"), (BATCH, MAX_LENGTH))
        predictions = ["masked_lm_positions", *(SPAN_FEATURES if objective == "span" else ())]
        rows |= dict.fromkeys(predictions, (BATCH, PREDICTIONS))
        assert {name: value.shape for name, value in x.items()} == rows
        assert {value.dtype for value in (*x.values(), *y.values())} == {tf.int32}
        labels = {"masked_lm": (BATCH, PREDICTIONS)}
        if objective in SENTENCES:
            labels[SENTENCES[objective]] = (BATCH,)
        elif objective == "span":
            labels["span_boundary"] = (BATCH, PREDICTIONS)
        for part in (y, weights):
            assert {name: value.shape for name, value in part.items()} == labels
        assert {value.dtype for value in weights.values()} == {tf.float32}


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_evaluation_counts_every_row_once_and_what_fills_up_the_last_batch_not(kind, evaluated):
    batches = evaluated[kind]
    assert len(batches) == 3
    counts = np.concatenate([batch["w/masked_lm"].sum(axis=1) for batch in batches])
    np.testing.assert_array_equal(counts > 0, np.arange(24) < EVAL_EXAMPLES)
    if sentences := SENTENCES.get(kind[0]):
        weights = np.concatenate([batch[f"w/{sentences}"] for batch in batches])
        np.testing.assert_array_equal(weights, np.arange(24) < EVAL_EXAMPLES)


def test_evaluation_is_always_the_same_and_its_batches_may_be_fewer(dynamic_folder, evaluated):
    batches = evaluated["mlm-nsp", "dynamic"]
    assert_same(evaluate(dynamic_folder), batches)
    assert_same(evaluate(dynamic_folder, batches=2), batches[:2])
    assert_same(evaluate(dynamic_folder, batches=9), batches)


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
            expected = masker.mask(ids, lengths, example_keys(ids, lengths, seed=9, epoch=epoch))
            np.testing.assert_array_equal(one["x/input_ids"], expected.input_ids)
            count = int(one["w/masked_lm"].sum())
            np.testing.assert_array_equal(one["y/masked_lm"][0, :count], expected.ids[0])
    assert changed > 0.7 * ROWS


def test_dynamic_spans_obey_the_laws_of_spans_in_each_epoch(folders):
    batches = train(folders["span", "dynamic"], 2 * ROWS // 4, batch_size=4, seed=9)
    epochs = [[], []]
    for number, batch in enumerate(batches):
        for row in range(4):
            text = batch["x/input_mask"][row].sum() - 2
            count = int(batch["w/masked_lm"][row].sum())
            assert count == max(1, round((text + 2) * 0.15))  # words of one token: all of it
            position, left, right, offset = (
                batch[f"x/{name}"][row] for name in ("masked_lm_positions", *SPAN_FEATURES)
            )
            for column in (position, left, right, offset):
                assert not column[count:].any()
            chosen = position[:count].tolist()
            assert chosen == sorted(set(chosen)) and 1 <= chosen[0] and chosen[-1] <= text
            for p, begin, end, at in zip(chosen, left, right, offset, strict=False):
                assert begin + at == p < end
                assert begin not in chosen and end not in chosen
                assert set(range(begin + 1, end)) <= set(chosen)
            epochs[number >= ROWS // 4].append((originals([batch])[row], tuple(chosen)))
    first, second = epochs
    assert sorted(row for row, _ in first) == sorted(row for row, _ in second)
    assert sorted(first) != sorted(second)  # the same rows, other spans
    assert len(set(first) & set(second)) < 0.4 * ROWS


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_dynamic_and_static_rows_give_the_same_batches_for_the_same_masks(
    objective, folders, evaluated
):
    # The static rows of the test folder were masked with the data's seed (0) and epoch 0, as
    # evaluation masks the dynamic ones, and as training does in its first epoch.
    static, dynamic = ((objective, masking) for masking in MASKINGS)
    assert_same(evaluated[dynamic], evaluated[static])
    first_epoch = {"count": ROWS // BATCH, "seed": 0}
    assert_same(train(folders[dynamic], **first_epoch), train(folders[static], **first_epoch))


@pytest.mark.parametrize("objective", ["mlm-nsp", "span"])  # all columns that there are
def test_padded_rows_give_the_same_batches_as_compact_ones(objective, folders, evaluated, tmp_path):
    folder = folders[objective, "static"]
    path = make_data_folder(
        tmp_path / "rows", objective=objective, rows=ROWS, eval_examples=EVAL_EXAMPLES
    )
    card = {**json.loads((path / "dataset_card.json").read_text()), "rows": "padded"}
    (path / "dataset_card.json").write_text(json.dumps(card))
    spec = padded(objective=objective, max_length=MAX_LENGTH, max_predictions=MAX_PREDICTIONS)
    for shard in path.glob("*.tfrecord-*"):
        records = [record.numpy() for record in tf.data.TFRecordDataset(str(shard))]
        dense = pad(
            folder.spec.parse(records),
            MAX_LENGTH,
            MAX_PREDICTIONS,
            template=folder.card.template,
        )
        with tf.io.TFRecordWriter(str(shard)) as writer:
            for record in spec.encode({name: value.numpy() for name, value in dense.items()}):
                writer.write(record)
    padded_folder = DataFolder.open(path)
    assert_same(evaluate(padded_folder), evaluated[objective, "static"])
    assert_same(train(padded_folder, 15), train(folder, 15))


def test_dynamic_replacements_follow_the_counts_of_the_card(folders, tmp_path):
    """All counts on one piece: whatever is replaced becomes that piece, in training and eval."""
    favourite = VOCABULARY.id("w7")
    counts = np.zeros(len(VOCABULARY), int)
    counts[[favourite, VOCABULARY.unk_id]] = 1, 1000  # [UNK] is never drawn, however frequent
    path = make_data_folder(
        tmp_path / "rows",
        masking="dynamic",
        rows=500,
        eval_examples=500,
        settings={"mask_unit": "token", "masked_rate": 0.15, "replacement": "unigram"},
        unigram_counts=counts.tolist(),
    )
    for batches in (train(DataFolder.open(path), 62), evaluate(DataFolder.open(path))):
        put = set()
        for batch in batches:
            filled = batch["w/masked_lm"] > 0
            rows = np.nonzero(filled)[0]
            seen = batch["x/input_ids"][rows, batch["x/masked_lm_positions"][filled]]
            put |= set(seen[seen != batch["y/masked_lm"][filled]].tolist())
        assert put == {favourite, VOCABULARY.mask_id}


def test_a_split_without_training_rows_is_rejected(tmp_path):
    empty = DataFolder.open(make_data_folder(tmp_path / "rows", rows=0, eval_examples=3))
    with pytest.raises(InputError, match="has no training examples"):
        training_dataset(empty, vocabulary=VOCABULARY, batch_size=2, seed=shifted(0))


def test_an_unknown_split_is_rejected(folder):
    with pytest.raises(ValueError, match="Received: 'test'"):
        pretraining_dataset(folder, split="test", vocabulary=VOCABULARY, batch_size=2)
