"""The model of an index: how it is found again, and told from another one."""

import hashlib
import os
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.inference.embed import open_text_embedder
from keras_bert.tasks.text_embedding.text_embedder import TextEmbedder

# The stored settings that the vectors of documents do not depend on.
_OTHER_SETTINGS = {"similarity", "matryoshka", "default_prompt"}


def open_embedder(model: Any) -> TextEmbedder:
    """The given `TextEmbedder`, or that of a model folder.

    Raises InputError if the model has no vectors of texts.
    """
    task = open_text_embedder(model)
    if task is None:
        raise InputError.naming(
            "{} has no vectors of texts: an index needs a folder of sentence-transformers, or a "
            "model that was fine-tuned with {task} text-embedding.",
            model if isinstance(model, str | os.PathLike) else "The model",
        )
    return task


def name_of(model: Any) -> str | None:
    """The absolute path of a model, or its hf://owner/name; None of a model in memory."""
    if not isinstance(model, str | os.PathLike):
        return None
    name = str(model)
    return name if name.startswith("hf://") else str(Path(name).absolute())


def fingerprint(task: TextEmbedder) -> str:
    """A hash of everything that the vector of a text depends on: weights, settings, tokens."""
    digest = hashlib.sha256()
    names = sorted({*task.stored_settings()} - _OTHER_SETTINGS)
    stored = {name: str(getattr(task.settings, name)) for name in names}
    digest.update(repr((stored, len(task.tokenizer), task.tokenizer.lowercase)).encode())
    for weight in task.weights:
        array = np.ascontiguousarray(keras.ops.convert_to_numpy(weight))
        digest.update(repr((array.shape, str(array.dtype))).encode())
        digest.update(array.view(np.uint8).reshape(-1) if array.size else b"")
    return digest.hexdigest()
