"""A label for each span of words, or none: named entities that may be nested."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_bert.base.errors import InputError, Naming
from keras_bert.base.formatting import counted, listed, percent
from keras_bert.heads.classification import labelled_head
from keras_bert.heads.spans import SpanRepresentation, WordMeans
from keras_bert.layers import Tensor
from keras_bert.readers.examples import first_location
from keras_bert.readers.labels import sorted_labels
from keras_bert.tasks.exported_predictions import spans_prediction
from keras_bert.tasks.losses import cross_entropy_by_weight
from keras_bert.tasks.metrics import calibration
from keras_bert.tasks.span_classification import LAST, MEAN, SpanClassifierSettings
from keras_bert.tasks.span_classification.decode import (
    best_threshold,
    describe_span_error,
    span_errors,
    span_predictions,
    span_sets,
    spans_of_examples,
)
from keras_bert.tasks.span_classification.metrics import span_metrics, summed_spans
from keras_bert.tasks.summed_metrics import SummedMetrics
from keras_bert.tasks.task import Task

# Units of the hidden layers over spans, as in Lee et al. 2017 and Yu et al. 2020.
UNITS = 150
# The label of spans with `identify`.
ANY = "span"
# The initial probability of a span (Lin et al. 2017, section 3.3); otherwise the first epoch is
# spent on learning that spans are rare.
_PRIOR = 0.01


class WordsTask(Task):
    """A task whose head reads one vector per word, from those of its tokens, and labels spans."""

    READS_WORDS = True
    HEAD_INPUTS = {"word_starts": (None,), "word_ends": (None,)}

    def defaults_for(self, settings: Any) -> dict[str, Any]:
        usual = LAST if self.config.is_causal else MEAN
        aggregation = settings.aggregation or usual
        return {**super().defaults_for(settings), "aggregation": aggregation}

    def make_word_means(self) -> WordMeans:
        """Returns the layer `word_means`."""
        is_last = self.settings.aggregation == LAST
        return WordMeans(last=is_last, dtype=self.encoder.layer_policy, name="word_means")

    @classmethod
    def settings_in_config(cls, config_json: dict[str, Any]) -> dict[str, Any]:
        return {"aggregation": MEAN}  # in folders from before there was a choice

    def words(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> Tensor:
        """The vectors of the words, (B, W, D), after dropout."""
        hidden = encoded["sequence_output"]
        return self.dropout(self.word_means(hidden, inputs["word_starts"], inputs["word_ends"]))

    def default_losses(self) -> dict[str, Any]:
        """Cross-entropy in nats, the mean over the spans, or pairs of spans, that count."""
        return {"logits": cross_entropy_by_weight()}


@keras.saving.register_keras_serializable(package="keras_bert")
class SpanClassifier(WordsTask):
    """An encoder with a classifier over all spans of up to L words.

    Takes the encoder's dictionary with `word_starts` and `word_ends` (B, W) int32: the position of
    each word's first token, and the one after its last (0 and 0 for padding). A word is the mean of
    its tokens (over a causal encoder its last token, see `aggregation`). Returns `logits` (B, W,
    L, C): from each word the spans of 1 to L words, and for each "no span" and the labels (B batch,
    W words, C one more than the labels). Labels are `logits` (B, W, L) numbers; sample weights of
    the same name and shape are 1 at spans that count. (Lee et al. 2017 and Yu et al. 2020 classify
    spans in this way.)

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`.
        labels: the names of the labels of spans, each once; at least one. With `identify` they are
            "span".
        **settings: see `SpanClassifierSettings`. `threshold` None is 0.5 until `tune_threshold`
            sets it.

    Attributes: `settings`, and the layers `spans` (the `SpanRepresentation`), `classifier` (a
    `Dense`), `dropout` and `word_means`.

    Raises ValueError: the labels are empty or not unique.
    """

    TASK_TYPE = "span-classifier"
    HEADS = ("spans", "classifier")
    MIN_LABELS = 1
    SETTINGS = SpanClassifierSettings
    TUNED = ("threshold",)
    FEATURES = "keras_bert.tasks.span_classification.features:span_sequences"
    SIGNATURES = "keras_bert.tasks.span_classification.signatures:span_signatures"
    exported_prediction = spans_prediction
    FIRST_LABEL = 1  # after "no span"
    METRIC = "f1"
    SHOWN = {"loss": "loss", "f1": "F1"}

    def checked_labels(self, labels: Sequence[str] | None, settings: Any) -> tuple[str, ...]:
        return (ANY,) if settings.identify else super().checked_labels(labels, settings)

    def make_head(self) -> None:
        settings = self.settings
        self.word_means = self.make_word_means()
        self.spans = span_representation_of(
            self.encoder,
            representation=settings.span_representation,
            max_words=settings.max_span_length,
        )
        self.dropout, self.classifier = labelled_head(
            self.encoder, 1 + len(self.labels), dropout=self.head_dropout
        )
        self.classifier.bias_initializer = _prior_bias

    @property
    def found_above(self) -> float:
        """The probability over which a span is found."""
        threshold = self.settings.threshold
        return 0.5 if threshold is None else threshold

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"logits": self.classifier(self.spans(self.words(encoded, inputs)))}  # (B, W, L, C)

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
        """`SpannedWords` of JSON Lines, CoNLL or plain lines, or of a sequence.

        A sequence has strings, lists of words, or dictionaries like the objects of JSON Lines.
        Invalid tags are counted, or an error with `invalid_tags="error"`.
        """
        from keras_bert.readers.spans import SpanSource

        labels = (inferred_arguments or {}).get("labels")
        labels = None if labels == [ANY] else labels
        return SpanSource(data, need_labels=labelled, labels=labels, schema=schema, **columns)

    @classmethod
    def infer_arguments(cls, examples: Sequence[Any]) -> dict[str, Any]:
        """The labels that occur; "span" if no span has a label."""
        spans = [span for example in examples for span in example.spans]
        if not spans:
            raise InputError(f"{examples[0].source.name} has no spans to learn from.")
        labels = {span.label for span in spans if span.label is not None}
        return {"labels": sorted_labels(labels or {ANY})}

    @classmethod
    def labels_with(
        cls, inferred_arguments: dict[str, Any], *, identify: bool = False, **settings: Any
    ) -> tuple[str, ...]:
        return (ANY,) if identify else super().labels_with(inferred_arguments, **settings)

    @classmethod
    def describe_examples(
        cls, train: Sequence[Any], dev: Sequence[Any], inferred_arguments: dict[str, Any]
    ) -> str:
        count, dev_count = (sum(len(e.spans) for e in examples) for examples in (train, dev))
        counts = Counter(span.label for example in train for span in example.spans)
        by_label = listed(f'"{label}": {counts[label]:,}' for label in inferred_arguments["labels"])
        line = (
            f"{counted(len(train), 'training text')} with {counted(count, 'span')} ({by_label}) "
            f"and {counted(len(dev), 'dev text')} with {counted(dev_count, 'span')}."
        )
        widths = [s.end - s.start for e in train if e.words is not None for s in e.spans]
        if widths:
            most = int(np.quantile(widths, 0.99, method="higher"))
            line += f" Spans have up to {max(widths)} words, 99 % of them up to {most}."
        return line

    @classmethod
    def notes(cls, examples: Sequence[Any]) -> list[str]:
        return [*several_labels(examples), *examples[0].source.notes()]

    def decode(self, outputs: dict[str, Any], sequences: Any) -> list[dict[str, Any]]:
        """See `span_predictions`."""
        spans = spans_of_examples(
            outputs["logits"], sequences, threshold=self.found_above, flat=self.settings.flat
        )
        return span_predictions(spans, sequences, labels=self.labels, label_of=self.span_label)

    def tune_threshold(self, outputs: dict[str, Any], sequences: Any) -> None:
        """Sets `threshold` to the best one for `threshold_metric`, if none was given."""
        if self.tuned:
            threshold = self._tuned_threshold(outputs, sequences)
            self.update_settings(threshold=threshold)

    def _tuned_threshold(self, outputs, sequences):
        scores, correct, expected = [], [], 0
        spans_of_texts = spans_of_examples(outputs["logits"], sequences, flat=self.settings.flat)
        for example, spans in enumerate(spans_of_texts):
            true = {(s.start, s.end, self.span_label(s.label)) for s in sequences.spans[example]}
            expected += len(true)
            scores += [span.score for span in spans]
            correct += [(s.first, s.last + 1, self.labels[s.label]) in true for s in spans]
        correct = np.array(correct, bool)
        return best_threshold(
            scores, correct, expected=expected, metric=self.settings.threshold_metric
        )

    def official_metrics(
        self, predictions: Sequence[Any], examples: Sequence[Any]
    ) -> dict[str, Any]:
        """See `span_metrics`; `longer` counts expected spans of more than `max_span_length`.

        `calibration` is of the predicted spans (see there). Labels of the examples that the task
        does not have are among theirs, after its own.
        """
        expected, predicted, labels = _scored(self, predictions, examples)
        metrics = span_metrics(expected, predicted, labels=labels)
        longer = sum(
            end - start > self.settings.max_span_length for e in expected for start, end, _ in e
        )
        scores = [span["score"] for prediction in predictions for span in prediction["spans"]]
        correct = [
            (*span["words"], span["label"]) in true
            for true, prediction in zip(expected, predictions, strict=True)
            for span in prediction["spans"]
        ]
        return {**metrics, "longer": longer, "calibration": calibration(scores, correct)}

    def summed_metrics(self, predictions: Sequence[Any], examples: Sequence[Any]) -> SummedMetrics:
        expected, predicted, labels = _scored(self, predictions, examples)
        return summed_spans(expected, predicted, labels=labels)

    def answer_of(self, prediction: dict[str, Any]) -> Any:
        return [[span["start"], span["end"], span["label"]] for span in prediction["spans"]]

    @staticmethod
    def describe_metrics(metrics: dict[str, Any]) -> str:
        return (
            f"F1 {percent(metrics['f1'])} (precision {percent(metrics['precision'])}, recall "
            f"{percent(metrics['recall'])}), F1 without labels "
            f"{percent(metrics['identification_f1'])}"
        )

    def labels_of(self, example: Any) -> Sequence[str]:
        return [self.span_label(s.label) for s in example.spans or () if s.label is not None]

    errors = staticmethod(span_errors)
    describe_error = staticmethod(describe_span_error)

    def span_label(self, label: Any) -> Any:
        """The name of an expected span's label in this task."""
        return ANY if self.settings.identify else label

    def label_number(self, example: Any, label: Any) -> int:
        """The number of a label in the logits: 0, "no span", for one that is not the task's."""
        label = self.span_label(label)
        self.check_label(label, example)
        return 1 + self.labels.index(label) if label in self.labels else 0

    def check_label(self, label: Any, example: Any) -> None:
        """Raises InputError for an expected span without a label."""
        if label is None:
            raise example.error(
                Naming(
                    "a span has no label. Add one, or find spans regardless of their labels with "
                    "{identify=True}."
                )
            )


def _scored(task, predictions, examples):
    """-> (the expected spans of each text, the predicted ones, all labels) of a task."""
    expected = []
    for prediction, example in zip(predictions, examples, strict=True):
        if "expected" not in prediction:
            raise example.error("the example has no spans to compare the prediction with.")
        expected.append(span_sets(prediction["expected"]))
        for _, _, label in expected[-1]:
            task.check_label(label, example)
    labels = [*task.labels, *sorted_labels(task.unknown_labels(examples))]
    return expected, [span_sets(prediction["spans"]) for prediction in predictions], labels


def _prior_bias(shape, dtype=None):
    """The bias of the logits with which a span has the probability `_PRIOR`."""
    odds = (1 - _PRIOR) / _PRIOR * (shape[0] - 1)
    return keras.ops.convert_to_tensor([math.log(odds)] + [0.0] * (shape[0] - 1), dtype)


def span_representation_of(encoder, *, representation, max_words):
    """The `SpanRepresentation` of a head on an encoder."""
    return SpanRepresentation(
        representation=representation,
        units=UNITS,
        max_words=max_words,
        num_widths=max_words,
        dtype=encoder.layer_policy,
        name="spans",
    )


def several_labels(examples):
    """A line for the user if spans of the same words have several labels."""
    repeated = []
    for example in examples:
        positions = Counter(span[:2] for span in set(example.spans or ()))
        repeated += [example] * sum(count > 1 for count in positions.values())
    if not repeated:
        return []
    return [
        f"{first_location(repeated)}: "
        f"{counted(len(repeated), 'span')} with several labels. Only the first one is learned."
    ]
