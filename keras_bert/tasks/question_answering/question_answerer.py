"""The span of a text that answers a question (Devlin et al. 2018, section 4.2).

Legend of shapes: T tokens of the text in a window, A tokens of the longest answer.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, percent, quoted
from keras_bert.layers import Tensor
from keras_bert.layers.dense import logits_layer
from keras_bert.readers.squad import QuestionSource, question_warnings
from keras_bert.tasks.exported_predictions import question_prediction
from keras_bert.tasks.losses import cross_entropy_by_weight
from keras_bert.tasks.metrics import calibration
from keras_bert.tasks.question_answering import QuestionSettings
from keras_bert.tasks.question_answering.metrics import (
    best_thresholds,
    scores_of,
    squad_1,
    squad_2,
    summed_squad,
    tuned_threshold,
)
from keras_bert.tasks.summed_metrics import SummedMetrics
from keras_bert.tasks.task import Task


class WindowLogits(NamedTuple):
    """The logits of one window of a text, at its T tokens and at [CLS]."""

    first: int  # the window's first token, in the text
    core: slice  # the tokens with most context in this window (see `Windows`)
    starts: np.ndarray  # float32 (T,): an answer starts at the token
    ends: np.ndarray  # float32 (T,): an answer ends at the token
    null: float  # no answer: the sum of both at [CLS]


class Span(NamedTuple):
    """Tokens of a text, the last included, with the sum of their logits and the probability."""

    first: int
    last: int
    logit: float
    probability: float


class Spans(NamedTuple):
    """The best `Span`s of a text, best first (none if it has no token), and the null answer.

    `null_score` is the logit of no answer minus that of the best span, for comparison with a
    threshold; 0 without spans. `null_probability` is 0 if every question has an answer.
    """

    best: list
    null_score: float
    null_probability: float


def best_spans(windows, *, max_answer_length, count=1, may_be_none=False):
    """`Spans` over the `WindowLogits` of a text, in their order.

    A span is up to `max_answer_length` tokens of one window that start in its core, so that each
    span is scored once, where it has most context. As in google-research/bert, the score of no
    answer is the lowest of all windows, since an answer may be in any. Unlike there, all spans are
    scored, without a shortlist of starts and ends, and probabilities are over all of them (and no
    answer with `may_be_none`).
    """
    tables = [_sums(window, max_answer_length) for window in windows]
    tokens = np.concatenate([window.first + np.r_[window.core] for window in windows])
    sums = np.concatenate(tables).ravel()  # (tokens * A,)
    null = min(window.null for window in windows)
    if not len(sums):
        return Spans([], 0.0, 1.0 if may_be_none else 0.0)
    order = _largest(sums, count)
    top = max(float(sums[order[0]]), null if may_be_none else -math.inf)
    null_weight = math.exp(null - top) if may_be_none else 0.0
    total = float(np.exp(sums.astype(np.float64) - top).sum()) + null_weight
    best = []
    for position in order:
        token, further = divmod(int(position), max_answer_length)
        first, logit = int(tokens[token]), float(sums[position])
        best.append(Span(first, first + further, logit, math.exp(logit - top) / total))
    return Spans(best, null - best[0].logit, null_weight / total)


def question_answers(outputs, sequences, *, max_answer_length, n_best, null_threshold):
    """One dictionary per question, as `keras-bert predict` prints it.

    Args:
        outputs: `start_logits` and `end_logits`, each a list of float32 (S,), one per sequence.
        sequences: the `QuestionSequences`.
        max_answer_length: tokens of the longest answer.
        n_best: the number of spans in `n_best`.
        null_threshold: the null score above which there is no answer; None: there always is one.
    """
    splits = np.searchsorted(sequences.windows.sequence, np.arange(len(sequences.examples) + 1))
    answers = []
    for number, example in enumerate(sequences.examples):
        spans = best_spans(
            [
                _window_logits(outputs, sequences, position)
                for position in range(splits[number], splits[number + 1])
            ],
            max_answer_length=max_answer_length,
            count=n_best,
            may_be_none=null_threshold is not None,
        )
        context = sequences.context_of[number]
        texts = []
        for span in spans.best:
            start, end = sequences.contexts.characters(context, span.first, span.last)
            texts.append(
                {
                    "answer": example.context[start:end],
                    "start": start,
                    "end": end,
                    "score": span.probability,
                }
            )
        answers.append(_answer(example, spans, texts, n_best, null_threshold))
    return answers


def _window_logits(outputs, sequences, position):
    starts, ends = outputs["start_logits"][position], outputs["end_logits"][position]
    window = [int(part[position]) for part in sequences.windows]
    _, start, size, core_start, core_end = window
    first = sequences.token_starts[position]
    tokens = slice(first, first + size)
    return WindowLogits(
        first=start,
        core=slice(core_start - start, core_end - start),
        starts=starts[tokens],
        ends=ends[tokens],
        null=float(starts[0] + ends[0]),
    )


def _answer(example, spans, texts, n_best, null_threshold):
    answer = {"question": example.question}
    if example.id is not None:
        answer = {"id": example.id, **answer}
    is_none = null_threshold is not None and spans.null_score > null_threshold
    if is_none or not texts:
        answer |= {"answer": "", "start": 0, "end": 0, "score": spans.null_probability}
    else:
        answer |= texts[0]
    answer["null_score"] = spans.null_score
    if example.answers is not None:
        answer["expected"] = [gold.text for gold in example.answers]
    if n_best > 1 or null_threshold is not None:
        answer["n_best"] = texts
    return answer


def _sums(window, most):
    """float32 (tokens of the core, A): start logit + end logit 0, 1, … tokens further on.

    -inf past the end of the window.
    """
    positions = np.r_[window.core]
    beyond = np.full(most, -np.inf, np.float32)
    ends = np.lib.stride_tricks.sliding_window_view(np.concatenate([window.ends, beyond]), most)
    return window.starts[positions][:, None] + ends[positions]


def _largest(scores, count):
    """The positions of the `count` largest finite values, in order; of ties the first one first.

    Shapes: values (N,) -> int (up to count,).
    """
    if count == 1:
        return [int(scores.argmax())]
    count = min(count, int(np.isfinite(scores).sum()))
    least = np.partition(scores, len(scores) - count)[len(scores) - count]
    above = np.flatnonzero(scores >= least)
    return above[np.argsort(-scores[above], kind="stable")][:count]


# The logit at padding, as in google-research/bert; its probability is 0.
_AT_PADDING = -10000.0
_OUTPUTS = ("start_logits", "end_logits")


@keras.saving.register_keras_serializable(package="keras_bert")
class QuestionAnswerer(Task):
    """An encoder with a linear layer over every token's output: does the answer start or end here?

    Takes the encoder's dictionary and gives the logits (B batch, S tokens of a sequence)

    - `start_logits` (B, S): the answer starts with the token
    - `end_logits` (B, S): it ends with it

    The head is that of Hugging Face's BertForQuestionAnswering, a layer without dropout. At padding
    the logits are -10000, so that probabilities and loss do not depend on the padding. Labels are
    `start_logits` and `end_logits` (B,), the positions of the two tokens; sample weights of the
    same names and shapes are 0 for sequences that do not count. A pooler is not used; a model
    folder keeps it under a name of its own, because that class has none.

    A context that is too long for a sequence is split into overlapping windows, and the answer is
    the best span of all of them (see `best_spans`).

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`.
        **settings: see `QuestionSettings`. `null_threshold` None is no threshold, so that every
            question has an answer, until `tune_threshold` sets it on dev data with unanswerable
            questions.

    Attributes: `settings`, `qa_outputs` (the `Dense`), `dropout` (the `Dropout`).
    """

    TASK_TYPE = "question-answering"
    HEAD_READS = ("input_mask",)
    HEADS = ("qa_outputs",)
    SETTINGS = QuestionSettings
    TUNED = ("null_threshold",)
    FEATURES = "keras_bert.tasks.question_answering.features:features_of_questions"
    SIGNATURES = "keras_bert.tasks.question_answering.signatures:question_signatures"
    exported_prediction = question_prediction
    ANSWER = "answer"
    METRIC = "f1"
    SHOWN = {
        "loss": "loss",
        "start_logits_accuracy": "start accuracy",
        "end_logits_accuracy": "end accuracy",
    }

    def make_head(self) -> None:
        policy = self.encoder.layer_policy
        self.transform = self.new_token_transform()
        self.dropout = keras.layers.Dropout(self.head_dropout, dtype=policy, name="dropout")
        self.qa_outputs = logits_layer(
            2,
            initializer_range=self.config.head_initializer_range,
            name="qa_outputs",
            dtype=policy,
        )

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        x = encoded["sequence_output"]
        x = x if self.transform is None else self.transform(x)
        logits = self.qa_outputs(self.dropout(x))  # (B, S, 2)
        at_tokens = ops.cast(inputs["input_mask"], "bool")  # (B, S)
        return {
            "start_logits": ops.where(at_tokens, logits[..., 0], _AT_PADDING),
            "end_logits": ops.where(at_tokens, logits[..., 1], _AT_PADDING),
        }

    def default_losses(self) -> dict[str, Any]:
        """Cross-entropy over the tokens of a sequence in nats; the mean over those that count."""
        return {name: cross_entropy_by_weight() for name in _OUTPUTS}

    def default_metrics(self) -> dict[str, Any]:
        """Each output's `accuracy`: the fraction of sequences with the right token on top."""
        return {
            name: [keras.metrics.SparseCategoricalAccuracy(name="accuracy")] for name in _OUTPUTS
        }

    def default_loss_weights(self) -> dict[str, float]:
        """The mean of both outputs' losses, as in BERT."""
        return {"start_logits": 0.5, "end_logits": 0.5}

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
        """`Question`s of SQuAD's JSON, JSON Lines, tfds or a sequence (see `QuestionSource`)."""
        return QuestionSource(data, need_labels=labelled, schema=schema, **columns)

    @classmethod
    def infer_arguments(cls, examples: Sequence[Any]) -> dict[str, Any]:
        if not any(example.located for example in examples):
            raise InputError(
                f"{examples[0].source.name} has no question with an answer in its context. "
                "Training needs at least one."
            )
        return {}

    @classmethod
    def describe_examples(
        cls, train: Sequence[Any], dev: Sequence[Any], inferred_arguments: dict[str, Any]
    ) -> str:
        return f"{_counts(train, 'training question')} and {_counts(dev, 'dev question')}."

    @classmethod
    def notes(cls, examples: Sequence[Any]) -> list[str]:
        return question_warnings(examples)

    def stride_of(self, max_length: int) -> int:
        """The tokens from one window's start to the next one's, in sequences of `max_length`."""
        return self.settings.stride or max(1, max_length // 3)

    def decode(self, outputs: dict[str, Any], sequences: Any) -> list[dict[str, Any]]:
        """`id` (if any), `question`, `answer`, `start`, `end`, `score`, `null_score`, `expected`.

        The answer is the context's characters from `start` up to `end`; "" (both 0) is no answer.
        `score` is its probability, `null_score` the logit of no answer minus that of the best span.
        `expected` holds the gold answers, if known. `n_best` lists the best spans if more than one
        is requested or a question may have no answer.
        """
        return self._answers(outputs, sequences, null_threshold=self.settings.null_threshold)

    def _answers(self, outputs, sequences, *, null_threshold):
        return question_answers(
            outputs,
            sequences,
            max_answer_length=self.settings.max_answer_length,
            n_best=self.settings.n_best,
            null_threshold=null_threshold,
        )

    def tune_threshold(self, outputs: dict[str, Any], sequences: Any) -> None:
        """Sets `null_threshold` if some questions have no answer and no threshold was given."""
        golds = _golds(sequences.examples)
        if self.tuned and not all(golds):
            answers = self._answers(outputs, sequences, null_threshold=None)
            threshold = tuned_threshold(
                [answer["answer"] for answer in answers],
                golds,
                [answer["null_score"] for answer in answers],
            )
            self.update_settings(null_threshold=threshold)

    def official_metrics(
        self, predictions: Sequence[Any], examples: Sequence[Any]
    ) -> dict[str, Any]:
        """SQuAD's official metrics, from 0 to 1 (see `squad_1`, `squad_2`), and `examples`.

        They are those of version 2.0, with those of the best threshold (see `best_thresholds`), if
        some questions have no answer. `calibration` (see there) is of exact matches.
        """
        golds, texts = _golds(examples), [prediction["answer"] for prediction in predictions]
        version = 1 if all(golds) else 2
        exact = [
            scores_of(text, gold, version=version)[0]
            for text, gold in zip(texts, golds, strict=True)
        ]
        scores = [prediction["score"] for prediction in predictions]
        others = {"examples": len(examples), "calibration": calibration(scores, exact)}
        if version == 1:
            return {**squad_1(texts, golds), **others}
        candidates = [
            p["n_best"][0]["answer"] if p.get("n_best") else p["answer"] for p in predictions
        ]
        null_scores = [prediction["null_score"] for prediction in predictions]
        best = best_thresholds(candidates, golds, null_scores)
        return {**squad_2(texts, golds), **best, **others}

    def summed_metrics(self, predictions: Sequence[Any], examples: Sequence[Any]) -> SummedMetrics:
        return summed_squad([p["answer"] for p in predictions], _golds(examples))

    @staticmethod
    def describe_metrics(metrics: dict[str, Any]) -> str:
        line = f"exact {percent(metrics['exact'])}, F1 {percent(metrics['f1'])}"
        if "NoAns_f1" in metrics:
            line += f", F1 of unanswerable questions {percent(metrics['NoAns_f1'])}"
        return line

    def errors(self, predictions: Sequence[Any], examples: Sequence[Any]) -> list[dict[str, Any]]:
        """The answers that match no gold answer, by 1 - F1 times their probability.

        Returns dictionaries of `line`, `question`, the gold answers in `expected` (none: there is
        no answer), `predicted` ("": no answer), the `f1` of the two, and the answer's `score`.
        """
        errors, golds = [], _golds(examples)
        version = 1 if all(golds) else 2
        for prediction, example, texts in zip(predictions, examples, golds, strict=True):
            _, f1 = scores_of(prediction["answer"], texts, version=version)
            if f1 < 1.0:
                errors.append(
                    {
                        "line": example.line,
                        "question": example.question,
                        "expected": texts,
                        "predicted": prediction["answer"],
                        "f1": f1,
                        "score": prediction["score"],
                    }
                )
        return sorted(errors, key=lambda error: (error["f1"] - 1.0) * error["score"])

    @staticmethod
    def describe_error(error: dict[str, Any]) -> str:
        expected, predicted = quoted(error["expected"]), f'"{error["predicted"]}"'
        return (
            f"{error['line']}: {error['question']}\n  true: {expected or 'no answer'}, predicted: "
            f"{predicted if error['predicted'] else 'no answer'} ({error['score']:.2f})"
        )


def _golds(examples):
    """The texts of each example's answers; InputError if they are unknown."""
    for example in examples:
        if example.answers is None:
            raise example.error("no gold answers to compare with.")
    return [[answer.text for answer in example.answers] for example in examples]


def _counts(examples, noun):
    without = sum(not example.answers for example in examples)
    return counted(len(examples), noun) + (f" ({without:,} without an answer)" if without else "")
