"""The relation of two given spans of a text."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed, percent, quoted
from keras_bert.heads.classification import labelled_head
from keras_bert.layers import Tensor
from keras_bert.readers.labels import sorted_labels
from keras_bert.tasks.exported_predictions import whole_text_prediction
from keras_bert.tasks.metrics import calibration
from keras_bert.tasks.span_classification import MAX_SPAN_LENGTH, RelationClassifierSettings
from keras_bert.tasks.span_classification.decode import (
    describe_pair_error,
    pair_errors,
    pair_predictions,
)
from keras_bert.tasks.span_classification.metrics import relation_metrics, summed_relations
from keras_bert.tasks.span_classification.span_classifier import WordsTask, span_representation_of
from keras_bert.tasks.summed_metrics import SummedMetrics

# Names of data sets for pairs without a relation: TACRED and others, NYT, SemEval 2010.
_NULL_LABELS = ("no_relation", "NA", "none", "None", "NONE", "Other")


@keras.saving.register_keras_serializable(package="keras_bert")
class RelationClassifier(WordsTask):
    """An encoder with a classifier over pairs of spans, the head and the tail of a relation.

    Takes the encoder's dictionary and `word_starts` and `word_ends` (B, W), as a `SpanClassifier`
    does, and `span_firsts` and `span_lasts` (B, 2) int32: the first and the last word of head and
    tail. Returns `logits` (B, C), of a linear layer over [h; t; h ∘ t], where h and t are the
    vectors of the two (Lee et al. 2017, section 4, have a hidden layer before it). B is the batch,
    W the words, C the labels.

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`.
        labels: the names of the labels in the order of the logits, each once; at least two.
        **settings: see `RelationClassifierSettings`. Of a text longer than `max_length` the part
            around the two spans is read, and if they are too far apart, the prediction has no
            label.

    Attributes: `settings`, and the layers `spans` (the `SpanRepresentation`), `classifier` (a
    `Dense`), `dropout` and `word_means`.

    Raises:
        ValueError: the labels are fewer than two or not unique.
        InputError: the null label is not one of them.
    """

    TASK_TYPE = "relation-classifier"
    HEAD_INPUTS = {**WordsTask.HEAD_INPUTS, "span_firsts": (2,), "span_lasts": (2,)}
    HEADS = ("spans", "classifier")
    MIN_LABELS = 2
    SETTINGS = RelationClassifierSettings
    FEATURES = "keras_bert.tasks.span_classification.features:pair_sequences"
    SIGNATURES = "keras_bert.tasks.span_classification.signatures:relation_signatures"
    exported_prediction = whole_text_prediction
    METRIC = "f1"
    SHOWN = {"loss": "loss", "accuracy": "accuracy", "f1": "F1"}

    def defaults_for(self, settings: Any) -> dict[str, Any]:
        null_label = _null_label(settings.null_label, self.labels)
        return {**super().defaults_for(settings), "null_label": null_label}

    def make_head(self) -> None:
        self.word_means = self.make_word_means()
        self.spans = span_representation_of(
            self.encoder,
            representation=self.settings.span_representation,
            max_words=MAX_SPAN_LENGTH,
        )
        self.dropout, self.classifier = labelled_head(
            self.encoder, len(self.labels), dropout=self.head_dropout
        )

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        words = self.words(encoded, inputs)
        spans = self.spans(words, inputs["span_firsts"], inputs["span_lasts"])
        head, tail = spans[:, 0], spans[:, 1]  # (B, R) each
        pair = ops.concatenate([head, tail, head * tail], axis=-1)
        return {"logits": self.classifier(pair)}  # (B, C)

    def default_metrics(self) -> dict[str, Any]:
        """`accuracy`, the fraction of pairs whose label has the highest logit."""
        return {"logits": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    @classmethod
    def read(
        cls,
        data: Any,
        *,
        inferred_arguments: dict[str, Any] | None = None,
        schema: dict[str, Any] | None = None,
        labelled: bool = True,
        **columns: Any,
    ) -> Any:
        """`SpanPair`s of JSON Lines, of `tfds:…`, or of a sequence of dictionaries like objects."""
        from keras_bert.readers.spans import SpanPairSource

        labels = (inferred_arguments or {}).get("labels")
        return SpanPairSource(data, need_labels=labelled, labels=labels, schema=schema, **columns)

    @classmethod
    def infer_arguments(cls, examples: Sequence[Any]) -> dict[str, Any]:
        """The labels that occur."""
        labels = sorted_labels({example.label for example in examples})
        if len(labels) < cls.MIN_LABELS:
            raise InputError(
                f'{examples[0].source.name} has only one label ("{labels[0]}"). A relation '
                "classifier needs two or more, of which one may mean that there is no relation."
            )
        return {"labels": labels}

    @classmethod
    def describe_examples(
        cls, train: Sequence[Any], dev: Sequence[Any], inferred_arguments: dict[str, Any]
    ) -> str:
        counts = Counter(example.label for example in train)
        by_label = listed(f'"{label}": {counts[label]:,}' for label in inferred_arguments["labels"])
        return (
            f"{counted(len(train), 'training pair')} ({by_label}) and "
            f"{counted(len(dev), 'dev pair')}."
        )

    def decode(self, outputs: dict[str, Any], sequences: Any) -> list[dict[str, Any]]:
        """See `pair_predictions`."""
        return pair_predictions(outputs["logits"], sequences, labels=self.labels)

    def official_metrics(
        self, predictions: Sequence[Any], examples: Sequence[Any]
    ) -> dict[str, Any]:
        """See `relation_metrics`; also `calibration`.

        `too_far` counts pairs that are too far apart for a sequence, which are wrong. Labels of the
        examples that the task does not have are among theirs, after its own.
        """
        scored = _scored(self, predictions, examples)
        expected, predicted = scored["expected"], scored["predicted"]
        metrics = relation_metrics(**scored)
        correct = [a == b for a, b in zip(expected, predicted, strict=True)]
        scores = [prediction["score"] for prediction in predictions]
        too_far = sum(label is None for label in predicted)
        return {**metrics, "too_far": too_far, "calibration": calibration(scores, correct)}

    def summed_metrics(self, predictions: Sequence[Any], examples: Sequence[Any]) -> SummedMetrics:
        return summed_relations(**_scored(self, predictions, examples))

    @staticmethod
    def describe_metrics(metrics: dict[str, Any]) -> str:
        too_far = metrics.get("too_far")
        return (
            f"F1 {percent(metrics['f1'])} (precision {percent(metrics['precision'])}, recall "
            f"{percent(metrics['recall'])}), accuracy {percent(metrics['accuracy'])}"
            + (f"; {counted(too_far, 'pair')} too far apart, counted as wrong" if too_far else "")
        )

    def labels_of(self, example: Any) -> Sequence[str]:
        return (example.label,)

    errors = staticmethod(pair_errors)
    describe_error = staticmethod(describe_pair_error)


def _null_label(given, labels):
    """The label that means "no relation", or None."""
    if given is not None and given not in labels:
        raise InputError.naming(
            '{null_label} must be one of the labels ({}). Received: "{}".', quoted(labels), given
        )
    return given or next((label for label in _NULL_LABELS if label in labels), None)


def _scored(task, predictions, examples):
    """The arguments of `relation_metrics` for a task."""
    return {
        "expected": [example.label for example in examples],
        "predicted": [prediction["label"] for prediction in predictions],
        "labels": [*task.labels, *sorted_labels(task.unknown_labels(examples))],
        "null_label": task.settings.null_label,
    }
