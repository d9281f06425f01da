"""Loads models: from folders, by name (`hf://…`, `kaggle://…`), from archives and single files.

Other formats than Hugging Face's are converted once, into a cache: `KERAS_BERT_CACHE`, or
`keras-bert` in the system's folder for caches. A cached folder is named after the hash of its
source and may be deleted at any time.
"""

import dataclasses
import errno
import hashlib
import os
import shutil
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from keras_bert.base.errors import InputError, input_errors
from keras_bert.base.files import new_folder, scratch_folder, system_errors
from keras_bert.base.formatting import listed
from keras_bert.checkpoints import archives, hub
from keras_bert.text.template import gpt_template

if TYPE_CHECKING:
    from keras_bert.encoders.encoder import Encoder
    from keras_bert.tasks.task import Task
    from keras_bert.text.tokenizer import Tokenizer

KAGGLE_SCHEME = "kaggle://"

_CONFIGS = (hub.CONFIG, "bert_config.json", "metadata.json")


def load(folder: str | PathLike[str], *, dtype: Any = None) -> "tuple[Encoder, Tokenizer | None]":
    """Loads the encoder and tokenizer of a model folder.

    Heads that the folder contains too are left out (`load_task` loads them).

    Args:
        folder: a path with `config.json`, `model.safetensors` (or its shards) and a vocabulary
            (`vocab.txt`, `vocab.json` and `merges.txt`, or `tokenizer.json`), or the output
            of a run, which contains such a folder. Or a name,
            `hf://owner/name[@revision]` or `kaggle://owner/model/framework/variation`, or an
            archive (.zip, .tar.gz) of a folder or of a Google checkpoint.
        dtype: a dtype or policy for the encoder's layers, such as "mixed_bfloat16"; None is Keras's
            own setting.

    Returns:
        (`Encoder`, `Tokenizer`), such as a `BertEncoder`. The tokenizer is None, with a warning,
        where the folder of a model that is not BERT's has none.

    Raises:
        InputError: a file is missing or broken, the config asks for what the encoder cannot
            compute, a tensor is missing, unknown or of another shape, or the vocabulary is longer
            than the embedding.
    """
    from keras_bert.checkpoints.pretrained_checkpoint import PretrainedCheckpoint

    checkpoint = PretrainedCheckpoint(find_model_folder(folder))
    return checkpoint.encoder(dtype=dtype), checkpoint.tokenizer


def load_task(folder: str | PathLike[str]) -> "Task":
    """Loads the task in a folder, with its head; `config.json` names its kind.

    Args:
        folder: a model folder, the output of a run, a name or an archive, as `load` takes them.

    Returns:
        The task, such as a `Classifier`, with its tokenizer: ready for `predict`, `fit` after a
        `compile_defaults`, and `export`.

    Raises:
        InputError: as `load`, or the folder contains no supported task.
    """
    from keras_bert.checkpoints.model_folder import build_task
    from keras_bert.checkpoints.pretrained_checkpoint import PretrainedCheckpoint

    return build_task(PretrainedCheckpoint(find_model_folder(folder)))


def with_task_tokens(encoder: "Encoder", tokenizer: "Tokenizer") -> "tuple[Encoder, Tokenizer]":
    """Gives a causal language model the special tokens that a task reads its texts with.

    A model whose sequences have no special tokens, such as `openai-gpt` and `gpt2`, gets `start`,
    `delimiter` and `extract` (Radford et al. 2018, section 3.3): `<start> a <delimiter> b
    <extract>`, where a task reads the state of the last. A model without a token for padding gets
    one; its config names it, since `transformers` reads the last token that is not padding, and so
    no text may end with it. New tokens are appended to the vocabulary, and rows with random weights
    to the embedding.

    Args:
        encoder: an `Encoder`.
        tokenizer: its `Tokenizer`.

    Returns:
        (encoder, tokenizer): the same two, where nothing is missing or the encoder is not causal.
    """
    config, template = encoder.config, tokenizer.template
    if not config.is_causal:
        return encoder, tokenizer
    special, roles = tokenizer.special_tokens, []
    if not template.special_tokens:
        roles += [role for role in ("start", "delimiter", "extract") if not getattr(special, role)]
    if special.pad is None or special.pad in (special.eos, special.extract):
        roles.append("pad")
    names = {role: _unused(f"<{role}>", tokenizer.vocabulary) for role in roles}
    if names:
        vocabulary = tokenizer.vocabulary.with_special_tokens(**names)
        if not template.special_tokens:
            template = gpt_template(vocabulary.special_tokens)
        lowercase = tokenizer.lowercase
        tokenizer = type(tokenizer)(vocabulary, lowercase=lowercase, template=template)
    changes = {"vocab_size": max(config.vocab_size, len(tokenizer))}
    if "pad_token_id" in {field.name for field in dataclasses.fields(config)}:
        changes["pad_token_id"] = tokenizer.vocabulary.pad_id
    if dataclasses.replace(config, **changes) != config:
        encoder = encoder.rebuilt(**changes)
    return encoder, tokenizer


