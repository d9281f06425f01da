"""Labels for a text, or for two (Devlin et al. 2018, section 4.1)."""

from collections import Counter

import keras
import numpy as np
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed, percent
from keras_bert.heads.labelled import check_labels, labelled_head
from keras_bert.readers.labels import one_label, several_labels, warnings
from keras_bert.readers.texts import PAIR, TEXT, open_labelled_texts
from keras_bert.tasks.classification.decode import (
    classifier_predictions,
    label_errors,
    multi_label_errors,
    multi_label_predictions,
)
from keras_bert.tasks.classification.labels import (
    decision_weights,
    label_matrix,
    label_numbers,
    parse_class_weights,
    sequence_weights,
    sorted_labels,
)
from keras_bert.tasks.classification.pooled_task import PooledTask
from keras_bert.tasks.classification.settings import (
    NO_WEIGHTS,
    ClassifierSettings,
    PairClassifierSettings,
)
from keras_bert.tasks.settings import MAX_LENGTH


@keras.saving.register_keras_serializable(package="keras_bert")
class DecisionCrossentropy(keras.losses.Loss):
    """Binary cross-entropy of logits in nats, the mean over all decisions of a batch.

    Called with labels (B, C) of 0 and 1, logits (B, C) and sample weights (B, C). Keras's own takes
    the mean over C before it sees weights, and so has room for one a row.
    """

    def __init__(self, name="decision_crossentropy", **options):
        super().__init__(name=name, **options)

    def call(self, y_true, y_pred):
        return ops.binary_crossentropy(y_true, y_pred, from_logits=True)  # (B, C)


