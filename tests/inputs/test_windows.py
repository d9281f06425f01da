"""Laws of windows, for all of their users: every position is answered once, in a graph too."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.inputs.framing import windows

LENGTHS = [0, 1, 2, 9, 10, 11, 12, 19, 20, 21, 0, 37, 400, 3]
SHAPES = [(1, 1), (2, 1), (3, 2), (10, 3), (10, 5), (10, 8), (10, 10), (10, 99), (25, 7), (60, 1)]
OPTIONS = [
    {"last": last, "cores": cores}
    for last in ("full", "short", "even")
    for cores in ("middle", "bert")
    if (last, cores) != ("even", "bert")
]


@pytest.mark.parametrize("room, stride", SHAPES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_position_is_in_one_core(room, stride, options):
    all_windows = windows(tf.constant(LENGTHS), room, stride=stride, **options).numpy()
    assert (np.diff(all_windows.sequence) >= 0).all()
    for sequence, length in enumerate(LENGTHS):
        is_of_sequence = all_windows.sequence == sequence
        starts, sizes, firsts, ends = (part[is_of_sequence] for part in all_windows[1:])
        cores = [p for first, end in zip(firsts, ends, strict=True) for p in range(first, end)]
        assert cores == list(range(length))
        assert ((starts <= firsts) & (firsts <= ends) & (ends <= starts + sizes)).all()
        assert starts[0] == 0 and starts[-1] + sizes[-1] == length
        assert (np.diff(starts) >= 1).all() and (np.diff(starts) <= stride).all()
        assert (sizes[:-1] == room).all()
        if options["last"] != "short":
            assert (sizes == min(room, length)).all()
        assert len(starts) == 1 + max(0, -(-(length - room) // min(stride, room)))


@pytest.mark.parametrize("room, stride", [(10, 5), (11, 4), (12, 12)])
@pytest.mark.parametrize("last", ["full", "even"])
def test_a_core_has_the_positions_with_most_context(room, stride, last):
    all_windows = windows(tf.constant([97]), room, stride=stride, last=last).numpy()
    for position in range(97):
        context = np.minimum(
            position - all_windows.starts, all_windows.starts + room - 1 - position
        )
        (answered,) = np.flatnonzero(
            (all_windows.core_starts <= position) & (position < all_windows.core_ends)
        )
        edge = position < room // 2 or position >= 97 - room // 2  # no more text, no more context
        assert edge or context[answered] == context.max()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_a_graph_gives_the_same_also_for_nothing_and_for_rooms_of_their_own(options, dtype):
    vector = tf.TensorSpec([None], dtype)

    @tf.function(input_signature=[vector, vector])
    def graph(lengths, rooms):
        return windows(lengths, rooms, stride=4, **options)

    for lengths in (LENGTHS, []):
        lengths = tf.constant(lengths, dtype)
        rooms = 3 + tf.range(tf.size(lengths, dtype)) % 5
        graph_windows, eager = (make(lengths, rooms) for make in (graph, graph.python_function))
        for in_graph, in_python in zip(graph_windows, eager, strict=True):
            np.testing.assert_array_equal(in_graph, in_python)
        alone = [
            windows(lengths[n : n + 1], int(room), stride=4, **options).numpy()
            for n, room in enumerate(rooms)
        ]
        for name in ("starts", "sizes", "core_starts", "core_ends"):
            expected = [value for one in alone for value in getattr(one, name)]
            assert getattr(eager, name).numpy().tolist() == expected


def test_rows_and_their_core_columns_are_the_sequences():
    sequences = tf.ragged.constant([[10, 11, 12, 13, 14, 15, 16], [], [20]], dtype=tf.int32)
    all_windows = windows(tf.cast(sequences.row_lengths(), tf.int32), 4, stride=2)
    rows = all_windows.rows(sequences)
    assert rows.to_list() == [[10, 11, 12, 13], [12, 13, 14, 15], [13, 14, 15, 16], [], [20]]
    padded = tf.concat([tf.zeros([5, 2], tf.int32), rows.to_tensor()], axis=1)
    core = tf.boolean_mask(padded, all_windows.core_of(6, offset=2))
    assert core.numpy().tolist() == sequences.flat_values.numpy().tolist()
