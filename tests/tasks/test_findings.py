"""Findings of a run and of `fit` about examples and results, with the flag that helps."""

import json
import re
import warnings
from types import SimpleNamespace

import pytest

from keras_bert import Classifier
from keras_bert.base.errors import InputWarning
from keras_bert.checkpoints import save_folder
from keras_bert.readers.texts import LabelledText
from keras_bert.tasks.findings import (
    LEAVE_DEV_OUT,
    advice_of_defaults,
    example_findings,
    loss_finding,
    result_and_loss_findings,
    result_findings,
)
from keras_bert.training.finetune import finetune, sweep
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer


class Source:
    name, location, label = "train.csv", "line", staticmethod(lambda line: line)


def examples(*pairs):
    return [LabelledText(n, text, label, source=Source) for n, (text, label) in enumerate(pairs, 1)]


def test_texts_in_both_files_and_repeated_texts_with_other_labels():
    train = examples(("a b", "x"), ("c", "y"), ("a b", "y"))
    shared, contradiction = example_findings(train, examples(("d", "x"), ("c", "y")))
    assert shared.startswith("train.csv, line 2: 1 of the 2 dev examples has a text that is also")
    assert shared.endswith("Remove them from one of the two.")
    shared, _ = example_findings(train, examples(("c", "y")), advice=LEAVE_DEV_OUT)
    assert "(--dev)" in shared
    (shared,) = example_findings(train[:2], examples(("a b", "x"), ("c", "y")))
    assert shared.startswith("train.csv, line 1 and later: 2 of the 2 dev examples have a text")
    part = "1 training example has the text of an earlier one (line 1), but another label."
    assert part in contradiction
    assert "(--multi-label)" in contradiction
    (score_finding,) = example_findings(examples(("a", 1.0), ("a", 2.0)), None)
    assert score_finding.endswith(
        ", but another score. Give each text one score, such as the mean."
    )
    (labels_finding,) = example_findings(examples(("a", ("x",)), ("a", ("x", "y"))), None)
    assert labels_finding.endswith(
        ", but another label. Give each text the same labels everywhere."
    )
    assert [*example_findings(train[:2], examples(("d", "x")))] == []
    assert [*example_findings(train[:2], None)] == []


def of(confusion, names):
    return {"confusion": confusion, "labels": dict.fromkeys(names)}


def test_labels_that_are_never_predicted():
    metrics = of([[5, 1, 0], [0, 4, 0], [1, 1, 0]], "abc")
    (finding,) = result_findings(metrics, "Try more.")
    assert finding == '"c" is never predicted on the dev data. Try more.'
    (finding,) = result_findings(of([[0, 3], [0, 4]], "ab"), "")
    assert finding.startswith('The model predicts "b" for everything in the dev data.')
    several = of([[[4, 0], [2, 0]], [[3, 0], [0, 3]]], "ab")
    (finding,) = result_findings(several, "")
    assert finding.startswith('"a" is never predicted')
    for fine in (of([[3, 0], [1, 2]], "ab"), of([[3, 0], [0, 0]], "ab"), {"pearson": 0.1}):
        assert [*result_findings(fine, "")] == []


def settings_of(learning_rate, epochs):
    return SimpleNamespace(learning_rate=learning_rate, epochs=epochs)


def test_a_run_without_the_defaults_is_told_to_take_them():
    default = settings_of(1e-3, 20)
    assert advice_of_defaults(settings_of(5e-5, 3), default) == (
        "Leave out `learning_rate` (--learning-rate), which is 5e-05 here and 0.001 by default, "
        "and `epochs` (--epochs), which is 3 here and 20 by default."
    )
    assert "epochs" not in advice_of_defaults(settings_of(0.3, 20), default)
    assert advice_of_defaults(settings_of(1e-3, 40), default) is None
    given = advice_of_defaults(settings_of(5e-5, 3), default, {"learning_rate"})
    assert given == "Leave out `epochs` (--epochs), which is 3 here and 20 by default."
    assert advice_of_defaults(settings_of(5e-5, 3), default, {"learning_rate", "epochs"}) is None
    task = SimpleNamespace(settings=SimpleNamespace(class_weights=None), tuned=())
    metrics = of([[5, 0], [1, 0]], "ab")

    def findings(**more):
        losses = records(0.7, 0.8)
        return [*result_and_loss_findings(task, metrics, losses, steps_per_epoch=1, **more)]

    never, loss = findings()
    assert all(flag in never for flag in ("--learning-rate", "--epochs", "--class-weights"))
    assert "Try another `learning_rate` (--learning-rate)." in loss
    never, loss = findings(defaults="Try the default.")
    assert "Try the default. If labels are rare, `class_weights" in never
    assert "Try the default. Look at" in loss
    chosen = {"learning_rate", "epochs"}
    never, loss = findings(chosen=chosen)
    assert 'predicts "a" for everything in the dev data. If labels are rare' in never
    assert "0.800 at the end. Look at" in loss and "--learning-rate" not in never + loss
    never, loss = findings(chosen={"epochs"})
    assert "A higher `learning_rate` (--learning-rate) helps if" in never
    assert "Try another `learning_rate`" in loss and "--epochs" not in never + loss
    never, _ = findings(chosen={"learning_rate"})
    assert "More `epochs` (--epochs) help if the model" in never
    del task.settings.class_weights
    assert findings(chosen=chosen)[0].endswith("for everything in the dev data.")
    assert "--class-weights" not in findings()[0]
    task.tuned, task.settings.temperature = ("temperature",), 1.0
    *_, calibration = findings()
    assert calibration.startswith("Not calibrated: no temperature") and "(--dev)" in calibration
    task.settings.temperature = 1.5
    assert len(findings()) == 2


