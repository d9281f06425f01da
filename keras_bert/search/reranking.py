"""The order of what a search has found, by a cross-encoder: a model that reads query and text."""

import os
import threading
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from keras_bert.base.errors import InputError, warn_user
from keras_bert.base.formatting import counted
from keras_bert.inference.predict import as_task
from keras_bert.readers.texts import LabelledText
from keras_bert.tasks.outputs import Inference
from keras_bert.tasks.task import Task

# Pairs that are tokenized together.
_PAIRS_TOGETHER = 2048


class Reranker:
    """Scores pairs of a query and a text by a cross-encoder, and orders results by the scores.

    Args:
        model: a folder with a score for pairs of texts, such as one of sentence-transformers'
            CrossEncoder, or a `Regressor`.
        batch_size: pairs per batch.

    Raises InputError: the model has no score for pairs of texts.
    """

    def __init__(self, model: Any, *, batch_size: int = 32):
        self.task: Task = as_task(model)
        name = f"{model}" if isinstance(model, str | os.PathLike) else "The model"
        if "rerank" not in self.task.OFFERS:
            raise InputError.naming(
                "{} contains a model of the task {}{}, which cannot rerank. Expected a "
                "cross-encoder: a model with one score for a pair of texts, such as {task} "
                "regression trains.",
                name,
                self.task.TASK_TYPE,
                _described(self.task),
            )
        if self.task.tokenizer is None:
            raise InputError(f"{name} has no supported tokenizer, so it cannot read text.")
        self._inference = Inference(self.task, batch_size=batch_size)
        self._lock = threading.Lock()

    @classmethod
    def of(cls, model: Any) -> Self:
        """The given one, or that of a model."""
        return model if isinstance(model, cls) else cls(model)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """The score of each pair of a query and a text, float64 (N,).

        A pair with more tokens than the model reads is cut; `keras_bert.InputWarning` says how
        many.
        """
        scores, cut = np.empty(len(pairs)), 0
        with self._lock:
            for first in range(0, len(pairs), _PAIRS_TOGETHER):
                some = pairs[first : first + _PAIRS_TOGETHER]
                sequences = self.task.features(
                    [LabelledText(n, a, None, b) for n, (a, b) in enumerate(some, start=1)]
                )
                predictions = self._inference.predict_sequences(sequences)
                scores[first : first + len(some)] = [row["score"] for row in predictions]
                cut += sequences.cut
        if cut:
            warn_user(
                f"{cut:,} of the {counted(len(pairs), 'pair')} of a query and a text are longer "
                f"than {self.task.settings.max_length} tokens, and were cut for the reranker."
            )
        return scores

    def reranked(
        self, queries: Sequence[str], results: Sequence[list[dict[str, Any]]]
    ) -> list[list[dict[str, Any]]]:
        """The results of each query, ordered by the scores of its text and theirs.

        What is scored is the best `passage` of a result if it has one, else its `text`. Equal
        scores keep their order. `rank` and `score` are replaced.
        """
        pairs = [
            (query, row.get("passage", row["text"]))
            for query, rows in zip(queries, results, strict=True)
            for row in rows
        ]
        scores, ordered, first = self.scores(pairs), [], 0
        for rows in results:
            row_scores = scores[first : first + len(rows)]
            first += len(rows)
            order = np.argsort(-row_scores, kind="stable").tolist()
            ordered.append(
                [
                    {**rows[number], "rank": rank, "score": float(row_scores[number])}
                    for rank, number in enumerate(order, start=1)
                ]
            )
        return ordered


def _described(task):
    """Returns what is said of a model that is no cross-encoder, after its task."""
    labels = getattr(task, "labels", None)
    if labels:
        return f" with {counted(len(labels), 'label')}"
    return " for single texts" if getattr(task.settings, "one_text", False) else ""
