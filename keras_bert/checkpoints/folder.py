"""The model folder: `config.json`, `model.safetensors` and the tokenizer's files.

It is Hugging Face's: what is written here opens in `transformers`, and its BERT folders open here.
"""

import json
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

import keras_bert
from keras_bert.checkpoints import hugging_face, rename, safetensors_files
from keras_bert.checkpoints import labels as labels_format
from keras_bert.checkpoints.kinds import ARCHITECTURES, MARK, name_of, stored, task_of
from keras_bert.checkpoints.named_models import local_folder
from keras_bert.checkpoints.opened_folder import CONFIG, OpenedFolder
from keras_bert.config import read_json
from keras_bert.encoder import BertEncoder
from keras_bert.errors import InputError
from keras_bert.files import check_output_folder, held_names, new_folder
from keras_bert.mixed_encoder import MixedEncoder
from keras_bert.text import vocabulary_files

if TYPE_CHECKING:
    from keras_bert.tasks.task import Task
    from keras_bert.text.tokenizer import Tokenizer

# The model card, which runs write beside a model.
CARD = "README.md"


def load(
    folder: str | PathLike[str], *, dtype: Any = None
) -> "tuple[BertEncoder, Tokenizer | None]":
    """Loads the encoder and tokenizer of a Hugging Face BERT or RoBERTa folder.

    Heads that lie in the folder too, and a task's mix of layers, are left out (`load_task` takes
    them).

    Args:
        folder: a path with `config.json`, `model.safetensors` (or its shards) and a vocabulary
            (`vocab.txt`, or `vocab.json` and `merges.txt` of our byte-pair encoding), or the output
            of a run, which holds such a folder. Or a name,
            `hf://owner/name[@revision]` or `kaggle://owner/model/framework/variation`, or an
            archive (.zip, .tar.gz) of a folder or of a checkpoint of Google's.
        dtype: a dtype or policy for the encoder's layers, such as "mixed_bfloat16"; None is Keras's
            own setting.

    Returns:
        (`BertEncoder`, `Tokenizer`). The tokenizer of a RoBERTa folder is None, with a warning:
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
    held = stored(source.values, source=str(source.folder / CONFIG))
    return source.architecture.kind is not None or "task" in held


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
    task_class = task_of(source.values, source=str(source.folder / CONFIG))
    options = source.settings(task_class)
    if task_class.LEAST_LABELS:
        options["labels"] = source.labels()
        if len(options["labels"]) < task_class.LEAST_LABELS:
            raise InputError(
                f"{source.folder} has a single label; the task {task_class.KIND} has two or more."
            )
    source.settle_decoder(needed="masked_lm_head" in source.architecture.heads)
    sizes = rename.sizes_of(source.config, labels=len(options.get("labels", ())))
    # Before a model is built of the sizes that a config asks for.
    _check_head(source, head_table(task_class, source.architecture, source.config), sizes)
    task = task_class(source.task_encoder(), source.tokenizer, **options)
    assign_heads(task, source, source.architecture)
    task.tuned = (*task.tuned, *source.tuned(task_class))
    return task


def head_table(task, architecture, config, *, heads=None):
    """The lines of those heads of a task (or of its class) that `transformers` has names for.

    `heads` are some of the task's HEADS; None is all of them.
    """
    tables = hugging_face.HEADS[config.model_type]
    heads = task.HEADS if heads is None else heads
    known = [architecture.heads[head] for head in heads if head in architecture.heads]
    return [line for head in known for line in tables[head]]


def own_tensors(task, architecture, *, heads=None):
    """The variables of a task's other heads, by names of ours; not what the encoder has, too.

    A head `crf_layer`, beside a setting `crf`, is kept under `crf`. `heads` as in `head_table`.
    """
    tensors, shared = {}, {id(variable) for variable in task.encoder.weights}
    for head in task.HEADS if heads is None else heads:
        if head not in architecture.heads:
            layer = getattr(task, head)
            for variable in layer.weights:
                if id(variable) in shared:
                    continue
                _, _, inside = variable.path.rpartition(f"{layer.name}/")
                name = f"{head.removesuffix('_layer')}.{inside.replace('/', '.')}"
                tensors[f"{hugging_face.KEPT}{name}"] = variable
    return tensors


def assign_heads(task, source, architecture, *, heads=None):
    """Puts the weights of a task's heads that a folder holds into the task.

    Args:
        task: the task.
        source: an `OpenedFolder`.
        architecture: the `Architecture` by whose names the folder holds them.
        heads: those to be read, of the task's HEADS; None is all of them.

    Raises:
        InputError: a tensor is missing or has another shape.
    """
    sizes = rename.sizes_of(source.config, labels=len(getattr(task, "labels", None) or ()))
    for head in task.HEADS if heads is None else heads:
        table = head_table(task, architecture, source.config, heads=[head])
        own = own_tensors(task, architecture, heads=[head])
        _check_head(source, table, sizes)
        _check_own_head(source, own)
        times = 1.0 / head_scale(task, head)
        if own and head in task.HEAD_SCALES:
            times *= _scale_left_out(source, task.HEAD_SCALES[head])
        read = _times(source.read, times)
        rename.assign(task, table, read)
        for name, variable in own.items():
            variable.assign(read(name))


def holds_head(task, source, architecture, head):
    """Whether a folder's class has a head of a task, or the folder any tensor of it.

    Arguments as in `assign_heads`.
    """
    lines = head_table(task, architecture, source.config, heads=[head])
    names = {line.theirs for line in lines} | {*own_tensors(task, architecture, heads=[head])}
    return head in source.architecture.heads or not names.isdisjoint(source.shapes)


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
        model: a `BertEncoder` or a task.
        tokenizer: its `Tokenizer`; None only for a RoBERTa encoder, whose tokenizer this library
            does not have.
        folder: the path to write. It may not exist, or be empty.
        overwrite: replace a model folder that this library wrote.

    Raises:
        InputError: the folder holds something else, or something that may not be replaced.
        ValueError: the tokenizer is missing or does not fit the model, or the model is an export's
            copy with joined projections.
    """
    config = model.config
    if getattr(model, "encoder", model).base().joined:
        raise ValueError("Query, key and value are three layers in a folder. Received: joined=True")
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
    config = model.config
    if isinstance(model, MixedEncoder):
        raise ValueError("A mix is saved with the task that learned it. Received: a MixedEncoder")
    name = name_of(model)
    if name not in ARCHITECTURES:
        raise ValueError(f"There is no architecture for these weights. Received: {name}")
    architecture = ARCHITECTURES[name]
    is_task = not isinstance(model, BertEncoder)
    encoder = model.encoder if is_task else model
    labels = list(getattr(model, "labels", None) or ())
    sizes = rename.sizes_of(config, labels=len(labels))
    kept = {"version": keras_bert.__version__}
    tensors = {}
    if isinstance(encoder, MixedEncoder):
        tensors = rename.gather(encoder, hugging_face.SCALAR_MIX, sizes=sizes)
        kept["scalar_mix"] = encoder.mix_settings
        encoder = encoder.encoder
    prefix = hugging_face.encoder_prefix(name, config.model_type)
    table = hugging_face.encoder_table(config, bare_prefix=prefix, pooler=architecture.pooler)
    tensors.update(rename.gather(encoder, table, sizes=sizes))
    values = {"architectures": [name], **config.to_dict()}
    if is_task:
        for head in model.HEADS:
            found, is_own = _head_tensors(model, head, architecture, sizes)
            tensors.update(found)
            if is_own and head in model.HEAD_SCALES:
                kept[model.HEAD_SCALES[head]] = 1.0  # nothing is left to multiply by
        if model.LEAST_LABELS:
            values |= labels_format.to_config(labels)
        values |= model.config_entries()
        kept["task"] = model.KIND
        kept |= {setting: getattr(model, setting) for setting in model.stored_settings()}
        if tuned := [name for name in model.tuned if kept[name] is not None]:
            kept["tuned"] = tuned
    values[MARK] = kept
    return values, tensors


def _head_tensors(task, head, architecture, sizes):
    """-> (the arrays of a head by name, whether the names are of ours)."""
    table = head_table(task, architecture, task.config, heads=[head])
    tensors = rename.gather(task, table, sizes=sizes)
    own = own_tensors(task, architecture, heads=[head])
    tensors |= {name: rename.to_numpy(variable) for name, variable in own.items()}
    times = head_scale(task, head)
    if times != 1.0:
        tensors = {name: array * np.float32(times) for name, array in tensors.items()}
    return {name: np.ascontiguousarray(array) for name, array in tensors.items()}, bool(own)


def _is_own(folder):
    """Whether a folder holds a model that this library wrote, and nothing else."""
    own = {CONFIG, safetensors_files.FILE, CARD, *vocabulary_files.NAMES}
    entries = set(held_names(folder))
    return entries <= own and CONFIG in entries and MARK in read_json(folder / CONFIG)
