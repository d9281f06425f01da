"""One label for a text (Devlin et al. 2018, section 4.1)."""

from collections import Counter

import keras

from keras_bert.errors import InputError
from keras_bert.examples.oddities import oddities
from keras_bert.heads.labelled import check_labels, labelled_head
from keras_bert.tasks.classification.decode import classifier_answers
from keras_bert.tasks.classification.labels import label_numbers, sorted_labels
from keras_bert.tasks.classification.settings import ClassifierSettings
from keras_bert.tasks.settings import MAX_LENGTH
from keras_bert.tasks.task import Task
from keras_bert.wording import counted, listed, percent


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

    KIND = "classifier"
    ARCHITECTURE = "BertForSequenceClassification"
    READS = ("pooled_output",)
    HEADS = ("classifier",)
    LEAST_LABELS = 2
    SETTINGS = ClassifierSettings
    FIGURE = "accuracy"
    SHOWN = {"loss": "loss", "accuracy": "accuracy"}

    def __init__(
        self, encoder, tokenizer=None, *, labels, dropout=None, max_length=None, name="classifier"
    ):
        self.encoder = encoder
        self.labels = check_labels(labels, least=self.LEAST_LABELS)
        self.max_length = max_length or min(MAX_LENGTH, encoder.config.max_length)
        self.dropout, self.classifier = labelled_head(encoder, len(self.labels), dropout=dropout)
        super().__init__(tokenizer, name=name)

    def connect(self, encoded, inputs):
        return {"logits": self.classifier(self.dropout(encoded["pooled_output"]))}  # (B, C)

    def default_losses(self):
        """Cross-entropy in nats, the mean over the rows of a batch."""
        return {"logits": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}

    def default_metrics(self):
        """`accuracy`, the share of rows whose label has the highest logit."""
        return {"logits": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    @classmethod
    def read(cls, data, *, made_with=None, like=None, labelled=True, **columns):
        """`LabelledText` of a TSV or JSON Lines file, or of a sequence of (text, label)."""
        from keras_bert.examples.labelled_texts import open_labelled_texts

        labels = (made_with or {}).get("labels")
        return open_labelled_texts(data, labels=labels, like=like, need_labels=labelled, **columns)

    @classmethod
    def made_from(cls, examples):
        """The labels that occur."""
        labels = sorted_labels({example.label for example in examples})
        if len(labels) < cls.LEAST_LABELS:
            raise InputError(
                f'{examples[0].source.name} has one label only ("{labels[0]}"); a classifier needs '
                "two or more."
            )
        return {"labels": labels}

    @classmethod
    def summary(cls, train, dev, made_with):
        counts = Counter(example.label for example in train)
        each = listed(f'"{label}": {counts[label]:,}' for label in made_with["labels"])
        dev_counts = Counter(example.label for example in dev)
        most = max(made_with["labels"], key=lambda label: dev_counts[label])
        return (
            f"{counted(len(train), 'training text')} ({each}) and {counted(len(dev), 'dev text')}, "
            f'of which {percent(dev_counts[most] / len(dev))} have the label "{most}".'
        )

    @classmethod
    def notes(cls, examples):
        return oddities(examples)

    def features(self, examples, *, max_length=None, labelled=False):
        from keras_bert.input_pipeline.tokenized_examples import TokenizedExamples

        return TokenizedExamples.of_texts(
            examples,
            [[example.text for example in examples]],
            labels={"logits": label_numbers(examples, self.labels)} if labelled else {},
            tokenizer=self.tokenizer,
            max_length=max_length or self.max_length,
        )

    def decode(self, outputs, rows):
        """`text`, `label`, `score`, `expected` where it is known, and `probabilities`."""
        return classifier_answers(outputs["logits"], rows.examples, labels=self.labels)

    def measure(self, answers, examples):
        """See `classification_metrics`."""
        from keras_bert.tasks.classification.metrics import classification_metrics

        return classification_metrics(
            label_numbers(examples, self.labels),
            [list(answer["probabilities"].values()) for answer in answers],
            labels=self.labels,
        )

    @staticmethod
    def describe_measures(measures):
        return (
            f"accuracy {percent(measures['accuracy'])}, macro F1 {percent(measures['macro_f1'])}, "
            f"Matthews {measures['matthews']:.3f}"
        )

    def signatures(self, *, max_length=None):
        from keras_bert.tasks.classification.serving import classifier_signatures

        return classifier_signatures(self, max_length=max_length or self.max_length)

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout.rate}
