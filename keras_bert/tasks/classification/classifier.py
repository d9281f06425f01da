"""A label for a text or a pair of texts (Devlin et al. 2018, section 4.1)."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops
from scipy.special import expit

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed, percent
from keras_bert.heads.classification import HiddenLayers, labelled_head
from keras_bert.layers import Tensor
from keras_bert.readers.labels import one_label, several_labels, sorted_labels
from keras_bert.readers.texts import PAIR, TEXT, TextSource
from keras_bert.tasks.classification import NO_WEIGHTS, ClassifierSettings, PairClassifierSettings
from keras_bert.tasks.classification.calibration import (
    best_thresholds,
    error_of_decisions,
    error_of_labels,
    fitted_temperature,
    fitted_temperature_of_decisions,
)
from keras_bert.tasks.classification.decode import (
    classifier_predictions,
    decision_weights,
    example_weights,
    label_errors,
    label_matrix,
    label_numbers,
    multi_label_errors,
    multi_label_predictions,
    parse_class_weights,
)
from keras_bert.tasks.classification.pooled_task import TextTask
from keras_bert.tasks.losses import CountedAccuracy
from keras_bert.tasks.summed_metrics import SummedMetrics


@keras.saving.register_keras_serializable(package="keras_bert")
class DecisionCrossentropy(keras.losses.BinaryCrossentropy):
    """Binary cross-entropy of logits in nats, the mean over all decisions of a batch.

    Shapes: labels of 0 and 1, logits and sample weights, all (B, C). Keras's own loss averages over
    C before it applies weights, so that it takes only one weight per example.
    """

    def __init__(self, name="decision_crossentropy", **options):
        super().__init__(**{"name": name, "from_logits": True, **options})

    def call(self, y_true, y_pred):
        return ops.binary_crossentropy(y_true, y_pred, from_logits=True)  # (B, C)


@keras.saving.register_keras_serializable(package="keras_bert")
class Classifier(TextTask):
    """An encoder with a linear layer over one vector of the whole text: one logit per label.

    Takes the encoder's dictionary and gives `logits` (B, C): B batch, C labels. With the pooling
    "cls" the head is that of Hugging Face's BertForSequenceClassification: dropout, then the layer.
    In a RoBERTa folder the pooler is `classifier.dense` of RobertaForSequenceClassification, which
    also has dropout before it in training. `transformers` has no class for other poolings: their
    folder is a bare encoder to it, and the head has names of its own.

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`.
        labels: unique names of the labels in the order of the logits; at least two.
        **settings: see `ClassifierSettings`. With `multi_label` probabilities are a sigmoid per
            label instead of a softmax, and labels in training float (B, C) of 0 and 1;
            `class_weights` are then weights of each label (see `decision_weights`).

    Attributes: `labels` (a tuple), `settings`, `classifier` (the `Dense`), `dropout` (the
    `Dropout`), `hidden` (the `HiddenLayers`, or None).

    Raises:
        ValueError: the labels are fewer than two or not unique.
        InputError: a setting is invalid, the metric does not suit the labels, or [CLS] of a causal
            encoder is read.
    """

    TASK_TYPE = "classifier"
    HEADS: tuple[str, ...] = ("classifier",)
    MIN_LABELS = 2
    SETTINGS: type[Any] = ClassifierSettings
    METRIC = "accuracy"
    SHOWN = {"loss": "loss", "accuracy": "accuracy"}
    TEACHES = "logits"
    text_names: tuple[str, ...] = TEXT

    def defaults_for(self, settings: Any) -> dict[str, Any]:
        usual = "micro_f1" if settings.multi_label else "accuracy"
        return {**super().defaults_for(settings), "metric": settings.metric or usual}

    def make_head(self) -> None:
        encoder, settings = self.encoder, self.settings
        super().make_head()
        thresholds = settings.threshold
        if isinstance(thresholds, list) and len(thresholds) != len(self.labels):
            raise InputError.naming(
                "{threshold} has {} numbers for {}. Give one, or one per label.",
                len(thresholds),
                counted(len(self.labels), "label"),
            )
        self._class_weights = parse_class_weights(settings.class_weights, self.labels)
        self.METRIC = metric = settings.metric
        self.SHOWN = {"loss": "loss", "accuracy": "accuracy"}
        if metric != "accuracy":
            self.SHOWN[metric] = metric.replace("_", " ")
        if "f1" in metric.split("_and_") and len(self.labels) != 2:
            raise InputError.naming(
                "{metric} {} requires two labels, not {}. Use macro_f1.", metric, len(self.labels)
            )
        self.dropout, self.classifier = labelled_head(
            encoder,
            len(self.labels),
            dropout=self.head_dropout,
            use_bias=self.TASK_TYPE not in encoder.WITHOUT_BIAS,
        )
        self.hidden = None
        if settings.hidden_layers:
            self.hidden = HiddenLayers(
                count=settings.hidden_layers,
                units=self.config.hidden_size,
                dropout=self.dropout.rate,
                dtype=encoder.layer_policy,
                name="hidden",
            )
            self.HEADS = ("hidden", *self.HEADS)

    def is_standard(self) -> bool:
        return super().is_standard() and self.hidden is None

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        vector = self.dropout(self.vector(encoded, inputs.get("input_mask")))  # (B, D), or (B, n D)
        if self.hidden is not None:
            vector = self.hidden(vector)  # (B, D)
        return {"logits": self.classifier(vector)}  # (B, C)

    @classmethod
    def settings_in_config(cls, config_json: dict[str, Any]) -> dict[str, Any]:
        several = config_json.get("problem_type") == "multi_label_classification"
        return {**super().settings_in_config(config_json), "multi_label": several}

    @classmethod
    def with_effect(cls, settings: dict[str, Any]) -> dict[str, Any]:
        without_effect = set() if settings.get("multi_label") else {"threshold", "tune_thresholds"}
        return {name: value for name, value in settings.items() if name not in without_effect}

    def config_keys(self) -> dict[str, Any]:
        return {"problem_type": "multi_label_classification"} if self.settings.multi_label else {}

    @property
    def inferred_arguments(self) -> dict[str, Any]:
        several = {"multi_label": True} if self.settings.multi_label else {}
        return {**super().inferred_arguments, **several}

    # Training.

    def default_losses(self) -> dict[str, Any]:
        """Cross-entropy in nats, the mean over the batch (and over labels with `multi_label`)."""
        if self.settings.multi_label and self._class_weights != NO_WEIGHTS:
            return {"logits": DecisionCrossentropy()}
        if self.settings.multi_label:
            return {"logits": keras.losses.BinaryCrossentropy(from_logits=True)}
        return {"logits": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}

    def default_metrics(self) -> dict[str, Any]:
        """`accuracy`, the fraction of examples whose label has the highest logit.

        Weights of labels do not change it. None with several labels per text, and with windows, of
        which a text has several: see `official_metrics`.
        """
        if self.settings.multi_label or self.reads_windows:
            return {}
        return {"logits": [CountedAccuracy()]}

    # Labelled files.

    @classmethod
    def read(
        cls,
        data: Any,
        *,
        inferred_arguments: dict[str, Any] | None = None,
        schema: dict[str, Any] | None = None,
        labelled: bool = True,
        multi_label: bool = False,
        labels: str | Sequence[str] | None = None,
        **columns: Any,
    ) -> Any:
        """`LabelledText`s of a table, JSON Lines, `tfds:…` or a sequence.

        A sequence holds (text, label), or for pairs (text, text, label). `labels` are the names of
        lists of 0 and 1, as in `ClassifierSettings`.
        """
        inferred_arguments = inferred_arguments or {}
        several = multi_label or inferred_arguments.get("multi_label", False)
        return TextSource(
            data,
            texts=cls.text_names,
            form=several_labels if several else one_label,
            label_names=labels,
            labels=inferred_arguments.get("labels"),
            schema=schema,
            need_labels=labelled,
            **columns,
        )

    @classmethod
    def infer_arguments(cls, examples: Sequence[Any]) -> dict[str, Any]:
        """The labels that occur."""
        labels = sorted_labels({label for example in examples for label in _labels_of(example)})
        if len(labels) < cls.MIN_LABELS:
            only = f'one label only ("{labels[0]}")' if labels else "no labels"
            raise InputError(
                f"{examples[0].source.name} has {only}. A classifier needs at least two."
            )
        return {"labels": labels}

    @classmethod
    def describe_examples(
        cls, train: Sequence[Any], dev: Sequence[Any], inferred_arguments: dict[str, Any]
    ) -> str:
        noun = "text" if len(cls.text_names) == 1 else "pair"
        counts = Counter(label for example in train for label in _labels_of(example))
        by_label = listed(f'"{label}": {counts[label]:,}' for label in inferred_arguments["labels"])
        dev_counts = Counter(label for example in dev for label in _labels_of(example))
        most = max(inferred_arguments["labels"], key=lambda label: dev_counts[label])
        positive = ""
        if len(inferred_arguments["labels"]) == 2 and not isinstance(train[0].label, tuple):
            positive = f' The positive class of F1 is "{inferred_arguments["labels"][-1]}".'
        return (
            f"{counted(len(train), f'training {noun}')} ({by_label}) and "
            f"{counted(len(dev), f'dev {noun}')}, of which {percent(dev_counts[most] / len(dev))} "
            f'have the label "{most}".{positive}'
        )

    def targets(self, examples: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Labels that the task does not have count neither in the loss nor in Keras's metrics."""
        is_weighted = self._class_weights != NO_WEIGHTS
        if self.settings.multi_label:
            matrix = label_matrix(examples, self.labels)
            weights = decision_weights(matrix, self._class_weights) if is_weighted else None
            return {"logits": matrix}, {"logits": weights} if is_weighted else {}
        numbers = label_numbers(examples, self.labels)
        is_ours = numbers >= 0
        weights = is_ours.astype(np.float32)
        if is_weighted:
            weights[is_ours] = example_weights(numbers[is_ours], self._class_weights)
        targets = {"logits": np.maximum(numbers, 0)}
        return targets, {"logits": weights} if is_weighted or not is_ours.all() else {}

    def labels_of(self, example: Any) -> Sequence[str]:
        return _labels_of(example)

    def check_class_weight(self) -> None:
        if self.settings.multi_label:
            raise InputError.naming(
                "{class_weight} is for one label per text. With {multi_label} make the task with "
                "{class_weights}."
            )

    def decode(self, outputs: dict[str, Any], sequences: Any) -> list[dict[str, Any]]:
        """`text` (or `text_a`, `text_b`), `label`, `score`, `expected` and `probabilities`.

        `expected` is present if known. With `multi_label`, `labels` is a list instead.
        """
        logits = self.of_examples(outputs["logits"], sequences) / self.temperature
        if self.settings.multi_label:
            return multi_label_predictions(
                logits,
                sequences.examples,
                labels=self.labels,
                thresholds=np.broadcast_to(self.settings.threshold, len(self.labels)),
            )
        return classifier_predictions(logits, sequences.examples, labels=self.labels)

    @property
    def temperature(self) -> float:
        """The number that divides the logits before they become probabilities."""
        return self.settings.temperature or 1.0

    def tuned_settings(self, given: Any) -> tuple[str, ...]:
        tuned = {"temperature": given.calibrate, "threshold": given.tune_thresholds}
        return tuple(name for name, is_tuned in tuned.items() if is_tuned)

    def tune_threshold(self, outputs: dict[str, Any], sequences: Any) -> None:
        """Fits the temperature with `calibrate`, and the thresholds with `tune_thresholds`.

        A temperature that does not lower the calibration error is 1, and a threshold that does not
        raise the F1 of its label is the default.
        """
        logits, examples = self.of_examples(outputs["logits"], sequences), sequences.examples
        if "temperature" in self.tuned:
            if self.settings.multi_label:
                temperature = fitted_temperature_of_decisions(
                    logits, label_matrix(examples, self.labels)
                )
            else:
                temperature = fitted_temperature(logits, label_numbers(examples, self.labels))
            self.update_settings(temperature=temperature)
            errors: Any = self.calibration_error(outputs, sequences)
            if errors["after"] >= errors["before"]:
                self.update_settings(temperature=1.0)
        if "threshold" in self.tuned:
            probabilities = expit(logits.astype(np.float64) / self.temperature)
            matrix = label_matrix(examples, self.labels)
            thresholds = best_thresholds(probabilities, matrix, default=self.SETTINGS.threshold)
            self.update_settings(threshold=thresholds)

    def calibration_error(self, outputs: dict[str, Any], sequences: Any) -> dict[str, float] | None:
        if "temperature" not in self.tuned:
            return None
        logits, examples = self.of_examples(outputs["logits"], sequences), sequences.examples
        if self.settings.multi_label:
            error, expected = error_of_decisions, label_matrix(examples, self.labels)
        else:
            error, expected = error_of_labels, label_numbers(examples, self.labels)
        scaled = logits / self.temperature
        return {"before": error(logits, expected), "after": error(scaled, expected)}

    def official_metrics(
        self, predictions: Sequence[Any], examples: Sequence[Any]
    ) -> dict[str, Any]:
        """See `classification_metrics` and `multi_label_metrics`.

        Labels of the examples that the task does not have are among theirs, after its own.
        """
        from keras_bert.tasks.classification.metrics import (
            classification_metrics,
            multi_label_metrics,
        )

        several = self.settings.multi_label
        scored = _scored(self, predictions, examples)
        return (multi_label_metrics if several else classification_metrics)(**scored)

    def summed_metrics(self, predictions: Sequence[Any], examples: Sequence[Any]) -> SummedMetrics:
        from keras_bert.tasks.classification.metrics import (
            summed_classification,
            summed_multi_label,
        )

        scored = _scored(self, predictions, examples)
        if not self.settings.multi_label:
            return summed_classification(**scored)
        scored.pop("probabilities")
        return summed_multi_label(**scored)

    def answer_of(self, prediction: dict[str, Any]) -> Any:
        return prediction["labels" if self.settings.multi_label else "label"]

    def with_answer(self, example: Any, prediction: dict[str, Any]) -> Any:
        answer = self.answer_of(prediction)
        label = tuple(answer) if self.settings.multi_label else answer
        return dataclasses.replace(example, label=label)

    def errors(self, predictions: Sequence[Any], examples: Sequence[Any]) -> list[dict[str, Any]]:
        """See `label_errors` and `multi_label_errors`."""
        return (multi_label_errors if self.settings.multi_label else label_errors)(
            predictions, examples
        )

    @staticmethod
    def describe_metrics(metrics: dict[str, Any]) -> str:
        if "subset_accuracy" in metrics:
            return (
                f"all labels right {percent(metrics['subset_accuracy'])}, micro F1 "
                f"{percent(metrics['micro_f1'])}, macro F1 {percent(metrics['macro_f1'])}"
            )
        return (
            f"accuracy {percent(metrics['accuracy'])}, macro F1 {percent(metrics['macro_f1'])}, "
            f"Matthews {metrics['matthews']:.3f}"
        )


def _scored(task, predictions, examples):
    """The arguments of `classification_metrics` or `multi_label_metrics` for a task."""
    labels = [*task.labels, *sorted_labels(task.unknown_labels(examples))]
    probabilities = [list(prediction["probabilities"].values()) for prediction in predictions]
    scored = {"probabilities": probabilities, "labels": labels}
    if not task.settings.multi_label:
        return {"expected": label_numbers(examples, labels), **scored}
    predicted = [[label in p["labels"] for label in labels] for p in predictions]
    expected = label_matrix(examples, labels) > 0
    return {"expected": expected, "predicted": np.array(predicted, bool), **scored}


def _labels_of(example):
    return example.label if isinstance(example.label, tuple) else (example.label,)


@keras.saving.register_keras_serializable(package="keras_bert")
class PairClassifier(Classifier):
    """A `Classifier` of pairs, `[CLS] a [SEP] b [SEP]`, with the same arguments and head.

    With `both_orders` it reads each pair in both orders (see `TextTask`).
    """

    TASK_TYPE = "pair-classifier"
    OFFERS = ("zero-shot",)
    SETTINGS = PairClassifierSettings
    text_names = PAIR
