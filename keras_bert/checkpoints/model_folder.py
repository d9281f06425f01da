"""The model folder: `config.json`, `model.safetensors`, the tokenizer's files; heads, in and out.

It is Hugging Face's: what is written here opens in `transformers`, and its BERT folders open here.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from keras_bert.base import rename
from keras_bert.base.errors import InputError, argument
from keras_bert.base.files import hash_of_file, new_folder, read_json
from keras_bert.base.ownership import check_output_folder, files_below, held_names
from keras_bert.base.terminal import escaped
from keras_bert.base.version import __version__
from keras_bert.checkpoints import adapters, hub, sentence_transformers, tensor_files
from keras_bert.checkpoints.config_json import CONFIG, MARK, labels_to_config
from keras_bert.checkpoints.pretrained_checkpoint import PretrainedCheckpoint
from keras_bert.encoders.encoder import Encoder
from keras_bert.encoders.tensor_names import KEPT
from keras_bert.heads import LAST
from keras_bert.layers.dense import check_float_weights
from keras_bert.text.vocabulary import TOKENIZER_FILES
from keras_bert.text.vocabulary_files import CONFIG_FILE

# The model card, which runs write into the model folder.
CARD = "README.md"
# All files of a model folder.
FILES = {CONFIG, tensor_files.FILE, adapters.CONFIG, adapters.FILE, CARD, *TOKENIZER_FILES}
FILES |= sentence_transformers.FILES


def save_folder(model, tokenizer, folder, *, overwrite=False):
    """Writes an encoder or a task as a model folder, atomically.

    Args:
        model: an encoder or a task.
        tokenizer: its `Tokenizer`; None only for a model that was loaded without one.
        folder: the path to write. It may not exist, or be empty.
        overwrite: replace a model folder that this library wrote.

    Raises:
        InputError: the folder contains something else, or something that may not be replaced, or
            the model was quantized.
        ValueError: the tokenizer is missing or does not fit the model.
    """
    config = model.config
    check_float_weights(model)
    if tokenizer is None and config.REQUIRES_TOKENIZER:
        name = config.model_type.upper()
        raise ValueError(f"A {name} model folder needs its tokenizer. Received: tokenizer=None.")
    if tokenizer is not None and len(tokenizer) > config.vocab_size:
        raise ValueError(
            "The tokenizer has more tokens than the model's token embedding has rows. "
            f"Received: len(tokenizer)={len(tokenizer)}, vocab_size={config.vocab_size}."
        )
    config_json, tensors = to_hugging_face(model)
    contents = {CONFIG: config_json, tensor_files.FILE: tensors}
    _publish(contents, model, tokenizer, folder, overwrite=overwrite)


def save_adapter(model, tokenizer, folder, *, base, overwrite=False):
    """Writes the trained part of a model with LoRA as an adapter of `peft`, atomically.

    It holds the updates of the encoder's layers, the heads, and a token embedding with more tokens
    than that of the base model. The folder opens as a model folder where the base model is.

    Args:
        model: an encoder or a task, after `Encoder.enable_lora`.
        tokenizer, folder, overwrite: see `save_folder`.
        base: the model that the encoder was loaded from: a model folder, the output of a run, or
            `hf://owner/name`.

    Raises:
        InputError: the encoder has no LoRA, `base` is not a whole model folder, or see
            `save_folder`.
    """
    encoder = model if isinstance(model, Encoder) else model.encoder
    if encoder.lora is None:
        raise InputError("The encoder has no LoRA. Call `encoder.enable_lora(rank)` before it.")
    base_folder = adapters.base_folder(base)
    config_json, tensors = to_hugging_face(model)
    adapter_config, tensors = adapters.contents(
        encoder,
        tensors,
        class_name=config_json["architectures"][0],
        base=base if hub.is_name(base) else base_folder,
        base_shapes=PretrainedCheckpoint(base_folder).shapes,
    )
    config_json[MARK]["base_sha256"] = adapters.hash_of_base(base_folder)
    contents = {CONFIG: config_json, adapters.CONFIG: adapter_config, adapters.FILE: tensors}
    _publish(contents, model, tokenizer, folder, overwrite=overwrite)


def _publish(contents, model, tokenizer, folder, *, overwrite):
    """Writes a folder; `contents` are JSON objects and arrays by name, by the names of files."""
    if tokenizer is not None:
        tokenizer.input_names = getattr(model, "encoder", model).input_names
    abilities = getattr(model, "OFFERS", ())  # of a task
    if tokenizer is not None and "generate" in abilities:
        contents[CONFIG] |= _ends_of_texts(tokenizer)
    contents[CONFIG] |= model.config.generation_keys
    partners = getattr(model, "PARTNERS", ())
    for name in partners:
        config_json, tensors = to_hugging_face(getattr(model, name))
        contents |= {f"{name}/{CONFIG}": config_json, f"{name}/{tensor_files.FILE}": tensors}
    check_output_folder(folder, is_ours=_is_own, force=overwrite)
    if "text-vectors" in abilities:
        contents |= sentence_transformers.files_of(model)
    with new_folder(folder) as temporary:
        for name in partners:
            (temporary / name).mkdir()
        for place in ("", *partners):
            if tokenizer is not None:
                tokenizer.save(temporary / place)
        is_cross_encoder = tokenizer is not None and "rerank" in abilities
        if sentence_transformers.LENGTH in contents or is_cross_encoder:
            length = {"model_max_length": model.settings.max_length}
            contents[CONFIG_FILE] = {**read_json(temporary / CONFIG_FILE), **length}
        for name, content in contents.items():
            (temporary / name).parent.mkdir(exist_ok=True)
            if name.endswith(".safetensors"):
                tensor_files.write(content, temporary / name)
                continue
            text = escaped(json.dumps(content, indent=2, ensure_ascii=False))
            (temporary / name).write_text(text + "\n", encoding="utf-8")


def _ends_of_texts(tokenizer):
    """The ids that a text begins and ends with, by the keys of `transformers`.

    Without them its `generate` goes on after the end of a text, or takes another token for it.
    """
    ends = zip(("bos_token_id", "eos_token_id"), tokenizer.ends_of_texts, strict=True)
    return {key: tokenizer.vocabulary.id(token) for key, token in ends if token is not None}


def _is_own(folder):
    """Whether a folder contains a model that this library wrote, and nothing else."""
    files = files_below(folder, held_names(folder))
    paths = {path.relative_to(folder).as_posix() for path in files}
    return all(map(is_of_model, paths)) and CONFIG in paths and MARK in read_json(folder / CONFIG)


def is_of_model(path):
    """Whether model folders have a file of this path, relative to the folder and with "/"."""
    folder, _, name = path.rpartition("/")
    if folder in hub.PARTNERS:
        return name in FILES
    return path in FILES or sentence_transformers.IN_STEPS.fullmatch(path) is not None


def to_hugging_face(model):
    """The dictionary of `config.json` and the arrays by Hugging Face's names."""
    is_task = not isinstance(model, Encoder)
    encoder = model.encoder if is_task else model
    names = encoder.tensor_names(model.config)
    class_name = model.architecture if is_task else names.base_class
    tensors = rename.gather(encoder, names.table(class_name), sizes=names.sizes)
    pooler = (model.transform if is_task else None) or encoder.pooler
    if pooler is not None:
        table = names.pooler_table(class_name)
        tensors |= rename.gather(pooler, table, sizes=names.sizes)
    config_json = {"architectures": [class_name], **model.config.to_dict()}
    stored = {"version": __version__}
    if encoder.came_with_pooling is not None:
        stored["default_pooling"] = encoder.came_with_pooling
    if is_task:
        labels = list(getattr(model, "labels", None) or ())
        sizes = {**names.sizes, "C": len(labels)}
        class_names = names.names(class_name)
        for head in model.heads:
            if head == "transform" or head in model.heads_in_files:
                continue
            owner, table = head_table(model, head, class_names)
            scale = head_scale(model, head)
            for name, array in rename.gather(owner, table, sizes=sizes).items():
                tensors[name] = array if scale == 1.0 else array * np.float32(scale)
            if owner is not model and head in model.HEAD_SCALES:
                stored[model.HEAD_SCALES[head]] = 1.0  # these weights are scaled already
        if model.MIN_LABELS:
            config_json |= labels_to_config(labels)
        keys = model.config_keys()  # last, whether or not the encoder's file had them already
        config_json = {key: config_json[key] for key in config_json if key not in keys} | keys
        stored["task"] = model.TASK_TYPE
        stored |= {name: getattr(model.settings, name) for name in model.stored_settings()}
        if model.reader.bilstm is None:
            stored.pop("bilstm", None)
        if model.ACTIVATIONS and model.activation is not None:
            stored["activation"] = model.activation
        if model.READS_WORDS and model.tokenizer is not None:
            stored["skips_spaces"] = model.tokenizer.skips_spaces
        if model.columns:
            stored["columns"] = model.columns
        if model.reader.layers != LAST:
            stored["layers"] = model.reader.layers
        if model.reader.mix is not None:
            stored["scalar_mix"] = model.reader.mix
        if model.reader.static_vectors is not None:
            stored["static_vectors"] = model.reader.static_vectors.config.to_dict()
        if tuned := [name for name in model.tuned if stored[name] is not None]:
            stored["tuned"] = tuned
    config_json[MARK] = stored
    return config_json, tensors