def _unused(name, vocabulary):
    """The name, in more brackets where the vocabulary has such a token."""
    while name in vocabulary:
        name = f"<{name}>"
    return name


def find_model_folder(path):
    """`path`, or `path/model` if `path` is the output of a training run.

    A name or an archive is the folder that `local_folder` makes of it.
    """
    path = local_folder(path)
    inner = path / "model"
    if not (path / hub.CONFIG).exists() and (inner / hub.CONFIG).exists():
        return inner
    return path


def local_folder(model):
    """The folder of a model that is given by name or as an archive; any other path as it is.

    A name is `hf://owner/name[@revision]` or `kaggle://owner/model/framework/variation[/version]`.
    An archive is a `.zip` or `.tar.gz` of a folder in any supported format. A file of word vectors
    becomes a folder, too.

    Raises:
        InputError: the model cannot be downloaded (see `hub.download`) or unpacked (see
            `archives.unpack`), or its format is not supported.
    """
    if not isinstance(model, str | os.PathLike):
        raise InputError(
            "A model must be a folder, a name or an archive. "
            f"Received: an object of type {type(model).__name__}."
        )
    text = os.fspath(model)
    if text.startswith(hub.SCHEME):
        return _converted(hub.download(text), name=text)
    if text.startswith(KAGGLE_SCHEME):
        return _converted(_download_from_kaggle(text), name=text)
    if archives.is_archive(text):
        return _unpacked(text)
    if _is_word_vectors(text):
        converted = ConvertedFolder(_converted_file(Path(text)))
        converted.given = text
        return converted
    return model if isinstance(model, ConvertedFolder) else Path(model)


class ConvertedFolder(type(Path())):
    """The path of a folder in the cache, with `given`, the file that it was converted from."""

    given = None


def name_of(folder):
    """The name of a model's folder in messages: the file that it was converted from, if any."""
    return getattr(folder, "given", None) or folder


def is_name(model):
    """Whether a model is given by name, and not as a path."""
    return isinstance(model, str) and model.startswith((hub.SCHEME, KAGGLE_SCHEME))


def cache_folder():
    """Where converted models are kept."""
    folder = os.environ.get("KERAS_BERT_CACHE")
    if folder:
        return Path(folder)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches, "keras-bert")


def _download_from_kaggle(name):
    """The folder in kagglehub's cache (`KAGGLEHUB_CACHE`) that contains a model."""
    try:
        import kagglehub
        import requests
    except ImportError:
        raise InputError(
            "Models of Kaggle need kagglehub: pip install 'keras-bert-toolkit[kaggle]'."
        ) from None
    handle = name.removeprefix(KAGGLE_SCHEME)
    page = f"https://www.kaggle.com/models/{handle}"

    def message(error):
        status = getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(error, ValueError):
            return (
                f"Invalid name of a Kaggle model: {name}. Expected "
                "kaggle://owner/model/framework/variation, and /version for another than the "
                "latest."
            )
        if status == 404:
            return f"The Kaggle model {name} does not exist. Compare it with its page, {page}."
        if status in (401, 403):
            return (
                f"{name} requires a login: accept its terms at {page}, and log in with "
                "kagglehub.login()."
            )
        if isinstance(error, requests.exceptions.RequestException):
            return (
                f"{name} is not in kagglehub's cache, and Kaggle cannot be reached. Connect to "
                "the network once (a name with its version then works without), or give a path."
            )
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return (
                f"The disk of kagglehub's cache is full: cannot download {name}. Free some space, "
                "or set KAGGLEHUB_CACHE to a folder on another disk."
            )
        return None

    with input_errors(message):
        return Path(kagglehub.model_download(handle))


