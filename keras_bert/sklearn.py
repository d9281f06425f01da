"""Scikit-learn's estimators over `keras_bert.finetune`: for pipelines, grids and cross-validation.

from keras_bert.sklearn import TextClassifier

classifier = TextClassifier("hf://owner/name", epochs=3)
cross_val_score(classifier, texts, labels)
"""

import math
import numbers
import tempfile
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from keras_bert.base.settings import PathText
from keras_bert.checkpoints import load_task
from keras_bert.readers.examples import not_reported
from keras_bert.readers.labels import fraction_among, label_or_none, named_labels
from keras_bert.readers.sources import plain
from keras_bert.tasks.outputs import Inference
from keras_bert.tasks.raw_data import weights_of_rows
from keras_bert.training.finetune import finetune_given

# Training examples that a run evaluates on after each epoch if no others are held back. Its last
# model is kept, whatever the metrics are.
_EVALUATED = 100
# Settings of `finetune` that an estimator sets itself, with what to do instead.
_SET_HERE = {
    **dict.fromkeys(("train", "task", "multi_label", "one_text"), "They follow from X and y"),
    "dev": "Pass `validation_fraction` to hold examples back",
    "folds": "Use `cross_val_score` of scikit-learn",
    **dict.fromkeys(("output", "force"), "The run is in a temporary folder"),
}
# Settings that are selected on dev data, with a value that selects nothing.
_SELECTED_ON_DEV = {
    "calibrate": False,
    "tune_thresholds": False,
    "patience": 0,
    "keep": "last",
    "num_seeds": 1,
    "ensemble": False,
}


class _TextEstimator(BaseEstimator):
    """The base of both estimators.

    X are texts: a list, a Series or an array (N,), or a table of one column; or pairs of texts, an
    array (N, 2), a table of two columns or a list of tuples.
    """

    def __init__(
        self,
        model: PathText | None = None,
        *,
        epochs: int | None = None,
        batch_size: int = 32,
        learning_rate: float | None = None,
        max_length: int | None = None,
        pooling: str | None = None,
        freeze_encoder: bool = False,
        seed: int = 0,
        validation_fraction: float | None = None,
        settings: dict[str, Any] | None = None,
    ):
        self.model = model
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_length = max_length
        self.pooling = pooling
        self.freeze_encoder = freeze_encoder
        self.seed = seed
        self.validation_fraction = validation_fraction
        self.settings = settings

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.one_d_array = True, True
        tags.input_tags.two_d_array = False
        return tags

    def _fit(self, texts, labels, sample_weight, *, stratify=None, **task_settings):
        settings = self.settings or {}
        self._check_settings(settings)
        if sample_weight is not None:
            sample_weight = weights_of_rows(texts, sample_weight)
            if not sample_weight.any():
                raise ValueError("`sample_weight` must not be zero for all texts.")
            if run_splits := {"train_fraction", "folds", "baseline"} & {*settings}:
                raise ValueError(
                    "`sample_weight` is for a single run on all examples. Leave out "
                    f"{', '.join(sorted(run_splits))} in `settings`."
                )
        examples = [(*text, label) for text, label in zip(texts, labels, strict=True)]
        names = ("model", "epochs", "batch_size", "learning_rate", "max_length", "pooling")
        given = {name: getattr(self, name) for name in (*names, "freeze_encoder", "seed")}
        train, dev = examples, examples[:_EVALUATED]
        if self.validation_fraction is not None:
            parts = self._divided(len(examples), stratify)
            train, dev = ([examples[number] for number in part] for part in parts)
            sample_weight = None if sample_weight is None else sample_weight[parts[0]]
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            given |= {"train": train, "dev": dev, "keep": "last"}
            given |= {**task_settings, **settings, "output": run}
            finetune_given(given, not_reported, sample_weight=sample_weight)
            self.task_ = load_task(run)
        return self

    def _check_settings(self, settings):
        """Raises ValueError for settings that would take the place of something else."""
        for name in settings:
            if name in self.get_params(deep=False):
                raise ValueError(f"`{name}` in `settings` is an argument of the estimator.")
            if name in _SET_HERE:
                raise ValueError(
                    f"`{name}` in `settings` is set by the estimator. {_SET_HERE[name]}."
                )
        selected = [
            name
            for name, value in _SELECTED_ON_DEV.items()
            if settings.get(name, value) not in (value, None)
        ]
        if isinstance(settings.get("train_fraction"), list | tuple):
            selected.append("train_fraction")
        if selected and self.validation_fraction is None:
            raise ValueError(
                f"`{selected[0]}` in `settings` is selected on examples that are not trained on. "
                "Pass `validation_fraction`, such as 0.1, to hold some of X back."
            )

    def _divided(self, count, stratify):
        """-> int arrays of the examples to train on and of those that are held back."""
        fraction = self.validation_fraction
        is_number = isinstance(fraction, numbers.Real) and not isinstance(fraction, bool)
        if not (is_number and 0 < fraction < 1):
            raise ValueError(
                "`validation_fraction` must be a fraction between 0 and 1, or None. Received: "
                f"{fraction!r}."
            )
        return train_test_split(
            np.arange(count), test_size=fraction, random_state=self.seed, stratify=stratify
        )

    def _outputs(self, X, name):
        check_is_fitted(self)
        texts = _texts(X)
        if len(texts[0]) != len(self.task_.text_names):
            raise ValueError(
                f"The model was trained on {_described(self.task_.text_names)}. "
                f"Received: {_described(texts[0])}."
            )
        items = [text[0] if len(text) == 1 else text for text in texts]
        inferred = self.task_.inferred_arguments
        examples = self.task_.read(items, inferred_arguments=inferred, labelled=False)
        sequences = self.task_.features([*examples])
        outputs = Inference(self.task_, batch_size=self.batch_size).outputs(sequences)[name]
        return self.task_.of_examples(outputs, sequences)


