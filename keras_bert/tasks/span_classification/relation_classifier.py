"""How two marked spans of a text are related."""

from collections import Counter

import keras
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed, percent, quoted
from keras_bert.heads.labelled import check_labels, labelled_head
from keras_bert.tasks.classification.labels import label_numbers, sorted_labels
from keras_bert.tasks.metrics import calibration
from keras_bert.tasks.settings import MAX_LENGTH
from keras_bert.tasks.span_classification import decode
from keras_bert.tasks.span_classification.metrics import relation_metrics
from keras_bert.tasks.span_classification.settings import (
    MAX_SPAN_LENGTH,
    RelationClassifierSettings,
)
from keras_bert.tasks.span_classification.span_classifier import (
    WordsTask,
    span_representation_of,
)

# What data sets call pairs without a relation: TACRED and others, NYT, SemEval 2010.
_NULL_LABELS = ("no_relation", "NA", "none", "None", "NONE", "Other")


@keras.saving.register_keras_serializable(package="keras_bert")
class RelationClassifier(WordsTask):
    """An encoder with a classifier over pairs of spans, the head and the tail of a relation.

    Takes the encoder's dictionary with `word_starts` and `word_ends` (B, W), as a `SpanClassifier`
    does, and `span_firsts` and `span_lasts` (B, 2) int32: the first and the last word of head and
    tail. Gives `logits` (B, C), of a linear layer over [h; t; h ∘ t], where h and t are the vectors
    of the two (what Lee et al. 2017, section 4, put into a hidden layer first). B is the batch, W
    the words in a row, C the labels.

    Args:
        encoder: an `Encoder`, such as a `BertEncoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None (then the task takes ids only).
        labels: the names of the labels in the order of the logits, each once; at least two.
        span_representation: "mean", "biaffine" or "attention" (see `SpanRepresentation`). Spans may
            have any length.
        aggregation: see `SpanClassifier`.
        null_label: the label of pairs without a relation, which F1 leaves out. None is one of the
            usual names among the labels, such as "no_relation", or none.
        dropout: the share of the words' vectors that is dropped in training. None is the config's
            `classifier_dropout`, or where that is None its `hidden_dropout_prob`.
        max_length: tokens in a row, [CLS] and [SEP] counted in; of a longer text the part around
            the two spans is read, and where they are too far apart for a row, the answer has no
            label. None is 128, or all positions of an encoder that has fewer.

    Attributes: the settings by these names, and the layers `spans` (the `SpanRepresentation`),
    `classifier` (a `Dense`), `dropout` and `word_means`.

    Raises:
        ValueError: the labels are fewer than two or not unique, the null label is none of them, or
            the representation is no known one.
    """

    KIND = "relation-classifier"
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
        self.set_encoder(encoder, **between)
        self.labels = check_labels(labels, least=self.MIN_LABELS)
        self.span_representation = span_representation
        self.null_label = _null_label(null_label, self.labels)
        self.max_length = max_length or encoder.default_max_length(MAX_LENGTH)
        self.set_aggregation(aggregation)
        self.spans = span_representation_of(
            encoder, representation=span_representation, max_words=MAX_SPAN_LENGTH
        )
        self.dropout, self.classifier = labelled_head(encoder, len(self.labels), dropout=dropout)
        super().__init__(tokenizer, name=name)

    @classmethod
    def head_inputs(cls):
        pair = {
            name: keras.Input((2,), dtype="int32", name=name)
            for name in ("span_firsts", "span_lasts")
        }
        return super().head_inputs() | pair

    def build_head(self, encoded, inputs):
        hidden = encoded["sequence_output"]
        words = self.word_means(hidden, inputs["word_starts"], inputs["word_ends"])  # (B, W, D)
        spans = self.spans(self.dropout(words), inputs["span_firsts"], inputs["span_lasts"])
        head, tail = spans[:, 0], spans[:, 1]  # (B, R) each
        pair = ops.concatenate([head, tail, head * tail], axis=-1)
        return {"logits": self.classifier(pair)}  # (B, C)

    def default_losses(self):
        """Cross-entropy in nats, the mean over the rows that hold both spans."""
        return {
            "logits": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            )
        }

    def default_metrics(self):
        """`accuracy`, the share of rows whose label has the highest logit."""
        return {"logits": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    @classmethod
    def read(cls, data, *, inferred_arguments=None, schema=None, labelled=True, fields=None):
        """`SpanPair`s of JSON Lines, of `tfds:…`, or of a sequence of dictionaries like objects."""
        from keras_bert.readers.spans_pairs import open_span_pairs

        return open_span_pairs(data, need_labels=labelled, fields=fields)

    @classmethod
    def infer_arguments(cls, examples):
        """The labels that occur."""
        labels = sorted_labels({example.label for example in examples})
        if len(labels) < cls.MIN_LABELS:
            raise InputError(
                f'{examples[0].source.name} has one label only ("{labels[0]}"); relations are told '
                "apart from two or more, of which one may mean that there is none."
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
        from keras_bert.tasks.span_classification.features import PairRows

        return PairRows(
            examples,
            tokenizer=self.tokenizer,
            input_names=self.encoder.input_names,
            max_length=max_length or self.max_length,
            labels=label_numbers(examples, self.labels) if labelled else None,
        )

    def decode(self, outputs, sequences):
        """See `pair_predictions`."""
        return decode.pair_predictions(outputs["logits"], sequences, labels=self.labels)

    def official_metrics(self, predictions, examples):
        """See `relation_metrics`; also `calibration`.

        `too_far` counts pairs too far apart for a row, which are wrong.
        """
        label_numbers(examples, self.labels)  # names one that the model does not have
        expected = [example.label for example in examples]
        found = [prediction["label"] for prediction in predictions]
        metrics = relation_metrics(expected, found, labels=self.labels, null_label=self.null_label)
        right = [a == b for a, b in zip(expected, found, strict=True)]
        scores = [prediction["score"] for prediction in predictions]
        too_far = sum(label is None for label in found)
        return {**metrics, "too_far": too_far, "calibration": calibration(scores, right)}

    @staticmethod
    def describe_metrics(metrics):
        too_far = metrics.get("too_far")
        return (
            f"F1 {percent(metrics['f1'])} (precision {percent(metrics['precision'])}, recall "
            f"{percent(metrics['recall'])}), accuracy {percent(metrics['accuracy'])}"
            + (f"; {counted(too_far, 'pair')} too far apart, counted as wrong" if too_far else "")
        )

    def errors(self, predictions, examples):
        return decode.pair_errors(predictions, examples)

    def signatures(self, *, max_length=None):
        from keras_bert.tasks.span_classification.signatures import relation_signatures

        return relation_signatures(self, max_length=max_length or self.max_length)

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout.rate}


def _null_label(given, labels):
    """The label that means "no relation", None where there is none."""
    if given is not None and given not in labels:
        raise InputError(
            f'`null_label` is "{given}", which is none of the labels ({quoted(labels)}).'
        )
    return given or next((label for label in _NULL_LABELS if label in labels), None)