def head_table(task, head, class_names):
    """-> (the model or layer that a rename table of a head is for, its lines).

    They are those of the class of `transformers`. Of a head that the class lacks they are the
    variables of its layer under our own names, without those of the encoder. The transform's are
    their plain ones.
    """
    if head == "transform":
        return task.transform, task.encoder.tensor_names(task.config).pooler_table()
    if head in class_names.heads:
        return task, class_names.heads[head]
    layer, lines = task.heads[head], []
    shared = {id(variable) for variable in task.encoder.weights}
    for variable in layer.weights:
        if id(variable) not in shared:
            _, _, inside = variable.path.rpartition(f"{layer.name}/")
            name = f"{KEPT}{head}.{inside.replace('/', '.')}"
            shape = " ".join(map(str, variable.shape)) or "1"
            lines.append(rename.Rename(variable.path, name, shape))
    return layer, lines


def head_scale(task, head):
    """The factor of the weights of a head in a folder."""
    return getattr(task, task.HEAD_SCALES[head]) if head in task.HEAD_SCALES else 1.0


def build_task(checkpoint, *, task_type=None, **settings):
    """The task in a `PretrainedCheckpoint`; see `keras_bert.checkpoints.load_task`."""
    task_class, class_names = checkpoint.task_class(task_type), checkpoint.class_names
    options = {**checkpoint.settings(task_class), **settings}
    if task_class.MIN_LABELS:
        options["labels"] = checkpoint.labels()
        if len(options["labels"]) < task_class.MIN_LABELS:
            raise InputError(
                f"{checkpoint.name} has a single label. The task {task_class.TASK_TYPE} needs two "
                "or more."
            )
    if "lm_head" in class_names.heads:
        checkpoint.check_copies()
    # Checked before a model of the config's sizes is built.
    table = [line for head in task_class.HEADS for line in class_names.heads.get(head, ())]
    _check_shapes(checkpoint, table, labels=options.get("labels"))
    options |= checkpoint.layer_options()
    if task_class.ACTIVATIONS:
        options["activation"] = checkpoint.activation(task_class)
    vectors = checkpoint.static_vectors()
    if vectors is not None:
        options["static_vectors"] = vectors
    steps = checkpoint.sentence_transformer if "text-vectors" in task_class.OFFERS else None
    encoder = checkpoint.encoder(takes_pooling=steps is None)
    task = task_class(encoder, checkpoint.tokenizer_of(task_class), **options)
    task.columns = checkpoint.columns()
    if steps is not None:
        steps.assign(task)
    assign_heads(task, checkpoint, class_names)
    for name in task.PARTNERS:
        assign_partner(task, checkpoint, name)
    task.tuned = tuple(dict.fromkeys((*task.tuned, *checkpoint.tuned(task_class))))
    return task