class TextClassifier(ClassifierMixin, _TextEstimator):
    """A classifier of texts, or of pairs, as an estimator of scikit-learn.

    `fit` is a run of `keras_bert.finetune` in a temporary folder, on all examples.

    Args:
        model: the model to start from: a folder, the output of a run or hf://owner/name.
        epochs, batch_size, learning_rate, max_length, pooling, freeze_encoder, seed: settings of
            `keras_bert.finetune`.
        validation_fraction: fraction of X that is not trained on but held back, for settings that
            are selected on other examples. None trains on all.
        settings: further settings of `keras_bert.finetune` by name. Those that are selected on
            other examples (`calibrate`, `patience`, `keep="best"`, `num_seeds`) need
            `validation_fraction`; those that the estimator sets itself are an error.

    Attributes after `fit`: `classes_`, the labels in their own type, sorted; `task_`, the
    `Classifier` or `PairClassifier`, such as for `task_.save` and `task_.export`.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fine-tunes on texts X (N,) or (N, 2) and labels y (N,).

        `sample_weight` (N,) is the weight of each text in the loss, from 0; None is 1 each.

        Raises:
            ValueError: X are not texts, y are not classes, they are of different lengths, y has
                missing values or fewer than two classes, the weights are not numbers from 0, or
                `settings` has a name that the estimator sets.
            InputError: a setting is invalid.
        """
        y = _targets(X, y)
        check_classification_targets(y)
        texts = _texts(X)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"The classifier needs two classes or more. Received: {self.classes_.tolist()}."
            )
        names = [str(label) for label in plain(self.classes_)]
        as_read = [label_or_none(name) for name in names]
        is_same = as_read == names and [*named_labels(names).values()] == names
        if not is_same or fraction_among(names) is not None:
            names = [str(number) for number in range(len(names))]  # as a file could not have them
        task = "classifier" if len(texts[0]) == 1 else "pair-classifier"
        labels = [names[number] for number in numbers]
        self._fit(texts, labels, sample_weight, stratify=labels, task=task)
        self._columns = [self.task_.labels.index(name) for name in names]
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Texts X -> the probabilities of `classes_`, float64 (N, C)."""
        logits = self._outputs(X, "logits").astype(np.float64) / self.task_.temperature
        return softmax(logits, axis=-1)[:, self._columns]

    def predict(self, X: Any) -> np.ndarray:
        """Texts X -> the most probable of `classes_`, (N,), of the type of y."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]


