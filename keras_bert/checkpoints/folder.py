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
from keras_bert.checkpoints.kinds import MARK, stored, task_of
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


def head_table(heads, class_names):
    """The lines of those heads, attributes of a task, that a class of `transformers` has."""
    return [line for head in heads for line in class_names.heads.get(head, ())]


def own_tensors(task, class_names, *, heads=None):
    """The variables of a task's other heads, by names of ours; not what the encoder has, too.

    A head `crf_layer`, beside a setting `crf`, is kept under `crf`. `heads` are some of the task's;
    None is all of them.
    """
    tensors, shared = {}, {id(variable) for variable in task.encoder.weights}
    for head in task.heads if heads is None else heads:
        if head not in class_names.heads:
            layer = getattr(task, head)
            for variable in layer.weights:
                if id(variable) in shared:
                    continue
                _, _, inside = variable.path.rpartition(f"{layer.name}/")
                name = f"{head.removesuffix('_layer')}.{inside.replace('/', '.')}"
                tensors[f"{KEPT}{name}"] = variable
    return tensors


def assign_heads(task, source, class_names, *, heads=None):
    """Puts the weights of a task's heads that a folder holds into the task.

    Args:
        task: the task.
        source: an `OpenedFolder`.
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
            variable.assign(read(name).reshape(variable.shape))


def holds_head(task, source, class_names, head):
    """Whether a folder's class has a head of a task, or the folder any tensor of it.

    Arguments as in `assign_heads`.
    """
    lines = head_table([head], class_names)
    names = {line.theirs for line in lines} | {*own_tensors(task, class_names, heads=[head])}
    return head in source.class_names.heads or not names.isdisjoint(source.shapes)


def head_scale(task, head):
    """What the weights of a head are multiplied by in a folder."""
    return getattr(task, task.HEAD_SCALES[head]) if head in task.HEAD_SCALES else 1.0


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
        found, expected = source.shapes.get(name), tuple(variable.shape) or (1,)
        if found != expected:
            has = "lacks the tensor" if found is None else f"has the shape {list(found)} in"
            raise InputError(f"{source.folder} {has} {name}; its config asks for {list(expected)}.")


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
        for head in model.heads:
            found, is_own = _head_tensors(model, head, class_names, sizes)
            tensors.update(found)
            if is_own and head in model.HEAD_SCALES:
                kept[model.HEAD_SCALES[head]] = 1.0  # nothing is left to multiply by
        if model.LEAST_LABELS:
            values |= labels_format.to_config(labels)
        values |= model.config_entries()
        kept["task"] = model.KIND
        kept |= {setting: getattr(model, setting) for setting in model.stored_settings()}
        if model.layer_mix is not None:
            kept["scalar_mix"] = model.layer_mix
        if tuned := [name for name in model.tuned if kept[name] is not None]:
            kept["tuned"] = tuned
    values[MARK] = kept
    return values, tensors


def _head_tensors(task, head, class_names, sizes):
    """-> (the arrays of a head by name, whether the names are of ours)."""
    table = head_table([head], class_names)
    tensors = rename.gather(task, table, sizes=sizes)
    own = own_tensors(task, class_names, heads=[head])
    tensors |= {name: rename.to_numpy(variable) for name, variable in own.items()}
    times = head_scale(task, head)
    if times != 1.0:
        tensors = {name: array * np.float32(times) for name, array in tensors.items()}
    # A scalar becomes an array of one number, which it has been in folders all along.
    return {name: np.ascontiguousarray(array) for name, array in tensors.items()}, bool(own)


def _is_own(folder):
    """Whether a folder holds a model that this library wrote, and nothing else."""
    own = {CONFIG, safetensors_files.FILE, CARD, *vocabulary_files.NAMES}
    entries = set(held_names(folder))
    return entries <= own and CONFIG in entries and MARK in read_json(folder / CONFIG)
