"""Saves and loads a model folder: `config.json`, `model.safetensors`, the tokenizer's files.

It is Hugging Face's: what is written here opens in `transformers`, and its BERT folders open here.
"""

import hashlib
import json
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

import keras_bert
from keras_bert.base import rename
from keras_bert.base.errors import InputError
from keras_bert.base.files import check_output_folder, held_names, new_folder, read_json
from keras_bert.checkpoints import tensor_files
from keras_bert.checkpoints.named_models import local_folder
from keras_bert.checkpoints.pretrained_checkpoint import (
    CONFIG,
    MARK,
    PretrainedCheckpoint,
    labels_to_config,
)
from keras_bert.encoders.encoder import Encoder
from keras_bert.encoders.tensor_names import KEPT
from keras_bert.text.vocabulary import NAMES as TOKENIZER_FILES

if TYPE_CHECKING:
    from keras_bert.tasks.task import Task
    from keras_bert.text.tokenizer import Tokenizer

# The model card, which runs write into the model folder.
CARD = "README.md"


def load(folder: str | PathLike[str], *, dtype: Any = None) -> "tuple[Encoder, Tokenizer | None]":
    """Loads the encoder and tokenizer of a model folder.

    Heads that the folder contains too are left out (`load_task` loads them).

    Args:
        folder: a path with `config.json`, `model.safetensors` (or its shards) and a vocabulary
            (`vocab.txt`, or `vocab.json` and `merges.txt` of our byte-pair encoding), or the output
            of a run, which contains such a folder. Or a name,
            `hf://owner/name[@revision]` or `kaggle://owner/model/framework/variation`, or an
            archive (.zip, .tar.gz) of a folder or of a Google checkpoint.
        dtype: a dtype or policy for the encoder's layers, such as "mixed_bfloat16"; None is Keras's
            own setting.

    Returns:
        (`Encoder`, `Tokenizer`), such as a `BertEncoder`. The tokenizer of a RoBERTa folder is
        None, with a warning: its byte-level tokenizer is not supported.

    Raises:
        InputError: a file is missing or broken, the config asks for what the encoder cannot
            compute, a tensor is missing, unknown or of another shape, or the vocabulary is longer
            than the embedding.
    """
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
    return build_task(PretrainedCheckpoint(find_model_folder(folder)))


def build_task(checkpoint):
    """The task in a `PretrainedCheckpoint`; see `load_task`."""
    kind = checkpoint.task_class()
    options = checkpoint.settings(kind)
    if kind.MIN_LABELS:
        options["labels"] = checkpoint.labels()
        if len(options["labels"]) < kind.MIN_LABELS:
            raise InputError(
                f"{checkpoint.folder} has a single label. The task {kind.KIND} needs two or more."
            )
    if "lm_head" in checkpoint.class_names.heads:
        checkpoint.check_copies()
    # Checked before a model of the config's sizes is built.
    table = head_table(kind.HEADS, checkpoint.class_names)
    _check_head(checkpoint, table, labels=options.get("labels"))
    mix = checkpoint.layer_mix()
    if mix is not None:
        options["layer_mix"] = mix
    task = kind(checkpoint.encoder(), checkpoint.tokenizer, **options)
    assign_heads(task, checkpoint, checkpoint.class_names)
    task.tuned = (*task.tuned, *checkpoint.tuned(kind))
    return task


def assign_heads(task, checkpoint, class_names, *, heads=None):
    """Gives a task's heads their weights from a folder.

    Args:
        task: the task.
        checkpoint: a `PretrainedCheckpoint`.
        class_names: the `ClassNames` that the folder's names of the heads follow.
        heads: the task's heads to read; None is all of them.

    Raises:
        InputError: a tensor is missing or has another shape.
    """
    for head in task.heads if heads is None else heads:
        table = head_table([head], class_names)
        own = own_tensors(task, class_names, heads=[head])
        _check_head(checkpoint, table, labels=getattr(task, "labels", None))
        _check_own_head(checkpoint, own)
        factor = 1.0 / head_scale(task, head)
        if own and head in task.HEAD_SCALES:
            factor *= _missing_scale(checkpoint, task.HEAD_SCALES[head])

        def read(name, factor=factor):
            return checkpoint.read(name) * np.float32(factor)

        rename.assign(task, table, read)
        for name, variable in own.items():
            variable.assign(np.reshape(read(name), variable.shape))


def holds_head(task, checkpoint, class_names, head):
    """Whether a folder's class has a head of a task, or the folder has any tensor of it.

    Arguments as in `assign_heads`.
    """
    names = {line.theirs for line in head_table([head], class_names)}
    names |= {*own_tensors(task, class_names, heads=[head])}
    return head in checkpoint.class_names.heads or not names.isdisjoint(checkpoint.shapes)


def _missing_scale(checkpoint, name):
    """What the folder's weights under our own names are still to be multiplied by, usually 1.

    Raises:
        InputError: it is not stored, as in folders of versions that did not multiply these weights.
    """
    scale = checkpoint.stored.get(name)
    if scale is None:
        raise InputError(
            f"{checkpoint.folder} was written by an earlier version of keras-bert that left out "
            f"the {name} of the head, so that its predictions would be wrong. Train it again, or "
            f'copy the number `inputs.made_with.{name}` of the run\'s run.json as "{name}" into '
            f'"{MARK}" of {checkpoint.source}.'
        )
    if type(scale) not in (int, float) or not 0 < scale < np.inf:
        raise InputError(
            f"{checkpoint.source}, under {MARK}: `{name}` is {scale!r}. Expected a number above 0."
        )
    return float(scale)


