"""Text embedders in other forms than a model folder, which are converted to one.

- Static embeddings of sentence-transformers (`StaticEmbedding`), and those of model2vec: a table
  of vectors and a tokenizer. The vector of a text is the mean of those of its tokens, without
  special ones. They are opened as static vectors.
- Folders of sentence-transformers up to 2.0, with the encoder in a folder of its own, such as
  `0_Transformer`.
"""

from pathlib import Path

import numpy as np

from keras_bert import tasks
from keras_bert.base.errors import InputError, warn_user
from keras_bert.base.files import new_folder, read_json, write_json
from keras_bert.base.ownership import check_output_folder
from keras_bert.base.version import __version__
from keras_bert.checkpoints import tensor_files
from keras_bert.checkpoints.config_json import CONFIG
from keras_bert.checkpoints.model_folder import build_task
from keras_bert.checkpoints.pretrained_checkpoint import (
    TEXT_EMBEDDING,
    PretrainedCheckpoint,
    check_vocabulary,
)
from keras_bert.checkpoints.sentence_transformers import (
    MODEL2VEC,
    MODULES,
    SentenceTransformer,
    files_of,
    first_module,
)
from keras_bert.encoders.static import StaticConfig
from keras_bert.encoders.static.encoder import StaticEncoder
from keras_bert.layers.dense import without_random_weights
from keras_bert.tasks.text_embedding import LONGEST_STATIC, STATIC_EMBEDDING, TRANSFORMER
from keras_bert.text.template import PLAIN_TEMPLATE
from keras_bert.text.vocabulary import TOKENIZER_FILE

_MODEL2VEC_LENGTH = 512  # tokens
_TABLE, _MODEL2VEC_TABLE = "embedding.weight", "embeddings"
_WRITER = "written_by_keras_bert"  # in config.json of model2vec: our version


def load_embedder(folder):
    """Loads a folder in one of these forms -> (its form, `TextEmbedder`, `Tokenizer`).

    Raises:
        InputError: a file is missing or broken, or a step or its tokenizer is not supported.
    """
    folder = Path(folder)
    name, inner = first_module(folder)
    if name == TRANSFORMER:
        checkpoint = PretrainedCheckpoint(_inside(folder, inner))
        checkpoint.sentence_transformer = SentenceTransformer(
            folder, checkpoint.config, encoder_folder=checkpoint.folder
        )
        task = build_task(checkpoint, task_type=TEXT_EMBEDDING)
        return "sentence-transformers", task, checkpoint.tokenizer
    if name == STATIC_EMBEDDING:
        task = _static_embedding(folder, _inside(folder, inner))
        return "sentence-transformers", task, task.tokenizer
    task = _model2vec(folder)
    return MODEL2VEC, task, task.tokenizer


def save_model2vec(task, tokenizer, folder, *, overwrite=False):
    """Writes a folder that model2vec opens, and sentence-transformers and `load_embedder`.

    Args:
        task: a `TextEmbedder` of static vectors, the mean of all tokens but special ones.
        tokenizer: its `Tokenizer`.
        folder, overwrite: as in `save_folder`.

    Raises InputError: the model is something else, or the folder is in use.
    """
    is_static = isinstance(task, tasks.task_class(TEXT_EMBEDDING))
    if not is_static or task.first_module != STATIC_EMBEDDING or task.projections:
        raise InputError(
            "Only a text embedder of static vectors can be written for model2vec, without dense "
            "layers, special tokens or another pooling than the mean."
        )
    vectors = np.asarray(task.encoder.embedding.embeddings, np.float32)
    about = {
        "model_type": MODEL2VEC,
        "architectures": ["StaticModel"],
        "normalize": task.settings.normalize,
        "hidden_dim": vectors.shape[1],
        "seq_length": task.settings.max_length,
        _WRITER: __version__,
    }
    files = files_of(task)
    check_output_folder(folder, is_ours=_is_written_here, force=overwrite)
    with new_folder(folder) as temporary:
        tokenizer.save(temporary)
        tensor_files.write({_MODEL2VEC_TABLE: vectors}, temporary / tensor_files.FILE)
        for name, content in {CONFIG: about, **files}.items():
            (temporary / name).parent.mkdir(exist_ok=True)
            write_json(temporary / name, content)


def _is_written_here(folder):
    """Whether `save_model2vec` has written a folder."""
    path = Path(folder) / CONFIG
    return path.is_file() and _WRITER in read_json(path)


def _inside(folder, path):
    """The folder of a module; InputError for a path that is not the name of one in `folder`."""
    if Path(path).name != path or path == ".." or "\0" in path:
        raise InputError(
            f"{folder / MODULES}: invalid path {path!r}. Expected the name of a folder in it."
        )
    return folder / path


