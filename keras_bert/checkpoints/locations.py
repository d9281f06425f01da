"""Folders of models, found by a path, the output of a run, a name (`hf://…`) or another format.

Other formats than Hugging Face's are converted once, into a cache: `KERAS_BERT_CACHE`, or
`keras-bert` in the system's folder for caches. A cached folder is named after the hash of its
source and may be deleted at any time.
"""

import hashlib
import os
from pathlib import Path, PurePosixPath

from keras_bert.base.errors import InputError
from keras_bert.base.files import cache_folder, hash_of_file, possible_path, system_errors
from keras_bert.checkpoints import ARCHIVE_ENDINGS, hub
from keras_bert.checkpoints.sentence_transformers import is_foreign_embedder

_KAGGLE = "kaggle://"  # how models of Kaggle were named


def find_model_folder(path):
    """`path`, or `path/model` if `path` is the output of a training run.

    A name or a model in another format is the folder that `local_folder` makes of it.
    """
    path = local_folder(path)
    inner = path / "model"
    if not (path / hub.CONFIG).exists() and (inner / hub.CONFIG).exists():
        return inner
    return path


def local_folder(model):
    """The folder of a model that is given by name or in another format; any other path as it is.

    A name is `hf://owner/name[@revision]`. Another format is a folder of a Google checkpoint, of a
    keras-hub preset, of AllenNLP's ELMo, of static embeddings or with the encoder in a folder of
    its own (`keras_bert.checkpoints.text_embedders`), or a file of word vectors.

    Raises:
        InputError: the model cannot be downloaded (see `hub.download`), its format is not
            supported, or it is an archive or a name of Kaggle.
    """
    if not isinstance(model, str | os.PathLike):
        raise InputError(
            "A model must be a folder, a name (hf://owner/name) or a file of word vectors. "
            f"Received: an object of type {type(model).__name__}."
        )
    name = os.fspath(model)
    if name.startswith(_KAGGLE):
        handle = name.removeprefix(_KAGGLE)
        raise InputError(
            f"{name} was not downloaded, because models of Kaggle are not loaded by name. Run "
            f'`kagglehub.model_download("{handle}")` in Python (pip install kagglehub), and give '
            "the folder that it returns."
        )
    if isinstance(model, ConvertedFolder):
        return model
    source = hub.download(name) if hub.is_name(name) else possible_path(name)
    if source.is_file() and name.lower().endswith(ARCHIVE_ENDINGS):
        raise InputError(
            f"{name} is an archive, which is not opened. Unpack it, and give the folder of the "
            "model, or the file of word vectors."
        )
    return _converted(source, name=name) if _is_foreign(source) else source


class ConvertedFolder(type(Path())):
    """The path of a folder in the cache, with `given`, what it was converted from."""

    given = None


def name_of(folder):
    """The name of a model's folder in messages: what it was converted from, if anything."""
    return getattr(folder, "given", None) or folder


def _is_foreign(source):
    """Whether a path is a model in another format, which has to be converted."""
    if source.is_file():
        from keras_bert.checkpoints.word_vectors import is_word_vectors

        return is_word_vectors(source)
    if is_foreign_embedder(source):
        return True
    if (source / hub.CONFIG).exists():
        from keras_bert.checkpoints.keras_nlp import is_keras_nlp

        return is_keras_nlp(source)
    if not source.is_dir() or (source / "model" / hub.CONFIG).exists():  # the output of a run
        return False
    from keras_bert.checkpoints.allennlp import is_allennlp
    from keras_bert.checkpoints.google import is_google

    return is_google(source) or is_allennlp(source)


def _converted(source, *, name):
    """The cached folder that a model in another format is converted to."""
    cached = ConvertedFolder(_cached(source))
    cached.given = name
    if cached.exists():
        return cached
    from keras_bert.checkpoints.model_folder import save_folder

    try:
        _, model, tokenizer = read_foreign(source)
    except InputError as error:
        if name in str(error):
            raise
        raise InputError.naming("{}: {}", name, error) from error
    save_folder(model, tokenizer, cached)
    return cached


def read_foreign(source):
    """A model in another format than Hugging Face's -> (the format's name, model, tokenizer)."""
    from keras_bert.checkpoints.allennlp import is_allennlp, load_allennlp
    from keras_bert.checkpoints.google import is_google, load_google
    from keras_bert.checkpoints.keras_nlp import is_keras_nlp, load_keras_nlp
    from keras_bert.checkpoints.word_vectors import (
        WordVectorFile,
        is_word_vectors,
        load_word_vectors,
    )

    if is_foreign_embedder(source):
        from keras_bert.checkpoints.text_embedders import load_embedder

        return load_embedder(source)
    if is_allennlp(source):
        return "allennlp", *load_allennlp(source)
    if is_google(source):
        return "google", *load_google(source)
    if is_keras_nlp(source):
        return "keras-nlp", *load_keras_nlp(source)
    if is_word_vectors(source):
        return WordVectorFile(source).format, *load_word_vectors(source)
    if source.is_file():
        raise InputError(
            f"{source} is a file. Expected the folder that contains the model's files."
        )
    if not source.exists():
        raise InputError(f"There is no file or folder {source}. Give the path of a model.")
    from keras_bert.checkpoints.pretrained_checkpoint import undetected_format

    raise InputError(undetected_format(source))


def _cached(source):
    """The cached folder of a file or folder, which need not exist; its parent does."""
    files = [source]
    if source.is_dir():
        files = [source / path for path in sorted(_files_below(source))]
    digest = hashlib.sha256()
    for path in files:
        try:
            digest.update(hash_of_file(path).digest())
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    folder = cache_folder() / "models" / digest.hexdigest()[:32]
    with system_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


def _files_below(folder):
    """The paths of all files below a folder, relative to it; linked folders are left out."""
    files, folders = [], [PurePosixPath()]
    while folders:  # no recursion: a folder may be nested deeper than Python's stack
        path = folders.pop()
        for entry in os.scandir(Path(folder, path)):
            if entry.is_dir(follow_symlinks=False):
                folders.append(path / entry.name)
            elif entry.is_file():
                files.append(path / entry.name)
    return files