def assign_heads(task, checkpoint, class_names, *, heads=None):
    """Gives a task's heads (None: all of them) their weights from a folder.

    `class_names` are the `ClassNames` that the folder's names of the heads follow. Raises
    InputError if a tensor is missing or has another shape.
    """
    for head in task.heads if heads is None else heads:
        if head in task.heads_in_files:
            continue
        owner, table = head_table(task, head, class_names)
        _check_shapes(checkpoint, table, labels=getattr(task, "labels", None))
        factor = 1.0 / head_scale(task, head)
        if owner is not task and head in task.HEAD_SCALES:
            factor *= _missing_scale(checkpoint, task.HEAD_SCALES[head])

        def read(name, factor=factor):
            return checkpoint.read(name) * np.float32(factor)

        rename.assign(owner, table, read)


def assign_partner(task, checkpoint, name):
    """Gives the partner `name` of a task its weights from its folder in that of the task.

    Raises InputError if there is no such folder, its model has other sizes, or weights that the two
    share differ.
    """
    folder, partner = checkpoint.folder / name, getattr(task, name)
    if not (folder / CONFIG).exists():
        raise InputError(
            f"{checkpoint.name} has no folder {name}, without which a model of the task "
            f"{task.TASK_TYPE} is not whole. Load its encoder alone (`kb.load`), or pre-train from "
            f"it with a new {name}."
        )
    source = PretrainedCheckpoint(folder, tokenizer=False)
    if source.config != partner.config:
        raise InputError(
            f"The {name} in {folder} is {source.config.described}. Expected "
            f"{partner.config.described}."
        )
    shared = [(weight, rename.to_numpy(weight)) for weight in partner.encoder.weights]
    rename.assign(partner.encoder, source.names.table(), source.read)
    encoder_weights = {id(weight) for weight in task.encoder.weights}
    for weight, value in shared:
        if id(weight) in encoder_weights and not np.array_equal(value, rename.to_numpy(weight)):
            raise InputError(
                f"{folder} and {checkpoint.name} have different values of {weight.path}, which "
                "the two models share."
            )
    assign_heads(partner, source, source.names.names_for(partner.TASK_TYPE))


