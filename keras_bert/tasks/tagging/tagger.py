"""One label for each token (Devlin et al. 2018, section 5.3)."""

import keras

from keras_bert.heads.labelled import check_labels, labelled_head
from keras_bert.tasks.task import Task


@keras.saving.register_keras_serializable(package="keras_bert")
class Tagger(Task):
    """An encoder with a linear layer over every token's output, one logit a label.

    Takes the encoder's dictionary and gives `logits` (B, S, C): B batch, S tokens in a row, C
    labels. The head is that of Hugging Face's BertForTokenClassification: dropout, then the layer.
    Labels are `logits` (B, S) numbers; sample weights of the same name and shape are 1 at tokens
    that count and 0 at padding and at pieces without a label. A pooler is not used; a model folder
    keeps it for us alone, because that class has none.

    Args:
        encoder: a `BertEncoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None (then the task takes ids only).
        labels: the names of the labels in the order of the logits, each once; at least two.
        dropout: the share of the outputs that is dropped in training. None is the config's
            `classifier_dropout`, or where that is None its `hidden_dropout_prob`.

    Attributes: `labels` (a tuple), `classifier` (the `Dense`), `dropout` (the `Dropout`).

    Raises:
        ValueError: the labels are fewer than two or not unique.
    """

    KIND = "tagger"
    ARCHITECTURE = "BertForTokenClassification"
    HEADS = ("classifier",)
    LEAST_LABELS = 2
    SHOWN = {"loss": "loss", "accuracy": "accuracy"}

    def __init__(self, encoder, tokenizer=None, *, labels, dropout=None, name="tagger"):
        self.encoder = encoder
        self.labels = check_labels(labels, least=self.LEAST_LABELS)
        self.dropout, self.classifier = labelled_head(encoder, len(self.labels), dropout=dropout)
        super().__init__(tokenizer, name=name)

    def connect(self, encoded, inputs):
        return {"logits": self.classifier(self.dropout(encoded["sequence_output"]))}  # (B, S, C)

    def default_losses(self):
        """Cross-entropy in nats, the mean over the tokens that count."""
        return {
            "logits": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            )
        }

    def default_metrics(self):
        """`accuracy`, the share of tokens that count whose label has the highest logit."""
        return {"logits": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout.rate}
