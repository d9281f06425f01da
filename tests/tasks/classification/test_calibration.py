"""A temperature and thresholds that are fitted on dev data: scikit-learn's, stored and used."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import f1_score

from keras_bert.checkpoints import load_task
from keras_bert.inference.predict import predict
from keras_bert.tasks.classification.calibration import (
    best_thresholds,
    error_of_labels,
    expected_calibration_error,
    fitted_temperature,
    fitted_temperature_of_decisions,
)
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.metrics import calibration
from keras_bert.training.finetune import finetune
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer


class Logits(ClassifierMixin, BaseEstimator):
    """A classifier of scikit-learn whose inputs are its logits."""

    def fit(self, x, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, x):
        return x

    def predict(self, x):
        return self.classes_[x.argmax(axis=1)]


@pytest.fixture
def overconfident():
    """Logits (N, 3) that are three times too large, and labels (N,) drawn without the factor."""
    rng = make_rng(0)
    logits = rng.normal(0, 1.5, (3000, 3))
    numbers = np.array([rng.choice(3, p=row) for row in softmax(logits, axis=1)])
    return (3 * logits).astype(np.float32), numbers


def test_the_temperature_is_that_of_scikit_learn(overconfident):
    logits, numbers = overconfident
    temperature = fitted_temperature(logits, numbers)
    assert temperature == pytest.approx(3, rel=0.1)
    their_classifier = FrozenEstimator(Logits().fit(logits, numbers))
    their_classifier = CalibratedClassifierCV(their_classifier, method="temperature").fit(
        logits.astype(float), numbers
    )
    ours = softmax(logits / temperature, axis=1)
    np.testing.assert_allclose(
        their_classifier.predict_proba(logits.astype(float)), ours, atol=1e-4
    )
    before, after = (error_of_labels(logits / t, numbers) for t in (1, temperature))
    assert after < 0.05 < 0.15 < before


def test_labels_that_the_model_lacks_are_left_out(overconfident):
    logits, numbers = overconfident
    unknown = np.concatenate([numbers, [-1] * 5])
    more = np.concatenate([logits, np.ones((5, 3), np.float32)])
    assert fitted_temperature(more, unknown) == fitted_temperature(logits, numbers)
    assert fitted_temperature(logits[:2], np.array([-1, -1])) == 1.0


def test_dev_data_without_an_error_have_no_best_temperature():
    logits = np.array([[2.0, 0.1], [-1.0, 0.5]], np.float32)
    assert fitted_temperature(logits, np.array([0, 1])) == 1
    assert fitted_temperature(logits, np.array([0, 0])) != 1
    assert fitted_temperature_of_decisions(logits, np.array([[1, 1], [0, 1]])) == 1
    assert fitted_temperature_of_decisions(logits, np.array([[1, 0], [0, 1]])) != 1


def test_the_temperature_of_decisions_is_that_of_two_labels():
    rng = make_rng(1)
    logits = rng.normal(0, 4, (500, 1)).astype(np.float32)
    matrix = (rng.random((500, 1)) < expit(logits / 2)).astype(int)
    two = np.concatenate([np.zeros_like(logits), logits], axis=1)
    temperature = fitted_temperature_of_decisions(logits, matrix)
    assert temperature == pytest.approx(fitted_temperature(two, matrix[:, 0]), rel=1e-3)


def test_thresholds_have_the_highest_f1_that_scikit_learn_finds():
    rng = make_rng(2)
    matrix = (rng.random((80, 4)) < [0.5, 0.2, 0.05, 0]).astype(int)
    probabilities = expit(rng.normal(0, 1, matrix.shape) + 2 * matrix - 2).round(2)
    thresholds = best_thresholds(probabilities, matrix, default=0.5)
    assert thresholds[3] == 0.5  # a label without examples
    for column, threshold in enumerate(thresholds[:3]):
        expected, label_probabilities = matrix[:, column], probabilities[:, column]
        best = max(
            f1_score(expected, label_probabilities >= t) for t in np.unique(label_probabilities)
        )
        assert f1_score(expected, label_probabilities > threshold) == pytest.approx(best)


def test_a_threshold_that_raises_no_f1_stays():
    matrix = np.array([[1, 1], [1, 0], [0, 1], [0, 0]])
    probabilities = np.array([[0.9, 0.45], [0.6, 0.2], [0.4, 0.4], [0.1, 0.1]])
    unchanged, raised = best_thresholds(probabilities, matrix, default=0.5)
    assert unchanged == 0.5 and raised == pytest.approx(0.3)


def test_a_temperature_that_raises_the_calibration_error_is_not_kept():
    """The most probable label is right as often as it says; the others are not, in 3 of 10."""
    tokenizer = make_tokenizer()
    task = Classifier(make_encoder(tokenizer), tokenizer, labels=["a", "b", "c"], calibrate=True)
    sequences = SimpleNamespace(examples=[SimpleNamespace(label=x) for x in "aaaaaaaccc"])
    logits = np.log(np.array([[0.7, 0.29, 0.01]] * 10))
    assert fitted_temperature(logits, np.array([0] * 7 + [2] * 3)) > 1.5
    task.tune_threshold({"logits": logits}, sequences)
    assert task.settings.temperature == 1
    errors = task.calibration_error({"logits": logits}, sequences)
    assert errors["before"] == errors["after"] == pytest.approx(0, abs=1e-6)
    overconfident = np.log(np.array([[0.98, 0.01, 0.01]] * 10))
    task.tune_threshold({"logits": overconfident}, sequences)
    errors = task.calibration_error({"logits": overconfident}, sequences)
    assert task.settings.temperature > 1.5 and errors["after"] < errors["before"]


def test_the_expected_calibration_error_by_hand():
    confidence, correct = [0.95, 0.95, 0.65, 0.65], [True, False, True, True]
    bins = calibration(confidence, correct)
    assert expected_calibration_error(bins) == pytest.approx(0.5 * 0.45 + 0.5 * 0.35)


def given_of(files, arguments, **more):
    return {**arguments, "freeze_encoder": True, "epochs": 2, "deterministic": False, **more}


def with_both_labels(files, folder):
    """A file of dev data: each text has either label once, so that every model is too sure."""
    header, *lines = (files / "dev.tsv").read_text().splitlines()
    texts = [line.split("\t")[0] for line in lines]
    lines = [f"{text}\t{label}" for text in texts for label in ("good", "bad")]
    (folder / "both.tsv").write_text("\n".join([header, *lines, ""]))
    return folder / "both.tsv"


def export_of(folder, output):
    version = load_task(folder).export(output)
    return tf.saved_model.load(str(version)).signatures["serving_default"]


def test_a_run_calibrates_and_its_folder_and_export_predict_so(files, arguments, tmp_path):
    told = []
    given = given_of(files, arguments, calibrate=True, dev=with_both_labels(files, tmp_path))
    metrics = finetune(**given, output=tmp_path / "run", report=told.append)
    task, temperature = load_task(tmp_path / "run"), metrics["tuned"]["temperature"]
    assert (task.settings.temperature, task.tuned) == (temperature, ("temperature",))
    error = metrics["calibration_error"]
    assert temperature > 1 and error["after"] < error["before"]
    bins = metrics["dev"]["calibration"]
    assert error["after"] == pytest.approx(expected_calibration_error(bins))
    assert any(f"is {100 * error['after']:.1f} %; before, it was" in line for line in told)
    texts = ["good film", "the dull plot", "plot"]
    calibrated = [[*p["probabilities"].values()] for p in predict(model=task, data=texts)]
    task.update_settings(temperature=None)
    plain = [[*p["probabilities"].values()] for p in predict(model=task, data=texts)]
    expected = softmax(np.log(plain) / temperature, axis=1)
    np.testing.assert_allclose(calibrated, expected, atol=2e-5)
    served = export_of(tmp_path / "run", tmp_path / "export")(text=tf.constant(texts))
    np.testing.assert_allclose(served["probabilities"], calibrated, atol=2e-5)


def test_a_run_tunes_a_threshold_for_each_label(files, arguments, tmp_path):
    given = given_of(files, arguments, multi_label=True, calibrate=True, tune_thresholds=True)
    given["dev"] = with_both_labels(files, tmp_path)
    metrics = finetune(**given, output=tmp_path / "run")
    task = load_task(tmp_path / "run")
    assert task.settings.temperature == metrics["tuned"]["temperature"] > 1
    thresholds = metrics["tuned"]["threshold"]
    assert task.settings.threshold == thresholds and len(thresholds) == 2
    texts = ["good film", "the dull plot", "plot", "bad good"]
    served = export_of(tmp_path / "run", tmp_path / "export")(text=tf.constant(texts))
    predictions = list(predict(model=task, data=texts))
    calibrated = [[*p["probabilities"].values()] for p in predictions]
    np.testing.assert_allclose(served["probabilities"], calibrated, atol=2e-5)
    for prediction, given in zip(predictions, served["given"].numpy(), strict=True):
        probabilities = [*prediction["probabilities"].values()]
        over = [p > t for p, t in zip(probabilities, thresholds, strict=True)]
        assert over == given.tolist()
        assert prediction["labels"] == [x for x, y in zip(task.labels, over, strict=True) if y]


def test_what_does_not_fit_is_named(files, arguments, tmp_path):
    given = given_of(files, arguments, output=tmp_path / "run")
    with raises_input_error("`tune_thresholds` requires `multi_label`."):
        finetune(**given, tune_thresholds=True)
    with raises_input_error("`threshold` has 3 numbers for 2 labels. Give one, or one per label."):
        finetune(**given, multi_label=True, threshold=[0.1, 0.2, 0.3])
