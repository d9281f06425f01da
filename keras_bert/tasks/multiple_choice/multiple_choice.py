"""Which of several choices goes with a context (Devlin et al. 2018, section 4.4)."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops
from scipy.special import softmax

from keras_bert.base.formatting import counted, percent
from keras_bert.heads.classification import GroupChoices, labelled_head
from keras_bert.layers import Tensor
from keras_bert.readers.choices import ChoiceSource
from keras_bert.tasks.classification.pooled_task import PooledTask
from keras_bert.tasks.exported_predictions import choice_prediction
from keras_bert.tasks.fitting import NO_CHOICE
from keras_bert.tasks.metrics import (
    calibration,
    cross_entropies,
    mean_cross_entropy,
    worst_first,
)
from keras_bert.tasks.multiple_choice import MultipleChoiceSettings
from keras_bert.tasks.summed_metrics import SummedMetrics, ratio


@keras.saving.register_keras_serializable(package="keras_bert")
class MultipleChoice(PooledTask):
    """An encoder with a linear layer over one vector of the whole sequence: one logit per choice.

    Takes the encoder's dictionary with an axis of choices, each input (B, n, S), and gives `logits`
    (B, n): B batch, n choices, S tokens of a sequence `[CLS] context [SEP] choice [SEP]`. An
    example with fewer choices than others of its batch has empty sequences, whose logit is -10000.
    With the pooling "cls" the head is that of Hugging Face's BertForMultipleChoice: dropout, then
    the layer.

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`.
        **settings: see `MultipleChoiceSettings`.

    Attributes: `settings`, `classifier` (the `Dense`), `dropout` (the `Dropout`).

    Raises:
        InputError: [CLS] of a causal encoder is read.
    """

    TASK_TYPE = "multiple-choice"
    SEQUENCE_AXES = (None,)
    HEADS = ("classifier",)
    SETTINGS = MultipleChoiceSettings
    METRIC = "accuracy"
    FEATURES = "keras_bert.tasks.multiple_choice.features:choice_sequences"
    SIGNATURES = "keras_bert.tasks.multiple_choice.features:choice_signatures"
    exported_prediction = choice_prediction
    SHOWN = {"loss": "loss", "accuracy": "accuracy"}

    def make_head(self) -> None:
        super().make_head()
        self.HEAD_READS = ("input_mask",)
        self.dropout, self.classifier = labelled_head(self.encoder, 1, dropout=self.head_dropout)

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        mask = inputs["input_mask"]  # (B, n, S)
        vector = self.vector(encoded, self.to_sequences(mask))  # (B n, D)
        logits = self.classifier(self.dropout(vector))  # (B n, 1)
        logits = GroupChoices()(logits, mask)[..., 0]  # (B, n)
        return {"logits": ops.where(ops.any(mask > 0, axis=-1), logits, NO_CHOICE)}

    def default_losses(self) -> dict[str, Any]:
        """Cross-entropy over the choices in nats, the mean over the batch."""
        return {"logits": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}

    def default_metrics(self) -> dict[str, Any]:
        """`accuracy`, the fraction of examples whose right choice has the highest logit."""
        return {"logits": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

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
        """`LabelledChoices` of JSON Lines, a table (one column per choice), tfds or a sequence.

        A sequence holds (context, choices, number of the right choice, from 0).
        """
        return ChoiceSource(data, need_labels=labelled, schema=schema, **columns)

    @classmethod
    def describe_examples(
        cls, train: Sequence[Any], dev: Sequence[Any], inferred_arguments: dict[str, Any]
    ) -> str:
        counts = [len(example.choices) for example in train]
        choices = f"{min(counts)}" if len({*counts}) == 1 else f"{min(counts)} to {max(counts)}"
        chance = np.mean([1 / len(example.choices) for example in dev])
        return (
            f"{counted(len(train), 'training example')} of {choices} choices and "
            f"{counted(len(dev), 'dev example')}; guessing gets {percent(chance)} right."
        )

    def decode(self, outputs: dict[str, Any], sequences: Any) -> list[dict[str, Any]]:
        """`context`, `choices`, `label` (from 0), `choice`, `score`, `expected`, `probabilities`.

        `expected` is present if known.
        """
        predictions = []
        for example, logits in zip(sequences.examples, outputs["logits"], strict=True):
            choice_logits = np.asarray(logits, np.float64)[
                : len(example.choices)
            ]  # the rest is padding
            probabilities = softmax(choice_logits)
            best = int(probabilities.argmax())
            prediction = {
                "context": example.context,
                "choices": list(example.choices),
                "label": best,
                "choice": example.choices[best],
                "score": float(probabilities[best]),
            }
            if example.label is not None:
                prediction["expected"] = example.label
            predictions.append({**prediction, "probabilities": probabilities.tolist()})
        return predictions

    def official_metrics(
        self, predictions: Sequence[Any], examples: Sequence[Any]
    ) -> dict[str, Any]:
        """`accuracy`, `cross_entropy` in nats, `examples` and `calibration` (see there)."""
        pairs = list(zip(predictions, examples, strict=True))
        correct = np.array([prediction["label"] == example.label for prediction, example in pairs])
        chosen = [prediction["probabilities"][example.label] for prediction, example in pairs]
        return {
            "accuracy": float(correct.mean()),
            "cross_entropy": mean_cross_entropy(chosen),
            "examples": len(examples),
            "calibration": calibration([p["score"] for p in predictions], correct),
        }

    def summed_metrics(self, predictions: Sequence[Any], examples: Sequence[Any]) -> SummedMetrics:
        pairs = list(zip(predictions, examples, strict=True))
        chosen = np.array([p["probabilities"][example.label] for p, example in pairs])
        parts = {
            "right": np.array([p["label"] == e.label for p, e in pairs], np.float64),
            "losses": cross_entropies(chosen),
            "examples": np.ones(len(pairs)),
        }
        names = {"accuracy": "right", "cross_entropy": "losses"}
        return SummedMetrics(
            parts=parts,
            metrics=lambda sums: {
                metric: ratio(sums[part], sums["examples"]) for metric, part in names.items()
            },
        )

    def errors(self, predictions: Sequence[Any], examples: Sequence[Any]) -> list[dict[str, Any]]:
        """Returns those with a wrong choice, the most confident first (see `Task.errors`)."""
        return worst_first(
            {
                "line": example.line,
                "context": example.context,
                "expected": example.choices[example.label],
                "predicted": prediction["choice"],
                "score": prediction["score"],
            }
            for prediction, example in zip(predictions, examples, strict=True)
            if prediction["label"] != example.label
        )

    @staticmethod
    def describe_metrics(metrics: dict[str, Any]) -> str:
        return f"accuracy {percent(metrics['accuracy'])}"
