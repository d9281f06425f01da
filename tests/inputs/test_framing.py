"""Segments -> model inputs: the laws of cutting and padding, eagerly and in a graph."""

from types import SimpleNamespace

import pytest
import tensorflow as tf

from keras_bert.inputs.framing import frame
from keras_bert.text.template import BERT_TEMPLATE, PLAIN_TEMPLATE, Template
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from tests.seeds import make_rng

VOCABULARY = WordPieceVocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdef"])
OPTIONS = {
    "tokenizer": SimpleNamespace(vocabulary=VOCABULARY, template=BERT_TEMPLATE),
    "names": ("input_ids", "input_mask", "segment_ids"),
}


def ragged(sequences):
    return tf.ragged.constant(sequences, dtype=tf.int32, ragged_rank=1)


def as_lists(batch):
    return {name: tensor.numpy().tolist() for name, tensor in batch.items()}


def test_single_texts_exactly():
    batch = frame([ragged([[5, 6], [], [7, 8, 9, 10, 11]])], **OPTIONS, max_length=5)
    assert as_lists(batch) == {
        "input_ids": [[2, 5, 6, 3, 0], [2, 3, 0, 0, 0], [2, 7, 8, 9, 3]],
        "input_mask": [[1, 1, 1, 1, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1, 1]],
        "segment_ids": [[0] * 5] * 3,
    }


def test_pairs_exactly():
    batch = frame(
        [ragged([[5, 6], [5] * 9, []]), ragged([[7], [8] * 9, [9] * 12])],
        **OPTIONS,
        max_length=10,
    )
    assert as_lists(batch) == {
        "input_ids": [
            [2, 5, 6, 3, 7, 3, 0, 0, 0, 0],
            [2, 5, 5, 5, 5, 3, 8, 8, 8, 3],
            [2, 3, 9, 9, 9, 9, 9, 9, 9, 3],
        ],
        "input_mask": [[1] * 6 + [0] * 4, [1] * 10, [1] * 10],
        "segment_ids": [
            [0, 0, 0, 0, 1, 1, 0, 0, 0, 0],
            [0] * 6 + [1] * 4,
            [0, 0] + [1] * 8,
        ],
    }


TEMPLATES = {
    "none": PLAIN_TEMPLATE,
    "roberta": Template(
        single=(("[CLS]", 0), (0, 0), ("[SEP]", 0)),
        pair=(("[CLS]", 0), (0, 0), ("[SEP]", 0), ("[SEP]", 0), (1, 0), ("[SEP]", 0)),
    ),
    "gpt": Template(
        single=(("[CLS]", 0), (0, 0), ("[MASK]", 0)),
        pair=(("[CLS]", 0), (0, 0), ("[SEP]", 0), (1, 0), ("[MASK]", 0)),
    ),
    "segments from 1": Template(single=((0, 1), ("[SEP]", 1)), pair=((0, 1), (1, 2), ("[SEP]", 2))),
}


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
@pytest.mark.parametrize("texts", [1, 2])
def test_rows_follow_the_template(template, texts):
    """Part by part, and every text is where the template says."""
    rng = make_rng(1)
    sequences = [
        [rng.integers(5, 11, rng.integers(0, 5)).tolist() for _ in range(texts)] for _ in range(20)
    ]
    options = {**OPTIONS, "tokenizer": SimpleNamespace(vocabulary=VOCABULARY, template=template)}
    batch = frame(
        [ragged(list(column)) for column in zip(*sequences, strict=True)], **options, max_length=14
    )
    for number, row in enumerate(sequences):
        parts = [
            ([VOCABULARY.id(part)] if isinstance(part, str) else row[part], segment)
            for part, segment in template.parts(texts)
        ]
        ids = [id for part, _ in parts for id in part]
        segments = [segment for part, segment in parts for _ in part]
        example = {name: column[number].numpy() for name, column in batch.items()}
        assert (
            example["input_mask"].sum()
            == len(ids)
            == sum(map(len, row)) + template.num_special(texts)
        )
        assert example["input_ids"].tolist()[: len(ids)] == ids
        assert example["segment_ids"].tolist() == segments + [0] * (
            len(example["input_ids"]) - len(ids)
        )
        place = 0
        for text in range(texts):
            start = place + template.before(text, texts=texts)
            assert example["input_ids"].tolist()[start : start + len(row[text])] == row[text]
            place += len(row[text])
    full = frame([ragged([[7] * 30])] * texts, **options, max_length=14)
    assert full["input_mask"].numpy().sum() == 14
    assert (full["input_ids"].numpy() == 7).sum() == template.room(14, texts=texts)


def truncate_pair(first, second, budget):
    """google-research/bert, run_classifier.py, _truncate_seq_pair."""
    first, second = list(first), list(second)
    while len(first) + len(second) > budget:
        (first if len(first) > len(second) else second).pop()
    return first, second


def test_pairs_are_cut_as_bert_cut_them():
    rng = make_rng(0)
    sequences = [
        (rng.integers(10, 99, rng.integers(0, 40)), rng.integers(10, 99, rng.integers(0, 40)))
        for _ in range(500)
    ]
    for max_length in (5, 12, 32, 33, 64):
        batch = frame(
            [
                ragged([a.tolist() for a, _ in sequences]),
                ragged([b.tolist() for _, b in sequences]),
            ],
            **OPTIONS,
            max_length=max_length,
        )
        for row, (a, b) in enumerate(sequences):
            a, b = truncate_pair(a, b, max_length - 3)
            length = int(batch["input_mask"][row].numpy().sum())
            assert batch["input_ids"][row, :length].numpy().tolist() == [2, *a, 3, *b, 3]
            assert int(batch["segment_ids"][row].numpy().sum()) == len(b) + 1


@pytest.mark.parametrize(
    "longest, multiple_of, width", [(1, 8, 8), (6, 8, 8), (7, 8, 16), (99, 8, 20), (3, 1, 5)]
)
def test_width_is_the_longest_row_rounded_up_and_never_over_the_maximum(
    longest, multiple_of, width
):
    batch = frame(
        [ragged([[7] * longest, [8]])],
        **OPTIONS,
        max_length=20,
        multiple_of=multiple_of,
    )
    assert batch["input_ids"].shape == (2, width)


def test_a_graph_gives_the_same_for_any_batch_size_and_even_for_none():
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
    def graph(tokens):
        return frame([tokens], **OPTIONS, max_length=6)

    sequences = [[5, 6], [], [7] * 9]
    for count in (1, 2, 3):
        eager = frame([ragged(sequences[:count])], **OPTIONS, max_length=6)
        assert as_lists(graph(ragged(sequences[:count]))) == as_lists(eager)
    empty = graph(tf.RaggedTensor.from_row_lengths(tf.constant([], tf.int32), []))
    assert empty["input_ids"].shape[0] == 0


def test_only_core_operations():
    """TensorFlow Text's trimmers are lacking in a server older than 2.19."""

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)] * 2)
    def graph(a, b):
        return frame([a, b], **OPTIONS, max_length=6)

    concrete = graph.get_concrete_function()
    names = {operation.type for operation in concrete.graph.get_operations()}
    for function in concrete.graph.as_graph_def().library.function:
        names |= {node.op for node in function.node_def}
    assert not {name for name in names if name not in dir(tf.raw_ops)} - {"Placeholder"}


def test_a_length_that_leaves_no_room_is_rejected():
    with pytest.raises(ValueError, match="max_length=2"):
        frame([ragged([[5]])], **OPTIONS, max_length=2)
    with pytest.raises(ValueError, match="3 segments"):
        frame([ragged([[5]])] * 3, **OPTIONS, max_length=20)
