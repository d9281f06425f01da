"""A label for each span of words, or none: named entities that may lie in one another."""

import math
from collections import Counter

import keras
import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed, percent, quoted
from keras_bert.heads.classification import check_labels, labelled_head
from keras_bert.heads.span_representation import SpanRepresentation, WordMeans
from keras_bert.tasks.classification.labels import sorted_labels
from keras_bert.tasks.metrics import calibration
from keras_bert.tasks.span_classification import decode
from keras_bert.tasks.span_classification.decode import best_threshold
from keras_bert.tasks.span_classification.metrics import span_metrics
from keras_bert.tasks.span_classification.settings import (
    LAST,
    MAX_SPAN_LENGTH,
    MEAN,
    SpanClassifierSettings,
)
from keras_bert.tasks.task import Task

# Width of the hidden layers over spans, as in Lee et al. 2017 and Yu et al. 2020.
UNITS = 150
# What spans are called where their labels do not matter.
ANY = "span"
# How many spans are taken to be one before anything is learned (Lin et al. 2017, section 3.3): else
# the first epoch is spent on learning that hardly any is.
_RARE = 0.01


class WordsTask(Task):
    """A task whose head reads a vector for each word, made of the vectors of its pieces.

    A constructor calls `set_aggregation` before it calls `super().__init__`.
    """

    def set_aggregation(self, aggregation):
        """Sets `aggregation`, None being what suits the encoder, and makes `word_means`."""
        self.aggregation = aggregation or (LAST if self.encoder.config.is_causal else MEAN)
        self.word_means = WordMeans(
            last=self.aggregation == LAST, dtype=self.encoder.layer_policy, name="word_means"
        )

    @classmethod
    def settings_in_config(cls, values):
        return {"aggregation": MEAN}  # in folders from before there was a choice

    @staticmethod
    def head_inputs():
        """The symbolic inputs (B, W): the places of the words' tokens."""
        names = ("word_starts", "word_ends")
        return {name: keras.Input((None,), dtype="int32", name=name) for name in names}


