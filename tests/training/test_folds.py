"""Held-back examples and folds: stratified, whole units, and a model on all examples at the end."""

import json
from collections import Counter

import numpy as np
import pytest

from keras_bert.checkpoints import save_folder
from keras_bert.cli.main import main
from keras_bert.readers.examples import (
    fold_numbers,
    held_back,
    line_on_held_back,
    line_on_missing_labels,
)
from keras_bert.readers.sentences import TaggedWords
from keras_bert.readers.squad import Question
from keras_bert.readers.texts import LabelledText
from keras_bert.training.finetune import finetune
from keras_bert.training.series import pooled
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer


class Source:
    name = "train.csv"


def example(text, label, line=1):
    return LabelledText(line, text, label, source=Source)


def labelled(**counts):
    return [example(f"{label} {n}", label) for label, count in counts.items() for n in range(count)]


def test_each_label_is_divided_evenly_and_a_single_one_stays_in_training():
    examples = labelled(a=200, b=40, c=3, d=1)
    folds = fold_numbers(examples, 10)
    for label, most in (("a", 20), ("b", 4), ("c", 1)):
        counts = Counter(fold for fold, e in zip(folds, examples, strict=True) if e.label == label)
        assert max(counts.values()) == most
        assert label == "c" or len(counts) == 10
    assert folds[-1] == 9
    assert max(Counter(folds).values()) - min(Counter(folds).values()) <= 3
    train, dev = held_back(examples)
    assert len(dev) in (24, 25)
    assert len(train) + len(dev) == len(examples)
    assert [e.text for e in train] == [e.text for e in examples if e in train]


def test_every_label_of_several_texts_is_in_the_dev_data_if_it_can_be():
    """Nine texts of a label are in nine of the ten folds; a label of one text is in training."""
    examples = labelled(a=200, b=97, c=9, d=1)
    train, dev = held_back(examples)
    assert {e.label for e in dev} == {"a", "b", "c"}
    assert line_on_missing_labels(train, dev) == (
        'No dev example has some of the labels ("d": 1 in training), so that the metrics on the '
        "dev data say nothing about them."
    )
    assert line_on_missing_labels(train, train) is None


@pytest.mark.parametrize("repeated", range(8))
def test_a_text_that_is_repeated_often_does_not_fill_the_dev_data(repeated):
    """Wherever the fold of the repeated text is, another one is held back."""
    examples = labelled(a=90, b=80, c=20)
    examples += [example(f"again {repeated}", "a")] * 40
    train, dev = held_back(examples)
    counts = Counter(e.label for e in dev)
    assert f"again {repeated}" not in {e.text for e in dev}
    assert counts["a"] <= 1.5 * 13 + 1 and 7 <= counts["b"] <= 9 and 1 <= counts["c"] <= 3


def test_labels_that_come_once_are_no_labels():
    examples = [example(f"text {n}", f"ticket {n}") for n in range(30)]
    with raises_input_error("train.csv: every label comes once, such as 'ticket 0', so ..."):
        held_back(examples)


def test_the_order_of_the_examples_does_not_matter():
    examples = labelled(a=30, b=10)
    folds = dict(zip([e.text for e in examples], fold_numbers(examples, 5), strict=True))
    shuffled = [examples[n] for n in make_rng(0).permutation(len(examples))]
    assert [folds[e.text] for e in shuffled] == fold_numbers(shuffled, 5)


def test_of_several_labels_the_rarest_counts():
    examples = [
        example(f"text {n}", ("often", "rare") if n < 20 else ("often",)) for n in range(99)
    ]
    _, dev = held_back(examples)
    assert sum("rare" in e.label for e in dev) == 2


