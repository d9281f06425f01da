"""The relation of two given spans of a text."""

from collections import Counter

import keras
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed, percent, quoted
from keras_bert.heads.classification import check_labels, labelled_head
from keras_bert.readers.labels import sorted_labels
from keras_bert.tasks.classification.labels import label_numbers
from keras_bert.tasks.metrics import calibration
from keras_bert.tasks.settings import MAX_SPAN_LENGTH, RelationClassifierSettings
from keras_bert.tasks.span_classification.decode import (
    describe_pair_error,
    pair_errors,
    pair_predictions,
)
from keras_bert.tasks.span_classification.metrics import relation_metrics
from keras_bert.tasks.span_classification.span_classifier import WordsTask, span_representation_of

# What data sets call pairs without a relation: TACRED and others, NYT, SemEval 2010.
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
        encoder: an `Encoder`, such as a `BertEncoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None (then the task takes ids only).
        labels: the names of the labels in the order of the logits, each once; at least two.
        span_representation: "mean", "biaffine", "attention" or
            "self-attention" (see `SpanRepresentation`). Spans may
            have any length.
        aggregation: see `SpanClassifier`.
        null_label: the label of pairs without a relation, which F1 leaves out. None is one of the
            usual names among the labels, such as "no_relation", if there is one.
        dropout: the dropout rate of the words' vectors. None is the config's `classifier_dropout`,
            or its `hidden_dropout_prob` if that is None.
        max_length: maximum sequence length, including [CLS] and [SEP]; of a longer text the part
            around the two spans is read, and if they are too far apart, the prediction has no
            label. None is 128, or all positions of an encoder that has fewer.

    Attributes: the settings by these names, and the layers `spans` (the `SpanRepresentation`),
    `classifier` (a `Dense`), `dropout` and `word_means`.

    Raises:
        ValueError: the labels are fewer than two or not unique, the null label is not one of them,
            or the representation is unknown.
    """

    TASK_TYPE = "relation-classifier"
    HEAD_INPUTS = {**WordsTask.HEAD_INPUTS, "span_firsts": (2,), "span_lasts": (2,)}
    HEADS = ("spans", "classifier")
    MIN_LABELS = 2
    SETTINGS = RelationClassifierSettings
    METRIC = "f1"
    SHOWN = {"loss": "loss", "accuracy": "accuracy", "f1": "F1"}

    def __init__(
        self,
        encoder,
        tokenizer=None,
        *,
        labels,
        span_representation="mean",
        aggregation=None,
        null_label=None,
        dropout=None,
        max_length=None,
        name="relation_classifier",
        **between,
    ):
        self.set_encoder(encoder, max_length=max_length, **between)
        self.labels = check_labels(labels, least=self.MIN_LABELS)
        self.span_representation = span_representation
        self.null_label = _null_label(null_label, self.labels)
        self.set_aggregation(aggregation)
        self.spans = span_representation_of(
            encoder, representation=span_representation, max_words=MAX_SPAN_LENGTH
        )
        self.dropout, self.classifier = labelled_head(encoder, len(self.labels), dropout=dropout)
        super().__init__(tokenizer, name=name)

    def build_head(self, encoded, inputs):
        words = self.words(encoded, inputs)
        spans = self.spans(words, inputs["span_firsts"], inputs["span_lasts"])
        head, tail = spans[:, 0], spans[:, 1]  # (B, R) each
        pair = ops.concatenate([head, tail, head * tail], axis=-1)
        return {"logits": self.classifier(pair)}  # (B, C)

    def default_metrics(self):
        """`accuracy`, the fraction of pairs whose label has the highest logit."""
        return {"logits": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    @classmethod
    def read(cls, data, *, inferred_arguments=None, schema=None, labelled=True, **columns):
        """`SpanPair`s of JSON Lines, of `tfds:…`, or of a sequence of dictionaries like objects."""
        from keras_bert.readers.spans import SpanPairSource

        labels = (inferred_arguments or {}).get("labels")
        return SpanPairSource(data, need_labels=labelled, labels=labels, schema=schema, **columns)

    @classmethod
    def infer_arguments(cls, examples):
        """The labels that occur."""
        labels = sorted_labels({example.label for example in examples})
        if len(labels) < cls.MIN_LABELS:
            raise InputError(
                f'{examples[0].source.name} has only one label ("{labels[0]}"). A relation '
                "classifier needs two or more, of which one may mean that there is no relation."
            )
        return {"labels": labels}

    @classmethod
    def summary(cls, train, dev, inferred_arguments):
        counts = Counter(example.label for example in train)
        each = listed(f'"{label}": {counts[label]:,}' for label in inferred_arguments["labels"])
        return (
            f"{counted(len(train), 'training pair')} ({each}) and {counted(len(dev), 'dev pair')}."
        )

    def features(self, examples, *, max_length=None, labelled=False):
        from keras_bert.tasks.span_classification.features import PairSequences

        return PairSequences(
            examples,
            **self.framing(max_length),
            labels=label_numbers(examples, self.labels) if labelled else None,
        )

    def decode(self, outputs, sequences):
        """See `pair_predictions`."""
        return pair_predictions(outputs["logits"], sequences, labels=self.labels)

    def official_metrics(self, predictions, examples):
        """See `relation_metrics`; also `calibration`.

        `too_far` counts pairs that are too far apart for a sequence, which are wrong. Labels of the
        examples that the task does not have are among theirs, after its own.
        """
        labels = [*self.labels, *sorted_labels(self.unknown_labels(examples))]
        expected = [example.label for example in examples]
        found = [prediction["label"] for prediction in predictions]
        metrics = relation_metrics(expected, found, labels=labels, null_label=self.null_label)
        correct = [a == b for a, b in zip(expected, found, strict=True)]
        scores = [prediction["score"] for prediction in predictions]
        too_far = sum(label is None for label in found)
        return {**metrics, "too_far": too_far, "calibration": calibration(scores, correct)}

    @staticmethod
    def describe_metrics(metrics):
        too_far = metrics.get("too_far")
        return (
            f"F1 {percent(metrics['f1'])} (precision {percent(metrics['precision'])}, recall "
            f"{percent(metrics['recall'])}), accuracy {percent(metrics['accuracy'])}"
            + (f"; {counted(too_far, 'pair')} too far apart, counted as wrong" if too_far else "")
        )

    def labels_of(self, example):
        return (example.label,)

    errors = staticmethod(pair_errors)
    describe_error = staticmethod(describe_pair_error)

    def signatures(self, *, max_length=None):
        from keras_bert.tasks.span_classification.signatures import relation_signatures

        return relation_signatures(self, max_length=max_length or self.max_length)


def _null_label(given, labels):
    """The label that means "no relation", or None."""
    if given is not None and given not in labels:
        raise InputError.naming(
            '{null_label} must be one of the labels ({}). Received: "{}".', quoted(labels), given
        )
    return given or next((label for label in _NULL_LABELS if label in labels), None)
