"""Loads the encoder or the task of a model folder; `saving` describes it."""

import hashlib
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert.base import rename
from keras_bert.base.errors import InputError
from keras_bert.checkpoints.named_models import local_folder
from keras_bert.checkpoints.pretrained_checkpoint import CONFIG, MARK, PretrainedCheckpoint
from keras_bert.checkpoints.saving import head_scale, head_table
from keras_bert.encoders.encoder import Encoder

if TYPE_CHECKING:
    from keras_bert.tasks.task import Task
    from keras_bert.text.tokenizer import Tokenizer


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
    kind, class_names = checkpoint.task_class(), checkpoint.class_names
    options = checkpoint.settings(kind)
    if kind.MIN_LABELS:
        options["labels"] = checkpoint.labels()
        if len(options["labels"]) < kind.MIN_LABELS:
            raise InputError(
                f"{checkpoint.folder} has a single label. The task {kind.KIND} needs two or more."
            )
    if "lm_head" in class_names.heads:
        checkpoint.check_copies()
    # Checked before a model of the config's sizes is built.
    table = [line for head in kind.HEADS for line in class_names.heads.get(head, ())]
    _check_shapes(checkpoint, table, labels=options.get("labels"))
    options |= checkpoint.layer_options()
    vectors = checkpoint.static_vectors()
    if vectors is not None:
        options["static_vectors"] = vectors
    task = kind(checkpoint.encoder(), checkpoint.tokenizer, **options)
    assign_heads(task, checkpoint, class_names)
    task.tuned = (*task.tuned, *checkpoint.tuned(kind))
    return task


def assign_heads(task, checkpoint, class_names, *, heads=None):
    """Gives a task's heads (None: all of them) their weights from a folder.

    `class_names` are the `ClassNames` that the folder's names of the heads follow. Raises
    InputError if a tensor is missing or has another shape.
    """
    for head in task.heads if heads is None else heads:
        owner, table = head_table(task, head, class_names)
        _check_shapes(checkpoint, table, labels=getattr(task, "labels", None))
        factor = 1.0 / head_scale(task, head)
        if owner is not task and head in task.HEAD_SCALES:
            factor *= _missing_scale(checkpoint, task.HEAD_SCALES[head])

        def read(name, factor=factor):
            return checkpoint.read(name) * np.float32(factor)

        rename.assign(owner, table, read)


def _check_shapes(checkpoint, table, *, labels):
    names = {line.theirs for line in table}
    present = {name: shape for name, shape in checkpoint.shapes.items() if name in names}
    sizes = {**checkpoint.names.sizes, "C": len(labels or ())}
    rename.check_shapes(present, table, sizes=sizes, source=str(checkpoint.folder))


def holds_head(task, checkpoint, class_names, head):
    """Whether a folder's class has a head of a task, or the folder has any tensor of it."""
    _, table = head_table(task, head, class_names)
    names = {line.theirs for line in table}
    return head in checkpoint.class_names.heads or not names.isdisjoint(checkpoint.shapes)


def _missing_scale(checkpoint, name):
    """What the folder's weights under our own names are still to be multiplied by, usually 1.

    Versions that did not multiply these weights did not store it: an InputError.
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
