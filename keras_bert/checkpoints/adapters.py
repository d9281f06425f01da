"""Adapters as `peft` writes them: the trained part of a model with LoRA, and the name of its base.

A folder has `adapter_config.json` and `adapter_model.safetensors`. What is written here also has
`config.json` and the tokenizer's files, so that it opens as any model folder does.
"""

import math
import os
import re
from pathlib import Path

from keras_bert.base import rename
from keras_bert.base.errors import InputError, argument
from keras_bert.base.files import read_json
from keras_bert.checkpoints import hub, tensor_files
from keras_bert.encoders.tensor_names import KEPT

FILE, CONFIG = hub.ADAPTER

_PREFIX = "base_model.model."  # of all names in the file
_PRODUCT = re.compile(r"(?P<module>.+)\.lora_(?P<factor>[AB])\.weight")
# Keys that change the computation, with the values that do not.
_PLAIN = {
    "peft_type": ("LORA",),
    "bias": ("none",),
    **dict.fromkeys(
        (
            *("use_dora", "lora_bias", "alpha_pattern", "layer_replication", "target_parameters"),
            *("trainable_token_indices", "alora_invocation_tokens", "use_qalora", "use_bdlora"),
        ),
        (None, False, {}, []),
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
    folder = hub.download(base) if hub.is_name(base) else Path(base)
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
        for key, plain in _PLAIN.items():
            if self.config.get(key, plain[0]) not in plain:
                raise InputError.naming(
                    "{}: {} is {!r}, which is not supported. Expected {!r}.",
                    self._source,
                    argument(key),
                    self.config[key],
                    plain[0],
                )
        self.base = self._find_base()
        self._tensors = tensor_files.Tensors([Path(folder, FILE)])

    def _find_base(self):
        name, revision = self.config.get("base_model_name_or_path"), self.config.get("revision")
        if not isinstance(name, str) or not name:
            raise InputError(
                f"{self._source} has no base_model_name_or_path. Write the path of the base model "
                "there."
            )
        if not Path(name).exists() and re.fullmatch(r"[\w.-]+/[\w.-]+", name):
            name = f"{hub.SCHEME}{name}" + (f"@{revision}" if revision else "")
        try:
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
        factors, others = {}, {}
        for stored in self._tensors.shapes:
            name = stored.removeprefix(_PREFIX)
            match = _PRODUCT.fullmatch(name)
            weight = f"{match['module']}.weight" if match else name
            weight = by_plain.get(plain(weight), weight)
            if match is None:
                others[weight] = stored
            elif weight in tensors.shapes:
                factors.setdefault(weight, {})[match["factor"]] = stored
            else:
                raise InputError(f"{self._source.parent} is for another model: it has {stored}.")
        return AdaptedTensors(tensors, self._tensors, factors, others, self._product)

    def _product(self, a, b):
        """What is added to a weight: a (r, D), b (U, r) -> (U, D), or (D, U) of a `Conv1D`."""
        rank = len(a)
        scaled_by = math.sqrt(rank) if self.config.get("use_rslora") else rank
        product = self.config.get("lora_alpha", 8) / scaled_by * (b @ a)
        return product.T if self.config.get("fan_in_fan_out") else product


class AdaptedTensors:
    """Tensors of a base model, to some of which products are added and some of which are replaced.

    Args:
        base, adapter: the `Tensors` of both.
        factors: {name in the base: {"A": name of A in the adapter, "B": that of B}}.
        others: {name: name in the adapter} of whole tensors.
        product: a function from A and B to what is added.

    Attributes:
        shapes: the shape of each tensor by name.
    """

    def __init__(self, base, adapter, factors, others, product):
        self._base, self._adapter = base, adapter
        self._factors, self._others, self._product = factors, others, product
        self.shapes = base.shapes | {name: adapter.shapes[of] for name, of in others.items()}

    def read(self, name):
        """The tensor as a float32 array."""
        if name in self._others:
            return self._adapter.read(self._others[name])
        weight, factors = self._base.read(name), self._factors.get(name)
        if factors is None:
            return weight
        if factors.keys() != {"A", "B"}:
            raise InputError(f"The adapter lacks a factor: it has only {', '.join(factors)}.")
        return weight + self._product(*(self._adapter.read(factors[factor]) for factor in "AB"))


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
