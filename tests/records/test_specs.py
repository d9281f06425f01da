"""Rows written by our encoder are what TensorFlow's own parser and its protocol buffers read."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.records import COMPACT, FeatureSpec, padded
from keras_bert.records.padding import pad
from keras_bert.text.template import BERT_TEMPLATE
from tests.seeds import make_rng


def ragged(rows):
    return (
        np.array([value for record in rows for value in record], np.int64),
        np.array([len(record) for record in rows]),
    )


def examples_of(count, seed=0):
    """Rows of 2 to 128 ids, among them every varint boundary up to 2**31 - 1."""
    rng = make_rng(seed)
    edges = [0, 1, 127, 128, 16383, 16384, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**31 - 1]
    lengths = rng.integers(2, 129, count)
    rows = [rng.choice([*edges, *rng.integers(0, 30522, 20)], n).tolist() for n in lengths]
    masked = [sorted(rng.choice(n, n // 6, replace=False).tolist()) for n in lengths]
    return {
        "input_ids": ragged(rows),
        "segment_lengths": np.stack([lengths // 2, lengths - lengths // 2], axis=1),
        "next_sentence_labels": rng.integers(0, 2, (count, 1)),
        "masked_lm_positions": ragged(masked),
        "masked_lm_ids": ragged(masked),
    }, rows


def test_parse_example_gives_back_what_was_encoded():
    columns, rows = examples_of(200)
    parsed = COMPACT.parse(tf.constant(COMPACT.encode(columns)))
    assert parsed["input_ids"].to_list() == rows
    assert parsed["input_ids"].dtype == tf.int32
    np.testing.assert_array_equal(parsed["segment_lengths"], columns["segment_lengths"])
    np.testing.assert_array_equal(parsed["next_sentence_labels"], columns["next_sentence_labels"])
    positions, lengths = columns["masked_lm_positions"]
    np.testing.assert_array_equal(parsed["masked_lm_positions"].values, positions)
    np.testing.assert_array_equal(parsed["masked_lm_positions"].row_lengths(), lengths)


def test_rows_are_ordinary_examples():
    columns, rows = examples_of(20)
    for serialized, record in zip(COMPACT.encode(columns), rows, strict=True):
        example = tf.train.Example.FromString(serialized)
        assert set(example.features.feature) == set(COMPACT.lengths)
        assert list(example.features.feature["input_ids"].int64_list.value) == record
        # Nothing in the bytes but the message itself.
        assert example.ByteSize() == len(serialized)


def test_floats_and_empty_rows():
    spec = FeatureSpec(
        kind="compact", lengths={"weights": 3, "ids": None}, floats=frozenset({"weights"})
    )
    weights = np.array([[0.0, 1.0, -2.5], [3e-38, 1e9, 0.1]], np.float32)
    parsed = spec.parse(spec.encode({"weights": weights, "ids": ragged([[], [300]])}))
    np.testing.assert_array_equal(parsed["weights"], weights)
    assert parsed["ids"].to_list() == [[], [300]]


def test_an_empty_batch_has_no_examples():
    empty = {name: ragged([]) if n is None else np.zeros((0, n), int)
             for name, n in COMPACT.lengths.items()}  # fmt: skip
    assert COMPACT.encode(empty) == []


def test_the_writer_rejects_columns_that_are_not_of_the_spec():
    columns, _ = examples_of(3)
    with pytest.raises(ValueError, match="Received"):
        COMPACT.encode(columns | {"extra": np.zeros((3, 1))})
    with pytest.raises(ValueError, match=r"\(examples, 2\)"):
        COMPACT.encode(columns | {"segment_lengths": np.ones((3, 1), int)})
    with pytest.raises(ValueError, match="sum to"):
        COMPACT.encode(columns | {"input_ids": (np.arange(5), np.array([2, 2, 2]))})
    with pytest.raises(ValueError, match="negative"):
        COMPACT.encode(columns | {"segment_lengths": np.full((3, 2), -1)})


def test_the_reader_rejects_an_example_without_a_feature():
    columns, _ = examples_of(1)
    record = FeatureSpec(kind="compact", lengths={"segment_lengths": 2}).encode(
        {"segment_lengths": columns["segment_lengths"]}
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="next_sentence_labels"):
        COMPACT.parse(record)


def test_padded_examples_are_read_by_google_research_bert_and_the_model_garden():
    # run_pretraining.py of google-research/bert, name_to_features, with 8 and 3; the TF Model
    # Garden's pretrain_dataloader.py, _name_to_features, asks for the same (with its default of
    # use_v2_feature_names=False) and parses row by row.
    their_features = {
        "input_ids": tf.io.FixedLenFeature([8], tf.int64),
        "input_mask": tf.io.FixedLenFeature([8], tf.int64),
        "segment_ids": tf.io.FixedLenFeature([8], tf.int64),
        "masked_lm_positions": tf.io.FixedLenFeature([3], tf.int64),
        "masked_lm_ids": tf.io.FixedLenFeature([3], tf.int64),
        "masked_lm_weights": tf.io.FixedLenFeature([3], tf.float32),
        "next_sentence_labels": tf.io.FixedLenFeature([1], tf.int64),
    }
    batch = pad(
        {
            "input_ids": tf.ragged.constant([[2, 9, 3, 8, 7, 3], [2, 5, 3]], dtype=tf.int32),
            "segment_lengths": tf.constant([[3, 3], [2, 1]]),
            "next_sentence_labels": tf.constant([[1], [0]]),
            "masked_lm_positions": tf.ragged.constant([[1, 4], [1]], dtype=tf.int32),
            "masked_lm_ids": tf.ragged.constant([[11, 12], [0]], dtype=tf.int32),
        },
        8,
        3,
        template=BERT_TEMPLATE,
    )
    spec = padded(objective="mlm-nsp", max_length=8, max_predictions=3)
    rows = spec.encode({name: value.numpy() for name, value in batch.items()})
    parsed = tf.io.parse_example(rows, their_features)
    assert set(parsed) == set(batch)
    for name, value in batch.items():
        np.testing.assert_array_equal(parsed[name], value, err_msg=name)
        one_by_one = [tf.io.parse_single_example(record, their_features)[name] for record in rows]
        np.testing.assert_array_equal(tf.stack(one_by_one), value, err_msg=name)
