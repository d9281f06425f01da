"""The model folder: `config.json`, `model.safetensors` and the tokenizer's files.

It is Hugging Face's: what is written here opens in `transformers`, and its BERT folders open here.
"""

import json
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

import keras_bert
from keras_bert import rename
from keras_bert.checkpoints import kinds, safetensors_files
from keras_bert.checkpoints import labels as labels_format
from keras_bert.checkpoints.kinds import MARK, task_of
from keras_bert.checkpoints.named_models import local_folder
from keras_bert.checkpoints.opened_folder import CONFIG, OpenedFolder
from keras_bert.encoders.encoder import Encoder
from keras_bert.encoders.tensor_names import KEPT
from keras_bert.errors import InputError
from keras_bert.files import check_output_folder, held_names, new_folder, read_json
from keras_bert.text import vocabulary_files

if TYPE_CHECKING:
    from keras_bert.tasks.task import Task
    from keras_bert.text.tokenizer import Tokenizer

# The model card, which runs write beside a model.
CARD = "README.md"


def load(
    folder: str | PathLike[str], *, dtype: Any = None
) -> "tuple[Encoder, Tokenizer | None]":
    """Loads the encoder and tokenizer of a model folder.

    Heads that the folder contains too are left out (`load_task` loads them).

    Args:
        folder: a path with `config.json`, `model.safetensors` (or its shards) and a vocabulary
            (`vocab.txt`, or `vocab.json` and `merges.txt` of our byte-pair encoding), or the output
            of a run, which holds such a folder. Or a name,
            `hf://owner/name[@revision]` or `kaggle://owner/model/framework/variation`, or an
            archive (.zip, .tar.gz) of a folder or of a checkpoint of Google's.
        dtype: a dtype or policy for the encoder's layers, such as "mixed_bfloat16"; None is Keras's
            own setting.

    Returns:
        (encoder, `Tokenizer`), such as a `BertEncoder`. The tokenizer of a RoBERTa folder is None, with a warning:
        it is a byte-level one, which this library does not have.

    Raises:
        InputError: a file is missing or broken, the config asks for what the encoder cannot
            compute, a tensor is missing, unknown or of another shape, or the vocabulary is longer
            than the embedding.
    """
    source = OpenedFolder(find_model_folder(folder))
    return source.encoder(dtype=dtype), source.tokenizer


def holds_task(folder):
    """Whether a folder holds a task's head, and not an encoder alone.

    Raises: as `load`.
    """
    source = OpenedFolder(local_folder(folder))
    return kinds.holds_task(source.values, source.names, source=str(source.folder / CONFIG))


def load_task(folder: str | PathLike[str]) -> "Task":
    """Loads the task that a folder holds, head and all; its `config.json` says which.

    Args:
        folder: a model folder, the output of a run, a name or an archive, as `load` takes them.

    Returns:
        The task, such as a `Classifier`, with its tokenizer: ready for `predict`, `fit` after a
        `compile_defaults`, and `export`.

    Raises:
        InputError: as `load`; also refused is a folder that holds no task of ours.
    """
    source = OpenedFolder(find_model_folder(folder))
    task_class = task_of(source.values, source.names, source=str(source.folder / CONFIG))
    options = source.settings(task_class)
    if task_class.LEAST_LABELS:
        options["labels"] = source.labels()
        if len(options["labels"]) < task_class.LEAST_LABELS:
            raise InputError(
                f"{source.folder} has a single label; the task {task_class.KIND} has two or more."
            )
    sizes = {**source.names.sizes, "C": len(options.get("labels", ()))}
    source.check_copies(needed="lm_head" in source.class_names.heads)
    table = head_table(task_class, source.class_names)
    _check_head(source, table, sizes)
    mix = source.layer_mix()
    if mix is not None:
        options["layer_mix"] = mix
    task = task_class(source.encoder(), source.tokenizer, **options)
    own = own_tensors(task, source.class_names)
    _check_own_head(source, own)
    rename.assign(task, table, source.read)
    for name, variable in own.items():
        variable.assign(source.read(name))
    return task


def head_table(task, class_names):
    """The lines of those heads of a task (or of its class) that a class of `transformers` has."""
    known = [class_names.heads[head] for head in task.HEADS if head in class_names.heads]
    return [line for head in known for line in head]