@keras.saving.register_keras_serializable(package="keras_bert")
class SpanClassifier(WordsTask):
    """An encoder with a classifier over all spans of up to L words.

    Takes the encoder's dictionary with `word_starts` and `word_ends` (B, W) int32: the place of
    each word's first token, and the one after its last (0 and 0 for none). A word is the mean of
    its tokens (over a causal encoder its last token, see `aggregation`). Gives `logits` (B, W,
    L, C): from each word the spans of 1 to L words, and for each "no span" and the labels. B is the
    batch, W the words in a row, C one more than the labels. Labels are `logits` (B, W, L) numbers;
    sample weights of the same name and shape are 1 at spans that count. (Lee et al. 2017 and Yu et
    al. 2020 classify spans so.)

    Args:
        encoder: an `Encoder`, such as a `BertEncoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None (then the task takes ids only).
        labels: the names of the labels of spans, each once; at least one.
        max_span_length: L.
        span_representation: "mean", "biaffine" or "attention" (see `SpanRepresentation`).
        identify: leave the labels out: a span is one or is not, and is called "span".
        threshold: the probability from which on a span is found. None is 0.5 until
            `tune_threshold` sets it.
        threshold_metric: what it is tuned for: "f1", or "precision" for F0.5.
        aggregation: a word's vector: "mean", that of its pieces, or "last", its last piece. None
            is "mean", or "last" over a causal encoder.
        flat: of spans that overlap, only the likeliest is found.
        dropout: the share of the words' vectors that is dropped in training. None is the config's
            `classifier_dropout`, or where that is None its `hidden_dropout_prob`.
        max_length: tokens in a row, [CLS] and [SEP] counted in; a longer text has several rows that
            overlap. None is 128, or all positions of an encoder that has fewer.

    Attributes: the settings by these names, and the layers `spans` (the `SpanRepresentation`),
    `classifier` (a `Dense`), `dropout` and `word_means`.

    Raises:
        ValueError: the labels are none or not unique, or the representation is no known one.
    """

    KIND = "span-classifier"
    HEADS = ("spans", "classifier")
    MIN_LABELS = 1
    SETTINGS = SpanClassifierSettings
    METRIC = "f1"
    SHOWN = {"loss": "loss", "f1": "F1"}

    def __init__(
        self,
        encoder,
        tokenizer=None,
        *,
        labels,
        max_span_length=MAX_SPAN_LENGTH,
        span_representation="mean",
        identify=False,
        threshold=None,
        threshold_metric="f1",
        aggregation=None,
        flat=False,
        dropout=None,
        max_length=None,
        name="span_classifier",
        **between,
    ):
        self.set_encoder(encoder, max_length=max_length, **between)
        self.labels = (ANY,) if identify else check_labels(labels, least=self.MIN_LABELS)
        self.max_span_length = max_span_length
        self.span_representation = span_representation
        self.identify = identify
        self.threshold = threshold
        self.tuned = ("threshold",) if threshold is None else ()
        self.threshold_metric = threshold_metric
        self.flat = flat
        self.set_aggregation(aggregation)
        self.spans = span_representation_of(
            encoder, representation=span_representation, max_words=max_span_length
        )
        self.dropout, self.classifier = labelled_head(
            encoder, 1 + len(self.labels), dropout=dropout
        )
        self.classifier.bias_initializer = _few_are_spans
        super().__init__(tokenizer, name=name)

    @property
    def found_above(self):
        """The probability over which a span is found: more likely than not, where none is tuned."""
        return 0.5 if self.threshold is None else self.threshold

    def build_head(self, encoded, inputs):
        hidden = encoded["sequence_output"]
        words = self.word_means(hidden, inputs["word_starts"], inputs["word_ends"])  # (B, W, D)
        return {"logits": self.classifier(self.spans(self.dropout(words)))}  # (B, W, L, C)

    def default_losses(self):
        """Cross-entropy in nats, the mean over the spans that count."""
        return {
            "logits": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            )
        }

    @classmethod
    def read(cls, data, *, inferred_arguments=None, schema=None, labelled=True, **columns):
        """`SpannedWords` of JSON Lines, CoNLL or plain lines, or of a sequence.

        A sequence holds strings, lists of words, or dictionaries like the objects of JSON Lines.
        Tags that break their scheme are counted, or an error with `invalid_tags="error"`.
        """
        from keras_bert.readers.spans import SpanSource

        if isinstance(data, str) or hasattr(data, "__fspath__"):
            columns["schema"] = schema
        return SpanSource(data, need_spans=labelled, **columns)

    @classmethod
    def infer_arguments(cls, examples):
        """The labels that occur; those of spans without labels are called "span"."""
        spans = [span for example in examples for span in example.spans]
        if not spans:
            raise InputError(f"{examples[0].source.name} holds no span to learn from.")
        labels = {span.label for span in spans if span.label is not None}
        return {"labels": sorted_labels(labels or {ANY})}

    @classmethod
    def labels_with(cls, inferred_arguments, *, identify=False, **settings):
        return (ANY,) if identify else super().labels_with(inferred_arguments, **settings)

    @classmethod
    def summary(cls, train, dev, inferred_arguments):
        count, dev_count = (sum(len(e.spans) for e in examples) for examples in (train, dev))
        counts = Counter(span.label for example in train for span in example.spans)
        each = listed(f'"{label}": {counts[label]:,}' for label in inferred_arguments["labels"])
        line = (
            f"{counted(len(train), 'training text')} with {counted(count, 'span')} ({each}) and "
            f"{counted(len(dev), 'dev text')} with {counted(dev_count, 'span')}."
        )
        widths = [s.end - s.start for e in train if e.words is not None for s in e.spans]
        if widths:
            most = int(np.quantile(widths, 0.99, method="higher"))
            line += f" Spans have up to {max(widths)} words, 99 % of them up to {most}."
        return line

    @classmethod
    def notes(cls, examples):
        return [*several_labels(examples), *examples[0].source.notes()]

    def features(self, examples, *, max_length=None, labelled=False):
        from keras_bert.tasks.span_classification.features import SpanRows

        return SpanRows(
            examples,
            tokenizer=self.tokenizer,
            input_names=self.encoder.input_names,
            max_length=max_length or self.max_length,
            max_span_length=self.max_span_length,
            label_number=self._label_number if labelled else None,
        )

    def decode(self, outputs, sequences):
        """`text`, `words`, `spans` with their places, labels and scores, and `expected`.

        See `span_predictions`.
        """
        found = decode.spans_of_examples(
            outputs["logits"], sequences, threshold=self.found_above, flat=self.flat
        )
        return decode.span_predictions(
            found, sequences, labels=self.labels, label_of=self._name_here
        )

    def tune_threshold(self, outputs, sequences):
        """Sets `threshold` to the best one for `threshold_metric`, where none was given."""
        if self.tuned:
            self.threshold = self._tuned_threshold(outputs, sequences)

    def _tuned_threshold(self, outputs, sequences):
        scores, correct, expected = [], [], 0
        found = decode.spans_of_examples(outputs["logits"], sequences, flat=self.flat)
        for example, spans in enumerate(found):
            truth = {(s.start, s.end, self._name_here(s.label)) for s in sequences.spans[example]}
            expected += len(truth)
            scores += [span.score for span in spans]
            correct += [(s.first, s.last + 1, self.labels[s.label]) in truth for s in spans]
        correct = np.array(correct, bool)
        return best_threshold(scores, correct, expected=expected, metric=self.threshold_metric)

    def official_metrics(self, predictions, examples):
        """See `span_metrics`; `longer` counts expected spans of more than `max_span_length`.

        `calibration` is of the spans that are found (see there).
        """
        expected = []
        for prediction, example in zip(predictions, examples, strict=True):
            if "expected" not in prediction:
                raise example.error("no spans to compare the answer with.")
            expected.append(decode.span_sets(prediction["expected"]))
            for _, _, label in expected[-1]:
                self._check(label, example)
        found = [decode.span_sets(prediction["spans"]) for prediction in predictions]
        metrics = span_metrics(expected, found, labels=self.labels)
        longer = sum(end - start > self.max_span_length for e in expected for start, end, _ in e)
        scores = [span["score"] for prediction in predictions for span in prediction["spans"]]
        right = [
            (*span["words"], span["label"]) in truth
            for truth, prediction in zip(expected, predictions, strict=True)
            for span in prediction["spans"]
        ]
        return {**metrics, "longer": longer, "calibration": calibration(scores, right)}

    @staticmethod
    def describe_metrics(metrics):
        return (
            f"F1 {percent(metrics['f1'])} (precision {percent(metrics['precision'])}, recall "
            f"{percent(metrics['recall'])}), F1 without labels "
            f"{percent(metrics['identification_f1'])}"
        )

    def errors(self, predictions, examples):
        return decode.span_errors(predictions, examples)

    def signatures(self, *, max_length=None):
        from keras_bert.tasks.span_classification.signatures import span_signatures

        return span_signatures(self, max_length=max_length or self.max_length)

    def _name_here(self, label):
        """What the label of an expected span is called here."""
        return ANY if self.identify else label

    def _label_number(self, example, label):
        """The number of a label in the logits, where 0 is "no span"."""
        label = self._name_here(label)
        self._check(label, example)
        return 1 + self.labels.index(label)

    def _check(self, label, example):
        if label is None:
            raise example.error(
                "a span without a label; give it one, or find spans whatever their labels with "
                "`identify=True`."
            )
        if label not in self.labels:
            raise example.error(
                f'the label "{label}" is none of those that the model is trained with '
                f"({quoted(self.labels)})."
            )


def _few_are_spans(shape, dtype=None):
    """The bias of the logits in which a span is one with a probability of `_RARE`."""
    odds = (1 - _RARE) / _RARE * (shape[0] - 1)
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
    """A line for the user where spans of the same words have several labels."""
    found = []
    for example in examples:
        positions = Counter(span[:2] for span in set(example.spans or ()))
        found += [example] * sum(count > 1 for count in positions.values())
    if not found:
        return []
    first = found[0]
    return [
        f"{first.source.name}, line {first.line}{' and later' if len(found) > 1 else ''}: "
        f"{counted(len(found), 'span')} with several labels. One is found: the first is learned."
    ]
