"""One label for a text (Devlin et al. 2018, section 4.1)."""

import keras

from keras_bert.tasks.labelled_head import labelled_head
from keras_bert.tasks.task import Task

_MAX_LENGTH = 128


@keras.saving.register_keras_serializable(package="keras_bert")
class Classifier(Task):
    """An encoder with a linear layer over its pooled output, one logit a label.

    Takes the encoder's dictionary and gives `logits` (B, C): B batch, C labels. The head is that of
    Hugging Face's BertForSequenceClassification: dropout, then the layer. In a RoBERTa folder the
    pooler is the `classifier.dense` of RobertaForSequenceClassification, which drops some of its
    input too when it is trained there.

    Args:
        encoder: a `BertEncoder` with a pooler.
        tokenizer: the `Tokenizer` of its vocabulary, or None (then the task takes ids only).
        labels: the names of the labels in the order of the logits, each once; at least two.
        dropout: the share of the pooled output that is dropped in training. None is the config's
            `classifier_dropout`, or where that is None its `hidden_dropout_prob`.
        max_length: tokens that a text is cut to, [CLS] and [SEP] counted in, in training and
            after. None is 128, or all positions of an encoder that has fewer.

    Attributes: `labels` (a tuple), `max_length`, `classifier` (the `Dense`), `dropout` (the
    `Dropout`).

    Raises:
        ValueError: the encoder has no pooler, or the labels are fewer than two or not unique.
    """

    ARCHITECTURE = "BertForSequenceClassification"

    def __init__(
        self, encoder, tokenizer=None, *, labels, dropout=None, max_length=None, name="classifier"
    ):
        config = encoder.config
        if not config.add_pooling_layer:
            raise ValueError(
                "`Classifier` needs an encoder with a pooler. "
                f"Received: add_pooling_layer={config.add_pooling_layer}"
            )
        labels, dropout_layer, classifier = labelled_head(encoder, labels, dropout=dropout)
        inputs = self.feature_inputs()
        pooled = encoder(inputs)["pooled_output"]  # (B, D)
        super().__init__(
            inputs=inputs,
            outputs={"logits": classifier(dropout_layer(pooled))},  # (B, C)
            encoder=encoder,
            tokenizer=tokenizer,
            name=name,
        )
        self.labels = labels
        self.max_length = max_length or min(_MAX_LENGTH, config.max_length)
        self.dropout = dropout_layer
        self.classifier = classifier

    def default_losses(self):
        """Cross-entropy in nats, the mean over the rows of a batch."""
        return {"logits": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}

    def default_metrics(self):
        """`accuracy`, the share of rows whose label has the highest logit."""
        return {"logits": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    def dataset(self, data, **options):
        """The training batches of a labelled file or of (text, label) pairs.

        See `keras_bert.input_pipeline.classification.classification_dataset`.
        """
        from keras_bert.input_pipeline.classification import classification_dataset

        return classification_dataset(self, data, **options)

    def get_config(self):
        return {
            **super().get_config(),
            "labels": list(self.labels),
            "dropout": self.dropout.rate,
            "max_length": self.max_length,
        }