def _check_head(checkpoint, table, *, labels):
    names = {line.theirs for line in table}
    present = {name: shape for name, shape in checkpoint.shapes.items() if name in names}
    sizes = {**checkpoint.names.sizes, "C": len(labels or ())}
    rename.check_shapes(present, table, sizes=sizes, source=str(checkpoint.folder))


def _check_own_head(checkpoint, tensors):
    for name, variable in tensors.items():
        shape = checkpoint.shapes.get(name)
        if shape != (tuple(variable.shape) or (1,)):
            problem = "lacks the tensor" if shape is None else f"has the shape {list(shape)} in"
            raise InputError(
                f"{checkpoint.folder} {problem} {name}; its config asks for {list(variable.shape)}."
            )


def find_model_folder(path):
    """`path`, or `path/model` if `path` is the output of a training run.

    A name or an archive is the folder that `local_folder` makes of it.
    """
    path = local_folder(path)
    inner = path / "model"
    if not (path / CONFIG).exists() and (inner / CONFIG).exists():
        return inner
    return path


def fingerprint_of_folder(folder):
    """A hash of all files of a model folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.suffix in (".json", ".safetensors", ".txt", ".bin") and path.is_file():
            digest.update(path.name.encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def save_folder(model, tokenizer, folder, *, overwrite=False):
    """Writes an encoder or a task as a model folder, atomically.

    Args:
        model: an encoder or a task.
        tokenizer: its `Tokenizer`; None only for a RoBERTa encoder, whose tokenizer is not
            supported.
        folder: the path to write. It may not exist, or be empty.
        overwrite: replace a model folder that this library wrote.

    Raises:
        InputError: the folder contains something else, or something that may not be replaced.
        ValueError: the tokenizer is missing or does not fit the model.
    """
    config = model.config
    if tokenizer is None and config.model_type == "bert":
        raise ValueError("A BERT model folder needs its tokenizer. Received: tokenizer=None")
    if tokenizer is not None and len(tokenizer) > config.vocab_size:
        raise ValueError(
            "The tokenizer has more tokens than the model's token embedding has rows. "
            f"Received: len(tokenizer)={len(tokenizer)}, vocab_size={config.vocab_size}"
        )
    values, tensors = to_hugging_face(model)
    check_output_folder(folder, is_ours=_is_own, force=overwrite)
    with new_folder(folder) as temporary:
        tensor_files.write(tensors, temporary / tensor_files.FILE)
        if tokenizer is not None:
            tokenizer.save(temporary)
        text = json.dumps(values, indent=2, ensure_ascii=False)
        (temporary / CONFIG).write_text(text + "\n", encoding="utf-8")


def _is_own(folder):
    """Whether a folder contains a model that this library wrote, and nothing else."""
    own = {CONFIG, tensor_files.FILE, CARD, *TOKENIZER_FILES}
    names = set(held_names(folder))
    return names <= own and CONFIG in names and MARK in read_json(folder / CONFIG)


def to_hugging_face(model):
    """The dictionary of `config.json` and the arrays by Hugging Face's names."""
    is_task = not isinstance(model, Encoder)
    encoder = model.encoder if is_task else model
    names = encoder.tensor_names(model.config)
    class_name = model.architecture if is_task else names.base_class
    tensors = rename.gather(encoder, names.table(class_name), sizes=names.sizes)
    values = {"architectures": [class_name], **model.config.to_dict()}
    stored = {"version": keras_bert.__version__}
    if is_task:
        labels = list(getattr(model, "labels", None) or ())
        sizes = {**names.sizes, "C": len(labels)}
        class_names = names.names(class_name)
        for head in model.heads:
            own = own_tensors(model, class_names, heads=[head])
            arrays = rename.gather(model, head_table([head], class_names), sizes=sizes)
            arrays |= {name: rename.to_numpy(variable) for name, variable in own.items()}
            scale = head_scale(model, head)
            for name, array in arrays.items():
                scaled = array if scale == 1.0 else array * np.float32(scale)
                tensors[name] = np.ascontiguousarray(scaled)
            if own and head in model.HEAD_SCALES:
                stored[model.HEAD_SCALES[head]] = 1.0  # these weights are scaled already
        if model.MIN_LABELS:
            values |= labels_to_config(labels)
        values |= model.config_keys()
        stored["task"] = model.KIND
        stored |= {setting: getattr(model, setting) for setting in model.stored_settings()}
        if model.bilstm is None:
            stored.pop("bilstm", None)
        if model.layer_mix is not None:
            stored["scalar_mix"] = model.layer_mix
        if tuned := [name for name in model.tuned if stored[name] is not None]:
            stored["tuned"] = tuned
    values[MARK] = stored
    return values, tensors


def head_table(heads, class_names):
    """The lines of those heads, attributes of a task, that a class of `transformers` has."""
    return [line for head in heads for line in class_names.heads.get(head, ())]


def own_tensors(task, class_names, *, heads):
    """The variables of heads that the class lacks, by our names; not those of the encoder.

    A head `crf_layer` of a task with a setting `crf` is stored under `crf`.
    """
    tensors, shared = {}, {id(variable) for variable in task.encoder.weights}
    for head in heads:
        if head not in class_names.heads:
            layer = getattr(task, head)
            for variable in layer.weights:
                if id(variable) in shared:
                    continue
                _, _, inside = variable.path.rpartition(f"{layer.name}/")
                name = f"{head.removesuffix('_layer')}.{inside.replace('/', '.')}"
                tensors[f"{KEPT}{name}"] = variable
    return tensors


def head_scale(task, head):
    """What the weights of a head are multiplied by in a folder."""
    return getattr(task, task.HEAD_SCALES[head]) if head in task.HEAD_SCALES else 1.0
