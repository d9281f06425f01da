"""Adapters as `peft` writes them: the trained part of a model with LoRA, and the name of its base.

A folder has `adapter_config.json` and `adapter_model.safetensors`. What is written here also has
`config.json` and the tokenizer's files, so that it opens as any model folder does.
"""

import hashlib
import math
import os
import re
import reprlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_bert.base import rename
from keras_bert.base.errors import InputError, argument
from keras_bert.base.files import hash_of_file, possible_path, read_json
from keras_bert.checkpoints import hub, tensor_files
from keras_bert.encoders.tensor_names import KEPT

FILE, CONFIG = hub.ADAPTER

_PREFIX = "base_model.model."  # of all names in the file
_FACTOR = re.compile(
    r"(?P<module>.+)\.lora_(?:(?P<factor>[AB])\.weight|(?P<magnitude>magnitude_vector)(\.weight)?)"
)
_MAGNITUDE = "magnitude_vector"
# Keys that change the computation, with the values that are computed here.
_PLAIN = {
    "peft_type": ("LORA",),
    "bias": ("none", "all", "lora_only"),
    **dict.fromkeys(
        (
            *("lora_bias", "layer_replication", "target_parameters", "trainable_token_indices"),
            *("alora_invocation_tokens", "use_qalora", "use_bdlora"),
        ),
        (None, False, {}, []),
    ),
}
# The initializations, next to true and false, that leave the weights of the base model as they are.
_INITIALIZATIONS = ("gaussian", "eva", "orthogonal", "mica")
# Keys that are read: (the values that are valid, in words, whether a value is one of them).
_LARGEST = 1e30  # of a number; JSON may have integers of any size
_VALID = {
    **dict.fromkeys(
        ("use_rslora", "use_dora", "fan_in_fan_out"),
        ("true or false", lambda value: isinstance(value, bool | None)),
    ),
    **dict.fromkeys(
        ("revision", "task_type"), ("a string", lambda value: isinstance(value, str | None))
    ),
    "r": ("a whole number above 0", lambda value: type(value) is int and 0 < value < _LARGEST),
    "lora_alpha": ("a number", lambda value: _is_number(value)),
    "rank_pattern": (
        "an object of whole numbers above 0",
        lambda value: _is_object(value, lambda rank: type(rank) is int and 0 < rank < _LARGEST),
    ),
    "alpha_pattern": (
        "an object of numbers",
        lambda value: _is_object(value, lambda alpha: _is_number(alpha)),
    ),
    "auto_mapping": (
        "an object with the name of a class",
        lambda value: (
            _is_object({} if value is None else value, lambda _: True)
            and isinstance((value or {}).get("base_model_class"), str | None)
        ),
    ),
}
# The task of a class of `transformers`, by the end of its name.
_TASKS = {
    "ForSequenceClassification": "SEQ_CLS",
    "ForTokenClassification": "TOKEN_CLS",
    "ForQuestionAnswering": "QUESTION_ANS",
    "LMHeadModel": "CAUSAL_LM",
    "Model": "FEATURE_EXTRACTION",
}


def is_adapter(folder):
    """Whether a folder has an adapter, and not a whole model."""
    folder = Path(folder)
    return (folder / CONFIG).exists() and not (folder / tensor_files.FILE).exists()


def base_folder(base):
    """The folder of a base model: of a folder, the output of a run, or `hf://owner/name`.

    Raises InputError if that model is missing, or is an adapter itself.
    """
    folder = hub.download(base) if hub.is_name(base) else possible_path(base)
    inner = folder / "model"
    folder = inner if (inner / hub.CONFIG).exists() else folder
    if is_adapter(folder):
        raise InputError(
            f"{base} is an adapter, and the base of another one is a whole model. `keras-bert "
            "convert` writes it as one."
        )
    if not (folder / hub.CONFIG).exists():
        raise InputError(f"The base model {base} is not a model folder.")
    return folder


def hash_of_base(folder):
    """SHA-256 of the weights of a base model's folder, as a hexadecimal number."""
    digest = hashlib.sha256()
    for path in tensor_files.files_of(folder)[0]:
        digest.update(hash_of_file(path).digest())
    return digest.hexdigest()


def check_base(folder, expected, *, adapter):
    """Raises InputError unless a base model's folder has the hash that an adapter has stored."""
    if expected != hash_of_base(folder):
        raise InputError(
            f"The base model {folder} has other weights than when the adapter {adapter} was "
            "trained, so that its predictions would be wrong. Write the path of a copy of the "
            f"earlier model as base_model_name_or_path in {Path(adapter, CONFIG)}, or train the "
            "adapter again."
        )


