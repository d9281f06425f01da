"""Which mentions in a document refer to the same (Lee et al. 2017; Joshi et al. 2019).

The metrics are MUC, B³ and CEAFφ4 of clusters of mentions, as the scorer of CoNLL-2012 counts them.
Each is a ratio of sums over all documents (Pradhan et al. 2014). A mention that is predicted and
not expected, or the reverse, is one more that is in no cluster of the other side.
"""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from scipy.optimize import linear_sum_assignment

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, percent
from keras_bert.heads.spans import ATTENTION, AntecedentLoss, AntecedentScores, DocumentWords
from keras_bert.layers import Tensor
from keras_bert.tasks.coreference import CoreferenceSettings
from keras_bert.tasks.coreference.decode import coreference_predictions
from keras_bert.tasks.exported_predictions import clusters_prediction
from keras_bert.tasks.metrics import worst_first
from keras_bert.tasks.span_classification.span_classifier import UNITS, span_representation_of
from keras_bert.tasks.summed_metrics import SummedMetrics, ratio
from keras_bert.tasks.task import Task


def cluster_sets(clusters):
    """The clusters of a prediction as sets of (first word, after the last word)."""
    return [{tuple(mention["words"]) for mention in cluster} for cluster in clusters]


def coreference_errors(predictions, examples):
    """The documents with wrong clusters, the worst first.

    Returns dictionaries of `line`, `text`, the `expected` and the `predicted` clusters that differ,
    as lists of the mentions' texts, and `score`, their number.
    """
    errors = []
    for prediction, example in zip(predictions, examples, strict=True):
        sides = [prediction["expected"], prediction["clusters"]]
        expected, predicted = map(cluster_sets, sides)
        missed, wrong = (
            [
                [m["text"] for m in c]
                for c, mentions in zip(side, sets, strict=True)
                if mentions not in other
            ]
            for side, sets, other in zip(
                sides, (expected, predicted), (predicted, expected), strict=True
            )
        )
        if missed or wrong:
            error = {"line": example.line, "text": prediction["text"]}
            error |= {"expected": missed, "predicted": wrong}
            errors.append({**error, "score": float(len(missed) + len(wrong))})
    return worst_first(errors)


def describe_coreference_error(error):
    """One of `coreference_errors` in words."""
    parts = [
        f"{heading} {', '.join(' = '.join(cluster) for cluster in error[key]) or 'nothing'}"
        for heading, key in (("true:", "expected"), ("predicted:", "predicted"))
    ]
    return f"line {error['line']}, {'; '.join(parts)}"


def _muc(common, expected, predicted):
    """Links (Vilain et al. 1995): a cluster of n mentions has n - 1."""
    correct = np.sum(np.maximum(common - 1, 0))
    return correct, np.sum(expected - 1), correct, np.sum(predicted - 1)


def _b_cubed(common, expected, predicted):
    """The mean over mentions of how much of their cluster is right (Bagga and Baldwin 1998)."""
    recall = np.sum(common**2 / expected[:, None])
    precision = np.sum(common**2 / predicted)
    return recall, np.sum(expected), precision, np.sum(predicted)


def _ceaf(common, expected, predicted):
    """Clusters matched one to one for the greatest sum of φ4, Dice's coefficient (Luo 2005)."""
    similarity = 2 * common / (expected[:, None] + predicted)
    matched = similarity[linear_sum_assignment(similarity, maximize=True)].sum()
    return matched, len(expected), matched, len(predicted)


def _mentions(common, expected, predicted):
    """Mentions with exactly the expected words."""
    count = np.sum(common)
    return count, np.sum(expected), count, np.sum(predicted)


_METRICS = {"muc": _muc, "b_cubed": _b_cubed, "ceaf": _ceaf, "mention": _mentions}
# The official score is the mean of these.
_OFFICIAL = ("muc", "b_cubed", "ceaf")


