"""The estimators of scikit-learn: pipelines, grids, cross-validation, and its own checks."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks

import keras_bert as kb
from keras_bert.sklearn import TextClassifier, TextRegressor
from keras_bert.training.finetune import finetune_given
from tests.small_model import make_encoder, make_tokenizer

TEXTS = ["a a", "b b", "a", "b", "a a a", "b b a", "a c", "b c"]
LABELS = ["x, y", "z"] * 4

pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "encoder"
    tokenizer = make_tokenizer()
    from keras_bert.checkpoints import save_folder

    save_folder(make_encoder(tokenizer, num_hidden_layers=1), tokenizer, folder)
    return folder


@pytest.fixture(scope="module")
def options(model):
    settings = {"warmup": 0.0, "dropout": 0.0, "schedule": "constant"}
    return {"epochs": 24, "batch_size": 4, "learning_rate": 0.01, "settings": settings}


def test_texts_are_learned_and_predictions_have_the_type_of_y(model, options):
    classifier = TextClassifier(model, **options).fit(TEXTS, LABELS)
    assert classifier.classes_.tolist() == ["x, y", "z"]
    probabilities = classifier.predict_proba(np.array(TEXTS))
    assert probabilities.shape == (8, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    predicted = classifier.predict(pd.Series(TEXTS))
    assert predicted.tolist() == classifier.classes_[probabilities.argmax(axis=1)].tolist()
    assert classifier.score(TEXTS, LABELS) > 0.8
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_allclose(again.predict_proba(TEXTS), probabilities, atol=1e-6)
    assert isinstance(classifier.task_, kb.Classifier)


@pytest.mark.slow  # the number of runs
@pytest.mark.parametrize("labels", [[True, False], [10, 9], [2.0, -1.0], ["01", "1"]])
def test_labels_of_any_type(model, options, labels):
    y = np.array(labels * 4)
    classifier = TextClassifier(model, **{**options, "epochs": 1}).fit(TEXTS, y)
    predicted = classifier.predict(TEXTS)
    assert predicted.dtype == y.dtype and set(predicted) <= set(y)
    assert classifier.classes_.tolist() == sorted(labels)


def test_pairs_and_scores(model, options):
    pairs = pd.DataFrame({"first": TEXTS, "second": TEXTS[::-1]})
    few = {**options, "epochs": 1}
    classifier = TextClassifier(model, **few).fit(pairs, LABELS)
    assert classifier.predict(list(zip(TEXTS, TEXTS, strict=True))).shape == (8,)
    with pytest.raises(ValueError, match="was trained on pairs of texts. Received: single texts"):
        classifier.predict(TEXTS)
    scores = [1.0, 3.0] * 4
    regressor = TextRegressor(model, **options).fit(TEXTS, scores)
    assert regressor.score(TEXTS, scores) > 0.5
    assert TextRegressor(model, **few).fit(pairs, scores).predict(pairs).shape == (8,)


@pytest.mark.slow  # ten runs
def test_pipelines_grids_and_cross_validation(model, options):
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    classifier = TextClassifier(model, **{**options, "epochs": 1})
    pipeline = make_pipeline(lower, classifier)
    assert pipeline.fit(TEXTS, LABELS).predict_proba(TEXTS).shape == (8, 2)
    scores = cross_val_score(classifier, TEXTS, LABELS, cv=2, scoring="neg_log_loss")
    assert np.isfinite(scores).all()
    grid = GridSearchCV(pipeline, {"textclassifier__learning_rate": [1e-3, 1e-2]}, cv=2)
    grid.fit(np.array(TEXTS), np.array(LABELS))
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()
    assert grid.best_params_["textclassifier__learning_rate"] in (1e-3, 1e-2)


def test_the_weight_of_a_text_counts_in_the_loss(model, options):
    texts, labels = ["a a", "b b", "a a", "b b"], ["x", "y", "y", "x"]
    for frozen in (False, True):
        chosen = {**options, "freeze_encoder": frozen}
        weighted = TextClassifier(model, **chosen).fit(texts, labels, [1, 1, 0, 0])
        alone = TextClassifier(model, **chosen).fit(texts, labels, sample_weight=[0, 0, 1, 1])
        assert weighted.predict(texts[:2]).tolist() == ["x", "y"]
        assert alone.predict(texts[:2]).tolist() == ["y", "x"]
    scores = [1.0, 3.0, 3.0, 1.0]
    first, second = (
        TextRegressor(model, **options).fit(texts, scores, [1, 1, 0, 0]).predict(texts[:2])
    )
    assert first < second
    for weights, settings, message in (
        ([1, 1, 1], {}, "one number from 0 for each of the 4 rows"),
        ([0, 0, 0, 0], {}, "must not be zero for all texts"),
        ([1, 1, 1, 1], {"train_fraction": 0.5}, "Leave out train_fraction in `settings`"),
    ):
        with pytest.raises(ValueError, match=message):
            TextClassifier(model, settings=settings).fit(texts, labels, weights)


def test_weights_follow_the_rows_that_are_read(model, options, tmp_path):
    """A row without a label is left out with its weight: the run is that without the row."""
    rows, weights = list(zip(TEXTS, LABELS, strict=True)), np.arange(1, 9, dtype=np.float32)
    given = {**options, **options["settings"], "epochs": 1, "model": model, "keep": "last"}
    del given["settings"]
    losses = []
    for number, train in enumerate((rows, [(TEXTS[0], None), *rows[1:]], rows[1:])):
        run = {**given, "train": train, "dev": rows, "output": tmp_path / str(number)}
        metrics = finetune_given(run, print, sample_weight=weights[-len(train) :])
        losses.append(metrics["history"][-1]["eval"]["loss"])
    assert losses[1] == losses[2] != losses[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"calibrate": True}, "`calibrate` in `settings` is selected on examples that are not tra"),
        ({"tune_thresholds": True}, "Pass `validation_fraction`"),
        ({"patience": 1}, "`patience` in `settings` is selected on"),
        ({"keep": "best"}, "`keep` in `settings` is selected on"),
        ({"num_seeds": 2}, "`num_seeds` in `settings` is selected on"),
        ({"train_fraction": [0.5, 1]}, "`train_fraction` in `settings` is selected on"),
        ({"train": "a.csv"}, "`train` in `settings` is set by the estimator. They follow from X"),
        ({"dev": "a.csv"}, "`dev` in `settings` is set by the estimator. Pass `validation_frac"),
        ({"multi_label": True}, "`multi_label` in `settings` is set by the estimator"),
        ({"task": "tagger"}, "`task` in `settings` is set by the estimator"),
        ({"output": "out"}, "`output` in `settings` is set by the estimator"),
        ({"folds": 5}, "`folds` in `settings` is set by the estimator. Use `cross_val_score`"),
        ({"model": "other"}, "`model` in `settings` is an argument of the estimator"),
        ({"epochs": 9}, "`epochs` in `settings` is an argument of the estimator"),
    ],
)
@pytest.mark.parametrize("estimator", [TextClassifier, TextRegressor])
def test_settings_do_not_take_the_place_of_x_y_or_arguments(model, estimator, settings, message):
    y = LABELS if estimator is TextClassifier else [1.0, 3.0] * 4
    with pytest.raises(ValueError, match=message):
        estimator(model, settings=settings).fit(TEXTS, y)


def test_what_is_selected_is_selected_on_rows_that_are_held_back(model, options, monkeypatch):
    given = []

    def spy(settings, report, *, sample_weight):
        given.append((settings, sample_weight))
        return finetune_given(settings, report, sample_weight=sample_weight)

    monkeypatch.setattr("keras_bert.sklearn.finetune_given", spy)
    texts, weights = [f"a {letter}" for letter in "abcdefgh"], np.arange(1.0, 9.0)
    chosen = {**options, "epochs": 1, "settings": {**options["settings"], "calibrate": True}}
    classifier = TextClassifier(model, validation_fraction=0.25, **chosen)
    classifier.fit(texts, LABELS, sample_weight=weights)
    ((settings, kept),) = given
    train, dev = settings["train"], settings["dev"]
    assert len(train) == 6 and {*train, *dev} == {*zip(texts, LABELS, strict=True)}
    assert sorted(label for _, label in dev) == sorted(LABELS[:2])
    assert kept.tolist() == [weights[texts.index(text)] for text, _ in train]
    assert classifier.task_.tuned == ("temperature",)
    for fraction in (0, 1, 2, True, "a"):
        with pytest.raises(ValueError, match="`validation_fraction` must be a fraction between"):
            TextClassifier(model, validation_fraction=fraction).fit(texts, LABELS)


MISSING = [
    [np.nan, *"xyxyxyx"],
    [None, *"xyxyxyx"],
    pd.Series([pd.NA, *"xyxyxyx"]),
    pd.Series([pd.NaT, *"xyxyxyx"], dtype=object),
    pd.array([pd.NA, *range(7)], dtype="Int64"),
    np.array([np.nan, *range(7)]),
]


@pytest.mark.parametrize("y", MISSING)
@pytest.mark.parametrize("estimator", [TextClassifier, TextRegressor])
def test_a_missing_target_is_an_error(model, estimator, y):
    message = "Input y contains NaN: 1 of its 8 values are missing, the first at 0"
    with pytest.raises(ValueError, match=message):
        estimator(model).fit(TEXTS, y, np.arange(8.0))


def test_clone_and_parameters(model):
    classifier = TextClassifier(model, epochs=7, settings={"crf": True})
    copy = clone(classifier)
    assert copy.get_params() == classifier.get_params() and not hasattr(copy, "task_")
    assert copy.set_params(seed=3).seed == 3
    assert kb.sklearn.TextClassifier is TextClassifier


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ("a text", ["x"], "X must be a list or an array of texts"),
        ([1.0, 2.0], ["x", "y"], "X must be texts"),
        ([], [], "X must be texts"),
        (["a", "b"], ["x"], "y must have one value for each of the 2 rows"),
        (["a", "b"], ["x", "x"], "needs two classes or more. Received: .'x'."),
        (["a", "b"], [0.5, 1.5], "Unknown label type: continuous"),
        (["a", "b"], None, "y should be a 1d array. Received: None"),
        (["a", "b"], [1j, 2], "Complex data not supported: y is complex128"),
        (["a", "b"], [1.0, np.inf], "Input y contains infinity"),
        (["a", "b"], [1, "1"], "y contains strings and values of another type"),
        (["a", "b"], np.array([1, "1"], object), "y contains strings and values of another type"),
    ],
)
def test_what_is_invalid_is_a_sentence(model, X, y, message):
    with pytest.raises(ValueError, match=message):
        TextClassifier(model).fit(X, y)


# The checks of scikit-learn that fail, by the reason: a text is no number.
NUMBERS = "trains on a matrix of numbers, which is an error that asks for texts"
ARRAY = "passes a matrix of one type of memory, of numbers"
MESSAGE = "wants another message for an X of numbers: the one that asks for texts comes first"
FAILING = {
    NUMBERS: """check_dict_unchanged check_dont_overwrite_parameters check_dtype_object
        check_estimators_dtypes check_estimators_fit_returns_self check_estimators_overwrite_params
        check_estimators_pickle check_fit2d_1feature check_fit2d_1sample check_fit2d_predict1d
        check_fit_check_is_fitted check_fit_idempotent check_fit_score_takes_y
        check_methods_sample_order_invariance check_methods_subset_invariance check_n_features_in
        check_n_features_in_after_fitting check_pipeline_consistency
        check_positive_only_tag_during_fit check_sample_weight_equivalence_on_dense_data
        check_sample_weights_list check_sample_weights_not_overwritten
        check_sample_weights_pandas_series check_sample_weights_shape check_supervised_y_2d""",
    ARRAY: """check_f_contiguous_array_estimator check_readonly_memmap_input
        check_sample_weights_not_an_array""",
    MESSAGE: """check_all_zero_sample_weights_error check_estimator_sparse_array
        check_estimator_sparse_matrix check_estimators_empty_data_messages
        check_estimators_nan_inf""",
}
OWN_FAILURES = {
    TextClassifier: {
        NUMBERS: """check_classifiers_classes check_classifiers_one_label
            check_classifiers_one_label_sample_weights check_classifiers_train""",
        ARRAY: "check_classifier_data_not_an_array",
    },
    TextRegressor: {
        NUMBERS: """check_regressors_int check_regressors_no_decision_function
            check_regressors_train""",
        ARRAY: "check_regressor_data_not_an_array",
    },
}


def as_matrix(estimator):
    """A subclass that says that it reads matrices: else scikit-learn runs no check at all."""

    def tags(self):
        tags = super(made, self).__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags

    made = type(estimator.__name__, (estimator,), {"__sklearn_tags__": tags})
    return made


@pytest.mark.parametrize("estimator", [TextClassifier, TextRegressor])
def test_the_checks_of_scikit_learn(estimator):
    expected = {
        name: reason
        for groups in (FAILING, OWN_FAILURES[estimator])
        for reason, names in groups.items()
        for name in names.split()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = estimator_checks.check_estimator(
            as_matrix(estimator)(), expected_failed_checks=expected, on_fail=None, on_skip=None
        )
    by_status = {"passed": set(), "xfail": set(), "skipped": set(), "failed": set()}
    for result in results:
        by_status[result["status"]].add(result["check_name"])
    assert by_status["failed"] == set() and by_status["xfail"] == set(expected)
    assert len(by_status["passed"]) > 12
    assert {"check_parameters_default_constructible", "check_estimator_cloneable"} <= by_status[
        "passed"
    ]


@pytest.mark.parametrize("classes", [[0.0, 1.0], ["1.1", "1.2"], ["['a']", "b"], ["007", "7"]])
def test_classes_that_a_file_would_name_otherwise(classes, model, options):
    """They are predicted as they were given, in their own type."""
    y = np.array(classes * (len(TEXTS) // 2))
    classifier = TextClassifier(model, **{**options, "epochs": 1}).fit(TEXTS[: len(y)], y)
    assert classifier.classes_.tolist() == sorted(classes)
    assert {*classifier.predict(TEXTS).tolist()} <= {*classes}