class Adapter:
    """An adapter that is read.

    Args:
        folder: the path.

    Attributes:
        config: the dictionary of `adapter_config.json`.
        base: the folder of the base model.

    Raises:
        InputError: the adapter is not LoRA as computed here, or there is no such base model.
    """

    def __init__(self, folder):
        self._source = Path(folder, CONFIG)
        self.config = read_json(self._source)
        self._check()
        self.base = self._find_base()
        self._tensors = tensor_files.Tensors([Path(folder, FILE)])

    def _check(self):
        """Raises InputError unless the config is that of LoRA as computed here."""
        given, source = self.config, self._source
        for key, plain in _PLAIN.items():
            if given.get(key, plain[0]) not in plain:
                raise InputError.naming(
                    "{}: {} is {}, which is not supported. Expected {!r}.",
                    source,
                    argument(key),
                    reprlib.repr(given[key]),
                    plain[0],
                )
        for key, (expected, is_valid) in _VALID.items():
            if key in given and not is_valid(given[key]):
                raise InputError.naming(
                    "{}: {} is {}. It should be {}.",
                    source,
                    argument(key),
                    reprlib.repr(given[key]),
                    expected,
                )
        start = given.get("init_lora_weights")
        if not isinstance(start, bool | None) and start not in _INITIALIZATIONS:
            raise InputError(
                f"{source}: init_lora_weights is {reprlib.repr(start)}, which changes the weights "
                "of the base model, so that this adapter does not fit them. Write it as a plain "
                "one by peft's `save_pretrained(folder, path_initial_model_for_weight_conversion"
                "=…)`."
            )

    def _find_base(self):
        name, revision = self.config.get("base_model_name_or_path"), self.config.get("revision")
        if not isinstance(name, str) or not name:
            raise InputError(
                f"{self._source} has no base_model_name_or_path. Write the path of the base model "
                "there."
            )
        try:
            if re.fullmatch(r"[\w.-]+/[\w.-]+", name) and not possible_path(name).exists():
                name = f"{hub.SCHEME}{name}" + (f"@{revision}" if revision else "")
            return base_folder(name)
        except InputError as error:
            raise InputError.naming(
                "{}: {} Write the path of the base model as base_model_name_or_path there.",
                self._source,
                error,
            ) from error

    def class_name(self, names):
        """The class of `transformers` that the adapter is for, or None.

        `names` are the `TensorNames` of the base model.
        """
        named = (self.config.get("auto_mapping") or {}).get("base_model_class")
        end = {task: end for end, task in _TASKS.items()}.get(self.config.get("task_type"))
        classes = (
            name for name in names.classes if end not in (None, "Model") and name.endswith(end)
        )
        return named or next(classes, None)

    def over(self, tensors, plain):
        """The tensors of the base model with the adapter's: `AdaptedTensors`.

        `plain` is the function of `TensorNames`.
        """
        by_plain = {plain(name): name for name in tensors.shapes}
        factors, modules, others = {}, {}, {}
        for stored in self._tensors.shapes:
            # What LoRA wraps is `base_layer`, of which only biases are stored.
            name = stored.removeprefix(_PREFIX).replace(".base_layer.", ".")
            match = _FACTOR.fullmatch(name)
            weight = f"{match['module']}.weight" if match else name
            weight = by_plain.get(plain(weight), weight)
            if match is None:
                others[weight] = stored
            elif weight in tensors.shapes:
                part = match["factor"] or match["magnitude"]
                factors.setdefault(weight, {})[part] = stored
                modules[weight] = match["module"]
            else:
                raise InputError(f"{self._source.parent} is for another model: it has {stored}.")
        updates = {
            weight: self._update(matrices, tensors.shapes[weight], modules[weight])
            for weight, matrices in factors.items()
        }
        return AdaptedTensors(tensors, self._tensors, updates, others)

    def _update(self, names, shape, module):
        """The `_Update` of a weight of that shape, by the names of its factors in the adapter.

        Raises InputError if a factor is missing, unknown or of another shape.
        """
        rank = _value_for(self.config.get("rank_pattern"), module, self.config.get("r", 8))
        alpha = _value_for(
            self.config.get("alpha_pattern"), module, self.config.get("lora_alpha", 8)
        )
        is_transposed = bool(self.config.get("fan_in_fan_out"))
        units, size = (*(shape[::-1] if is_transposed else shape), 0, 0)[:2]
        expected = {"A": (rank, size), "B": (units, rank)}
        if self.config.get("use_dora"):
            expected[_MAGNITUDE] = (units,)
        for part in dict.fromkeys((*expected, *names)):
            name = names.get(part)
            if name is None or part not in expected:
                has = "no" if name is None else "a"
                raise InputError(f"{self._source.parent} has {has} lora_{part} of {module}.")
            if self._tensors.shapes[name] != expected[part] or len(shape) != 2:
                raise InputError(
                    f"{self._source.parent}: the tensor {name} has the shape "
                    f"{list(self._tensors.shapes[name])}. Expected {list(expected[part])}, by the "
                    f"rank {rank} in {CONFIG} and the shape {list(shape)} of the base's weight."
                )
        scale = alpha / (math.sqrt(rank) if self.config.get("use_rslora") else rank)
        return _Update(names, scale, is_transposed)


