"""The encoders, by `model_type`: the one table that registers them.

Reading it imports no encoder, and the modules of configs import no Keras.
"""

import os
from importlib import import_module
from typing import NamedTuple

from keras_bert.base.errors import InputError
from keras_bert.base.files import read_json


class Home(NamedTuple):
    """The places of the config and the encoder of a `model_type`, each as "module:Class"."""

    config: str
    encoder: str


def _home(folder, config, encoder):
    module = f"{__name__}.{folder}"
    return Home(f"{module}:{config}", f"{module}.encoder:{encoder}")


# By `model_type`, as `config.json` has it.
ENCODERS = {
    "bert": _home("bert", "BertConfig", "BertEncoder"),
    "roberta": _home("roberta", "RobertaConfig", "RobertaEncoder"),
    "distilbert": _home("distilbert", "DistilBertConfig", "DistilBertEncoder"),
    "electra": _home("electra", "ElectraConfig", "ElectraEncoder"),
    "mpnet": _home("mpnet", "MPNetConfig", "MPNetEncoder"),
    "albert": _home("albert", "AlbertConfig", "AlbertEncoder"),
    "deberta-v2": _home("deberta", "DebertaConfig", "DebertaEncoder"),
    "modernbert": _home("modernbert", "ModernBertConfig", "ModernBertEncoder"),
    "xlm-roberta": _home("roberta", "RobertaConfig", "RobertaEncoder"),
    "camembert": _home("roberta", "RobertaConfig", "RobertaEncoder"),
    "openai-gpt": _home("gpt", "OpenAIGptConfig", "GptEncoder"),
    "gpt2": _home("gpt", "Gpt2Config", "GptEncoder"),
    "awd-lstm": _home("lstm", "AwdLstmConfig", "AwdLstmEncoder"),
    "bilm": _home("bilm", "BilmConfig", "BilmEncoder"),
    "static": _home("static", "StaticConfig", "StaticEncoder"),
}


def model_type_of_class(class_name: str) -> str | None:
    """The `model_type` of a class of `transformers`, by the beginning of its name, or None."""
    letters = class_name.lower()
    fitting = [name for name in ENCODERS if letters.startswith(name.replace("-", ""))]
    return max(fitting, key=len, default=None)


def config_class(model_type):
    """The config class of a `model_type`; InputError if there is no such encoder."""
    return _imported(model_type, "config")


def encoder_class(model_type):
    """The encoder class of a `model_type`; InputError if there is no such encoder."""
    return _imported(model_type, "encoder")


def _imported(model_type, part):
    if model_type not in ENCODERS:
        raise InputError(f"Unknown model type {model_type!r}. Supported: {', '.join(ENCODERS)}.")
    module, _, name = getattr(ENCODERS[model_type], part).partition(":")
    return getattr(import_module(module), name)


def read_config(config, *, source):
    """The config that the dictionary of a `config.json` describes.

    Args:
        config: the dictionary; without a `model_type` it is a BERT's.
        source: the path of the file, for messages.

    Raises:
        InputError: there is no such encoder, or see `EncoderConfig.from_dict`.
    """
    model_type = config.get("model_type", "bert")
    if not isinstance(model_type, str) or model_type not in ENCODERS:
        raise InputError(
            f"{source} describes a {model_type!r} model. Supported model types: "
            f"{', '.join(ENCODERS)}."
        )
    return config_class(model_type).from_dict(config, source=source)


def new_encoder(config, *, dtype=None):
    """An encoder of that config with random weights, drawn with Keras's global seed."""
    return encoder_class(config.model_type)(config, dtype=dtype)


def presets():
    """The config class of each published size by the name that `--architecture` takes."""
    classes = dict.fromkeys(config_class(model_type) for model_type in ENCODERS)
    return {name: config for config in classes for name in config.PRESETS}


def read_architecture(architecture, vocabulary):
    """Returns the `EncoderConfig` of new weights for a vocabulary.

    Raises `InputError` if the architecture is unknown, its file is not a config, it has a
    smaller vocabulary, or more weights than this machine's memory.
    """
    name = os.fspath(architecture)
    if is_preset(name):
        names = presets()
        if name not in names:
            raise InputError(
                f"Unknown architecture {name!r}. Choose from {', '.join(names)}, or pass the "
                "path of a config.json."
            )
        return names[name].preset(name, vocab_size=len(vocabulary))
    config = read_config(read_json(architecture), source=name)
    if config.vocab_size < len(vocabulary):
        raise InputError(
            f"{name} has vocab_size {config.vocab_size}, less than the {len(vocabulary)} tokens of "
            "the vocabulary."
        )
    parameters, memory = config.parameter_count(), _memory()
    if 4 * parameters > memory:  # the float32 weights that a folder is written from
        raise InputError(
            f"{name} describes a model of {parameters:,} parameters, which take "
            f"{4 * parameters >> 30:,} GiB. This machine has {memory >> 30:,} GiB of memory."
        )
    config.report_extra_keys(source=architecture)
    return config


def is_preset(architecture):
    """Whether an architecture is one of `presets`, and not a path."""
    return not architecture.endswith(".json") and os.sep not in architecture


def _memory():
    """The bytes of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