def coreference_metrics(expected, predicted):
    """The official metrics of documents, as JSON can hold them.

    Args:
        expected, predicted: for each document a list of clusters, each a set of mentions.

    Returns:
        `f1`, the mean of the F1 of MUC, B³ and CEAFφ4; `muc_f1`, `muc_precision`, `muc_recall`, and
        so on for `b_cubed`, `ceaf` and `mention` (mentions, whatever their cluster); `examples`
        (documents), `mentions` and `clusters` (expected). A ratio without cases is 0.
    """
    sums = {name: x.sum(axis=0) for name, x in _sums_of_documents(expected, predicted).items()}
    metrics = {name: float(value) for name, value in _metrics_of_sums(sums).items()}
    return {
        **metrics,
        "examples": len(expected),
        "mentions": sum(len(cluster) for clusters in expected for cluster in clusters),
        "clusters": sum(map(len, expected)),
    }


def summed_coreference(expected, predicted):
    """The `SummedMetrics` of `coreference_metrics`."""
    return SummedMetrics(parts=_sums_of_documents(expected, predicted), metrics=_metrics_of_sums)


def _sums_of_documents(expected, predicted):
    """{metric: float64 (N, 4)}: of each document what is right, expected, correct, predicted."""
    rows = {name: [] for name in _METRICS}
    for clusters, answers in zip(expected, predicted, strict=True):
        common = np.array(
            [[len(set(one) & set(other)) for other in answers] for one in clusters], np.float64
        ).reshape(len(clusters), len(answers))
        sizes = [np.array([len(c) for c in side], np.float64) for side in (clusters, answers)]
        for name, metric in _METRICS.items():
            rows[name].append(metric(common, *sizes))
    return {
        name: np.array(quotients, np.float64).reshape(-1, 4) for name, quotients in rows.items()
    }


def _metrics_of_sums(sums):
    """The metrics of {metric: sums over documents (..., 4)}, by name."""
    metrics = {}
    for name, quotients in sums.items():
        recalled, expected_count, correct, predicted_count = np.moveaxis(quotients, -1, 0)
        recall, precision = ratio(recalled, expected_count), ratio(correct, predicted_count)
        metrics[f"{name}_f1"] = ratio(2 * precision * recall, precision + recall)
        metrics[f"{name}_precision"], metrics[f"{name}_recall"] = precision, recall
    official = np.mean([metrics[f"{name}_f1"] for name in _OFFICIAL], axis=0)
    return {"f1": official, **metrics}


