"""Loads the encoder or the task of a model folder, which `saving` describes."""

import hashlib
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert.base import rename
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import kinds
from keras_bert.checkpoints.kinds import MARK, stored, task_of
from keras_bert.checkpoints.named_models import local_folder
from keras_bert.checkpoints.pretrained_checkpoint import CONFIG, PretrainedCheckpoint
from keras_bert.checkpoints.saving import head_scale, head_table, own_tensors
from keras_bert.encoders.encoder import Encoder

if TYPE_CHECKING:
    from keras_bert.tasks.task import Task
    from keras_bert.text.tokenizer import Tokenizer


def load(folder: str | PathLike[str], *, dtype: Any = None) -> "tuple[Encoder, Tokenizer | None]":
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
        (`Encoder`, `Tokenizer`), such as a `BertEncoder`. The tokenizer of a RoBERTa folder is
        None, with a warning: it is a byte-level one, which this library does not have.

    Raises:
        InputError: a file is missing or broken, the config asks for what the encoder cannot
            compute, a tensor is missing, unknown or of another shape, or the vocabulary is longer
            than the embedding.
    """
    source = PretrainedCheckpoint(find_model_folder(folder))
    return source.encoder(dtype=dtype), source.tokenizer


def holds_task(folder):
    """Whether a folder holds a task's head, and not an encoder alone.

    Raises: as `load`.
    """
    source = PretrainedCheckpoint(local_folder(folder))
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
    source = PretrainedCheckpoint(find_model_folder(folder))
    task_class = task_of(source.values, source.names, source=str(source.folder / CONFIG))
    options = source.settings(task_class)
    if task_class.MIN_LABELS:
        options["labels"] = source.labels()
        if len(options["labels"]) < task_class.MIN_LABELS:
            raise InputError(
                f"{source.folder} has a single label; the task {task_class.KIND} has two or more."
            )
    source.check_copies(needed="lm_head" in source.class_names.heads)
    sizes = {**source.names.sizes, "C": len(options.get("labels", ()))}
    # Before a model is built of the sizes that a config asks for.
    _check_head(source, head_table(task_class.HEADS, source.class_names), sizes)
    mix = source.layer_mix()
    if mix is not None:
        options["layer_mix"] = mix
    task = task_class(source.encoder(), source.tokenizer, **options)
    assign_heads(task, source, source.class_names)
    task.tuned = (*task.tuned, *source.tuned(task_class))
    return task


def assign_heads(task, source, class_names, *, heads=None):
    """Puts the weights of a task's heads that a folder holds into the task.

    Args:
        task: the task.
        source: an `PretrainedCheckpoint`.
        class_names: the `ClassNames` by which the folder holds them.
        heads: those to be read, of the task's; None is all of them.

    Raises:
        InputError: a tensor is missing or has another shape.
    """
    sizes = {**source.names.sizes, "C": len(getattr(task, "labels", None) or ())}
    for head in task.heads if heads is None else heads:
        table = head_table([head], class_names)
        own = own_tensors(task, class_names, heads=[head])
        _check_head(source, table, sizes)
        _check_own_head(source, own)
        times = 1.0 / head_scale(task, head)
        if own and head in task.HEAD_SCALES:
            times *= _scale_left_out(source, task.HEAD_SCALES[head])
        read = _times(source.read, times)
        rename.assign(task, table, read)
        for name, variable in own.items():
            variable.assign(np.reshape(read(name), variable.shape))


def holds_head(task, source, class_names, head):
    """Whether a folder's class has a head of a task, or the folder any tensor of it.

    Arguments as in `assign_heads`.
    """
    lines = head_table([head], class_names)
    names = {line.theirs for line in lines} | {*own_tensors(task, class_names, heads=[head])}
    return head in source.class_names.heads or not names.isdisjoint(source.shapes)


def _times(read, factor):
    if factor == 1.0:
        return read
    return lambda name: read(name).astype(np.float32) * np.float32(factor)


def _scale_left_out(source, name):
    """What the folder's weights under names of ours are still to be multiplied by: 1 as a rule.

    Raises:
        InputError: the folder does not say so, as those do not that were written before weights
            under such names were multiplied by their scale.
    """
    path = source.folder / CONFIG
    scale = stored(source.values, source=str(path)).get(name)
    if scale is None:
        raise InputError(
            f"{source.folder} was written by an earlier version of keras-bert that left out the "
            f"{name} of the head, so that its predictions would be wrong; train it again, or copy "
            f'the number `inputs.made_with.{name}` of the run\'s run.json as "{name}" into '
            f'"{MARK}" of {path}.'
        )
    if type(scale) not in (int, float) or not 0 < scale < np.inf:
        raise InputError(f"{path}, under {MARK}: `{name}` is {scale!r}; expected a number above 0.")
    return float(scale)


def _check_head(source, table, sizes):
    names = {line.theirs for line in table}
    present = {name: shape for name, shape in source.shapes.items() if name in names}
    rename.check_shapes(present, table, sizes=sizes, source=str(source.folder))


def _check_own_head(source, tensors):
    for name, variable in tensors.items():
        found = source.shapes.get(name)
        if found != (tuple(variable.shape) or (1,)):
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


def fingerprint_of_folder(folder):
    """A hash of all files of a model folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.suffix in (".json", ".safetensors", ".txt", ".bin") and path.is_file():
            digest.update(path.name.encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
