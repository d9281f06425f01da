"""A score for two texts, or for one: similarity in any range (Devlin et al. 2018, table 1)."""

import math

import keras
import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.heads.labelled import labelled_head
from keras_bert.readers.labels import score, warnings
from keras_bert.readers.texts import PAIR, TEXT, open_labelled_texts
from keras_bert.tasks.classification.classifier import columns_of_texts
from keras_bert.tasks.classification.decode import score_errors, score_predictions
from keras_bert.tasks.classification.pooled_task import PooledTask
from keras_bert.tasks.classification.settings import RegressionSettings
from keras_bert.tasks.settings import MAX_LENGTH


@keras.saving.register_keras_serializable(package="keras_bert")
class Regressor(PooledTask):
    """An encoder with a linear layer over a vector of the whole row, which gives one number.

    Takes the encoder's dictionary and gives `score` (B, 1): B batch, in the range of the labels.
    The head is that of Hugging Face's BertForSequenceClassification with one label: dropout, then
    the layer; see `Classifier` on RoBERTa, and on another `pooling`.

    Scores may be of any range: training works in units of `scale` about `mean`. A step of Adam
    moves a weight by about the rate, so that a head of raw values would be hundreds of steps away
    from scores about 50, and from such as differ by thousandths it would overshoot. A folder holds
    the layer in the range of the labels, and needs neither.

    Args:
        encoder, tokenizer, pooling, dropout, max_length, **between: see `Classifier`.
        one_text: rows are of one text instead of two.
        mean: the score that the new head begins with.
        scale: the unit in which the head computes: a power of two, so that nothing is rounded when
            a folder is written.
        metric: the figure of `official_metrics` that a run keeps the best epoch by.

    Attributes: `one_text`, `pooling`, `scale`, `max_length`, `scorer` (the `Dense`), `dropout`.

    Raises:
        ValueError: the encoder has no pooler and one is read, or the scale is no power of two.
    """

    KIND = "regression"
    HEADS = ("scorer",)
    HEAD_SCALES = {"scorer": "scale"}
    SETTINGS = RegressionSettings
    METRIC = "pearson"
    SHOWN = {"loss": "loss", "mse": "squared error", "pearson": "Pearson", "spearman": "Spearman"}

    def __init__(
        self,
        encoder,
        tokenizer=None,
        *,
        one_text=False,
        mean=0.0,
        scale=1.0,
        pooling=None,
        metric="pearson",
        dropout=None,
        max_length=None,
        name="regressor",
        **between,
    ):
        if scale <= 0 or math.frexp(scale)[0] != 0.5:
            raise ValueError(f"`scale` must be a power of two. Received: scale={scale}")
        self.set_encoder(encoder, **between)
        self.one_text = one_text
        self.scale = float(scale)
        self.set_pooling(pooling)
        self.METRIC = metric
        self.max_length = max_length or encoder.default_max_length(MAX_LENGTH)
        self.dropout, self.scorer = labelled_head(encoder, 1, dropout=dropout)
        self.scorer.bias_initializer = keras.initializers.Constant(mean / self.scale)
        super().__init__(tokenizer, name=name)

    def build_head(self, encoded, inputs):
        vector = self.dropout(self.vector(encoded, inputs.get("input_mask")))  # (B, D), or (B, n D)
        return {"score": self.scorer(vector) * self.scale}  # (B, 1)

    def config_keys(self):
        one = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
        return {"problem_type": "regression", **one}

    @property
    def inferred_arguments(self):
        return {"one_text": True} if self.one_text else {}

    # Training.

    def default_losses(self):
        """The squared error, the mean over the rows of a batch."""
        return {"score": keras.losses.MeanSquaredError()}

    def default_loss_weights(self):
        """The loss is in units of `scale` squared."""
        return {"score": self.scale**-2}

    def default_metrics(self):
        """`mse`, the mean squared error in the range of the labels."""
        return {"score": [keras.metrics.MeanSquaredError(name="mse")]}

    # Labelled files.

    @classmethod
    def read(
        cls, data, *, inferred_arguments=None, schema=None, labelled=True, one_text=False, **columns
    ):
        """`LabelledText` of a TSV or JSON Lines file, of `tfds:…`, or of a sequence.

        A sequence is of (text, text, score). Rows without a score are left out and counted, unless
        labels are not asked for.
        """
        one_text = one_text or (inferred_arguments or {}).get("one_text", False)
        return open_labelled_texts(
            data,
            texts=TEXT if one_text else PAIR,
            form=score,
            schema=schema,
            need_labels=labelled,
            **columns,
        )

    @classmethod
    def infer_arguments(cls, examples):
        """The mean of the scores, and the power of two that is nearest to their deviation."""
        scores = np.array([example.label for example in examples], np.float64)
        if (scores == scores[0]).all():
            raise InputError(
                f"{examples[0].source.name} has one score only ({scores[0]:g}); there is nothing "
                "to learn from it."
            )
        scale = 2.0 ** round(math.log2(scores.std()))
        return {"mean": float(scores.mean()), "scale": scale}

    @classmethod
    def summary(cls, train, dev, inferred_arguments):
        scores = [example.label for example in train]
        what = "pair" if train[0].text_b is not None else "text"
        return (
            f"{counted(len(train), f'training {what}')} with scores from {min(scores):g} to "
            f"{max(scores):g}, {inferred_arguments['mean']:.3g} in the mean, and "
            f"{counted(len(dev), f'dev {what}')}."
        )

    @classmethod
    def notes(cls, examples):
        return warnings(examples)

    def features(self, examples, *, max_length=None, labelled=False):
        from keras_bert.inputs.tokenized_examples import TokenizedExamples

        labels = {}
        if labelled:
            scores = np.array([example.label for example in examples], np.float32)
            labels = {"score": scores[:, None]}
        return TokenizedExamples.of_texts(
            examples,
            columns_of_texts(examples, 1 if self.one_text else 2),
            labels=labels,
            tokenizer=self.tokenizer,
            input_names=self.encoder.input_names,
            max_length=max_length or self.max_length,
        )

    def decode(self, outputs, sequences):
        """`text_a`, `text_b` (or `text`), `score`, and `expected` where it is known."""
        return score_predictions(outputs["score"][:, 0], sequences.examples)

    def official_metrics(self, predictions, examples):
        """See `score_metrics`."""
        from keras_bert.tasks.classification.metrics import score_metrics

        return score_metrics(
            [example.label for example in examples],
            [prediction["score"] for prediction in predictions],
        )

    def errors(self, predictions, examples):
        """How far off every score is."""
        return score_errors(predictions, examples)

    @staticmethod
    def describe_metrics(metrics):
        return (
            f"Pearson {metrics['pearson']:.3f}, Spearman {metrics['spearman']:.3f}, mean squared "
            f"error {metrics['mse']:.3g}"
        )

    def signatures(self, *, max_length=None):
        from keras_bert.tasks.classification.signatures import regressor_signatures

        return regressor_signatures(self, max_length=max_length or self.max_length)

    def get_config(self):
        return {
            **super().get_config(),
            "dropout": self.dropout.rate,
            "scale": self.scale,
            "metric": self.METRIC,
        }