@keras.saving.register_keras_serializable(package="keras_bert")
class CoreferenceResolver(Task):
    """An encoder with scores of mentions and of their antecedents (Lee et al. 2017).

    Every span of up to L words is scored as a mention. Those with the highest scores are
    candidates, and each is linked to one of the candidates before it, or to none. Mentions that are
    linked are a cluster. A span is represented by its first and its last word, a weighted mean of
    its words and its width (`SpanRepresentation`, "attention"). As Joshi et al. (2019) do, a
    document that is longer than a sequence is read in several, which overlap, each word in the one
    where it has most context; mentions in all of them are compared.

    Takes the encoder's dictionary with an axis of a document's sequences, each input (B, n, S), and
    `word_starts`, `word_ends` and `word_segments` (B, W) int32: the tokens of each word, the end
    exclusive (0 and 0 for padding), and the number of its sequence. Returns `antecedents`
    (B, K, 2 + A) float32, K candidates with their A antecedents (see `AntecedentScores`). Labels
    are `antecedents` (B, W, L), numbers of clusters (see `AntecedentLoss`).

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`.
        **settings: see `CoreferenceSettings`. `max_span_length` is L, `max_antecedents` A.

    Attributes: `settings`, and the layers `word_means`, `spans`, `scores` (the `AntecedentScores`)
    and `dropout`.
    """

    TASK_TYPE = "coreference"
    READS_WORDS = True
    SEQUENCE_AXES = (None,)
    HEAD_READS = ("input_mask",)
    HEAD_INPUTS = dict.fromkeys(("word_starts", "word_ends", "word_segments"), (None,))
    HEADS = ("spans", "scores")
    SETTINGS = CoreferenceSettings
    FEATURES = "keras_bert.tasks.coreference.features:coreference_sequences"
    SIGNATURES = "keras_bert.tasks.coreference.signatures:coreference_signatures"
    exported_prediction = clusters_prediction
    METRIC = "f1"
    SHOWN = {"loss": "loss", "f1": "F1"}

    def make_head(self) -> None:
        settings, policy = self.settings, self.encoder.layer_policy
        self.word_means = DocumentWords(last=self.config.is_causal, dtype=policy, name="word_means")
        self.spans = span_representation_of(
            self.encoder, representation=ATTENTION, max_words=settings.max_span_length
        )
        # Sums of scores are compared with 0.
        self.scores = AntecedentScores(
            units=UNITS, max_antecedents=settings.max_antecedents, dtype="float32", name="scores"
        )
        self.dropout = keras.layers.Dropout(self.head_dropout, dtype=policy, name="dropout")

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        words = self.word_means(
            encoded["sequence_output"],
            inputs["input_mask"],
            inputs["word_segments"],
            inputs["word_starts"],
            inputs["word_ends"],
        )
        spans = self.spans(self.dropout(words))  # (B, W, L, R)
        return {"antecedents": self.scores(spans, inputs["word_ends"])}  # (B, K, 2 + A)

    def default_losses(self) -> dict[str, Any]:
        """Nats per candidate mention, the mean over the documents (see `AntecedentLoss`)."""
        return {"antecedents": AntecedentLoss()}

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
        """`SpannedWords` of CoNLL-2012, CorefUD, JSON Lines or plain lines, or of a sequence.

        See `keras_bert.readers.coreference.CoreferenceSource`.
        """
        from keras_bert.readers.coreference import CoreferenceSource

        return CoreferenceSource(data, need_labels=labelled, **columns)

    @classmethod
    def infer_arguments(cls, examples: Sequence[Any]) -> dict[str, Any]:
        """Nothing; raises an error if there are no clusters to learn from."""
        if not any(example.spans for example in examples):
            raise InputError(
                f"{examples[0].source.name} has no clusters of two mentions to learn from."
            )
        return {}

    @classmethod
    def describe_examples(
        cls, train: Sequence[Any], dev: Sequence[Any], inferred_arguments: dict[str, Any]
    ) -> str:
        mentions = [span for example in train for span in example.spans]
        clusters = sum(len({span.label for span in example.spans}) for example in train)
        line = (
            f"{counted(len(train), 'training document')} with {counted(len(mentions), 'mention')} "
            f"in {counted(clusters, 'cluster')} and {counted(len(dev), 'dev document')}."
        )
        widths = [s.end - s.start for e in train if e.words is not None for s in e.spans]
        return f"{line} Mentions have up to {max(widths)} words." if widths else line

    def decode(self, outputs: dict[str, Any], sequences: Any) -> list[dict[str, Any]]:
        """See `coreference_predictions`."""
        return coreference_predictions(outputs["antecedents"], sequences)

    def official_metrics(
        self, predictions: Sequence[Any], examples: Sequence[Any]
    ) -> dict[str, Any]:
        """See `coreference_metrics`; `longer` counts mentions of more than `max_span_length`."""
        expected, predicted = _clusters(predictions, examples)
        longest = self.settings.max_span_length
        mentions = (span for clusters in expected for cluster in clusters for span in cluster)
        longer = sum(end - start > longest for start, end in mentions)
        return {**coreference_metrics(expected, predicted), "longer": longer}

    def summed_metrics(self, predictions: Sequence[Any], examples: Sequence[Any]) -> SummedMetrics:
        return summed_coreference(*_clusters(predictions, examples))

    def answer_of(self, prediction: dict[str, Any]) -> Any:
        clusters = prediction["clusters"]
        return [[[mention["start"], mention["end"]] for mention in cluster] for cluster in clusters]

    errors = staticmethod(coreference_errors)
    describe_error = staticmethod(describe_coreference_error)

    @staticmethod
    def describe_metrics(metrics: dict[str, Any]) -> str:
        return (
            f"F1 {percent(metrics['f1'])}, the mean of MUC {percent(metrics['muc_f1'])}, B³ "
            f"{percent(metrics['b_cubed_f1'])} and CEAF {percent(metrics['ceaf_f1'])}; mentions "
            f"{percent(metrics['mention_f1'])}"
        )


def _clusters(predictions, examples):
    """-> (the expected clusters of each document, the predicted ones); see `cluster_sets`."""
    for prediction, example in zip(predictions, examples, strict=True):
        if "expected" not in prediction:
            raise example.error("the document has no clusters to compare the prediction with.")
    return tuple(
        [cluster_sets(prediction[name]) for prediction in predictions]
        for name in ("expected", "clusters")
    )