def test_repeated_texts_contexts_and_documents_are_on_one_side():
    texts = [example(f"text {n % 30}", "a") for n in range(90)]
    questions = [
        Question(n, f"question {n}", f"context {n % 12}", (), source=Source) for n in range(40)
    ]
    sentences = [
        TaggedWords(n, ("word", str(n)), ("O", "O"), document=n // 4, source=Source)
        for n in range(60)
    ]
    for examples, unit in (
        (texts, lambda e: e.text),
        (questions, lambda e: e.context),
        (sentences, lambda e: e.document),
    ):
        train, dev = held_back(examples)
        assert dev
        assert not {unit(e) for e in train} & {unit(e) for e in dev}


@pytest.mark.parametrize("lengths", [(1, 2) * 9 + (200, 300), (4,) * 9 + (300,)])
def test_documents_of_very_different_lengths(lengths):
    documents = [number for number, length in enumerate(lengths) for _ in range(length)]
    examples = [
        TaggedWords(n, ("word", str(n)), ("O", "O"), document=document, source=Source)
        for n, document in enumerate(documents)
    ]
    folds = fold_numbers(examples, 10)
    train, dev = held_back(examples)
    distance = min(abs(folds.count(fold) - len(examples) / 10) for fold in range(10))
    assert abs(len(dev) - len(examples) / 10) == distance
    assert ("a tenth" in line_on_held_back(train, dev)) == (distance < 20)
    assert not {e.document for e in train} & {e.document for e in dev}


def test_too_few_texts():
    with raises_input_error("train.csv has 3 different texts to divide into 10 parts. Give `dev`."):
        fold_numbers(labelled(a=3), 10)


def test_metrics_of_several_parts_as_one():
    bins = [
        {"confidence": 0.5, "accuracy": 1.0, "examples": 3},
        {"confidence": 0.9, "accuracy": 0.0, "examples": 1},
    ]
    assert pooled(
        [
            {"f1": 0.5, "examples": 3, "confusion": [[1, 2], [0, 0]], "bins": bins[:1], "a": "b"},
            {"f1": 1.0, "examples": 1, "confusion": [[0, 0], [0, 1]], "bins": bins[1:], "a": "b"},
        ]
    ) == {
        "f1": 0.75,
        "examples": 4,
        "confusion": [[1, 2], [0, 1]],
        "bins": [{"confidence": pytest.approx(0.6), "accuracy": 0.75, "examples": 4}],
        "a": "b",
    }


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folds")
    tokenizer = make_tokenizer(["good", "bad", "film", "plot"])
    save_folder(make_encoder(tokenizer), tokenizer, folder / "model")
    rng = make_rng(0)
    rows = [
        f"{label} {' '.join(rng.choice(['film', 'plot', 'good', 'bad'], 5))},{label}"
        for label in rng.choice(["good", "bad"], 40)
    ]
    (folder / "train.csv").write_text("\n".join(["text,label", *rows, ""]))
    return {
        "model": str(folder / "model"),
        "train": str(folder / "train.csv"),
        "batch_size": 8,
        "freeze_encoder": True,
    }


def test_folds_end_with_a_model_of_all_examples(given, tmp_path, capsys):
    flags = [
        f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
        for name, value in given.items()
    ]
    flags += ["--folds", "3", "--epochs", "4", "--output", str(tmp_path)]
    assert main(["finetune", *flags]) == 0
    printed = capsys.readouterr()
    assert "over 3 folds, mean and standard deviation on dev:" in printed.out
    assert "The model of all, trained on all examples, is kept:" in printed.out
    assert "all folds together, on the 40 dev examples: accuracy" in printed.out
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert [*metrics["runs"]] == ["fold-1", "fold-2", "fold-3", "all"]
    fold_metrics = [metrics["runs"][f"fold-{number}"] for number in (1, 2, 3)]
    accuracies = [run["dev"]["accuracy"] for run in fold_metrics]
    assert metrics["mean"]["accuracy"] == pytest.approx(np.mean(accuracies))
    assert metrics["std"]["accuracy"] == pytest.approx(np.std(accuracies, ddof=1))
    assert metrics["dev"]["examples"] == metrics["train_examples"] == 40
    assert np.sum(metrics["dev"]["confusion"]) == 40
    epochs = max(1, round(np.mean([run["kept"]["epoch"] for run in fold_metrics])))
    assert metrics["kept"] == {
        "which": "last",
        "epoch": epochs,
        "step": epochs * 5,
        "run": "all",
    }
    assert not any("eval" in record for record in metrics["history"])
    assert main(["finetune", *flags]) == 0
    assert "The runs in" in capsys.readouterr().err


def test_folds_need_no_dev_and_one_run(given, tmp_path):
    for more in ({"dev": given["train"]}, {"num_seeds": 2}, {"train_fraction": 0.5}):
        with raises_input_error("Leave `dev`, `num_seeds`, `baseline` and `train_fraction` out."):
            finetune(**given, folds=3, **more, output=tmp_path / "run")


def test_without_dev_a_tenth_is_held_back_and_defaults_are_said_and_recorded(given, tmp_path):
    told = []
    metrics = finetune(**given, patience=1, output=tmp_path / "a", report=told.append)
    assert metrics["dev"]["examples"] + metrics["train_examples"] == 40
    assert any(
        "No dev data are given" in line and "a tenth, are held back" in line for line in told
    )
    assert any("learning_rate 0.001 and epochs 120" in line for line in told)
    settings = json.loads((tmp_path / "a" / "run.json").read_text())["settings"]
    assert (settings["dev"], settings["epochs"], settings["learning_rate"]) == (None, 120, 1e-3)
    other = finetune(**given, epochs=1, seed=1, output=tmp_path / "b", report=told.append)
    inputs = [json.loads((tmp_path / run / "run.json").read_text())["inputs"] for run in "ab"]
    assert inputs[0] == inputs[1]  # the same tenth with any seed
    assert other["steps"] == 5
