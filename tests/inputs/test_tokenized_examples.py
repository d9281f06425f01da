"""Rows with labels, weights and columns of their own, in batches of any rows."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.inputs.tokenized_examples import TokenizedExamples
from tests.small_model import make_tokenizer

NAMES = ("input_ids", "input_mask", "segment_ids")
TEXTS = ["a b c", "", "c", "a a a a a a a a a a a"]


@pytest.fixture(scope="module")
def sequences():
    lengths = [5, 2, 3, 12]  # with [CLS] and [SEP]; the last is cut
    count = sum(lengths)
    a_token_each = tf.RaggedTensor.from_row_lengths(
        np.arange(1, count + 1, dtype=np.int32), lengths
    )
    return TokenizedExamples.from_texts(
        TEXTS[:3],
        [TEXTS],
        labels={"tags": a_token_each, "kind": np.arange(4, dtype=np.int32)},
        weights={"tags": tf.cast(a_token_each > 2, tf.float32)},
        columns={"heads": a_token_each, "pairs": np.arange(8, dtype=np.int32).reshape(4, 2)},
        example_of_sequence=np.array([0, 1, 2, 2]),
        tokenizer=make_tokenizer(),
        input_names=NAMES,
        max_length=12,
    )


@pytest.mark.parametrize("numbers", [[2, 0], [3], [1, 2, 3, 0], []])
def test_what_belongs_to_a_token_is_padded_like_the_tokens(sequences, numbers):
    inputs, labels, weights = sequences.batch(tf.constant(numbers, tf.int32))
    width = inputs["input_ids"].shape[1]
    assert inputs["heads"].shape == labels["tags"].shape == (len(numbers), width)
    starts = np.cumsum([0, 5, 2, 3])
    for place, row in enumerate(numbers):
        length = sequences.lengths[row]
        assert inputs["input_mask"][place].numpy().sum() == length
        expected = np.zeros(width, np.int32)
        expected[:length] = 1 + starts[row] + np.arange(length)
        np.testing.assert_array_equal(inputs["heads"][place], expected)
        np.testing.assert_array_equal(labels["tags"][place], expected)
        np.testing.assert_array_equal(weights["tags"][place], expected > 2)
    np.testing.assert_array_equal(labels["kind"], numbers)
    np.testing.assert_array_equal(inputs["pairs"], np.arange(8).reshape(4, 2)[numbers])


def test_a_dataset_has_the_same_batches(sequences):
    batches = list(sequences.evaluation_batches(batch_size=3))
    for batch, numbers in zip(batches, ([1, 2, 0], [3]), strict=True):
        tf.nest.map_structure(
            np.testing.assert_array_equal, batch, sequences.batch(tf.constant(numbers))
        )


def test_a_fingerprint_knows_all_that_training_depends_on(sequences):
    def changed(**changes):
        options = {
            "labels": sequences.labels,
            "weights": sequences.weights,
            "columns": sequences.columns,
        }
        options |= {"input_names": NAMES, "max_length": 12, **changes}
        return TokenizedExamples.from_texts(
            TEXTS[:3], [TEXTS], tokenizer=make_tokenizer(), **options
        ).fingerprint

    others = [
        changed(weights={"tags": tf.ones_like(sequences.weights["tags"])}),
        changed(columns={**sequences.columns, "pairs": np.zeros((4, 2), np.int32)}),
        changed(labels={**sequences.labels, "kind": np.zeros(4, np.int32)}),
    ]
    assert changed() == sequences.fingerprint
    assert len({sequences.fingerprint, *others}) == 4