def own_tensors(task, class_names):
    """The variables of a task's other heads, by names of ours; not what the encoder has, too.

    A head `crf_layer`, beside a setting `crf`, is kept under `crf`.
    """
    tensors, shared = {}, {id(variable) for variable in task.encoder.weights}
    for head in task.head_names():
        if head not in class_names.heads:
            layer = getattr(task, head)
            for variable in layer.weights:
                if id(variable) in shared:
                    continue
                _, _, inside = variable.path.rpartition(f"{layer.name}/")
                name = f"{head.removesuffix('_layer')}.{inside.replace('/', '.')}"
                tensors[f"{KEPT}{name}"] = variable
    return tensors


def _check_head(source, table, sizes):
    names = {line.theirs for line in table}
    present = {name: shape for name, shape in source.shapes.items() if name in names}
    rename.check_shapes(present, table, sizes=sizes, source=str(source.folder))


def _check_own_head(source, tensors):
    for name, variable in tensors.items():
        found = source.shapes.get(name)
        if found != tuple(variable.shape):
            has = "lacks the tensor" if found is None else f"has the shape {list(found)} in"
            raise InputError(
                f"{source.folder} {has} {name}; its config asks for {list(variable.shape)}."
            )


def find_model_folder(path):
    """`path`, or `path/model` where `path` is the output of a training run.

    A name or an archive is the folder that `local_folder` makes of it.
    """
    path = local_folder(path)
    inner = path / "model"
    if not (path / CONFIG).exists() and (inner / CONFIG).exists():
        return inner
    return path


def save_folder(model, tokenizer, folder, *, overwrite=False):
    """Writes an encoder or a task as a model folder, aside first and then under its name.

    Args:
        model: an encoder or a task.
        tokenizer: its `Tokenizer`; None only for a RoBERTa encoder, whose tokenizer this library
            does not have.
        folder: the path to write. It may not exist, or be empty.
        overwrite: replace a model folder that this library wrote.

    Raises:
        InputError: the folder holds something else, or something that may not be replaced.
        ValueError: the tokenizer is missing or does not fit the model.
    """
    config = model.config
    if tokenizer is None and config.model_type == "bert":
        raise ValueError("A BERT model folder needs its tokenizer. Received: tokenizer=None")
    if tokenizer is not None and len(tokenizer) > config.vocab_size:
        raise ValueError(
            "The tokenizer has more pieces than the model has rows. "
            f"Received: len(tokenizer)={len(tokenizer)}, vocab_size={config.vocab_size}"
        )
    values, tensors = to_hugging_face(model)
    check_output_folder(folder, is_ours=_is_own, force=overwrite)
    with new_folder(folder) as aside:
        safetensors_files.write(tensors, aside / safetensors_files.FILE)
        if tokenizer is not None:
            tokenizer.save(aside)
        text = json.dumps(values, indent=2, ensure_ascii=False)
        (aside / CONFIG).write_text(text + "\n", encoding="utf-8")


def to_hugging_face(model):
    """The dictionary of `config.json` and the arrays by Hugging Face's names."""
    is_task = not isinstance(model, Encoder)
    encoder = model.encoder if is_task else model
    names = encoder.tensor_names(model.config)
    class_name = model.architecture if is_task else names.base_class
    class_names = names.names(class_name)
    labels = list(getattr(model, "labels", None) or ())
    tensors = rename.gather(encoder, names.table(class_name), sizes=names.sizes)
    values = {"architectures": [class_name], **model.config.to_dict()}
    kept = {"version": keras_bert.__version__}
    if is_task:
        sizes = {**names.sizes, "C": len(labels)}
        tensors.update(rename.gather(model, head_table(model, class_names), sizes=sizes))
        for own, variable in own_tensors(model, class_names).items():
            tensors[own] = np.ascontiguousarray(rename.to_numpy(variable))
        if model.LEAST_LABELS:
            values |= labels_format.to_config(labels)
        values |= model.config_entries()
        kept["task"] = model.KIND
        kept |= {setting: getattr(model, setting) for setting in model.stored_settings()}
        if model.layer_mix is not None:
            kept["scalar_mix"] = model.layer_mix
    values[MARK] = kept
    return values, tensors


def _is_own(folder):
    """Whether a folder holds a model that this library wrote, and nothing else."""
    own = {CONFIG, safetensors_files.FILE, CARD, *vocabulary_files.NAMES}
    entries = set(held_names(folder))
    return entries <= own and CONFIG in entries and MARK in read_json(folder / CONFIG)
