"""The model folder: `config.json`, `model.safetensors` and the tokenizer's files.

It is Hugging Face's: what is written here opens in `transformers`, and its BERT folders open here.
"""

import json

import keras_bert
from keras_bert.checkpoints import hugging_face, rename, safetensors_files
from keras_bert.checkpoints import labels as labels_format
from keras_bert.checkpoints.architectures import ARCHITECTURES, find, name_of, task_class
from keras_bert.checkpoints.opened_folder import CONFIG, MARK, OpenedFolder
from keras_bert.checkpoints.output_folder import written_aside
from keras_bert.config import read_json
from keras_bert.encoder import BertEncoder
from keras_bert.errors import InputError
from keras_bert.tasks.mixed_encoder import MixedEncoder
from keras_bert.text import tokenizer_folder


def load(folder):
    """Loads the encoder and tokenizer of a Hugging Face BERT or RoBERTa folder.

    Heads that lie in the folder too, and a task's mix of layers, are left out (`load_task` takes
    them).

    Args:
        folder: a path with `config.json`, `model.safetensors` (or its shards) and a vocabulary
            (`vocab.txt`, or `vocab.json` and `merges.txt` of our byte-pair encoding).

    Returns:
        (`BertEncoder`, `Tokenizer`). The tokenizer of a RoBERTa folder is None, with a warning:
        it is a byte-level one, which this library does not have.

    Raises:
        InputError: a file is missing or broken, the config asks for what the encoder cannot
            compute, a tensor is missing, unknown or of another shape, or the vocabulary is longer
            than the embedding.
    """
    source = OpenedFolder(folder)
    return source.encoder(), source.tokenizer


def load_task(folder):
    """Loads the task that a folder holds, head and all; `architectures` says which.

    Args, Raises: as `load`; also refused is a folder whose architecture is no task here.
    """
    source = OpenedFolder(folder)
    _, architecture = find(source.values, source=str(source.folder / CONFIG))
    options = source.settings(architecture)
    if architecture.labelled:
        options["labels"] = source.labels()
        if len(options["labels"]) < 2:
            raise InputError(
                f"{source.folder} has a single label; a {architecture.task} has two or more."
            )
    heads = hugging_face.HEADS[source.config.model_type]
    table = [line for head in architecture.heads for line in heads[head]]
    sizes = rename.sizes_of(source.config, labels=len(options.get("labels", ())))
    source.settle_decoder(needed="masked_lm_head" in architecture.heads)
    names = {line.theirs for line in table}
    present = {name: shape for name, shape in source.shapes.items() if name in names}
    rename.check_shapes(present, table, sizes=sizes, source=str(source.folder))
    task = task_class(architecture.task)(source.task_encoder(), source.tokenizer, **options)
    rename.assign(task, table, source.read)
    return task


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
    with written_aside(folder, own=_is_own, overwrite=overwrite) as aside:
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
    encoder = model if isinstance(model, BertEncoder) else model.encoder
    labels = list(getattr(model, "labels", None) or ())
    sizes = rename.sizes_of(config, labels=len(labels))
    stored = {"version": keras_bert.__version__}
    tensors = {}
    if isinstance(encoder, MixedEncoder):
        tensors = rename.gather(encoder, hugging_face.SCALAR_MIX, sizes=sizes)
        stored["scalar_mix"] = encoder.mix_settings
        encoder = encoder.encoder
    prefix = hugging_face.encoder_prefix(name, config.model_type)
    table = hugging_face.encoder_table(
        config, bare_prefix=prefix, pooler=ARCHITECTURES[name].pooler
    )
    tensors.update(rename.gather(encoder, table, sizes=sizes))
    heads = hugging_face.HEADS[config.model_type]
    table = [line for head in ARCHITECTURES[name].heads for line in heads[head]]
    tensors.update(rename.gather(model, table, sizes=sizes))
    values = {"architectures": [name], **config.to_dict()}
    if ARCHITECTURES[name].labelled:
        values |= labels_format.to_config(labels)
    for setting in ARCHITECTURES[name].settings:
        stored[setting] = getattr(model, setting)
    values[MARK] = stored
    return values, tensors


def _is_own(folder):
    """Whether a folder holds a model that this library wrote, and nothing else."""
    own = {CONFIG, safetensors_files.FILE, *tokenizer_folder.NAMES}
    entries = {entry.name for entry in folder.iterdir()}
    return entries <= own and CONFIG in entries and MARK in read_json(folder / CONFIG)
