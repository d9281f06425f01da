"""Tasks on texts that belong together: how these are read, and how their vectors are measured."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, in_one_line
from keras_bert.base.settings import PathText
from keras_bert.readers.retrieval_folder import (
    RETRIEVAL,
    RetrievalSource,
    is_retrieval_folder,
)
from keras_bert.readers.text_groups import FORM_NAMES, TextGroupSource
from keras_bert.readers.text_notes import contradictions
from keras_bert.tasks.metrics import worst_first
from keras_bert.tasks.task import Task
from keras_bert.tasks.text_embedding import BINARY, LABELS, PAIRS, SCORES, TEXTS
from keras_bert.tasks.text_embedding.evaluation import metrics_with, pair_errors
from keras_bert.tasks.text_embedding.metrics import pair_similarities


class GroupPrediction(dict):
    """The prediction for an example, with `vectors`, float32 (n, D) of its n texts."""

    vectors: np.ndarray


class GroupTask(Task):
    """The part of a `TextEmbedder` that reads examples, and says what their vectors are.

    Examples are texts that belong together (`TextGroup`), or those of a retrieval folder.
    """

    @classmethod
    def read(
        cls,
        data: Any,
        *,
        inferred_arguments: dict[str, Any] | None = None,
        schema: dict[str, Any] | None = None,
        labelled: bool = True,
        qrels: PathText | None = None,
        **columns: Any,
    ) -> Any:
        """`TextGroup`s of a table or a sequence, or the texts of a retrieval folder."""
        common = {"need_labels": labelled, "missing": columns.get("missing", "skip")}
        if is_retrieval_folder(data):
            return RetrievalSource(data, qrels=qrels, **common)
        if qrels is not None:
            raise InputError.naming("{qrels} is for a retrieval folder. Leave it out.")
        return TextGroupSource(data, schema=schema, **{**columns, **common})

    @classmethod
    def infer_arguments(cls, examples: Sequence[Any]) -> dict[str, Any]:
        """The form of the examples."""
        first = examples[0]
        if first.form != SCORES and getattr(first.source, "score_range", None) is not None:
            raise InputError.naming(
                "{score_range} is for pairs with scores, and {} has {}. Leave it out.",
                first.source.name,
                FORM_NAMES.get(first.form, "documents and queries"),
            )
        if first.form == RETRIEVAL:
            raise InputError(
                f"{first.source.name} is a retrieval folder, on which a model is evaluated. Train "
                "on a table of anchors and positives."
            )
        if len(examples) < 2:
            raise InputError(
                f"{first.source.name} has a single example. A text is told from those of others, "
                "so that training needs several."
            )
        other = next((example for example in examples if example.form != first.form), None)
        if other is not None:
            raise InputError(
                f"{first.source.name} has {FORM_NAMES[first.form]}, and {other.source.name} "
                f"{FORM_NAMES.get(other.form, 'documents and queries')}. A run trains on one form: "
                "train on one after another."
            )
        if len({example.label for example in examples}) == 1 and first.label is not None:
            label = first.label if isinstance(first.label, str) else f"{first.label:g}"
            raise InputError(
                f"{first.source.name} has a single score or label ({label}). Training needs "
                "examples with different ones."
            )
        return {"form": first.form}

    @classmethod
    def notes(cls, examples: Sequence[Any]) -> list[str]:
        """Lines on texts that several rows have, and on scores that contradict each other."""
        source, lines = examples[0].source, []
        if examples[0].form == PAIRS:
            rows = Counter(text for example in examples for text in {*example.texts})
            repeated = sum(any(rows[text] > 1 for text in e.texts) for e in examples)
            if repeated:
                lines.append(
                    f"{source.name}: {repeated:,} of the {counted(len(examples), 'row')} share a "
                    "text with another row. In training no text is twice in a batch."
                )
        elif examples[0].label is not None:
            lines += contradictions(examples)
        return [*lines, *source.notes()]

    @classmethod
    def describe_examples(
        cls, train: Sequence[Any], dev: Sequence[Any], inferred_arguments: dict[str, Any]
    ) -> str:
        form = train[0].form
        line = f"{counted(len(train), 'training example')}: {FORM_NAMES[form]}"
        if form == PAIRS:
            negatives = [len(example.texts) - 2 for example in train]
            if max(negatives):
                low, high = min(negatives), max(negatives)
                count = counted(high, "negative")
                line += f", with {count}" if low == high else f", with {low} to {count}"
        if form == SCORES:
            scores = [example.label for example in train]
            line += f" from {min(scores):g} to {max(scores):g}"
        if form == BINARY:
            ones = sum(example.label > 0 for example in train)
            line += f" ({ones:,} with 1)"
        if form == LABELS:
            line += f" ({len({example.label for example in train}):,} different)"
        other = dev[0].form
        dev_form = "" if other == form else f": {FORM_NAMES.get(other, 'a retrieval folder')}"
        return f"{line}. {counted(len(dev), 'dev example')}{dev_form}."

    def decode(self, outputs: dict[str, Any], sequences: Any) -> list[dict[str, Any]]:
        """Gives `text` and `embedding` of a text; of several texts the first two's `similarity`.

        `embedding` is float32 (D,). The texts are `anchor` and `positive`, and maybe `negatives`,
        or `text_a` and `text_b`, with `expected` if known.
        """
        size = self.size_of(None)
        return [
            self._prediction(example, np.asarray(vectors)[: len(example.texts)], size)
            for example, vectors in zip(sequences.examples, outputs["embedding"], strict=True)
        ]

    def _prediction(self, example, vectors, size):
        if len(example.texts) == 1:
            prediction = GroupPrediction(text=example.text, embedding=vectors[0, :size])
        else:
            names = ("anchor", "positive") if example.form == PAIRS else ("text_a", "text_b")
            prediction = GroupPrediction(zip(names, example.texts, strict=False))
            if example.texts[2:]:
                prediction["negatives"] = list(example.texts[2:])
            by, first = self.settings.similarity, vectors[:, :size]
            prediction["similarity"] = float(pair_similarities(first[:1], first[1:2], by=by)[0])
            if example.label is not None:
                prediction["expected"] = example.label
        prediction.vectors = vectors
        return prediction

    def official_metrics(
        self, predictions: Sequence[Any], examples: Sequence[Any]
    ) -> dict[str, Any]:
        """Metrics by the form of the examples, and `sizes` with those at each other stored size.

        * Pairs with scores: `spearman` and `pearson` of similarities and scores.
        * Pairs with 0 or 1: see `binary_pair_metrics`.
        * Anchors and positives: of each anchor its positives are looked for among the positives
          and negatives of all (see `retrieval_metrics`), and with negatives `triplet_accuracy`.
        * A retrieval folder: see `retrieval_metrics`.
        * Texts with labels: of each text the others of its label are looked for among all others.

        The vectors are those of the setting `size`.
        """
        if examples[0].form == TEXTS:
            raise InputError(f"{examples[0].source.name} has plain texts, which have no metric.")
        vectors, by = [prediction.vectors for prediction in predictions], self.settings.similarity
        whole = self.size_of(None)
        metrics = metrics_with(vectors, examples, size=whole, by=by)
        others = [size for size in self.settings.sizes if size != whole]
        if others:
            metrics["sizes"] = {
                str(size): metrics_with(vectors, examples, size=size, by=by) for size in others
            }
        return metrics

    def summed_metrics(self, predictions: Sequence[Any], examples: Sequence[Any]) -> NoReturn:
        """Raises InputError: ranks are no sums over examples."""
        raise InputError(
            "Text embedders have no intervals: how texts are ranked does not follow from sums over "
            "examples. Evaluate each model with `keras_bert.evaluate` (keras-bert evaluate)."
        )

    def errors(self, predictions: Sequence[Any], examples: Sequence[Any]) -> list[dict[str, Any]]:
        """Gives all rated pairs, the first with its similarity farthest from its score's rank.

        Of pairs with 0 or 1 it gives those on the wrong side of `f1_threshold`, and of other
        examples nothing.
        """
        if examples[0].form not in (SCORES, BINARY):
            return []
        similarity = np.array([prediction["similarity"] for prediction in predictions])
        return worst_first(pair_errors(similarity, predictions, examples), by="error")

    @staticmethod
    def describe_error(error: dict[str, Any]) -> str:
        texts = " / ".join(in_one_line(error[name]) for name in ("text_a", "text_b"))
        return (
            f"line {error['line']}, true: {error['expected']:g}, similarity: "
            f"{error['predicted']:.2f}: {texts}"
        )

    @staticmethod
    def describe_metrics(metrics: dict[str, Any]) -> str:
        names: tuple[str, ...]
        names = ("spearman", "pearson", "average_precision", "f1", "ndcg@10", "mrr@10")
        names = (*names, "recall@10", "triplet_accuracy")
        return ", ".join(
            f"{name} {metrics[name]:.3f}" for name in names if metrics.get(name) is not None
        )
