"""The model folder as it is written: `config.json`, `model.safetensors`, the tokenizer's files.

It is Hugging Face's: what is written here opens in `transformers`, and its BERT folders open here.
"""

import json

import numpy as np

import keras_bert
from keras_bert.base import rename
from keras_bert.base.files import check_output_folder, held_names, new_folder, read_json
from keras_bert.checkpoints import labels as labels_format
from keras_bert.checkpoints import safetensors_files
from keras_bert.checkpoints.kinds import MARK
from keras_bert.checkpoints.pretrained_checkpoint import CONFIG
from keras_bert.encoders.encoder import Encoder
from keras_bert.encoders.tensor_names import KEPT
from keras_bert.text.vocabulary import TOKENIZER_FILES

# The model card, which runs write beside a model.
CARD = "README.md"


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
    with new_folder(folder) as temporary:
        safetensors_files.write(tensors, temporary / safetensors_files.FILE)
        if tokenizer is not None:
            tokenizer.save(temporary)
        text = json.dumps(values, indent=2, ensure_ascii=False)
        (temporary / CONFIG).write_text(text + "\n", encoding="utf-8")


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
        if model.MIN_LABELS:
            values |= labels_format.to_config(labels)
        values |= model.config_keys()
        kept["task"] = model.KIND
        kept |= {setting: getattr(model, setting) for setting in model.stored_settings()}
        if model.bilstm is None:
            kept.pop("bilstm", None)
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
    return {name: np.ascontiguousarray(array) for name, array in tensors.items()}, bool(own)


def _is_own(folder):
    """Whether a folder holds a model that this library wrote, and nothing else."""
    own = {CONFIG, safetensors_files.FILE, CARD, *TOKENIZER_FILES}
    entries = set(held_names(folder))
    return entries <= own and CONFIG in entries and MARK in read_json(folder / CONFIG)


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


def head_scale(task, head):
    """What the weights of a head are multiplied by in a folder."""
    return getattr(task, task.HEAD_SCALES[head]) if head in task.HEAD_SCALES else 1.0
