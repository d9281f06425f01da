"""A trained classifier's probabilities for any number of texts, in bounded memory."""

from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_bert.checkpoints import load_task
from keras_bert.errors import InputError
from keras_bert.input_pipeline.classification import PAD_TO, chunked
from keras_bert.input_pipeline.features import features
from keras_bert.input_pipeline.length_batches import sorted_batches
from keras_bert.tasks.classifier import Classifier

# So many texts are sorted by length together; their ids are what stays in memory.
_ROWS_TOGETHER = 2048


class Inference:
    """A `Classifier` with everything that comes before its logits, traced once.

    `task.predict` over a dataset would trace the dataset's functions again for every chunk of a
    stream, which costs more than a small model.

    Args:
        task: the `Classifier`, with a tokenizer.
        max_length: tokens that a text is cut to, special tokens counted in.
        batch_size: texts at a time.
    """

    def __init__(self, task, *, max_length, batch_size):
        self.task = task
        self.batch_size = batch_size
        vocabulary = task.tokenizer.vocabulary

        @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
        def answer(tokens):
            batch = features(
                [tokens], vocabulary=vocabulary, max_length=max_length, multiple_of=PAD_TO
            )
            logits = task(batch, training=False)["logits"]  # (B, C)
            return tf.nn.softmax(tf.cast(logits, tf.float32), axis=-1)

        self._answer = answer

    def of_tokens(self, tokens):
        """Ragged ids (N, None) without special tokens -> float32 (N, C), in the same order."""
        probabilities = np.empty((tokens.shape[0], len(self.task.labels)), np.float32)
        lengths = tokens.row_lengths().numpy()
        for rows in sorted_batches(lengths, batch_size=self.batch_size):
            probabilities[rows] = self._answer(tf.gather(tokens, rows)).numpy()
        return probabilities

    def of_examples(self, examples):
        """Yields (list of examples, float32 (n, C)) over `LabelledTexts` or `GivenTexts`, in order.

        Lines of a pipe are answered a batch at a time; of anything else, more are read together, so
        that batches of about one length can be made of them.
        """
        together = self.batch_size
        if not (examples.kind == "lines" and examples.name == "standard input"):
            together = max(_ROWS_TOGETHER, together)
        for chunk in chunked(examples, together):
            tokens = self.task.tokenizer.tokenize([example.text for example in chunk])
            yield chunk, self.of_tokens(tokens)


def load_classifier(model):
    """The `Classifier` in a model folder, or in the `model` folder of a training run's output.

    A `Classifier` is given back as it is. Raises InputError where the folder holds something else.
    """
    if isinstance(model, Classifier):
        return model
    task = load_task(find_model_folder(model))
    if not isinstance(task, Classifier):
        raise InputError(
            f"{model} holds a {type(task).__name__}, not a classifier; fine-tune it first."
        )
    return task


def find_model_folder(path):
    """`path`, or `path/model` where `path` is the output of `pretrain` or `finetune`."""
    path = Path(path)
    inner = path / "model"
    if not (path / "config.json").exists() and (inner / "config.json").exists():
        return inner
    return path
