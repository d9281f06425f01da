"""Rows of different lengths as dense tensors: eagerly, in a graph, in two lengths."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.records.padding import pad, pad_sequences
from keras_bert.text.template import BERT_TEMPLATE

BERT = {"template": BERT_TEMPLATE}


def parsed_batch():
    return {
        "input_ids": tf.ragged.constant([[2, 9, 3, 8, 7, 3], [2, 5, 3]], dtype=tf.int32),
        "segment_lengths": tf.constant([[3, 3], [2, 1]]),
        "next_sentence_labels": tf.constant([[1], [0]]),
        "masked_lm_positions": tf.ragged.constant([[1, 4], [1]], dtype=tf.int32),
        "masked_lm_ids": tf.ragged.constant([[11, 12], [0]], dtype=tf.int32),
    }


@pytest.mark.parametrize("in_graph", [False, True])
def test_pad_gives_dense_sequences(in_graph):
    function = tf.function(pad) if in_graph else pad
    batch = function(parsed_batch(), 8, 3, **BERT)
    expected = {
        "input_ids": [[2, 9, 3, 8, 7, 3, 0, 0], [2, 5, 3, 0, 0, 0, 0, 0]],
        "input_mask": [[1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0, 0, 0]],
        "segment_ids": [[0, 0, 0, 1, 1, 1, 0, 0], [0, 0, 1, 0, 0, 0, 0, 0]],
        "next_sentence_labels": [[1], [0]],
        "masked_lm_positions": [[1, 4, 0], [1, 0, 0]],
        "masked_lm_ids": [[11, 12, 0], [0, 0, 0]],
        "masked_lm_weights": [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
    }
    assert set(batch) == set(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(batch[name], value, err_msg=name)
        wanted = tf.float32 if name == "masked_lm_weights" else tf.int32
        assert batch[name].dtype == wanted, name


@pytest.mark.parametrize("sizes, message", [((5, 3), "longer"), ((8, 1), "more predictions")])
@pytest.mark.parametrize("in_graph", [False, True])
def test_pad_never_cuts(in_graph, sizes, message):
    function = tf.function(pad) if in_graph else pad
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        function(parsed_batch(), *sizes, **BERT)


@pytest.mark.parametrize("in_graph", [False, True])
@pytest.mark.parametrize(
    "multiple_of, length", [(None, 9), (1, 6), (4, 8), (8, 8), (16, 9)], ids=str
)
def test_the_length_is_the_longest_sequence_rounded_up_or_the_maximum(
    in_graph, multiple_of, length
):
    sequences = tf.ragged.constant([[2, 9, 3, 8, 7, 3], [2, 5, 3]], dtype=tf.int32)

    def make(sequences):
        lengths = tf.constant([[3, 3], [3, 0]])
        return pad_sequences(
            sequences, lengths, **BERT, max_length=9, multiple_of=multiple_of, pad_id=1
        )

    batch = (tf.function(make) if in_graph else make)(sequences)
    expected = {
        "input_ids": [[2, 9, 3, 8, 7, 3], [2, 5, 3, 1, 1, 1]],
        "input_mask": [[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]],
        "segment_ids": [[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]],
    }
    assert set(batch) == set(expected)
    for name, value in expected.items():
        padding = 1 if name == "input_ids" else 0
        wanted = np.pad(value, [(0, 0), (0, length - 6)], constant_values=padding)
        np.testing.assert_array_equal(batch[name], wanted, err_msg=name)
        assert batch[name].dtype == tf.int32


def test_an_empty_batch_has_a_length_too():
    sequences = tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), tf.zeros([0], tf.int32))
    for multiple_of, length in ((None, 16), (8, 8)):
        batch = pad_sequences(
            sequences, tf.zeros([0, 2]), **BERT, max_length=16, multiple_of=multiple_of
        )
        assert all(value.shape == (0, length) for value in batch.values())


def test_shapes_are_static_where_the_length_is():
    signature = tf.RaggedTensorSpec([None, None], tf.int32)
    for multiple_of, length in ((None, 16), (8, None)):

        @tf.function(input_signature=[signature])
        def make(sequences, multiple_of=multiple_of):
            lengths = sequences.row_lengths()[:, None]
            return pad_sequences(sequences, lengths, **BERT, max_length=16, multiple_of=multiple_of)

        for shape in make.get_concrete_function().structured_outputs.values():
            assert shape.shape.as_list() == [None, length]


@pytest.mark.parametrize("in_graph", [False, True])
def test_no_sequence_is_cut_to_the_padded_length(in_graph):
    sequences = tf.ragged.constant([[2, 9, 3, 8, 7, 3]], dtype=tf.int32)

    def make(sequences):
        return pad_sequences(sequences, tf.constant([[6]]), **BERT, max_length=5, multiple_of=4)

    with pytest.raises(tf.errors.InvalidArgumentError, match="longer than the maximum length"):
        (tf.function(make) if in_graph else make)(sequences)
