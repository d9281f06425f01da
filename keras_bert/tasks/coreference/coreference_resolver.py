"""Which mentions in a document refer to the same (Lee et al. 2017; Joshi et al. 2019)."""

import keras

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, percent
from keras_bert.heads.spans import ATTENTION, AntecedentLoss, AntecedentScores, DocumentWords
from keras_bert.tasks.coreference import CoreferenceSettings
from keras_bert.tasks.coreference.decode import (
    cluster_sets,
    coreference_errors,
    coreference_predictions,
    describe_coreference_error,
)
from keras_bert.tasks.coreference.metrics import coreference_metrics
from keras_bert.tasks.span_classification.span_classifier import UNITS, span_representation_of
from keras_bert.tasks.task import Task


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
    SEQUENCE_AXES = (None,)
    HEAD_READS = ("input_mask",)
    HEAD_INPUTS = dict.fromkeys(("word_starts", "word_ends", "word_segments"), (None,))
    HEADS = ("spans", "scores")
    SETTINGS = CoreferenceSettings
    FEATURES = "keras_bert.tasks.coreference.features:coreference_sequences"
    SIGNATURES = "keras_bert.tasks.coreference.signatures:coreference_signatures"
    METRIC = "f1"
    SHOWN = {"loss": "loss", "f1": "F1"}

    def make_head(self):
        settings, policy = self.settings, self.encoder.layer_policy
        self.word_means = DocumentWords(last=self.config.is_causal, dtype=policy, name="word_means")
        self.spans = span_representation_of(
            self.encoder, representation=ATTENTION, max_words=settings.max_span_length
        )
        # Sums of scores are compared with 0.
        self.scores = AntecedentScores(
            units=UNITS, max_antecedents=settings.max_antecedents, dtype="float32", name="scores"
        )
        rate = self.config.head_dropout if settings.dropout is None else settings.dropout
        self.dropout = keras.layers.Dropout(rate, dtype=policy, name="dropout")

    def build_head(self, encoded, inputs):
        words = self.word_means(
            encoded["sequence_output"],
            inputs["input_mask"],
            inputs["word_segments"],
            inputs["word_starts"],
            inputs["word_ends"],
        )
        spans = self.spans(self.dropout(words))  # (B, W, L, R)
        return {"antecedents": self.scores(spans, inputs["word_ends"])}  # (B, K, 2 + A)

    def default_losses(self):
        """Nats per candidate mention, the mean over the documents (see `AntecedentLoss`)."""
        return {"antecedents": AntecedentLoss()}

    @classmethod
    def read(cls, data, *, inferred_arguments=None, schema=None, labelled=True, **columns):
        """`SpannedWords` of CoNLL-2012, CorefUD, JSON Lines or plain lines, or of a sequence.

        See `keras_bert.readers.coreference.CoreferenceSource`.
        """
        from keras_bert.readers.coreference import CoreferenceSource

        return CoreferenceSource(data, need_labels=labelled, **columns)

    @classmethod
    def infer_arguments(cls, examples):
        """Nothing; raises an error if there are no clusters to learn from."""
        if not any(example.spans for example in examples):
            raise InputError(
                f"{examples[0].source.name} has no clusters of two mentions to learn from."
            )
        return {}

    @classmethod
    def describe_examples(cls, train, dev, inferred_arguments):
        mentions = [span for example in train for span in example.spans]
        clusters = sum(len({span.label for span in example.spans}) for example in train)
        line = (
            f"{counted(len(train), 'training document')} with {counted(len(mentions), 'mention')} "
            f"in {counted(clusters, 'cluster')} and {counted(len(dev), 'dev document')}."
        )
        widths = [s.end - s.start for e in train if e.words is not None for s in e.spans]
        return f"{line} Mentions have up to {max(widths)} words." if widths else line

    def decode(self, outputs, sequences):
        """See `coreference_predictions`."""
        return coreference_predictions(outputs["antecedents"], sequences)

    def official_metrics(self, predictions, examples):
        """See `coreference_metrics`; `longer` counts mentions of more than `max_span_length`."""
        for prediction, example in zip(predictions, examples, strict=True):
            if "expected" not in prediction:
                raise example.error("the document has no clusters to compare the prediction with.")
        expected, predicted = (
            [cluster_sets(prediction[name]) for prediction in predictions]
            for name in ("expected", "clusters")
        )
        longest = self.settings.max_span_length
        mentions = (span for clusters in expected for cluster in clusters for span in cluster)
        longer = sum(end - start > longest for start, end in mentions)
        return {**coreference_metrics(expected, predicted), "longer": longer}

    errors = staticmethod(coreference_errors)
    describe_error = staticmethod(describe_coreference_error)

    @staticmethod
    def describe_metrics(metrics):
        return (
            f"F1 {percent(metrics['f1'])}, the mean of MUC {percent(metrics['muc_f1'])}, B³ "
            f"{percent(metrics['b_cubed_f1'])} and CEAF {percent(metrics['ceaf_f1'])}; mentions "
            f"{percent(metrics['mention_f1'])}"
        )
