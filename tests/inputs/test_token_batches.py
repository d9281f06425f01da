"""Batches by tokens: every row once, no batch too large, few shapes, and a place for every step."""

import numpy as np
import pytest

from keras_bert.inputs.batches import bucket_lengths, token_batches, tokens_per_batch
from keras_bert.records import DataFolder
from keras_bert.records.masking import most_predictions
from keras_bert.tasks.pretraining import features
from keras_bert.tasks.pretraining.features import WindowBatches, training_dataset
from tests.pretraining_folder import MAX_LENGTH, MAX_PREDICTIONS, VOCABULARY, make_data_folder
from tests.seeds import make_rng, shifted


@pytest.mark.parametrize(
    "max_length, tokens, sequences", [(64, 512, 1000), (20, 20, 7), (16, 64, 0)]
)
def test_every_row_is_in_one_batch_of_few_shapes(max_length, tokens, sequences):
    lengths = make_rng(0).integers(3, max_length + 1, sequences)
    indices, sizes, widths = token_batches(
        lengths, max_length=max_length, tokens=tokens, rng=make_rng(1)
    )
    np.testing.assert_array_equal(np.sort(indices[indices >= 0]), np.arange(sequences))
    np.testing.assert_array_equal(sizes, tokens // widths)
    assert set(widths) <= set(bucket_lengths(max_length)) and len(set(widths)) <= 8
    batches = np.split(indices, np.cumsum(sizes)[:-1]) if sequences else []
    for batch, width in zip(batches, widths, strict=True):
        assert (lengths[batch[batch >= 0]] <= width).all()
        assert width == max_length or (batch >= 0).all()
    if sequences == 1000:
        # About one length: little is padding, while rows as they come would be half of it.
        assert lengths.sum() / (sizes * widths).sum() > 0.85
        assert (np.diff(widths) < 0).any()  # not the short ones first
        histogram = np.bincount(lengths, minlength=max_length + 1)
        expected = lengths.sum() / len(sizes)
        assert tokens_per_batch(histogram, tokens=tokens) == pytest.approx(expected, rel=0.03)


def test_an_epoch_of_such_batches_holds_its_rows_and_any_step_is_found_again(tmp_path):
    folder = DataFolder.open(
        make_data_folder(tmp_path / "rows", rows=60, eval_examples=0, objective="mlm")
    )
    options = {"vocabulary": VOCABULARY, "seed": shifted(5)}
    batches = list(training_dataset(folder, batch_tokens=64, **options).take(40))
    [(every, *_)] = training_dataset(folder, batch_size=60, **options).take(1)
    expected = sorted(row.tobytes() for row in every["input_ids"].numpy())
    seen, number, predictions = [], 0, 0
    while len(seen) < 60:
        x, y, weights = batches[number]
        ids, counts = x["input_ids"].numpy(), weights["masked_lm"].numpy().any(axis=1)
        assert ids.size <= 64 and ids.shape == x["input_mask"].shape == x["segment_ids"].shape
        # The masks of rows of this width, and no place that none of them can fill.
        places = most_predictions(ids.shape[1], rate=0.15, max_predictions=MAX_PREDICTIONS)
        shapes = {x["masked_lm_positions"].shape, y["masked_lm"].shape, weights["masked_lm"].shape}
        assert shapes == {(len(ids), places)}
        predictions += weights["masked_lm"].numpy().sum()
        ids = np.pad(ids, ((0, 0), (0, MAX_LENGTH - ids.shape[1])))
        seen += [row.tobytes() for row in ids[counts]]
        number += 1
    assert sorted(seen) == expected
    lengths = every["input_mask"].numpy().sum(axis=1)
    assert predictions == np.rint(0.15 * lengths).clip(1).sum()
    again = training_dataset(folder, batch_tokens=64, first_step=number + 3, **options).take(5)
    for one, other in zip(again, batches[number + 3 :], strict=False):
        np.testing.assert_array_equal(one[0]["input_ids"], other[0]["input_ids"])
        np.testing.assert_array_equal(one[1]["masked_lm"], other[1]["masked_lm"])


@pytest.mark.parametrize("window", [pytest.param(1 << 15, marks=pytest.mark.slow), 16])
def test_a_resumed_run_plans_no_window_before_that_of_its_step(tmp_path, monkeypatch, window):
    monkeypatch.setattr(features, "_WINDOW", window)
    folder = DataFolder.open(
        make_data_folder(tmp_path / "rows", rows=60, eval_examples=0, objective="mlm")
    )
    options = {"vocabulary": VOCABULARY, "seed": shifted(5), "batch_tokens": 64}
    uninterrupted = WindowBatches(folder)
    batches = list(training_dataset(folder, window_batches=uninterrupted, **options).take(60))
    assert sum(uninterrupted.counts) >= 60 or len(uninterrupted.counts) == 1
    planned = []

    def note_and_plan(lengths, **more):
        planned.append(len(lengths))
        return token_batches(lengths, **more)

    monkeypatch.setattr(features, "token_batches", note_and_plan)
    for step in (uninterrupted.counts[0], 29):
        for counts in ((), uninterrupted.counts[:2], uninterrupted.counts):
            planned.clear()
            resumed = WindowBatches(folder, counts)
            again = training_dataset(folder, first_step=step, window_batches=resumed, **options)
            [(x, y, _)] = again.take(1)
            np.testing.assert_array_equal(x["input_ids"], batches[step][0]["input_ids"])
            np.testing.assert_array_equal(y["masked_lm"], batches[step][1]["masked_lm"])
            assert resumed.counts == uninterrupted.counts[: len(resumed.counts)]
            if counts == uninterrupted.counts:
                # That of the step, and what is made ahead of it.
                assert sum(planned) <= window + 60
