"""The span of a text that answers a question (Devlin et al. 2018, section 4.2)."""

import keras
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, percent, quoted
from keras_bert.layers.dense import logits_layer
from keras_bert.readers.squad import QuestionSource, question_warnings
from keras_bert.tasks.global_mean import cross_entropy_by_weight
from keras_bert.tasks.metrics import calibration
from keras_bert.tasks.question_answering import QuestionSettings
from keras_bert.tasks.question_answering.decode import question_answers
from keras_bert.tasks.question_answering.metrics import (
    best_thresholds,
    scores_of,
    squad_1,
    squad_2,
    tuned_threshold,
)
from keras_bert.tasks.task import Task

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
    METRIC = "f1"
    SHOWN = {
        "loss": "loss",
        "start_logits_accuracy": "start accuracy",
        "end_logits_accuracy": "end accuracy",
    }

    def make_head(self):
        policy = self.encoder.layer_policy
        rate = self.settings.dropout or 0.0
        self.dropout = keras.layers.Dropout(rate, dtype=policy, name="dropout")
        self.qa_outputs = logits_layer(
            2,
            initializer_range=self.config.head_initializer_range,
            name="qa_outputs",
            dtype=policy,
        )

    def build_head(self, encoded, inputs):
        logits = self.qa_outputs(self.dropout(encoded["sequence_output"]))  # (B, S, 2)
        at_tokens = ops.cast(inputs["input_mask"], "bool")  # (B, S)
        return {
            "start_logits": ops.where(at_tokens, logits[..., 0], _AT_PADDING),
            "end_logits": ops.where(at_tokens, logits[..., 1], _AT_PADDING),
        }

    def default_losses(self):
        """Cross-entropy over the tokens of a sequence in nats; the mean over those that count."""
        return {name: cross_entropy_by_weight() for name in _OUTPUTS}

    def default_metrics(self):
        """Each output's `accuracy`: the fraction of sequences with the right token on top."""
        return {
            name: [keras.metrics.SparseCategoricalAccuracy(name="accuracy")] for name in _OUTPUTS
        }

    def default_loss_weights(self):
        """The mean of both outputs' losses, as in BERT."""
        return {"start_logits": 0.5, "end_logits": 0.5}

    @classmethod
    def read(cls, data, *, inferred_arguments=None, schema=None, labelled=True, **columns):
        """`Question`s of SQuAD's JSON, JSON Lines, tfds or a sequence (see `QuestionSource`)."""
        return QuestionSource(data, need_labels=labelled, schema=schema, **columns)

    @classmethod
    def infer_arguments(cls, examples):
        if not any(example.located for example in examples):
            raise InputError(
                f"{examples[0].source.name} has no question with an answer in its context. "
                "Training needs at least one."
            )
        return {}

    @classmethod
    def describe_examples(cls, train, dev, inferred_arguments):
        return f"{_counts(train, 'training question')} and {_counts(dev, 'dev question')}."

    @classmethod
    def notes(cls, examples):
        return question_warnings(examples)

    def stride_of(self, max_length):
        """The tokens from one window's start to the next one's, in sequences of `max_length`."""
        return self.settings.stride or max(1, max_length // 3)

    def decode(self, outputs, sequences):
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

    def tune_threshold(self, outputs, sequences):
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

    def official_metrics(self, predictions, examples):
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

    @staticmethod
    def describe_metrics(metrics):
        line = f"exact {percent(metrics['exact'])}, F1 {percent(metrics['f1'])}"
        if "NoAns_f1" in metrics:
            line += f", F1 of unanswerable questions {percent(metrics['NoAns_f1'])}"
        return line

    def errors(self, predictions, examples):
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
    def describe_error(error):
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
