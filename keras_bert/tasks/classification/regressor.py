"""A score for a pair of texts or for one: of similarity (Devlin et al. 2018, table 1), or how
relevant a passage is to a query, as a cross-encoder (Nogueira and Cho 2019)."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from scipy.special import expit

from keras_bert.base.errors import InputError, Naming, argument
from keras_bert.base.formatting import counted, in_one_line
from keras_bert.encoders.encoder import Encoder
from keras_bert.heads.classification import GroupChoices, labelled_head
from keras_bert.layers import Tensor
from keras_bert.programs import replica_count
from keras_bert.readers.labels import score
from keras_bert.readers.passage_lists import PassageList, ScoredPairSource
from keras_bert.readers.texts import PAIR, TEXT, TextSource
from keras_bert.tasks.classification import (
    BINARY_CROSSENTROPY,
    LIST_METRICS,
    LISTWISE,
    LOSSES_OF_LISTS,
    MARGIN_MSE,
    SCORE_METRICS,
    SQUARED_ERROR,
    RegressionSettings,
)
from keras_bert.tasks.classification.decode import score_errors, score_predictions
from keras_bert.tasks.classification.pooled_task import TextTask
from keras_bert.tasks.classification.ranked_lists import (
    list_errors,
    list_metrics,
    list_predictions,
    summed_lists,
)
from keras_bert.tasks.classification.ranking_losses import ListLoss
from keras_bert.tasks.losses import LossOfWholeBatch
from keras_bert.tasks.summed_metrics import SummedMetrics

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

    Takes the encoder's dictionary and gives `score` (B, 1), B batch, in the range of the labels and
    before the activation, which predictions and exports apply. One that trains on lists of passages
    takes inputs (B, n, S) and gives (B, n); its folder is that of any other. The head is that of
    Hugging Face's BertForSequenceClassification with one label: dropout, then the layer; see
    `Classifier` on RoBERTa and on other poolings.

    Scores may have any range: training works in units of `scale` around `mean`. A step of Adam
    changes a weight by about the learning rate, so that a head in the labels' own range would be
    hundreds of steps away from scores around 50 and overshoot scores that differ by thousandths. A
    folder stores the layer in the labels' range and needs neither value.

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`.
        mean: the score that a new head starts from.
        scale: the head's unit; a power of two, so that writing a folder rounds nothing.
        activation: what is applied to the score: "sigmoid" or "identity", as in a cross-encoder of
            sentence-transformers, whose folder says so. None is "sigmoid" with the loss
            binary-crossentropy, "identity" with a loss of lists, and else a plain regression.
        lists: whether it trains on lists of passages; a loss of lists says so, too.
        **settings: see `RegressionSettings`.

    Attributes: `settings`, `scale`, `scorer` (the `Dense`), `dropout`.

    Raises:
        ValueError: the scale is not a power of two, or the activation is unknown.
        InputError: the loss and the activation, or the examples, do not go together.
    """

    TASK_TYPE = "regression"
    HEADS = ("scorer",)
    HEAD_SCALES = {"scorer": "scale"}
    ACTIVATIONS = tuple(ACTIVATION_CLASSES)
    SETTINGS = RegressionSettings
    ANSWER = TEACHES = "score"
    METRIC = "pearson"
    FEATURES = "keras_bert.tasks.classification.features:scored_sequences"

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: "Tokenizer | None" = None,
        *,
        mean: float = 0.0,
        scale: float = 1.0,
        activation: str | None = None,
        lists: bool = False,
        **settings: Any,
    ):
        if activation not in (None, *self.ACTIVATIONS):
            raise ValueError(
                f"`activation` must be one of {', '.join(self.ACTIVATIONS)} or None. "
                f"Received: activation={activation!r}."
            )
        loss = settings.get("loss")
        self.lists = lists or loss in LOSSES_OF_LISTS
        if loss is None:
            pair_loss = BINARY_CROSSENTROPY if activation == "sigmoid" else SQUARED_ERROR
            loss = LISTWISE if self.lists else pair_loss
        if loss == SQUARED_ERROR and activation == "sigmoid":
            raise InputError.naming(
                "{loss} {} is for scores in the range of the labels, and the model's are "
                "probabilities ({activation=sigmoid}). Use {loss=binary-crossentropy}.",
                loss,
            )
        if activation is None and loss != SQUARED_ERROR:
            activation = "sigmoid" if loss == BINARY_CROSSENTROPY else "identity"
        self.activation, self._loss = activation, loss
        if loss != SQUARED_ERROR:  # of the logits, which have a range of their own
            mean, scale = 0.0, 1.0
        if scale <= 0 or math.frexp(scale)[0] != 0.5:
            raise ValueError(f"`scale` must be a power of two. Received: scale={scale}.")
        self.scale = float(scale)
        self._first_score = mean / self.scale  # in units of `scale`
        super().__init__(encoder, tokenizer, **settings)

    def defaults_for(self, settings: Any) -> dict[str, Any]:
        return {**super().defaults_for(settings), "loss": self._loss}

    def make_head(self) -> None:
        super().make_head()
        # The dev examples may be others than those of training.
        are_lists = self.settings.metric in (*LIST_METRICS, *[None] * self.lists)
        self._select_by(LIST_METRICS if are_lists else SCORE_METRICS)
        if not self.settings.one_text:
            self.OFFERS = ("rerank",)
        if self.lists:
            self.settings.check_for_lists()
            self.SEQUENCE_AXES, self.HEAD_READS = (None,), ("input_mask",)
        self.dropout, self.scorer = labelled_head(self.encoder, 1, dropout=self.head_dropout)
        self.scorer.bias_initializer = keras.initializers.Constant(self._first_score)

    @property
    def text_names(self) -> tuple[str, ...]:
        """The names of an example's texts."""
        return TEXT if self.settings.one_text else PAIR

    def _select_by(self, names):
        """Sets METRIC to the `metric`, or to the first of the names of those that there are.

        Raises InputError for a `metric` that is not among them.
        """
        metric = self.settings.metric or names[0]
        if metric not in names:
            raise InputError.naming(
                "{metric} {} is of {}. Choose from: {}.",
                metric,
                "pairs with scores" if metric in SCORE_METRICS else "lists of passages",
                ", ".join(names),
            )
        self.METRIC = metric
        self.SHOWN = {"loss": "loss", "mse": "squared error"}
        self.SHOWN |= {"pearson": "Pearson", "spearman": "Spearman"}
        if names is LIST_METRICS:
            self.SHOWN = {"loss": "loss", metric: metric}

    def evaluate_on(self, examples: Sequence[Any]) -> None:
        """Sets METRIC by the form of the dev examples."""
        self._select_by(LIST_METRICS if _are_lists(examples) else SCORE_METRICS)

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        mask = inputs.get("input_mask")
        if self.lists:
            vector = self.vector(encoded, self.to_sequences(mask))  # (B n, D)
            score = self.scorer(self.dropout(vector)) * self.scale  # (B n, 1)
            return {"score": GroupChoices()(score, mask)[..., 0]}  # (B, n)
        vector = self.dropout(self.vector(encoded, mask))  # (B, D), or (B, n D)
        return {"score": self.scorer(vector) * self.scale}  # (B, 1)

    def config_keys(self) -> dict[str, Any]:
        one = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
        if not self.settings.one_text:  # for CrossEncoder, whose default is the sigmoid
            activation = ACTIVATION_CLASSES[self.activation or "identity"]
            one["sentence_transformers"] = {"activation_fn": activation}
        return {"problem_type": "regression", **one}

    @property
    def inferred_arguments(self) -> dict[str, Any]:
        arguments = {"one_text": True} if self.settings.one_text else {}
        return {**arguments, "lists": True} if self.lists else arguments

    # Training.

    def default_losses(self) -> dict[str, Any]:
        """The squared error, the cross-entropy or the loss of lists, the mean over the batch."""
        if self.lists:
            return {"score": ListLoss(self._loss, list_loss=self.settings.list_loss)}
        if self._loss == BINARY_CROSSENTROPY:
            return {"score": keras.losses.BinaryCrossentropy(from_logits=True)}
        return {"score": keras.losses.MeanSquaredError()}

    def compiled_losses(self) -> dict[str, Any]:
        if not self.lists or replica_count() == 1:
            return super().compiled_losses()
        return {name: LossOfWholeBatch(loss) for name, loss in self.default_losses().items()}

    def default_loss_weights(self) -> dict[str, float]:
        """The loss in units of `scale` squared."""
        return {"score": self.scale**-2}

    def default_metrics(self) -> dict[str, Any]:
        """`mse`, the mean squared error in the range of the labels, if that is the loss."""
        # A text in windows has several.
        if self.reads_windows or self.lists or self._loss != SQUARED_ERROR:
            return {}
        return {"score": [keras.metrics.MeanSquaredError(name="mse")]}

    def check_sample_weight(self) -> None:
        if self.lists:
            raise InputError.naming(
                "{sample_weight} is for pairs with a score, and the examples are lists of "
                "passages. Leave it out."
            )

    # Labelled files.

    @classmethod
    def read(
        cls,
        data: Any,
        *,
        inferred_arguments: dict[str, Any] | None = None,
        schema: dict[str, Any] | None = None,
        labelled: bool = True,
        one_text: bool = False,
        group_by_query: bool = False,
        **columns: Any,
    ) -> Any:
        """`LabelledText`s, or of a table with lists `PassageList`s (see `ScoredPairSource`).

        A sequence holds (text, text, score). With `labelled`, examples without a score are skipped
        and counted.
        """
        inferred = inferred_arguments or {}
        common = {"schema": schema, "need_labels": labelled, **columns}
        if one_text or inferred.get("one_text", False):
            return TextSource(data, texts=TEXT, form=score, **common)
        groups = group_by_query or (labelled and inferred.get("lists", False))
        return ScoredPairSource(data, group_by_query=groups, **common)

    @classmethod
    def infer_arguments(cls, examples: Sequence[Any]) -> dict[str, Any]:
        """The mean of the scores, and the power of two nearest to their standard deviation.

        Of lists of passages, also that they are lists.
        """
        are_lists = _are_lists(examples)
        other = next((e for e in examples if isinstance(e, PassageList) != are_lists), None)
        if other is not None:  # of another file
            kinds = ["a pair", "a list of passages"]
            raise other.error(
                Naming(
                    "{}, and the first training example is {}. With {group_by_query}, pairs become "
                    "lists.",
                    kinds[not are_lists],
                    kinds[are_lists],
                )
            )
        labels = [e.grades if are_lists else (e.label,) for e in examples]
        scores = np.array([x for some in labels for x in some], np.float64)
        if (scores == scores[0]).all():
            raise InputError(
                f"{examples[0].source.name} has a single score ({scores[0]:g}). Training needs "
                "examples with different scores."
            )
        scale = 2.0 ** round(math.log2(scores.std()))
        inferred = {"mean": float(scores.mean()), "scale": scale}
        return {**inferred, "lists": True} if are_lists else inferred

    @classmethod
    def notes(cls, examples: Sequence[Any]) -> list[str]:
        return examples[0].source.notes() if _are_lists(examples) else super().notes(examples)

    @classmethod
    def describe_examples(
        cls, train: Sequence[Any], dev: Sequence[Any], inferred_arguments: dict[str, Any]
    ) -> str:
        if _are_lists(train):
            counts = [len(example.passages) for example in train]
            low, high = min(counts), max(counts)
            passages = f"{high} passages each" if low == high else f"{low} to {high} passages"
            lists = counted(len(dev), "dev list" if _are_lists(dev) else "dev pair")
            return f"{counted(len(train), 'training list')} of {passages}, and {lists}."
        scores = [example.label for example in train]
        noun = "pair" if train[0].text_b is not None else "text"
        return (
            f"{counted(len(train), f'training {noun}')} with scores from {min(scores):g} to "
            f"{max(scores):g} (mean {inferred_arguments['mean']:.3g}), and "
            f"{counted(len(dev), f'dev {noun}')}."
        )

    def targets(
        self, examples: Sequence[Any]
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        labels = [label for example in examples for label in self.labels_of_list(example)]
        return {"score": np.array(labels, np.float32)[:, None]}, {}

    def labels_of_list(self, example: Any) -> Sequence[float]:
        """Returns what the loss compares with the scores of an example's passages, or with one.

        Raises InputError if the loss is not for it.
        """
        is_list = isinstance(example, PassageList)
        if self._loss == MARGIN_MSE:
            if not is_list or example.teacher is None:
                raise example.error(
                    Naming(
                        "no scores of another model, which {loss} margin-mse needs. Name their "
                        "columns, as in {} (or margins=…).",
                        argument("fields", '"query=…,positive=…,negatives=…,scores=…"'),
                    )
                )
            return example.teacher
        labels = example.grades if is_list else (example.label,)
        if self._loss != BINARY_CROSSENTROPY:
            return labels
        low, high = self.settings.score_range or (0.0, 1.0)
        for label in labels:
            if not low <= label <= high:
                raise example.error(
                    Naming(
                        "the score {:g} is not from {:g} to {:g}, as {loss} binary-crossentropy "
                        "needs. Give the lowest and the highest one as {score_range}.",
                        label,
                        low,
                        high,
                    )
                )
        return tuple((label - low) / (high - low) for label in labels)

    def decode(self, outputs: dict[str, Any], sequences: Any) -> list[dict[str, Any]]:
        """`text_a`, `text_b` (or `text`), `score`, and `expected` if known.

        Of a list `query`, `passages`, `scores`, and `expected` if known.
        """
        examples, scores = sequences.examples, outputs["score"]
        if self.lists:  # the rest is padding
            scores = [
                np.asarray(s)[: len(e.texts) - 1] for s, e in zip(scores, examples, strict=True)
            ]
        elif _are_lists(examples):
            counts = np.bincount(sequences.example_of_sequence, minlength=len(examples))
            scores = np.split(scores[:, 0], np.cumsum(counts)[:-1])
        else:
            scores = self.of_examples(scores, sequences)
        if self.activation == "sigmoid":
            scores = [expit(np.asarray(example_scores, np.float64)) for example_scores in scores]
        if _are_lists(examples):
            return list_predictions(scores, examples)
        return score_predictions([example_scores[0] for example_scores in scores], examples)

    def official_metrics(
        self, predictions: Sequence[Any], examples: Sequence[Any]
    ) -> dict[str, Any]:
        """See `score_metrics`, and of lists of passages `list_metrics`.

        With a `score_range`, the scores that are expected are fractions of it.
        """
        from keras_bert.tasks.classification.metrics import score_metrics

        if _are_lists(examples):
            return list_metrics(*_listed(predictions, examples))
        return score_metrics(*_scored(self.settings.score_range, predictions, examples))

    def summed_metrics(self, predictions: Sequence[Any], examples: Sequence[Any]) -> SummedMetrics:
        from keras_bert.tasks.classification.metrics import summed_scores

        if _are_lists(examples):
            return summed_lists(*_listed(predictions, examples))
        return summed_scores(*_scored(self.settings.score_range, predictions, examples))

    def answer_of(self, prediction: dict[str, Any]) -> Any:
        return prediction["scores" if "scores" in prediction else self.ANSWER]

    def is_right(self, predictions: Sequence[Any], examples: Sequence[Any]) -> None:
        return None

    def errors(self, predictions: Sequence[Any], examples: Sequence[Any]) -> list[dict[str, Any]]:
        """See `score_errors` and `list_errors`."""
        return (list_errors if _are_lists(examples) else score_errors)(predictions, examples)

    @staticmethod
    def describe_error(error: dict[str, Any]) -> str:
        if "query" in error:
            return (
                f"line {error['line']}, {in_one_line(error['query'])}: relevant: "
                f"{in_one_line(error['expected'])}, first: {in_one_line(error['predicted'])}"
            )
        texts = " / ".join(in_one_line(error[name]) for name in (*TEXT, *PAIR) if name in error)
        return (
            f"line {error['line']}, true: {error['expected']:g}, predicted: "
            f"{error['predicted']:.2f}: {texts}"
        )

    @staticmethod
    def describe_metrics(metrics: dict[str, Any]) -> str:
        if "lists" in metrics:
            return ", ".join(f"{name} {metrics[name]:.3f}" for name in LIST_METRICS)
        return (
            f"Pearson {metrics['pearson']:.3f}, Spearman {metrics['spearman']:.3f}, mean squared "
            f"error {metrics['mse']:.3g}"
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "scale": self.scale, "activation": self.activation}


def _scored(score_range, predictions, examples):
    """-> (the expected scores as fractions of a range, the predicted ones)."""
    low, high = score_range or (0.0, 1.0)
    expected = [(example.label - low) / (high - low) for example in examples]
    return expected, [prediction["score"] for prediction in predictions]


def _are_lists(examples):
    return isinstance(examples[0], PassageList)


def _listed(predictions, examples):
    """-> (the grades of each list, its scores)."""
    return [example.grades for example in examples], [p["scores"] for p in predictions]