@keras.saving.register_keras_serializable(package="keras_bert")
class Classifier(PooledTask):
    """An encoder with a linear layer over a vector of the whole text, one logit a label.

    Takes the encoder's dictionary and gives `logits` (B, C): B batch, C labels. Where the vector is
    the pooled output, the head is that of Hugging Face's BertForSequenceClassification: dropout,
    then the layer. In a RoBERTa folder the pooler is the `classifier.dense` of
    RobertaForSequenceClassification, which drops some of its input too when it is trained there.
    `transformers` has no class that reads the mean of the tokens, so with another `pooling` the
    folder is one of a bare encoder to it, and the head lies under names of ours.

    Args:
        encoder: an `Encoder`, such as a `BertEncoder`; with a pooler where [CLS] is read.
        tokenizer: the `Tokenizer` of its vocabulary, or None (then the task takes ids only).
        labels: the names of the labels in the order of the logits, each once; at least two.
        multi_label: a text may have any number of the labels. Probabilities are then of each label
            for itself (a sigmoid, not a softmax), and labels in training float (B, C) of 0 and 1.
        threshold: with `multi_label`, the probability above which a label is given.
        pooling: what the head reads: "cls", "mean", "both", "last", "max" or "last+max+mean" (see
            `keras_bert.heads.pooling`). None is "cls", "mean" over an encoder without a pooler,
            whose [CLS] nothing trained, or "last" over a causal encoder, whose [CLS] sees no text.
        class_weights: what a training row weighs: "none", "balanced", or "label=weight,…". With
            `multi_label`, what each label weighs in it (see `decision_weights`).
        metric: the metric of `official_metrics` that a run keeps the best epoch by; None is the
            accuracy, or with `multi_label` the micro F1.
        dropout: the share of what the head reads that is dropped in training. None is the config's
            `head_dropout`.
        max_length: tokens that a row is cut to, special tokens counted in, in training and after.
            None is 128, or all positions of an encoder that has fewer.
        **between: `layer_mix` and `bilstm`, see `Task`.

    Attributes: `labels` (a tuple), `multi_label`, `threshold`, `pooling`, `max_length`,
    `classifier` (the `Dense`), `dropout` (the `Dropout`).

    Raises:
        ValueError: the encoder has no pooler and one is read, or the labels are fewer than two or
            not unique.
        InputError: the class weights cannot be, the figure is none of such labels, or [CLS] of a
            causal encoder is to be read.
    """

    KIND = "classifier"
    HEADS = ("classifier",)
    MIN_LABELS = 2
    SETTINGS = ClassifierSettings
    METRIC = "accuracy"
    SHOWN = {"loss": "loss", "accuracy": "accuracy"}
    TEXTS = TEXT

    def __init__(
        self,
        encoder,
        tokenizer=None,
        *,
        labels,
        multi_label=False,
        threshold=0.5,
        pooling=None,
        class_weights=NO_WEIGHTS,
        metric=None,
        dropout=None,
        max_length=None,
        name="classifier",
        **between,
    ):
        self.set_encoder(encoder, **between)
        self.labels = check_labels(labels, least=self.MIN_LABELS)
        self.multi_label = multi_label
        self.threshold = threshold
        self.set_pooling(pooling)
        self._class_weights = parse_class_weights(class_weights, self.labels)
        self.METRIC = metric or ("micro_f1" if multi_label else "accuracy")
        self.SHOWN = {"loss": "loss", "accuracy": "accuracy"}
        if self.METRIC != "accuracy":
            self.SHOWN[self.METRIC] = self.METRIC.replace("_", " ")
        if "f1" in self.METRIC.split("_and_") and len(self.labels) != 2:
            raise InputError(
                f"`metric` is {metric}, which is that of two labels; here are {len(self.labels)}. "
                "Give macro_f1."
            )
        self.max_length = max_length or encoder.default_max_length(MAX_LENGTH)
        self.dropout, self.classifier = labelled_head(encoder, len(self.labels), dropout=dropout)
        super().__init__(tokenizer, name=name)

    def build_head(self, encoded, inputs):
        vector = self.dropout(self.vector(encoded, inputs.get("input_mask")))  # (B, D), or (B, n D)
        return {"logits": self.classifier(vector)}  # (B, C)

    @classmethod
    def settings_in_config(cls, values):
        several = values.get("problem_type") == "multi_label_classification"
        return {**super().settings_in_config(values), "multi_label": several}

    def config_keys(self):
        return {"problem_type": "multi_label_classification"} if self.multi_label else {}

    @property
    def inferred_arguments(self):
        several = {"multi_label": True} if self.multi_label else {}
        return {**super().inferred_arguments, **several}

    # Training.

    def default_losses(self):
        """Cross-entropy in nats, the mean over the rows of a batch (and of several labels)."""
        if self.multi_label and self._class_weights != NO_WEIGHTS:
            return {"logits": DecisionCrossentropy()}
        if self.multi_label:
            return {"logits": keras.losses.BinaryCrossentropy(from_logits=True)}
        return {"logits": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}

    def default_metrics(self):
        """`accuracy`, the share of rows whose label has the highest logit.

        None where several labels may be right, or where rows have weights, which Keras would
        apply: `official_metrics` has the official figures.
        """
        if self.multi_label or self._class_weights != NO_WEIGHTS:
            return {}
        return {"logits": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    # Labelled files.

    @classmethod
    def read(
        cls,
        data,
        *,
        inferred_arguments=None,
        schema=None,
        labelled=True,
        multi_label=False,
        **columns,
    ):
        """`LabelledText` of a TSV or JSON Lines file, of `tfds:…`, or of a sequence.

        A sequence is of (text, label), or of pairs of texts of (text, text, label).
        """
        inferred_arguments = inferred_arguments or {}
        several = multi_label or inferred_arguments.get("multi_label", False)
        return open_labelled_texts(
            data,
            texts=cls.TEXTS,
            form=several_labels if several else one_label,
            labels=inferred_arguments.get("labels"),
            schema=schema,
            need_labels=labelled,
            **columns,
        )

    @classmethod
    def infer_arguments(cls, examples):
        """The labels that occur."""
        labels = sorted_labels({label for example in examples for label in _labels_of(example)})
        if len(labels) < cls.MIN_LABELS:
            only = f'one label only ("{labels[0]}")' if labels else "no labels"
            raise InputError(
                f"{examples[0].source.name} has {only}; a classifier needs two or more."
            )
        return {"labels": labels}

    @classmethod
    def summary(cls, train, dev, inferred_arguments):
        what = "text" if len(cls.TEXTS) == 1 else "pair"
        counts = Counter(label for example in train for label in _labels_of(example))
        each = listed(f'"{label}": {counts[label]:,}' for label in inferred_arguments["labels"])
        dev_counts = Counter(label for example in dev for label in _labels_of(example))
        most = max(inferred_arguments["labels"], key=lambda label: dev_counts[label])
        return (
            f"{counted(len(train), f'training {what}')} ({each}) and "
            f"{counted(len(dev), f'dev {what}')}, of which {percent(dev_counts[most] / len(dev))} "
            f'have the label "{most}".'
        )

    @classmethod
    def notes(cls, examples):
        return warnings(examples)

    def features(self, examples, *, max_length=None, labelled=False):
        from keras_bert.inputs.tokenized_examples import TokenizedExamples

        labels, weights = {}, {}
        if labelled:
            find, weigh = (
                (label_matrix, decision_weights)
                if self.multi_label
                else (label_numbers, sequence_weights)
            )
            labels = {"logits": find(examples, self.labels)}
            if self._class_weights != NO_WEIGHTS:
                weights = {"logits": weigh(labels["logits"], self._class_weights)}
        return TokenizedExamples.of_texts(
            examples,
            columns_of_texts(examples, len(self.TEXTS)),
            labels=labels,
            weights=weights,
            tokenizer=self.tokenizer,
            input_names=self.encoder.input_names,
            max_length=max_length or self.max_length,
        )

    def decode(self, outputs, sequences):
        """`text` (or `text_a`, `text_b`), `label`, `score`, `expected`, and `probabilities`.

        `expected` is there where it is known. With `multi_label` there are `labels`, a list.
        """
        if self.multi_label:
            return multi_label_predictions(
                outputs["logits"], sequences.examples, labels=self.labels, threshold=self.threshold
            )
        return classifier_predictions(outputs["logits"], sequences.examples, labels=self.labels)

    def official_metrics(self, predictions, examples):
        """See `classification_metrics` and `multi_label_metrics`."""
        from keras_bert.tasks.classification.metrics import (
            classification_metrics,
            multi_label_metrics,
        )

        probabilities = [list(prediction["probabilities"].values()) for prediction in predictions]
        if self.multi_label:
            said = [
                [label in prediction["labels"] for label in self.labels]
                for prediction in predictions
            ]
            return multi_label_metrics(
                label_matrix(examples, self.labels) > 0,
                np.array(said, bool),
                probabilities,
                labels=self.labels,
            )
        numbers = label_numbers(examples, self.labels)
        return classification_metrics(numbers, probabilities, labels=self.labels)

    def errors(self, predictions, examples):
        """How sure the wrong answers were, with their lines."""
        find = multi_label_errors if self.multi_label else label_errors
        return find(predictions, examples)

    @staticmethod
    def describe_metrics(metrics):
        if "subset_accuracy" in metrics:
            return (
                f"all labels right {percent(metrics['subset_accuracy'])}, micro F1 "
                f"{percent(metrics['micro_f1'])}, macro F1 {percent(metrics['macro_f1'])}"
            )
        return (
            f"accuracy {percent(metrics['accuracy'])}, macro F1 {percent(metrics['macro_f1'])}, "
            f"Matthews {metrics['matthews']:.3f}"
        )

    def signatures(self, *, max_length=None):
        from keras_bert.tasks.classification.signatures import classifier_signatures

        return classifier_signatures(self, max_length=max_length or self.max_length)

    def get_config(self):
        weights = self._class_weights
        if not isinstance(weights, str):
            pairs = zip(self.labels, weights, strict=True)
            weights = ",".join(f"{label}={weight}" for label, weight in pairs)
        return {
            **super().get_config(),
            "dropout": self.dropout.rate,
            "class_weights": weights,
            "metric": self.METRIC,
        }


def columns_of_texts(examples, count):
    """The texts of examples that have so many each, a list a place."""
    return [[example.texts[position] for example in examples] for position in range(count)]


def _labels_of(example):
    """The labels of an example, one or several, as a tuple."""
    return example.label if isinstance(example.label, tuple) else (example.label,)


@keras.saving.register_keras_serializable(package="keras_bert")
class PairClassifier(Classifier):
    """A `Classifier` of rows `[CLS] a [SEP] b [SEP]`; its arguments and its head are that one's."""

    KIND = "pair-classifier"
    SETTINGS = PairClassifierSettings
    TEXTS = PAIR

    def __init__(self, encoder, tokenizer=None, *, name="pair_classifier", **options):
        super().__init__(encoder, tokenizer, name=name, **options)