def _is_number(value):
    return type(value) in (int, float) and -_LARGEST < value < _LARGEST


def _is_object(value, is_valid):
    return isinstance(value, dict | None) and all(map(is_valid, (value or {}).values()))


def _value_for(pattern, module, default):
    """The value of the first key of a pattern, a regular expression, with which a name ends."""
    for key, value in (pattern or {}).items():
        try:
            if re.match(rf"(.*\.)?({key})$", module):
                return value
        except re.error as error:
            raise InputError(f"{CONFIG}: invalid pattern {key!r} ({error}).") from None
    return default


class _Update(NamedTuple):
    """The changes of an adapter to a weight: the names of its factors, and how they are scaled."""

    names: dict[str, str]
    scale: float
    is_transposed: bool

    def apply(self, weight, adapter):
        """A weight (U, D), or (D, U) of a `Conv1D`, with the update of the `Tensors` `adapter`."""
        a, b = (adapter.read(self.names[factor]) for factor in "AB")  # (r, D), (U, r)
        product = self.scale * (b @ a)
        weight = weight + (product.T if self.is_transposed else product)
        if _MAGNITUDE in self.names:  # DoRA (Liu et al. 2024): the norm of each output's weights
            axis = 0 if self.is_transposed else 1
            norms = np.linalg.norm(weight, axis=axis, keepdims=True)
            magnitude = adapter.read(self.names[_MAGNITUDE]).reshape(norms.shape)
            weight = (magnitude / norms * weight).astype(np.float32)
        return weight


class AdaptedTensors:
    """Tensors of a base model, some of which are updated and some of which are replaced.

    Args:
        base, adapter: the `Tensors` of both.
        updates: the `_Update`s by the names of weights in the base.
        others: {name: name in the adapter} of whole tensors.

    Attributes:
        shapes: the shape of each tensor by name.
    """

    def __init__(self, base, adapter, updates, others):
        self._base, self._adapter = base, adapter
        self._updates, self._others = updates, others
        self.shapes = base.shapes | {
            name: adapter.shapes[source] for name, source in others.items()
        }

    def read(self, name):
        """The tensor as a float32 array."""
        if name in self._others:
            return self._adapter.read(self._others[name])
        weight, update = self._base.read(name), self._updates.get(name)
        return weight if update is None else update.apply(weight, self._adapter)


def contents(encoder, tensors, *, class_name, base, base_shapes):
    """-> (the dictionary of `adapter_config.json`, the arrays by name) of a model with LoRA.

    Args:
        encoder: the encoder, with LoRA.
        tensors: the arrays of the whole model by the names of its class.
        class_name: that class.
        base: the folder of the base model, or its name, `hf://owner/name[@revision]`.
        base_shapes: the shapes of its tensors by plain names.
    """
    lora, names = encoder.lora, encoder.tensor_names(encoder.config)
    prefix = names.prefix if class_name in names.classes else ""
    products = rename.gather(encoder, rename.under(lora.lines, theirs=prefix), sizes={})
    whole, modules = dict(tensors), set()  # what is neither the base model's nor a product
    for plain, line in zip(names.table(), names.table(class_name), strict=True):
        if base_shapes.get(plain.theirs) == plain.foreign_shape(names.sizes):
            del whole[line.theirs]
        else:  # an embedding with more tokens
            modules.add(line.theirs.split(".")[-2])
    encoder_names = {line.theirs for line in names.table(class_name)}
    heads = (n for n in whole.keys() - encoder_names if not n.startswith(KEPT))
    modules |= {name.removeprefix(prefix).split(".")[0] for name in heads}
    path, revision = os.path.abspath(base), None
    if hub.is_name(base):
        path, revision = hub.parsed(base)
    config = {
        "peft_type": "LORA",
        "task_type": next((task for end, task in _TASKS.items() if class_name.endswith(end)), None),
        "base_model_name_or_path": path,
        "revision": revision,
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": 0.0,
        "target_modules": list(lora.layers),
        "modules_to_save": sorted(modules) or None,
        "bias": "none",
        "fan_in_fan_out": lora.is_conv,
        "inference_mode": True,
    }
    return config, {_PREFIX + name: array for name, array in {**products, **whole}.items()}
