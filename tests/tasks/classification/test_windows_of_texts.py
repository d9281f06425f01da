"""Texts that are longer than the model: cut and counted, or read in windows, in exports too."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.inference.predict import predict
from keras_bert.readers.texts import LabelledText
from keras_bert.tasks.classification.classifier import Classifier, PairClassifier
from keras_bert.tasks.classification.decode import pooled_windows
from keras_bert.tasks.classification.regressor import Regressor
from keras_bert.training.finetune import finetune
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.tasks.classification.conftest import WORDS, logits

ROOM = 6  # tokens of a window, without [CLS] and [SEP]


@pytest.fixture(scope="module", params=[None, pytest.param("max", marks=pytest.mark.slow)])
def windowed(request, task, tokenizer):
    """The task of the other tests, with windows of 8 tokens."""
    windowed = Classifier(
        task.encoder,
        tokenizer,
        labels=task.labels,
        max_length=ROOM + 2,
        long_texts="windows",
        window_pooling=request.param,
    )
    windowed.classifier.set_weights(task.classifier.get_weights())
    return windowed


@pytest.fixture(scope="module")
def long_texts():
    rng = make_rng(0)
    words = [word for word in WORDS.split() if len(word) > 1]
    return [" ".join(rng.choice(words, count)) for count in (0, 1, 6, 7, 9, 10, 31)]


def starts(count):
    """The first word of each window of a text of so many."""
    last = max(0, count - ROOM)
    return [*dict.fromkeys(min(start, last) for start in range(0, last + 3, 3))]


def test_predictions_and_exports_pool_the_logits_of_the_windows(windowed, long_texts, tmp_path):
    pool = {None: np.mean, "max": np.max}[windowed.settings.window_pooling]
    expected = []
    for text in long_texts:
        words = text.split()
        windows = [" ".join(words[start : start + ROOM]) for start in starts(len(words))]
        pooled = pool([logits(windowed, window) for window in windows], axis=0).astype(float)
        expected.append(np.exp(pooled) / np.exp(pooled).sum())
    predictions = predict(model=windowed, data=long_texts, batch_size=3)
    probabilities = [[*prediction["probabilities"].values()] for prediction in predictions]
    np.testing.assert_allclose(probabilities, expected, atol=1e-5)
    version = windowed.export(tmp_path / "export")
    served = tf.saved_model.load(str(version)).signatures["serving_default"]
    answer = served(text=tf.constant(long_texts))["probabilities"]
    np.testing.assert_allclose(answer, expected, atol=1e-5)


def test_windows_of_a_text_share_its_label_and_its_weight(windowed, long_texts):
    """A mean over the windows is one over the texts, which the loss of a run is."""
    examples = [LabelledText(1, text, "spam") for text in long_texts]
    sequences = windowed.features(examples, labelled=True)
    counts = [len(starts(len(text.split()))) for text in long_texts]
    np.testing.assert_array_equal(np.bincount(sequences.example_of_sequence), counts)
    assert sequences.labels["logits"].tolist() == [1] * sum(counts)
    weights = np.bincount(sequences.example_of_sequence, sequences.weights["logits"])
    np.testing.assert_allclose(weights, sum(counts) / len(counts), rtol=1e-6)
    losses = np.arange(len(long_texts))  # of each text its own
    mean = np.mean(sequences.weights["logits"] * losses[sequences.example_of_sequence])
    assert mean == pytest.approx(losses.mean(), rel=1e-5)
    assert sequences.cut == 0


def test_of_windows():
    outputs = np.array([[1, 4], [3, 2], [5, 5]], np.float32)
    np.testing.assert_array_equal(
        pooled_windows(outputs, np.array([0, 0, 1]), pooling="max")[0], [3, 4]
    )
    np.testing.assert_array_equal(
        pooled_windows(outputs, np.array([0, 0, 1]), pooling="mean"), [[2, 3], [5, 5]]
    )


def test_a_run_counts_what_it_cuts_or_reads_in_windows(files, arguments, tmp_path):
    given = {**arguments, "freeze_encoder": True, "epochs": 1, "max_length": 6}
    train_lines = (files / "train.tsv").read_text().splitlines()[1:]
    count = sum(len(line.split("\t")[0].split()) > 4 for line in train_lines)
    for more, end in (
        ({}, "are longer than 6 tokens, and cut. Set a larger `max_length` (--max-length), or "),
        ({"long_texts": "windows"}, "are longer than 6 tokens and are read in windows, "),
    ):
        told = []
        metrics = finetune(**given, **more, output=tmp_path / str(len(more)), report=told.append)
        note = f"Note: {count} of the 96 training examples {end}"
        assert any(line.startswith(note) for line in told)
        assert metrics["dev"]["examples"] == 40
        assert metrics["history"][-1]["eval"]["accuracy"] == metrics["dev"]["accuracy"]


def test_scores_of_texts_have_windows_and_pairs_have_none(task, tokenizer):
    regressor = Regressor(
        task.encoder, tokenizer, one_text=True, long_texts="windows", max_length=ROOM + 2
    )
    examples = [LabelledText(1, "good film " * 9, 1.0), LabelledText(2, "plot", 2.0)]
    sequences = regressor.features(examples, labelled=True)
    scores = np.arange(len(sequences), dtype=np.float32)[:, None]
    predictions = regressor.decode({"score": scores}, sequences)
    assert [p["score"] for p in predictions] == [scores[:-1].mean(), len(sequences) - 1]
    with raises_input_error("`long_texts` windows is for single texts."):
        PairClassifier(task.encoder, tokenizer, labels=["a", "b"], long_texts="windows")
    with raises_input_error("`window_pooling` requires `long_texts=windows`."):
        Classifier(task.encoder, tokenizer, labels=["a", "b"], window_pooling="max")