def _converted(folder, *, name):
    """A downloaded folder, or the cached folder that it is converted to."""
    root = folder / _root(_files_below(folder), name)
    if _is_hugging_face(root):
        return root
    cached = _cached([root / path for path in sorted(_files_below(root))])
    if not cached.exists():
        _convert(root, cached, name=name)
    return cached


def _is_word_vectors(path):
    if not os.path.isfile(path):
        return False
    from keras_bert.checkpoints.word_vectors import is_word_vectors

    return is_word_vectors(path)


def _converted_file(path):
    """The cached folder that a file of word vectors is converted to."""
    cached = _cached([path])
    if not cached.exists():
        _convert(path, cached, name=path)
    return cached


def _unpacked(archive):
    cached = _cached([Path(archive)])
    if not cached.exists():
        with scratch_folder(cached) as scratch:
            root = archives.unpack(archive, scratch, root=lambda paths: _root(paths, archive))
            _convert(root, cached, name=archive)
    return cached


def _convert(source, cached, *, name):
    """Writes the model in a folder of any format to its place in the cache."""
    if _is_hugging_face(source):
        with new_folder(cached) as temporary:
            for file in source.iterdir():
                if file.is_file():
                    shutil.copy2(file, temporary)
        return
    from keras_bert.checkpoints.model_folder import save_folder

    try:
        _, model, tokenizer = read_foreign(source)
    except InputError as error:
        if str(name) in str(error):
            raise
        raise InputError(f"{name}: {error}") from error
    save_folder(model, tokenizer, cached)


def _is_hugging_face(folder):
    from keras_bert.checkpoints.keras_nlp import is_keras_nlp

    return (folder / hub.CONFIG).exists() and not is_keras_nlp(folder)


def read_foreign(source):
    """A model in another format than Hugging Face's -> (the format's name, model, tokenizer)."""
    from keras_bert.checkpoints.allennlp import is_allennlp, load_allennlp
    from keras_bert.checkpoints.google import is_google, load_google
    from keras_bert.checkpoints.keras_nlp import is_keras_nlp, load_keras_nlp

    if is_allennlp(source):
        return "allennlp", *load_allennlp(source)
    if is_google(source):
        return "google", *load_google(source)
    if is_keras_nlp(source):
        return "keras-nlp", *load_keras_nlp(source)
    if _is_word_vectors(source):
        from keras_bert.checkpoints.word_vectors import WordVectorFile, load_word_vectors

        return WordVectorFile(source).format, *load_word_vectors(source)
    if source.is_file():
        raise InputError(
            f"{source} is a file. Expected the folder that contains the model's files."
        )
    raise InputError(
        f"Could not detect the model format of {str(source)!r}. Expected a Hugging Face folder "
        "(config.json), a Google checkpoint (bert_config.json), a keras-hub preset or an ELMo of "
        "AllenNLP (options.json and weights.hdf5)."
    )


def _cached(files):
    """The cached folder for a model of these files, which need not exist; its parent does."""
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
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


def _root(paths, name):
    """The folder of the model in a tree with these files: the one highest up with a config."""
    roots = sorted(
        {path.parent for path in paths if path.name in _CONFIGS},
        key=lambda folder: (len(folder.parts), folder),
    )
    if len(roots) > 1 and len(roots[0].parts) == len(roots[1].parts):
        raise InputError(
            f"{name} contains several models ({listed(roots, most=3)}). Give a single one."
        )
    if roots:
        return roots[0]
    if any(path.name == "saved_model.pb" for path in paths):
        raise InputError(
            f"{name} contains a SavedModel, which lacks the sizes of its encoder. Use the "
            "checkpoint with a bert_config.json that it was exported from."
        )
    raise InputError(f"{name} contains no model. Expected a config.json or a bert_config.json.")
