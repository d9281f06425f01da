"""A task type in one file: does a text hold a word? Everything that a new kind has to define."""

import keras
import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.settings import setting
from keras_bert.readers.texts import TextSource
from keras_bert.tasks import TaskSettings
from keras_bert.tasks.metrics import worst_first
from keras_bert.tasks.signatures import Signature
from keras_bert.tasks.task import Task


class HoldsWordSettings(TaskSettings):
    word: str = setting("great", help="the word that is looked for", unit="WORD", stored=True)
    threshold: float = setting(
        0.5, help="the probability from which on it is said", above=0, below=1, stored=True
    )
    usual: float = setting(0.5, help="the mean score of the dev texts", stored=True)
    column: int = setting(1, help="where the text stands, from 1", at_least=1, reads=True)


@keras.saving.register_keras_serializable(package="tests")
class HoldsWord(Task):
    """Gives `score` (B, 1), the logit that a text holds `word`, from the largest of its tokens."""

    TASK_TYPE = "holds-word"
    HEAD_READS = ("input_mask",)
    HEADS = ("scorer",)
    SETTINGS = HoldsWordSettings
    METRIC = "f1"  # one of `official_metrics`, none of Keras's

    def make_head(self):
        self.dropout = keras.layers.Dropout(self.settings.dropout or 0.0, name="dropout")
        self.scorer = keras.Sequential(
            [
                keras.layers.Dense(8, activation="relu", name="first"),
                keras.layers.Dense(1, name="last"),
            ],
            name="scorer",
        )

    def build_head(self, encoded, inputs):
        scores = self.scorer(self.dropout(encoded["sequence_output"]))[..., 0]  # (B, S)
        at_tokens = keras.ops.cast(inputs["input_mask"], "bool")
        largest = keras.ops.max(keras.ops.where(at_tokens, scores, -1e4), axis=1, keepdims=True)
        return {"score": largest}

    def default_losses(self):
        return {"score": keras.losses.BinaryCrossentropy(from_logits=True)}

    def default_metrics(self):
        return {"score": [keras.metrics.BinaryAccuracy(name="accuracy", threshold=0.0)]}

    @classmethod
    def read(cls, data, *, inferred_arguments=None, schema=None, labelled=True, column=1):
        return TextSource(
            data,
            need_labels=labelled,
            **({} if isinstance(data, list) else {"text_column": str(column)}),
        )

    def features(self, examples, *, max_length=None, labelled=False):
        from keras_bert.inputs.tokenized_examples import TokenizedExamples

        truth = [[float(self._truth(example))] for example in examples] if labelled else []
        return TokenizedExamples.from_texts(
            examples,
            [[example.text for example in examples]],
            labels={"score": np.array(truth, np.float32)} if labelled else {},
            tokenizer=self.tokenizer,
            input_names=self.encoder.input_names,
            max_length=max_length or self.settings.max_length,
        )

    @staticmethod
    def _truth(example):
        if example.label not in ("yes", "no"):
            raise example.error(f'the label is "{example.label}". It should be yes or no.')
        return example.label == "yes"

    def decode(self, outputs, sequences):
        threshold = self.settings.threshold
        probabilities = 1 / (1 + np.exp(-outputs["score"][:, 0].astype(np.float64)))
        return [
            {
                "text": example.text,
                "holds": bool(p > threshold),
                "probability": float(p),
            }
            for example, p in zip(sequences.examples, probabilities, strict=True)
        ]

    def tune_threshold(self, outputs, sequences):
        usual = float(np.mean(outputs["score"]))
        self.update_settings(usual=usual)

    def errors(self, predictions, examples):
        return worst_first(
            {
                "line": example.line,
                "text": example.text,
                "expected": example.label,
                "predicted": "yes" if prediction["holds"] else "no",
                "score": abs(prediction["probability"] - self._truth(example)),
            }
            for prediction, example in zip(predictions, examples, strict=True)
            if prediction["holds"] != self._truth(example)
        )

    def official_metrics(self, predictions, examples):
        truth = [self._truth(example) for example in examples]
        said = [prediction["holds"] for prediction in predictions]
        both = sum(t and s for t, s in zip(truth, said, strict=True))
        if not truth:
            raise InputError("There is nothing to measure.")
        return {"f1": 2 * both / max(1, sum(truth) + sum(said)), "examples": len(truth)}

    def signatures(self, *, max_length=None):
        import tensorflow as tf

        from keras_bert.inputs.framing import frame

        def from_text(text):
            batch = frame(
                [self.tokenizer.tokenize(text)],
                tokenizer=self.tokenizer,
                names=self.encoder.input_names,
                max_length=max_length or self.settings.max_length,
            )
            return {"probability": tf.sigmoid(self(batch, training=False)["score"])[:, 0]}

        strings = tf.TensorSpec([None], tf.string, name="text")
        return {"serving_default": Signature(from_text, [strings], warmup=[{"text": ["a"]}])}
