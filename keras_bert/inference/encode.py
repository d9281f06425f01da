"""The vectors of texts, by a `TextEmbedder`: one function of strings, traced once."""

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError, warn_user
from keras_bert.base.formatting import counted
from keras_bert.base.progress import ProgressBar
from keras_bert.programs import compiled, rows_of_program
from keras_bert.readers.sources import plain
from keras_bert.tasks.outputs import check_finite
from keras_bert.tasks.text_embedding.features import inputs_of_texts, prompt_tokens

# The attribute of a task with its traced function.
_COMPUTATION = "_keras_bert_text_vectors"


def encode(task, texts, *, prompt, size, batch_size, progress):
    """The vectors of texts: see `TextEmbedder.encode`; `prompt` is the text of the prompt."""
    if task.tokenizer is None:
        raise InputError("The model has no tokenizer, so it cannot read text.")
    size, is_one = task.size_of(size), isinstance(texts, str | bytes)
    texts = [_as_bytes(prompt, text) for text in ([texts] if is_one else texts)]
    compute, skipped = _computation(task), prompt_tokens(task, [prompt])[0]
    vectors, cut = np.empty((len(texts), size), np.float32), 0
    # From the shortest to the longest: a batch has texts of similar lengths.
    order = np.argsort([len(text) for text in texts], kind="stable")
    with ProgressBar("Encoding", unit="texts", total=len(texts), enabled=progress) as bar:
        for start in range(0, len(texts), batch_size):
            numbers = order[start : start + batch_size]
            empty = [b""] * (rows_of_program(len(numbers)) - len(numbers))
            some = tf.constant([*(texts[number] for number in numbers), *empty])
            outputs, too_long = compute(some, skipped)
            batch_vectors = np.asarray(outputs)[: len(numbers)]
            check_finite({"embedding": batch_vectors})
            vectors[numbers] = batch_vectors[:, :size]
            cut += int(too_long)
            bar.update(start + len(numbers))
    if cut:
        warn_user(
            f"{cut:,} of the {counted(len(texts), 'text')} are longer than "
            f"{task.settings.max_length} tokens, and were cut."
        )
    return vectors[0] if is_one else vectors


def _as_bytes(prompt, text):
    """A text behind a prompt, as UTF-8; InputError for anything else than a text."""
    text = text if isinstance(text, str) else plain(text)
    if not isinstance(text, str):
        raise InputError.naming("{texts} must be strings. Received: {!r}.", text)
    return f"{prompt}{text}".encode("utf-8", "replace")


def _computation(task):
    """The function of strings (B,) and the tokens of the prompt -> vectors (B, D), texts cut.

    The task keeps it. Another one is traced when the weights, or how texts are read, are others.
    """
    settings = task.settings
    key = (*map(id, task.variables), settings.max_length, settings.lowercase)
    made = vars(task).get(_COMPUTATION)
    if made is not None and made[0] == key:
        return made[1]

    def inputs_of(texts, skipped):
        return inputs_of_texts(task, texts, skipped=skipped, max_length=settings.max_length)

    def compute(inputs, cut):
        return task(inputs, training=False)["embedding"][:, 0], cut

    specs = tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.int32)
    traced = compiled(compute, prepared=inputs_of, signature=specs, reads=[task])
    # Not as Keras sets attributes, which it would track.
    object.__setattr__(task, _COMPUTATION, (key, traced))
    return traced
