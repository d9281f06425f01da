"""Which of several choices goes with a context (Devlin et al. 2018, section 4.4)."""

import keras
import numpy as np
from keras import ops

from keras_bert.base.formatting import counted, percent
from keras_bert.heads.labelled import labelled_head
from keras_bert.readers.labelled_choices import open_labelled_choices
from keras_bert.tasks.classification.pooled_task import PooledTask
from keras_bert.tasks.multiple_choice.decode import choice_errors, choice_predictions
from keras_bert.tasks.multiple_choice.settings import MultipleChoiceSettings
from keras_bert.tasks.settings import MAX_LENGTH


@keras.saving.register_keras_serializable(package="keras_bert")
class FlattenRows(keras.layers.Layer):
    """Rows of examples, one after the other. Shapes: (B, n, …) -> (B n, …)."""

    def call(self, x):
        return ops.reshape(x, (-1, *ops.shape(x)[2:]))

    def compute_output_shape(self, shape):
        return (None, *shape[2:])


@keras.saving.register_keras_serializable(package="keras_bert")
class GroupRows(keras.layers.Layer):
    """What `FlattenRows` undid. Shapes: (B n, …) and anything of shape (B, n, …) -> (B, n, …)."""

    def call(self, x, grouped):
        return ops.reshape(x, (*ops.shape(grouped)[:2], *ops.shape(x)[1:]))

    def compute_output_shape(self, x_shape, grouped_shape):
        return (*grouped_shape[:2], *x_shape[1:])


# What stands in the place of the logit of a choice that there is not; a softmax makes zero of it.
_NO_CHOICE = -10000.0


@keras.saving.register_keras_serializable(package="keras_bert")
class MultipleChoice(PooledTask):
    """An encoder with a linear layer over a vector of the whole row: one logit per choice.

    Takes the encoder's dictionary with an axis of choices, each input (B, n, S), and gives `logits`
    (B, n): B batch, n choices, S tokens in a row `[CLS] context [SEP] choice [SEP]`. An example
    with fewer choices than others of its batch has rows without a token, whose logit is -10000.
    Where the vector is the pooled output, the head is that of Hugging Face's BertForMultipleChoice:
    dropout, then the layer.

    Args:
        encoder: an `Encoder`, such as a `BertEncoder`; with a pooler where [CLS] is read.
        tokenizer: the `Tokenizer` of its vocabulary, or None (then the task takes ids only).
        pooling, dropout, **between: see `Classifier`.
        max_length: tokens that a row is cut to, special tokens counted in, in training and after.
            None is 128, or all positions of an encoder that has fewer.

    Attributes: `pooling`, `max_length`, `classifier` (the `Dense`), `dropout` (the `Dropout`).

    Raises:
        ValueError: the encoder has no pooler and one is read.
        InputError: [CLS] of a causal encoder is to be read.
    """

    KIND = "multiple-choice"
    HEADS = ("classifier",)
    SETTINGS = MultipleChoiceSettings
    METRIC = "accuracy"
    SHOWN = {"loss": "loss", "accuracy": "accuracy"}

    def __init__(
        self,
        encoder,
        tokenizer=None,
        *,
        pooling=None,
        dropout=None,
        max_length=None,
        name="multiple_choice",
        **between,
    ):
        self.set_encoder(encoder, **between)
        self.set_pooling(pooling)
        self.HEAD_READS = ("input_mask",)
        self.max_length = max_length or encoder.default_max_length(MAX_LENGTH)
        self.dropout, self.classifier = labelled_head(encoder, 1, dropout=dropout)
        super().__init__(tokenizer, name=name)

    def feature_inputs(self):
        """The encoder's inputs as symbolic (B, n, S) int32 tensors by name."""
        return {
            name: keras.Input((None, None), dtype="int32", name=name)
            for name in self.encoder.input_names
        }

    @staticmethod
    def to_sequences(x):
        return FlattenRows()(x)  # (B n, …)

    @staticmethod
    def to_examples(x, features):
        return GroupRows()(x, features["input_ids"])  # (B, n, S, D)

    def build_head(self, encoded, inputs):
        mask = inputs["input_mask"]  # (B, n, S)
        vector = self.vector(encoded, self.to_sequences(mask))  # (B n, D)
        logits = self.classifier(self.dropout(vector))  # (B n, 1)
        logits = GroupRows()(logits, mask)[..., 0]  # (B, n)
        return {"logits": ops.where(ops.any(mask > 0, axis=-1), logits, _NO_CHOICE)}

    # Training.

    def default_losses(self):
        """Cross-entropy over the choices in nats, the mean over the examples of a batch."""
        return {"logits": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}

    def default_metrics(self):
        """`accuracy`, the share of examples whose right choice has the highest logit."""
        return {"logits": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    # Labelled files.

    @classmethod
    def read(cls, data, *, inferred_arguments=None, schema=None, labelled=True, **columns):
        """`LabelledChoices` of JSON Lines, a table with a column a choice, `tfds:…` or a sequence.

        A sequence is of (context, choices, number of the right choice, from 0).
        """
        return open_labelled_choices(data, need_labels=labelled, **columns)

    @classmethod
    def summary(cls, train, dev, inferred_arguments):
        counts = [len(example.choices) for example in train]
        choices = f"{min(counts)}" if len({*counts}) == 1 else f"{min(counts)} to {max(counts)}"
        chance = np.mean([1 / len(example.choices) for example in dev])
        return (
            f"{counted(len(train), 'training example')} of {choices} choices and "
            f"{counted(len(dev), 'dev example')}, of which {percent(chance)} are right by chance."
        )

    def features(self, examples, *, max_length=None, labelled=False):
        from keras_bert.tasks.multiple_choice.features import ChoiceRows

        labels = {}
        if labelled:
            labels = {"logits": np.array([example.label for example in examples], np.int32)}
        return ChoiceRows.of_examples(
            examples,
            labels=labels,
            tokenizer=self.tokenizer,
            input_names=self.encoder.input_names,
            max_length=max_length or self.max_length,
        )

    def decode(self, outputs, sequences):
        """`context`, `choices`, `label` (from 0), `choice`, `score`, `probabilities`.

        `expected` is there where it is known.
        """
        return choice_predictions(outputs["logits"], sequences.examples)

    def official_metrics(self, predictions, examples):
        """See `choice_metrics`."""
        from keras_bert.tasks.multiple_choice.decode import choice_metrics

        return choice_metrics(predictions, examples)

    def errors(self, predictions, examples):
        """How sure the wrong choices were, with their lines."""
        return choice_errors(predictions, examples)

    @staticmethod
    def describe_metrics(metrics):
        return f"accuracy {percent(metrics['accuracy'])}"

    def signatures(self, *, max_length=None):
        from keras_bert.tasks.multiple_choice.signatures import choice_signatures

        return choice_signatures(self, max_length=max_length or self.max_length)

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout.rate}
