"""Where in a text the answer to a question begins and ends (Devlin et al. 2018, section 4.2)."""

import keras
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, percent, quoted
from keras_bert.layers.dense import logits_layer
from keras_bert.readers.squad import open_questions, question_warnings
from keras_bert.tasks.metrics import calibration
from keras_bert.tasks.question_answering.decode import question_answers
from keras_bert.tasks.question_answering.metrics import (
    best_thresholds,
    scores_of,
    squad_1,
    squad_2,
    tuned_threshold,
)
from keras_bert.tasks.question_answering.settings import QuestionSettings
from keras_bert.tasks.task import Task

# What google-research/bert adds where nothing is to be seen; a softmax makes zero of it.
_NOWHERE = -10000.0


@keras.saving.register_keras_serializable(package="keras_bert")
class QuestionAnswerer(Task):
    """An encoder with a linear layer over every token's output: is it the first, is it the last.

    Takes the encoder's dictionary and gives the logits (B batch, S tokens in a row)

    - `start_logits` (B, S): that the answer begins with the token
    - `end_logits` (B, S): that it ends with it

    The head is that of Hugging Face's BertForQuestionAnswering, a layer without dropout. At padding
    the logits are -10000 and not the layer's, so that a row's probabilities and loss do not depend
    on how far it is padded. Labels are `start_logits` and `end_logits` (B,), the positions of the
    two tokens; sample weights of the same names and shapes are 0 at rows that do not count. A
    pooler is not used; a model folder keeps it for us alone, because that class has none.

    A context that is too long for a row is read in overlapping windows, and an answer is the best
    span of them all (see `best_spans`).

    Args:
        encoder: an `Encoder`, such as a `BertEncoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None (then the task takes ids only).
        max_length: tokens of a row. None is 384, or all positions of an encoder that has fewer.
        stride: tokens from a window's beginning to the next one's. None is a third of `max_length`.
        max_question_length: tokens that a question is cut to; half of a row at most.
        max_answer_length: tokens of the longest answer.
        n_best: pieces of the context that an answer names.
        null_threshold: the null score above which a question has no answer. None: every question
            has one, until `tune_threshold` sees dev data where that is not so.
        dropout: the share of what the layer reads that is dropped in training. None is 0.

    Attributes: those of the arguments, `qa_outputs` (the `Dense`), `dropout` (the `Dropout`).
    """

    KIND = "question-answering"
    HEAD_READS = ("input_mask",)
    HEADS = ("qa_outputs",)
    SETTINGS = QuestionSettings
    METRIC = "f1"
    SHOWN = {
        "loss": "loss",
        "start_logits_accuracy": "right first tokens",
        "end_logits_accuracy": "right last tokens",
    }

    def __init__(
        self,
        encoder,
        tokenizer=None,
        *,
        max_length=None,
        stride=None,
        max_question_length=64,
        max_answer_length=30,
        n_best=1,
        null_threshold=None,
        dropout=None,
        name="question_answerer",
        **between,
    ):
        self.set_encoder(encoder, **between)
        self.max_length = max_length or encoder.default_max_length(QuestionSettings.MAX_LENGTH)
        self.stride = stride
        self.max_question_length = max_question_length
        self.max_answer_length = max_answer_length
        self.n_best = n_best
        self.null_threshold = null_threshold
        self.tuned = ("null_threshold",) if null_threshold is None else ()
        self.dropout = keras.layers.Dropout(
            dropout or 0.0, dtype=encoder.layer_policy, name="dropout"
        )
        self.qa_outputs = logits_layer(
            2,
            initializer_range=encoder.config.head_initializer_range,
            name="qa_outputs",
            dtype=encoder.layer_policy,
        )
        super().__init__(tokenizer, name=name)

    def build_head(self, encoded, inputs):
        logits = self.qa_outputs(self.dropout(encoded["sequence_output"]))  # (B, S, 2)
        at_tokens = ops.cast(inputs["input_mask"], "bool")  # (B, S)
        return {
            "start_logits": ops.where(at_tokens, logits[..., 0], _NOWHERE),
            "end_logits": ops.where(at_tokens, logits[..., 1], _NOWHERE),
        }

    def default_losses(self):
        """Cross-entropy over the tokens of a row, in nats; the mean over the rows that count."""
        return {name: _cross_entropy() for name in ("start_logits", "end_logits")}

    def default_metrics(self):
        """For both outputs `accuracy`, the share of rows whose right token has the highest one."""
        return {
            name: [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
            for name in ("start_logits", "end_logits")
        }

    def default_loss_weights(self):
        """The loss is the mean of both outputs', as in BERT."""
        return {"start_logits": 0.5, "end_logits": 0.5}

    # Files, answers and figures.

    @classmethod
    def read(cls, data, *, inferred_arguments=None, schema=None, labelled=True, **columns):
        """`Question`s of SQuAD's JSON, JSON Lines, tfds or a sequence (see `open_questions`)."""
        return open_questions(data, need_answers=labelled, **columns)

    @classmethod
    def infer_arguments(cls, examples):
        if not any(example.located for example in examples):
            raise InputError(
                f"{examples[0].source.name} has no question with an answer in its context, so "
                "there is nothing to learn from."
            )
        return {}

    @classmethod
    def summary(cls, train, dev, inferred_arguments):
        return f"{_counts(train, 'training question')} and {_counts(dev, 'dev question')}."

    @classmethod
    def notes(cls, examples):
        return question_warnings(examples)

    def features(self, examples, *, max_length=None, labelled=False):
        """`QuestionRows`, a row a window."""
        from keras_bert.tasks.question_answering.features import question_sequences

        max_length = max_length or self.max_length
        return question_sequences(
            examples,
            tokenizer=self.tokenizer,
            input_names=self.encoder.input_names,
            max_length=max_length,
            stride=self.stride_of(max_length),
            max_question_length=self.max_question_length,
            labelled=labelled,
        )

    def stride_of(self, max_length):
        """The tokens from one window to the next in rows of `max_length`."""
        return self.stride or max(1, max_length // 3)

    def decode(self, outputs, sequences):
        """`id` where there is one, `question`, `answer` and where it stands in the context.

        That is from the character `start` up to `end`; an answer of "" (both 0) is none. `score` is
        its probability, `null_score` how far the logits of no answer are above those of the best
        piece. `expected` are the gold answers where they are known. `n_best` are the best pieces,
        where more than one is asked for or a question may have no answer.
        """
        return self._answers(outputs, sequences, null_threshold=self.null_threshold)

    def _answers(self, outputs, sequences, *, null_threshold):
        return question_answers(
            outputs,
            sequences,
            max_answer_length=self.max_answer_length,
            n_best=self.n_best,
            null_threshold=null_threshold,
        )

    def tune_threshold(self, outputs, sequences):
        """Sets `null_threshold` where some questions have no answer and none was given."""
        golds = _golds(sequences.examples)
        if self.tuned and not all(golds):
            answers = self._answers(outputs, sequences, null_threshold=None)
            self.null_threshold = tuned_threshold(
                [answer["answer"] for answer in answers],
                golds,
                [answer["null_score"] for answer in answers],
            )

    def official_metrics(self, answers, examples):
        """The official figures of SQuAD, from 0 to 1 (see `squad_1`, `squad_2`), and `examples`.

        They are those of version 2.0 where some questions have no answer, with what the best
        threshold could reach (see `best_thresholds`). `calibration` (see there) is of the answers
        that are exactly right.
        """
        golds, predictions = _golds(examples), [answer["answer"] for answer in answers]
        version = 1 if all(golds) else 2
        right = [
            scores_of(prediction, texts, version=version)[0]
            for prediction, texts in zip(predictions, golds, strict=True)
        ]
        scores = [answer["score"] for answer in answers]
        others = {"examples": len(examples), "calibration": calibration(scores, right)}
        if version == 1:
            return {**squad_1(predictions, golds), **others}
        tokens = [
            answer["n_best"][0]["answer"] if answer.get("n_best") else answer["answer"]
            for answer in answers
        ]
        null_scores = [answer["null_score"] for answer in answers]
        best = best_thresholds(tokens, golds, null_scores)
        return {**squad_2(predictions, golds), **best, **others}

    @staticmethod
    def describe_metrics(metrics):
        line = f"exact {percent(metrics['exact'])}, F1 {percent(metrics['f1'])}"
        if "NoAns_f1" in metrics:
            line += f", rightly without an answer {percent(metrics['NoAns_f1'])}"
        return line

    def errors(self, answers, examples):
        """What is furthest from every gold answer, the surest first."""
        found = []
        golds = _golds(examples)
        version = 1 if all(golds) else 2
        for answer, example, texts in zip(answers, examples, golds, strict=True):
            _, f1 = scores_of(answer["answer"], texts, version=version)
            if f1 < 1.0:
                found.append(((1.0 - f1) * answer["score"], _mistake(answer, example, texts)))
        return found

    def signatures(self, *, max_length=None):
        from keras_bert.tasks.question_answering.signatures import question_signatures

        return question_signatures(self, max_length=max_length or self.max_length)

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout.rate}


def _golds(examples):
    """The texts of each example's answers; InputError for one of which nobody says them."""
    for example in examples:
        if example.answers is None:
            raise example.error("no answers to compare with.")
    return [[answer.text for answer in example.answers] for example in examples]


def _counts(examples, noun):
    without = sum(not example.answers for example in examples)
    return counted(len(examples), noun) + (f" ({without:,} without an answer)" if without else "")


def _mistake(answer, example, golds):
    said = f'"{answer["answer"]}"' if answer["answer"] else "no answer"
    return (
        f"{example.place}: {example.question}\n  answered {said} ({percent(answer['score'])}), "
        f"expected {quoted(golds) or 'no answer'}"
    )


def _cross_entropy():
    return keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    )