class TextRegressor(RegressorMixin, _TextEstimator):
    """A regressor of texts, or of pairs, as an estimator of scikit-learn.

    `fit` is a run of `keras_bert.finetune` in a temporary folder, on all examples.

    Args:
        model: the model to start from: a folder, the output of a run or hf://owner/name.
        epochs, batch_size, learning_rate, max_length, pooling, freeze_encoder, seed: settings of
            `keras_bert.finetune`.
        validation_fraction: fraction of X that is not trained on but held back, for settings that
            are selected on other examples. None trains on all.
        settings: further settings of `keras_bert.finetune` by name. Those that are selected on
            other examples (`calibrate`, `patience`, `keep="best"`, `num_seeds`) need
            `validation_fraction`; those that the estimator sets itself are an error.

    Attribute after `fit`: `task_`, the `Regressor`.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fine-tunes on texts X (N,) or (N, 2) and numbers y (N,).

        `sample_weight` (N,) is the weight of each text in the loss, from 0; None is 1 each.

        Raises:
            ValueError: X are not texts, y are not finite numbers, they are of different lengths,
                the weights are not numbers from 0, or `settings` has a name that the estimator
                sets.
            InputError: a setting is invalid, or all numbers are the same.
        """
        y, texts = _targets(X, y), _texts(X)
        scores = np.asarray(y, np.float64).tolist()
        single_text = {"one_text": True} if len(texts[0]) == 1 else {}
        return self._fit(texts, scores, sample_weight, task="regression", **single_text)

    def predict(self, X: Any) -> np.ndarray:
        """Texts X -> scores, float64 (N,)."""
        return self._outputs(X, "score")[:, 0].astype(np.float64)


def _check_rows(X):
    """Raises ValueError unless X has rows."""
    if isinstance(X, str | bytes) or not hasattr(X, "__len__"):
        raise ValueError(f"X must be a list or an array of texts. Received: {type(X).__name__}.")


def _texts(X):
    """The texts as a list of tuples of one text or two; ValueError for anything else."""
    _check_rows(X)
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    rows = [(row,) if isinstance(row, str) else tuple(np.ravel(row).tolist()) for row in X]
    is_valid = rows and len(rows[0]) in (1, 2) and all(len(row) == len(rows[0]) for row in rows)
    if not is_valid or not all(isinstance(text, str) for row in rows for text in row):
        received = f"shape {X.shape}" if hasattr(X, "shape") else f"{len(rows)} rows"
        raise ValueError(
            f"X must be texts (N,), or pairs of texts (N, 2), and have a row. Received: {received}."
        )
    return rows


def _targets(X, y):
    """y as an array (N,), of as many as X."""
    if y is None:
        raise ValueError("The target y should be a 1d array. Received: None.")
    _check_rows(X)
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    else:
        y = np.asarray(y) if hasattr(y, "dtype") else _as_array(y)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1 or len(y) != len(X):
        raise ValueError(
            f"The target y must have one value for each of the {len(X)} rows of X. Received: shape "
            f"{y.shape}."
        )
    if np.iscomplexobj(y):
        raise ValueError(f"Complex data not supported: y is {y.dtype}.")
    values = plain(y)
    if missing := [number for number, value in enumerate(values) if value is None]:
        raise ValueError(
            f"Input y contains NaN: {len(missing)} of its {len(y)} values are missing, the first "
            f"at {missing[0]}. Leave these rows out of X and y."
        )
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        raise ValueError("Input y contains infinity.")
    kinds = {isinstance(value, str) for value in values}
    if len(kinds) > 1:
        raise ValueError(
            "Input y contains strings and values of another type. Pass values of one type."
        )
    return y


def _as_array(y):
    """A sequence as an array, in which strings and numbers stay what they are."""
    y = [*y]
    is_mixed = len({isinstance(value, str) for value in y}) > 1
    return np.array(y, dtype=object) if is_mixed else np.asarray(y)


def _described(texts):
    return "single texts" if len(texts) == 1 else "pairs of texts"