def _check_shapes(checkpoint, table, *, labels):
    names = {line.theirs for line in table}
    present = {name: shape for name, shape in checkpoint.shapes.items() if name in names}
    sizes = {**checkpoint.names.sizes, "C": len(labels or ())}
    rename.check_shapes(present, table, sizes=sizes, source=str(checkpoint.name))


def holds_head(task, checkpoint, class_names, head):
    """Whether a folder's class has a head of a task, or the folder has any tensor of it."""
    _, table = head_table(task, head, class_names)
    names = {line.theirs for line in table}
    return head in checkpoint.class_names.heads or not names.isdisjoint(checkpoint.shapes)


def unused_heads(checkpoint, task, class_names, *, heads):
    """The heads in a folder that a task takes no weights of, by the start of their tensors' names.

    Args:
        checkpoint: the `PretrainedCheckpoint`.
        task: the task, or None.
        class_names: the `ClassNames` that the folder's names of the heads follow.
        heads: the heads of the task that have their weights from the folder.
    """
    used = {line.theirs for head in heads for line in head_table(task, head, class_names)[1]}
    names = checkpoint.names
    return sorted(
        {
            ".".join(name.split(".")[:2])
            for name in checkpoint.shapes
            if name.startswith(names.head_prefixes)
            and name not in used
            and name not in names.copies
        }
    )


def _missing_scale(checkpoint, name):
    """The factor that the folder's weights under our own names still lack, usually 1.

    Versions that did not multiply these weights did not store it: an InputError.
    """
    scale = checkpoint.stored.get(name)
    if scale is None:
        raise InputError(
            f"{checkpoint.name} was written by an earlier version of keras-bert that left out "
            f"the {name} of the head, so that its predictions would be wrong. Train it again, or "
            f'copy the number `inputs.made_with.{name}` of the run\'s run.json as "{name}" into '
            f'"{MARK}" of {checkpoint.source}.'
        )
    if type(scale) not in (int, float) or not 0 < scale < np.inf:
        raise InputError.naming(
            "{}, under {}: {} is {!r}. Expected a number above 0.",
            checkpoint.source,
            MARK,
            argument(name),
            scale,
        )
    return float(scale)


def folders_read(model):
    """The folder of a model, and if it is an adapter that of its base model."""
    folder = Path(model)
    return [folder, adapters.Adapter(folder).base] if adapters.is_adapter(folder) else [folder]


def fingerprint_of_folder(folder):
    """A hash of all files of a model folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if (
            path.suffix in (".json", ".safetensors", ".txt", ".bin", ".h5", ".model")
            and path.is_file()
        ):
            digest.update(path.name.encode())
            digest.update(hash_of_file(path).digest())
    if adapters.is_adapter(folder):
        digest.update(fingerprint_of_folder(adapters.Adapter(folder).base).encode())
    return digest.hexdigest()