def records(*losses):
    return [{"step": n, "train": {"loss": loss}} for n, loss in enumerate(losses, 1)]


def test_a_loss_that_did_not_fall():
    (finding,) = loss_finding(records(0.7, 0.6, 0.7, 0.7), 2, "Try another.")
    assert finding.startswith("The training loss did not fall: 0.650 at the beginning, 0.700 at")
    assert "Try another. Look at" in finding and "--show-errors" in finding
    assert [*loss_finding(records(0.7, 0.6, 0.7, 0.5), 2, "")] == []
    assert [*loss_finding(records(0.7, 0.8), 2, "")] != []  # within one epoch
    assert [*loss_finding(records(0.7), 1, "")] == []


PARTS = ("1 of the 2 dev examples", "the text of an earlier one", "The model predicts")
WORDS = ["good", "bad", "film", "plot"]
TRAIN = [
    *(("film plot", label) for label in make_rng(0).choice(WORDS[:2], 12, p=[0.8, 0.2])),
    ("plot", "bad"),
]
# Of the same tokens, so that one label is predicted for both.
DEV = [("film plot", "good"), ("film  plot", "bad")]


def test_a_run_says_them_and_records_them(tmp_path):
    tokenizer = make_tokenizer(WORDS)
    save_folder(make_encoder(tokenizer), tokenizer, tmp_path / "model")
    told = []
    metrics = finetune(
        model=str(tmp_path / "model"),
        train=TRAIN,
        dev=DEV,
        freeze_encoder=True,
        epochs=1,
        learning_rate=1e-9,
        output=tmp_path / "run",
        report=told.append,
    )
    assert (
        metrics["warnings"]
        == json.loads((tmp_path / "run" / "metrics.json").read_text())["warnings"]
    )
    assert [line for line in told if line.startswith("Warning: ")] == [
        f"Warning: {finding}" for finding in metrics["warnings"]
    ]
    assert all(part in line for part, line in zip(PARTS, metrics["warnings"], strict=False))


@pytest.mark.parametrize(
    ("rates", "flags"),
    [({}, ["--epochs"]), ({"learning_rate": 1e-9}, ["--learning-rate", "--epochs"])],
)
def test_a_sweep_does_not_advise_against_the_rates_that_it_has_chosen(rates, flags, tmp_path):
    tokenizer = make_tokenizer(WORDS)
    save_folder(make_encoder(tokenizer), tokenizer, tmp_path / "model")
    told, given = [], {"model": tmp_path / "model", "train": TRAIN, "dev": DEV}
    given |= {"freeze_encoder": True, "batch_size": 16, "epochs": 1, "output": tmp_path / "sweep"}
    metrics = sweep(**given, **rates, report=told.append)
    warned = [line for line in told if line.startswith("Warning: The model predicts")]
    assert len(warned) == len(metrics["runs"]) == (1 if rates else 3)
    for line in warned:
        assert re.findall(r"\((--learning-rate|--epochs)\), which is", line) == flags


@pytest.mark.usefixtures("eager")
def test_fit_warns_of_the_same():
    tokenizer = make_tokenizer(WORDS)
    task = Classifier(make_encoder(tokenizer), tokenizer, labels=["bad", "good"])
    task.compile_defaults(learning_rate=1e-9, run_eagerly=True)

    def warned(train, **options):
        with warnings.catch_warnings(record=True, action="always", category=InputWarning) as caught:
            task.fit(train, verbose=0, **options)
        return [str(w.message) for w in caught if w.category is InputWarning]

    options = {"batch_size": 16, "shuffle": False}
    lines = warned(TRAIN, validation_data=DEV, epochs=1, **options)
    assert len(lines) == 3 and all(part in line for part, line in zip(PARTS, lines, strict=True))
    task.compile_defaults("sgd", run_eagerly=True)
    task.optimizer.learning_rate = -1.0  # so that the loss rises
    (line,) = warned([("film", "good"), ("plot", "bad")], epochs=2, **options)
    assert line.startswith("The training loss did not fall") and "(--learning-rate)" in line
    # Batches of the user's own are not looked at.
    batches = [batch for batch in task.dataset(DEV, batch_size=2)]
    assert warned(batches[0][0], y=batches[0][1], epochs=1) == []