def _static_embedding(folder, inner):
    """A `StaticEmbedding` with its dense layers and norm; they win over model2vec's config."""
    table, tokenizer = _table(inner), _plain_tokenizer(inner)
    encoder = _encoder(table, tokenizer, inner)
    steps = SentenceTransformer(folder, encoder.config, is_static=True)
    text_embedder = tasks.task_class(TEXT_EMBEDDING)
    max_length = _longest(inner) or LONGEST_STATIC
    task = text_embedder(encoder, tokenizer, max_length=max_length, **steps.settings)
    steps.assign(task)
    return task


def _model2vec(folder):
    """A folder of model2vec without a `modules.json`, as model2vec itself computes its vectors.

    It leaves unknown tokens out, of which the vector is therefore zero here: the direction of the
    mean is the same.
    """
    config = read_json(folder / CONFIG)
    normalize, length = config.get("normalize", False), config.get("max_length", _MODEL2VEC_LENGTH)
    if type(normalize) is not bool or not (length is None or type(length) is int and length > 0):
        raise InputError(
            f"{folder / CONFIG}: normalize is {normalize!r} and max_length {length!r}. Expected "
            "true or false, and a number of tokens or null."
        )
    table, tokenizer = _table(folder), _plain_tokenizer(folder)
    unknown = tokenizer.special_tokens.unk
    if unknown in tokenizer.vocabulary:
        table[tokenizer.vocabulary.id(unknown)] = 0.0
        if not normalize:
            warn_user(
                f"{folder}: model2vec leaves unknown tokens out of the mean, and here they are "
                "zeros in it. The vector of a text with unknown tokens is shorter, in the same "
                "direction."
            )
    encoder = _encoder(table, tokenizer, folder)
    max_length = LONGEST_STATIC if length is None else length
    settings = {"pooling": "mean", "normalize": normalize, "max_length": max_length}
    return tasks.task_class(TEXT_EMBEDDING)(encoder, tokenizer, **settings)


def _plain_tokenizer(folder):
    """The tokenizer of a folder, which puts no special tokens around a text."""
    from keras_bert.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.from_folder(folder)
    return tokenizer.with_vocabulary(tokenizer.vocabulary, template=PLAIN_TEMPLATE)


def _longest(folder):
    """The number of tokens to which the tokenizer.json of a folder cuts a text, or None."""
    path = folder / TOKENIZER_FILE
    truncation = read_json(path).get("truncation") if path.is_file() else None
    length = truncation.get("max_length") if isinstance(truncation, dict) else None
    return length if type(length) is int and length > 0 else None


def _table(folder):
    """The vector of each token, float32 (V, D).

    model2vec may have fewer vectors: `mapping` (V,) has the row of each token, and `weights` (V,)
    its factor.
    """
    tensors = tensor_files.open_folder(folder)
    name = _TABLE if _TABLE in tensors.shapes else _MODEL2VEC_TABLE
    shape = tensors.shapes.get(name)
    if shape is None or len(shape) != 2:
        found = "missing" if shape is None else f"of the shape {shape}"
        raise InputError(
            f"{folder}: the tensor {_TABLE} or {_MODEL2VEC_TABLE} is {found}. Expected a vector "
            "for each token."
        )
    table = tensors.read_numbers(name).astype(np.float32)  # int8 if it is quantized
    if name == _TABLE:
        return _finite(table, name, folder)
    if "mapping" in tensors.shapes:
        rows = tensors.read_numbers("mapping")
        valid = rows.ndim == 1 and np.issubdtype(rows.dtype, np.integer)
        if not valid or rows.min(initial=0) < 0 or rows.max(initial=0) >= len(table):
            raise InputError(
                f"{folder}: the tensor mapping has rows that {name} with {len(table)} rows lacks."
            )
        table = table[rows]
    if "weights" in tensors.shapes:
        weights = tensors.read_numbers("weights").astype(np.float32)
        if weights.shape != table.shape[:1]:
            raise InputError(
                f"{folder}: the tensor weights has the shape {weights.shape}. Expected a weight "
                f"for each of the {len(table)} tokens."
            )
        table = table * weights[:, None]
    return _finite(table, name, folder)


def _finite(table, name, folder):
    if not np.isfinite(table).all():
        raise InputError(f"{folder}: the tensor {name} has NaN or infinite numbers.")
    return table


def _encoder(table, tokenizer, folder):
    config = StaticConfig(vocab_size=len(table), hidden_size=table.shape[1])
    check_vocabulary(tokenizer, config, source=f"The vocabulary in {folder}")
    with without_random_weights():
        encoder = StaticEncoder(config)
    encoder.embedding.embeddings.assign(table)
    encoder.is_pretrained = True
    encoder.set_vocabulary(tokenizer.vocabulary)
    tokenizer.input_names = encoder.input_names
    return encoder
