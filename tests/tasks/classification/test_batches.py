"""Tokenized texts as batches: what a row holds, which order, and where a run may begin."""

import numpy as np
import pytest

from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.readers.texts import TextSource
from keras_bert.tasks.classification.classifier import Classifier
from tests.messages import raises_input_error

LABELS = ("a", "b", "c")


@pytest.fixture(scope="module")
def examples(texts):
    return TextSource([(text, LABELS[len(text) % 3]) for text in texts])


@pytest.fixture(scope="module")
def labelling(tokenizer, config):
    return Classifier(BertEncoder(config), tokenizer, labels=LABELS, max_length=24)


@pytest.fixture(scope="module")
def tokenized(examples, labelling):
    return labelling.features(list(examples), labelled=True)


def examples_of(dataset):
    """-> a list of (ids without padding, label) in the dataset's order."""
    sequences = []
    for batch, labels in dataset:
        lengths = batch["input_mask"].numpy().sum(axis=1)
        for ids, length, label in zip(
            batch["input_ids"].numpy(), lengths, labels["logits"].numpy(), strict=True
        ):
            sequences.append((tuple(ids[:length].tolist()), int(label)))
    return sequences


def expected_rows(examples, tokenizer):
    vocabulary = tokenizer.vocabulary
    sequences = []
    for example in examples:
        ids = tokenizer.tokenize([example.text])[0].numpy().tolist()[:22]
        row = (vocabulary.cls_id, *ids, vocabulary.sep_id)
        sequences.append((row, LABELS.index(example.label)))
    return sequences


def test_every_epoch_holds_every_row_once_with_its_label(tokenized, examples, tokenizer):
    sequences = examples_of(tokenized.training_batches(steps=12, seed=1, epochs=3))
    expected = expected_rows(examples, tokenizer)
    epochs = [
        sequences[start : start + len(expected)]
        for start in range(0, len(sequences), len(expected))
    ]
    assert len(epochs) == 3
    for epoch in epochs:
        assert sorted(epoch) == sorted(expected)
    assert epochs[0] != epochs[1] != epochs[2]


def test_a_run_may_begin_at_any_step(tokenized):
    whole = tokenized.training_batches(steps=12, seed=1, epochs=2)
    assert whole.cardinality().numpy() == 24
    sequences = examples_of(whole)
    assert examples_of(tokenized.training_batches(steps=12, seed=1, epochs=2)) == sequences
    later = tokenized.training_batches(steps=12, seed=1, epochs=2, first_step=15)
    assert later.cardinality().numpy() == 9
    tail = examples_of(later)
    assert tail == sequences[-len(tail) :]
    assert examples_of(tokenized.training_batches(steps=12, seed=2, epochs=2)) != sequences


def test_batches_of_later_epochs_are_chosen_when_they_begin(tokenized):
    endless = tokenized.training_batches(steps=12, seed=1, epochs=10**9, first_step=15)
    assert endless.cardinality().numpy() == 12 * 10**9 - 15
    expected = examples_of(tokenized.training_batches(steps=12, seed=1, epochs=2, first_step=15))
    assert examples_of(endless.take(9)) == expected


def test_short_texts_do_not_pay_for_long_ones(tokenized):
    widths = [
        batch["input_ids"].shape[1] for batch, _ in tokenized.evaluation_batches(batch_size=4)
    ]
    assert widths == sorted(widths) and widths[0] == 8 and widths[-1] == 24


def test_an_unknown_label_is_named_with_its_place(labelling):
    with raises_input_error('Text 2 of those given: unknown label "d"'):
        labelling.dataset([("x", "a"), ("y", "d")])
    with raises_input_error("Text 2 of those given: no label. Give a pair"):
        labelling.dataset([("x", "a"), "y"])


@pytest.mark.usefixtures("eager")
def test_the_task_makes_its_own_dataset(make_task):
    task = make_task()
    pairs = [("good film", "ham"), ("buy pills now", "spam")] * 4
    task.compile_defaults("adam")
    history = task.fit(task.dataset(pairs, batch_size=4, epochs=2), shuffle=False, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    with raises_input_error("`max_length` must be at most 64...Received: 65"):
        task.dataset(pairs, batch_size=4, max_length=65)
    with raises_input_error("`max_length` must be at least 3...Received: 2"):
        task.dataset(pairs, batch_size=4, max_length=2)
