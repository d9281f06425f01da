"""A score for a pair of texts or for one, such as similarity (Devlin et al. 2018, table 1)."""

import math
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, in_one_line
from keras_bert.encoders.encoder import Encoder
from keras_bert.heads.classification import labelled_head
from keras_bert.readers.labels import score
from keras_bert.readers.texts import PAIR, TEXT, TextSource
from keras_bert.tasks.classification import RegressionSettings
from keras_bert.tasks.classification.decode import score_errors, score_predictions
from keras_bert.tasks.classification.pooled_task import TextTask

if TYPE_CHECKING:
    from keras_bert.text.tokenizer import Tokenizer

# The names of activations in the files of sentence-transformers.
ACTIVATION_CLASSES = {
    "sigmoid": "torch.nn.modules.activation.Sigmoid",
    "identity": "torch.nn.modules.linear.Identity",
}


@keras.saving.register_keras_serializable(package="keras_bert")
class Regressor(TextTask):
    """An encoder with a linear layer over one vector of the whole sequence: one number.

    Takes the encoder's dictionary and gives `score` (B, 1), B batch, in the range of the labels.
    The head is that of Hugging Face's BertForSequenceClassification with one label: dropout, then
    the layer; see `Classifier` on RoBERTa and on other poolings.

    Scores may have any range: training works in units of `scale` around `mean`. A step of Adam
    changes a weight by about the learning rate, so that a head in the labels' own range would be
    hundreds of steps away from scores around 50 and overshoot scores that differ by thousandths. A
    folder stores the layer in the labels' range and needs neither value.

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`.
        mean: the score that a new head starts from.
        scale: the head's unit; a power of two, so that writing a folder rounds nothing.
        activation: what is applied to the score: "sigmoid" or "identity", as in a cross-encoder of
            sentence-transformers, whose folder says so; None for a plain regression.
        **settings: see `RegressionSettings`.

    Attributes: `settings`, `scale`, `scorer` (the `Dense`), `dropout`.

    Raises:
        ValueError: the scale is not a power of two, or the activation is unknown.
    """

    TASK_TYPE = "regression"
    HEADS = ("scorer",)
    HEAD_SCALES = {"scorer": "scale"}
    ACTIVATIONS = tuple(ACTIVATION_CLASSES)
    SETTINGS = RegressionSettings
    ANSWER = TEACHES = "score"
    METRIC = "pearson"
    SHOWN = {"loss": "loss", "mse": "squared error", "pearson": "Pearson", "spearman": "Spearman"}

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: "Tokenizer | None" = None,
        *,
        mean: float = 0.0,
        scale: float = 1.0,
        activation: str | None = None,
        **settings: Any,
    ):
        if activation not in (None, *self.ACTIVATIONS):
            raise ValueError(
                f"`activation` must be one of {', '.join(self.ACTIVATIONS)} or None. "
                f"Received: activation={activation!r}."
            )
        self.activation = activation
        if scale <= 0 or math.frexp(scale)[0] != 0.5:
            raise ValueError(f"`scale` must be a power of two. Received: scale={scale}.")
        self.scale = float(scale)
        self._first_score = mean / self.scale  # in units of `scale`
        super().__init__(encoder, tokenizer, **settings)

    def make_head(self):
        super().make_head()
        self.METRIC = self.settings.metric
        self.dropout, self.scorer = labelled_head(self.encoder, 1, dropout=self.head_dropout)
        self.scorer.bias_initializer = keras.initializers.Constant(self._first_score)

    @property
    def text_names(self):
        """The names of an example's texts."""
        return TEXT if self.settings.one_text else PAIR

    def build_head(self, encoded, inputs):
        vector = self.dropout(self.vector(encoded, inputs.get("input_mask")))  # (B, D), or (B, n D)
        score = self.scorer(vector) * self.scale  # (B, 1)
        return {"score": ops.sigmoid(score) if self.activation == "sigmoid" else score}

    def config_keys(self):
        one = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
        if self.activation is not None:
            one["sentence_transformers"] = {"activation_fn": ACTIVATION_CLASSES[self.activation]}
        return {"problem_type": "regression", **one}

    @property
    def inferred_arguments(self):
        return {"one_text": True} if self.settings.one_text else {}

    # Training.

    def default_losses(self):
        """The squared error, the mean over the batch."""
        return {"score": keras.losses.MeanSquaredError()}

    def default_loss_weights(self):
        """The loss in units of `scale` squared."""
        return {"score": self.scale**-2}

    def default_metrics(self):
        """`mse`, the mean squared error in the range of the labels."""
        if self.reads_windows:  # of which a text has several
            return {}
        return {"score": [keras.metrics.MeanSquaredError(name="mse")]}

    # Labelled files.

    @classmethod
    def read(
        cls, data, *, inferred_arguments=None, schema=None, labelled=True, one_text=False, **columns
    ):
        """`LabelledText`s of a table, JSON Lines, `tfds:…` or a sequence of (text, text, score).

        With `labelled`, examples without a score are skipped and counted.
        """
        one_text = one_text or (inferred_arguments or {}).get("one_text", False)
        return TextSource(
            data,
            texts=TEXT if one_text else PAIR,
            form=score,
            schema=schema,
            need_labels=labelled,
            **columns,
        )

    @classmethod
    def infer_arguments(cls, examples):
        """The mean of the scores, and the power of two nearest to their standard deviation."""
        scores = np.array([example.label for example in examples], np.float64)
        if (scores == scores[0]).all():
            raise InputError(
                f"{examples[0].source.name} has a single score ({scores[0]:g}). Training needs "
                "examples with different scores."
            )
        scale = 2.0 ** round(math.log2(scores.std()))
        return {"mean": float(scores.mean()), "scale": scale}

    @classmethod
    def describe_examples(cls, train, dev, inferred_arguments):
        scores = [example.label for example in train]
        noun = "pair" if train[0].text_b is not None else "text"
        return (
            f"{counted(len(train), f'training {noun}')} with scores from {min(scores):g} to "
            f"{max(scores):g} (mean {inferred_arguments['mean']:.3g}), and "
            f"{counted(len(dev), f'dev {noun}')}."
        )

    def targets(self, examples):
        return {"score": np.array([[example.label] for example in examples], np.float32)}, {}

    def decode(self, outputs, sequences):
        """`text_a`, `text_b` (or `text`), `score`, and `expected` if known."""
        scores = self.of_examples(outputs["score"], sequences)[:, 0]
        return score_predictions(scores, sequences.examples)

    def official_metrics(self, predictions, examples):
        """See `score_metrics`."""
        from keras_bert.tasks.classification.metrics import score_metrics

        return score_metrics(*_scored(predictions, examples))

    def summed_metrics(self, predictions, examples):
        from keras_bert.tasks.classification.metrics import summed_scores

        return summed_scores(*_scored(predictions, examples))

    def is_right(self, predictions, examples):
        return None

    errors = staticmethod(score_errors)

    @staticmethod
    def describe_error(error):
        texts = " / ".join(in_one_line(error[name]) for name in (*TEXT, *PAIR) if name in error)
        return (
            f"line {error['line']}, true: {error['expected']:g}, predicted: "
            f"{error['predicted']:.2f}: {texts}"
        )

    @staticmethod
    def describe_metrics(metrics):
        return (
            f"Pearson {metrics['pearson']:.3f}, Spearman {metrics['spearman']:.3f}, mean squared "
            f"error {metrics['mse']:.3g}"
        )

    def get_config(self):
        return {**super().get_config(), "scale": self.scale, "activation": self.activation}


def _scored(predictions, examples):
    """-> (the expected scores, the predicted ones)."""
    return [example.label for example in examples], [p["score"] for p in predictions]
