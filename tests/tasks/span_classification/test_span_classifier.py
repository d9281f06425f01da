"""Spans that lie in one another: learned from a file, found in texts, saved and served."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from keras_bert import SpanClassifier
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load_task
from keras_bert.cli.main import main
from keras_bert.heads.spans import REPRESENTATIONS
from keras_bert.inference.predict import predict
from keras_bert.tasks import span_classification
from tests.eagerly import eagerly
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.span_classification.conftest import WORDS

# Nested spans; a text of several sequences, with a span far behind; and texts without any.
TEXTS = [
    "We saw the old Bank of Rome building, near oslo.",
    "the old " * 30 + "bank of bath building and the bank of oslo, near rome",
    "",
    "we saw the old and the old",
]


def positions_of(prediction):
    return [(span["text"], span["label"]) for span in prediction["spans"]]


@pytest.fixture(scope="module")
def predictions(run):
    with eagerly():
        return list(predict(model=run[0], text=TEXTS))


def test_learns_what_tags_of_words_cannot_say(given, run):
    _, metrics, reported = run
    assert metrics["dev"]["f1"] > 0.95 and metrics["dev"]["longer"] == 0
    assert all(metrics["dev"]["labels"][label]["f1"] > 0.9 for label in ("FAC", "LOC", "ORG"))
    with open(given["train"], encoding="utf-8") as file:
        labels = [label for line in file for *_, label in json.loads(line)["spans"]]
    assert any(f'"FAC": {labels.count("FAC")}' in line for line in reported)
    assert any("Spans have up to 4 words" in line for line in reported)


def test_finds_nested_spans_with_their_positions_in_texts_of_any_length(predictions):
    first, long, empty, without = predictions
    assert positions_of(first) == [
        ("Bank of Rome", "ORG"),
        ("Bank of Rome building", "FAC"),
        ("Rome", "LOC"),
        ("oslo", "LOC"),
    ]
    assert first["words"][4:9] == ["Bank", "of", "Rome", "building", ","]
    for text, prediction in zip(TEXTS, predictions, strict=True):
        for span in prediction["spans"]:
            start, end = span["words"]
            assert text[span["start"] : span["end"]] == span["text"]
            assert " ".join(prediction["words"][start:end]) == span["text"]
            assert 0 < span["score"] <= 1
    assert positions_of(long)[:2] == [("bank of bath", "ORG"), ("bank of bath building", "FAC")]
    assert positions_of(long)[3:] == [("bank of oslo", "ORG"), ("oslo", "LOC"), ("rome", "LOC")]
    assert empty == {"text": "", "words": [], "spans": []} and without["spans"] == []


@pytest.mark.usefixtures("eager")
def test_words_strings_and_objects_get_the_same_answer_alone_and_together(run, predictions):
    # Our own predictions are labelled texts.
    labelled = {**predictions[0], "spans": predictions[0]["spans"][1:]}
    given = [*TEXTS, predictions[1]["words"], labelled]
    *alone, by_words, again = predict(model=run[0], data=given, batch_size=1)
    for one, prediction in zip(alone, predictions, strict=True):
        assert positions_of(one) == positions_of(prediction) and one["words"] == prediction["words"]
        for span, other in zip(one["spans"], prediction["spans"], strict=True):
            assert span == {**other, "score": pytest.approx(other["score"], abs=1e-5)}
    assert positions_of(by_words) == positions_of(predictions[1])
    assert positions_of(again) == positions_of(predictions[0])
    assert [span["text"] for span in again["expected"]] == ["Bank of Rome building", "Rome", "oslo"]
    assert "score" not in again["expected"][0]


def test_the_folder_keeps_settings_and_weights(run, tmp_path):
    folder = run[0] / "model"
    task = load_task(folder)
    assert isinstance(task, SpanClassifier) and task.labels == ("FAC", "LOC", "ORG")
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == ["BertModel"] and config["keras_bert"]["max_span_length"] == 5
    threshold = task.settings.threshold
    assert 0.05 <= threshold < 1 and threshold == config["keras_bert"]["threshold"]
    head_tensors = {
        name for name in load_file(folder / "model.safetensors") if "keras_bert." in name
    }
    assert head_tensors == {
        f"keras_bert.{name}"
        for name in (
            *(f"spans.{part}.kernel" for part in ("first", "last", "inside")),
            *("spans.first.bias", "spans.width", "classifier.kernel", "classifier.bias"),
        )
    }
    task.save(tmp_path / "again")
    name = "model.safetensors"
    assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()
    task.save(tmp_path / "task.keras")
    again = keras.saving.load_model(tmp_path / "task.keras")
    assert again.get_config() == task.get_config()


@pytest.mark.usefixtures("eager")
def test_evaluate_and_predict_by_command(run, given, capsys, tmp_path):
    output, metrics, _ = run
    model = ["--model", str(output)]
    assert main(["evaluate", "--json", *model, "--data", given["dev"]]) == 0
    evaluation, expected = json.loads(capsys.readouterr().out), dict(metrics["dev"])
    bins = [sum(one["examples"] for one in f.pop("calibration")) for f in (evaluation, expected)]
    assert bins == [expected["found"]] * 2 and evaluation == expected
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"words": ["in", "rome"], "spans": [[0, 2, "FAC"]]}\n')
    assert main(["evaluate", "--json", *model, "--data", str(wrong), "--show-errors", "3"]) == 0
    shown = capsys.readouterr().err
    assert 'line 1, missed FAC "in rome", predicted LOC "rome" (' in shown and "): in rome" in shown
    assert main(["predict", *model, "--text", TEXTS[0]]) == 0
    prediction = json.loads(capsys.readouterr().out)
    assert [span["start"] for span in prediction["spans"]] == [15, 15, 23, 43]


def check_served(outputs, predictions):
    most = max(len(prediction["spans"]) for prediction in predictions)
    assert outputs["labels"].shape == outputs["starts"].shape == (len(predictions), most)
    for row, prediction in enumerate(predictions):
        spans, padding = prediction["spans"], [0] * (most - len(prediction["spans"]))
        assert outputs["lengths"][row] == len(spans)
        for column, key in (("starts", "start"), ("ends", "end")):
            assert outputs[column][row].numpy().tolist() == [s[key] for s in spans] + padding
        labels = [label.decode() for label in outputs["labels"][row].numpy()]
        assert labels == [s["label"] for s in spans] + [""] * len(padding)
        scores = [s["score"] for s in spans] + padding
        np.testing.assert_allclose(outputs["scores"][row], scores, atol=1e-5)


@pytest.mark.usefixtures("eager")
def test_what_is_served_is_what_predict_finds(run, predictions):
    task = load_task(run[0] / "model")
    check_served(task.signatures()["serving_default"].function(tf.constant(TEXTS)), predictions)


@pytest.mark.usefixtures("eager")
def test_what_is_served_of_flat_spans_fractions_no_word(run):
    task = load_task(run[0] / "model")
    task.update_settings(flat=True)
    predictions = list(predict(model=task, text=TEXTS))
    for prediction in predictions:
        inside = [word for span in prediction["spans"] for word in range(*span["words"])]
        assert len(inside) == len(set(inside))
    assert [len(prediction["spans"]) for prediction in predictions] == [2, 3, 0, 0]
    served = task.signatures()["serving_default"].function
    check_served(served(text=tf.constant(TEXTS)), predictions)
    nothing = served(text=tf.constant(["", "we"]))
    assert nothing["labels"].shape == (2, 0) and nothing["lengths"].numpy().tolist() == [0, 0]


def make(representation="mean", **options):
    tokenizer = make_tokenizer(WORDS)
    encoder = make_encoder(tokenizer, max_position_embeddings=16, classifier_dropout=0.25)
    options = {"labels": ["LOC", "ORG"], "max_span_length": 3, **options}
    return SpanClassifier(encoder, tokenizer, span_representation=representation, **options)


@pytest.fixture(scope="module")
def task():
    return make()


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_the_loss_is_the_mean_over_every_span_once(representation):
    """By a loop over all spans of the texts, the long one of which has several sequences."""
    task = make(representation, dropout=0.0)
    words = ["we", "saw", "rome", "near", "oslo", "and", "bath", "bank", "of", "the", "old", "in"]
    spans = [[2, 3, "LOC"], [7, 10, "ORG"], [6, 7, "LOC"], [0, 4, "ORG"], [11, 13, "LOC"]]
    examples = list(
        task.read(
            [{"words": words * 2, "spans": spans}, {"words": words[:2], "spans": [[0, 2, "ORG"]]}]
        )
    )
    sequences = task.features(examples, labelled=True)
    assert len(sequences) > 2
    inputs, labels, weights = sequences.batch(np.arange(len(sequences), dtype=np.int32))
    logits = np.asarray(task(inputs, training=False)["logits"], "float64")
    nats = np.log(np.exp(logits).sum(-1))
    counted, total = 0, 0.0
    for row, text in enumerate(sequences.example_of_sequence):
        first, end = int(sequences.positions["first"][row]), int(sequences.positions["end"][row])
        for start in range(
            int(sequences.positions["owned"][row]), int(sequences.positions["owned_end"][row])
        ):
            for width in range(1, 4):
                if start + width <= end:
                    label = {span[:2]: span[2] for span in examples[text].spans}.get(
                        (start, start + width)
                    )
                    number = 0 if label is None else 1 + task.labels.index(label)
                    at = row, start - first, width - 1
                    counted, total = counted + 1, total + nats[at] - logits[(*at, number)]
    every = sum(min(3, len(e.words) - start) for e in examples for start in range(len(e.words)))
    assert counted == every == weights["logits"].numpy().sum() == sequences.weight_totals["logits"]
    assert labels["logits"].numpy().astype(bool).sum() == 5  # the one of four words is too long
    loss = task.default_losses()["logits"]
    mean_loss = loss(labels["logits"], logits, sample_weight=weights["logits"])
    assert float(mean_loss) == pytest.approx(total / counted, rel=1e-5)


def test_identification_leaves_labels_out():
    task = make(identify=True)
    assert task.labels == ("span",) and task.output["logits"].shape[-1] == 2
    given = [{"words": ["rome", "oslo"], "spans": [[0, 1, "LOC"], [1, 2]]}]
    sequences = task.features(list(task.read(given)), labelled=True)
    assert sequences.targets(np.array([0]))[0]["logits"].numpy().sum() == 2
    (prediction,) = task.decode({"logits": np.zeros((1, 8, 3, 2), "float32")}, sequences)
    measures = task.official_metrics([prediction], sequences.examples)
    assert measures["f1"] == measures["identification_f1"] and measures["spans"] == 2
    assert list(measures["labels"]) == ["span"]
    assert {span["label"] for span in prediction["expected"]} == {"span"}


def test_a_given_threshold_stays_and_another_is_tuned():
    """Logits by hand: three spans, of which the second is wrong."""
    given = [{"words": ["rome", "we", "bank"], "spans": [[0, 1, "LOC"], [2, 3, "ORG"]]}]
    logits = np.full((1, 8, 3, 3), [9.0, 0, 0], "float32")
    for word, label, probability in ((0, 1, 0.9), (1, 1, 0.6), (2, 2, 0.3)):
        logits[0, word, 0] = np.log([0.98 - probability, 0.02, 0.02])
        logits[0, word, 0, label] = np.log(probability)
    chosen, span_counts = [], []
    for threshold_metric, threshold in (("f1", None), ("precision", None), ("f1", 0.7)):
        task = make(threshold_metric=threshold_metric, threshold=threshold)
        sequences = task.features(list(task.read(given)), labelled=True)
        span_counts.append(len(task.decode({"logits": logits}, sequences)[0]["spans"]))
        task.tune_threshold({"logits": logits * 0}, sequences)  # an earlier epoch, say
        task.tune_threshold({"logits": logits}, sequences)
        chosen.append(task.settings.threshold)
        span_counts.append(len(task.decode({"logits": logits}, sequences)[0]["spans"]))
    assert span_counts == [2, 3, 2, 1, 1, 1]  # above a half, before anything is tuned
    # Half way from 0.3 to the least that is tried; between the first and the wrong one; as given.
    assert chosen == pytest.approx([0.175, 0.75, 0.7])


@pytest.mark.parametrize(
    "row, message",
    [
        ({"words": ["a"], "spans": [[0, 1]]}, "a span has no label.*`identify=True`"),
        (
            {"text": "in Rome.", "spans": [[4, 7, "LOC"]]},
            r'the span \[4, 7\], "ome", begins inside the word "Rome"',
        ),
        (
            {"text": "in Rome.", "spans": [[3, 6, "LOC"]]},
            r'the span \[3, 6\], "Rom", ends inside the word "Rome"',
        ),
        ({"text": "in  Rome.", "spans": [[2, 4, "LOC"]]}, ".*has no word"),
    ],
)
def test_spans_that_cannot_be_learned_are_rejected_with_their_place(row, message, task):
    examples = list(task.read([{"text": "", "spans": []}, row]))
    with pytest.raises(InputError, match=f"^the given table, row 2: {message}"):
        task.features(examples, labelled=True)


def test_white_space_around_a_span_does_not_matter(task):
    examples = list(task.read([{"text": "in  Rome .", "spans": [[2, 9, "LOC"]]}]))
    sequences = task.features(examples, labelled=True)
    assert sequences.spans == [[(1, 2, "LOC")]]


def test_what_is_made_from_the_examples():
    read = SpanClassifier.read
    with pytest.raises(InputError, match="the given table has no spans to learn from"):
        SpanClassifier.infer_arguments(list(read([{"text": "a", "spans": []}])))
    unlabelled = list(read([{"words": ["a"], "spans": [[0, 1]]}]))
    assert SpanClassifier.infer_arguments(unlabelled) == {"labels": ["span"]}
    twice = list(read([{"words": ["a"], "spans": [[0, 1, "x"], [0, 1, "y"], [0, 1, "y"]]}]))
    (note,) = SpanClassifier.notes(twice)
    assert "row 1: 1 span with several labels. Only the first one is learned." in note
    assert SpanClassifier.notes(unlabelled) == []
    with pytest.raises(InputError, match="no spans to compare the prediction with"):
        SpanClassifier.official_metrics(None, [{"spans": []}], unlabelled)


def test_the_choices_of_the_settings_are_those_of_the_head():
    assert span_classification.REPRESENTATIONS == REPRESENTATIONS
