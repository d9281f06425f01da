"""Rows of questions: a window is exactly question and piece, and labels are where the answer is."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.readers.squad import QuestionSource
from keras_bert.tasks.question_answering.features import question_sequences
from tests.small_model import make_tokenizer

CONTEXT = "Zoë was born in Łódź, in 1899. She died in 北京 — or so the ｆｕｌｌ story 😀 says!"


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(["was", "born", "in", "she", "died", "or", "so", "the", "story", "says"])


def answer(text, context=CONTEXT, **changes):
    return {"text": text, "answer_start": context.index(text), **changes}


def examples():
    return list(
        QuestionSource(
            [
                {"question": "Where?", "context": CONTEXT, "answers": [answer("Łódź")]},
                {
                    "question": "And when was she born, do you say?",
                    "context": CONTEXT,
                    "answers": [],
                },
                {"question": "Who", "context": "Zoë.", "answers": [answer("Zoë", "Zoë.")]},
                {"question": "", "context": "", "answers": []},
                {
                    "question": "Where did she die?",
                    "context": CONTEXT,
                    "answers": [{"text": "Rome", "answer_start": 3}],
                },
                {"question": "What?", "context": CONTEXT, "answers": [answer(CONTEXT)]},
            ]
        )
    )


def made(tokenizer, some=None, **options):
    options = {"max_length": 24, "stride": 5, "max_question_length": 64, **options}
    names = ("input_ids", "input_mask", "segment_ids")
    some = some or examples()
    return question_sequences(some, tokenizer=tokenizer, input_names=names, **options)


def test_a_row_is_the_question_and_a_token_and_the_tokens_are_the_context(tokenizer):
    sequences = made(tokenizer)
    special = tokenizer.vocabulary
    inputs = {
        name: tensor.numpy()
        for name, tensor in sequences.inputs(*sequences.take(tf.range(len(sequences)))).items()
    }
    for number, example in enumerate(sequences.examples):
        question = tokenizer.tokenize([example.question])[0].numpy().tolist()[:10]
        context = tokenizer.tokenize([example.context])[0].numpy().tolist()
        covered = {}
        for row in np.flatnonzero(sequences.example_of_sequence == number):
            first, size = sequences.windows.starts[row], sequences.windows.sizes[row]
            token = context[first : first + size]
            framed = [special.cls_id, *question, special.sep_id, *token, special.sep_id]
            length = sequences.lengths[row]
            assert len(framed) == length <= 24
            assert inputs["input_ids"][row].tolist()[:length] == framed
            segments = [0] * (len(question) + 2) + [1] * (size + 1)
            assert inputs["segment_ids"][row].tolist()[:length] == segments
            assert inputs["input_mask"][row].sum() == length
            assert sequences.token_starts[row] == len(question) + 2
            covered |= dict(zip(range(first, first + size), token, strict=True))
        assert [covered[place] for place in range(len(context))] == context


def test_labels_are_the_answers_tokens_in_windows_that_hold_it_and_cls_elsewhere(tokenizer):
    sequences = made(tokenizer, labelled=True)
    texts = []
    for row in range(len(sequences)):
        number = sequences.example_of_sequence[row]
        start, end = (int(sequences.labels[name][row]) for name in ("start_logits", "end_logits"))
        if (start, end) == (0, 0):
            continue
        first = sequences.windows.starts[row] - sequences.token_starts[row]
        characters = sequences.contexts.characters(
            sequences.context_of[number], first + start, first + end
        )
        texts.append((number, sequences.examples[number].context[slice(*characters)]))
    assert set(texts) == {(0, "Łódź"), (2, "Zoë")}
    for number, weight in ((0, 1.0), (1, 1.0), (3, 1.0), (4, 0.0), (5, 1.0)):
        assert set(sequences.weights["start_logits"][sequences.example_of_sequence == number]) == {
            weight
        }
    whole = made(tokenizer, labelled=True, max_length=200)
    assert whole.labels["start_logits"][5] == whole.token_starts[5]
    assert whole.labels["end_logits"][5] == whole.lengths[5] - 2  # before [SEP]


def test_a_context_is_tokenized_once_and_a_stream_gives_the_same_rows(tokenizer):
    sequences = made(tokenizer)
    assert len(sequences.contexts.splits) - 1 == 3
    all_ids = sequences.inputs(*sequences.take(tf.range(len(sequences))))["input_ids"].numpy()
    done = 0
    for example in sequences.examples:
        alone = made(tokenizer, [example])
        ids = alone.inputs(*alone.take(tf.range(len(alone))))["input_ids"].numpy()
        for row, length in zip(ids, alone.lengths, strict=True):
            assert row[:length].tolist() == all_ids[done][:length].tolist()
            done += 1
    assert done == len(sequences)


def test_batches_for_training_hold_inputs_labels_and_weights(tokenizer):
    sequences = made(tokenizer, labelled=True)
    inputs, labels, weights = sequences.batch(tf.constant([3, 0]))
    assert inputs["input_ids"].shape[0] == 2
    for some in (labels, weights):
        assert {name: tensor.shape for name, tensor in some.items()} == {
            "start_logits": (2,),
            "end_logits": (2,),
        }


def test_a_row_without_room_is_rejected(tokenizer):
    with pytest.raises(InputError, match="`max_length` must be at least 5 to hold a question"):
        made(tokenizer, max_length=4)
    assert made(tokenizer, max_length=5).windows.sizes.max() == 1


def test_different_rows_have_different_fingerprints(tokenizer):
    prints = {
        made(tokenizer, labelled=True, **options).fingerprint
        for options in ({}, {"stride": 4}, {"max_question_length": 2}, {"max_length": 25})
    }
    assert len(prints) == 4
