"""The files by which sentence-transformers makes one vector of a text, beside the encoder's.

`modules.json` names the steps after the encoder, each with a folder: a pooling, dense layers and a
norm. Two more files have the maximum length and the prompts. Versions 2 to 6 are read; what is
written has the names of 2 to 5, which 6 reads. A static embedding is encoder and pooling in one.
"""

import re
from pathlib import Path

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.files import parse_json, read_json, read_small
from keras_bert.base.formatting import listed
from keras_bert.base.version import __version__
from keras_bert.checkpoints import tensor_files
from keras_bert.checkpoints.config_json import CONFIG, MARK
from keras_bert.heads import parts_of
from keras_bert.tasks.text_embedding import (
    COSINE,
    SIMILARITIES,
    STATIC_EMBEDDING,
    TRANSFORMER,
    Projected,
)

MODULES = "modules.json"
POOLING = "1_Pooling/config.json"
ABOUT = "config_sentence_transformers.json"
LENGTH = "sentence_bert_config.json"
_LENGTHS = (
    LENGTH,
    *(f"sentence_{name}_config.json" for name in ("roberta", "distilbert", "camembert")),
    *(f"sentence_{name}_config.json" for name in ("albert", "xlm-roberta", "xlnet")),
)
_TOKENIZER_CONFIG = "tokenizer_config.json"
# What a hub's repository is searched for.
PATTERNS = (
    *(MODULES, ABOUT, *_LENGTHS),
    *(f"[0-9]_*/*.{ending}" for ending in ("json", "safetensors", "bin", "txt", "model")),
)
# The names of other files than those of the encoder and its tokenizer, in the folder itself.
FILES = {MODULES, ABOUT, LENGTH}
# The paths of those in the folders of its steps.
IN_STEPS = re.compile(r"[0-9]+_(?:Pooling|Dense)/(?:config\.json|model\.safetensors)")

# Parts of poolings here by the names of modes there, which are concatenated in this order.
PARTS_OF_MODES = {
    "cls": "cls",
    "max": "max",
    "mean": "mean",
    "mean_sqrt_len": "mean-sqrt-length",
    "weightedmean": "weighted-mean",
    "lasttoken": "last",
}
# The key of each in the file of versions 2 to 5.
_KEYS = {
    name: f"pooling_mode_{name}{'' if name == 'lasttoken' else '_tokens'}"
    for name in PARTS_OF_MODES
}
_KEYS["cls"] = "pooling_mode_cls_token"
_OTHER_POOLING_KEYS = {
    *("word_embedding_dimension", "embedding_dimension", "pooling_mode", "include_prompt"),
}
_ACTIVATIONS = {
    "identity": "torch.nn.modules.linear.Identity",
    "tanh": "torch.nn.modules.activation.Tanh",
    "relu": "torch.nn.modules.activation.ReLU",
    "gelu": "torch.nn.modules.activation.GELU",
    "sigmoid": "torch.nn.modules.activation.Sigmoid",
    "silu": "torch.nn.modules.activation.SiLU",
}
# Those of a cross-encoder's score by the names of their classes; the first of each is written.
SCORE_ACTIVATIONS = {
    _ACTIVATIONS["sigmoid"]: "sigmoid",
    _ACTIVATIONS["identity"]: "identity",
    "torch.nn.Sigmoid": "sigmoid",
    "torch.nn.Identity": "identity",
}
_PACKAGE = "sentence_transformers."
MODEL2VEC = "model2vec"  # the `model_type` of its config.json
_SUPPORTED = (TRANSFORMER, STATIC_EMBEDDING, "Pooling", "Dense", "Normalize")
_LONGEST = 512  # tokens of an encoder that takes any number, if no file says it
# Keys that change the computation, with the value that changes nothing.
_REFUSED = {
    "transformer_task": "feature-extraction",
    "query_length": None,
    "document_length": None,
    "query_expansion": None,
}


def pooling_modes(config_json, *, source):
    """The names of poolings in a file POOLING, in the order in which they are concatenated.

    Versions 2 to 5 have a key for each, of which those that are missing are false, and all false is
    the mean. 6 has `pooling_mode`, a name or a list.

    Raises InputError for a name that is not known.
    """
    given = config_json.get("pooling_mode")
    if given is None:
        start = "pooling_mode_"
        others = [key for key in config_json if key.startswith(start) and key not in _KEYS.values()]
        names = [name for name, key in _KEYS.items() if config_json.get(key) is True]
        names += [key.removeprefix(start) for key in others if config_json[key] is True]
        return names or ["mean"]
    names = [str(name) for name in (given if isinstance(given, list) else [given])]
    names = [name.removesuffix("_tokens").removesuffix("_token") for name in names]
    if not names:
        raise InputError(f"{source}: pooling_mode is an empty list.")
    return names


def files_in(folder):
    """The paths, relative to a folder, of its files of sentence-transformers, sorted."""
    paths = [path for pattern in PATTERNS for path in Path(folder).glob(pattern)]
    return sorted(path.relative_to(folder).as_posix() for path in paths if path.is_file())


def first_module(folder):
    """The module of a folder that takes the text: (its name, its path), or (None, None).

    The path is relative to the folder, "" for the folder itself. Nothing is checked.
    """
    modules = _parsed_modules(folder) if (Path(folder) / MODULES).is_file() else None
    if not isinstance(modules, list) or not modules or not isinstance(modules[0], dict):
        return None, None
    name = str(modules[0].get("type")).rpartition(".")[2]
    path = str(modules[0].get("path"))
    return name, "" if path == "." else path


def is_foreign_embedder(path):
    """Whether a path is a folder of static embeddings, or with the encoder in one of its own.

    `keras_bert.checkpoints.text_embedders` makes a model folder of it.
    """
    folder = Path(path)
    name, inner = first_module(folder)
    own = _object(folder / CONFIG) if (folder / CONFIG).is_file() else {}
    if name == TRANSFORMER:
        return bool(inner)
    if name == STATIC_EMBEDDING:
        return MARK not in own
    return name is None and own.get("model_type") == MODEL2VEC


def _parsed_modules(folder):
    return parse_json(read_small(Path(folder) / MODULES).decode("utf-8", "replace"))


def is_text_embedder(folder):
    """Whether a folder has the steps from an encoder to a vector of a text."""
    folder = Path(folder)
    if not (folder / MODULES).exists():
        return False
    about = _object(folder / ABOUT)
    return about.get("model_type") in (None, "SentenceTransformer")


def max_length_in(folder, config, given):
    """The maximum length of a folder, at most the positions of the model.

    It is the one that is `given` by `max_seq_length`, else that of the tokenizer, else the
    positions. Raises InputError for one that is not a number of tokens.
    """
    tokenizer_length = _object(Path(folder) / _TOKENIZER_CONFIG).get("model_max_length")
    length, positions = given, config.max_length
    if length is None and isinstance(tokenizer_length, int | float) and tokenizer_length < 2**31:
        length = int(tokenizer_length)
    if length is None:
        length = positions or _LONGEST
    if type(length) is not int or length < 3:
        name = _TOKENIZER_CONFIG if given is None else LENGTH
        key = "model_max_length" if given is None else "max_seq_length"
        raise InputError.naming(
            "{}: {} is {!r}. Expected 3 or more.", Path(folder) / name, key, length
        )
    return length if positions is None else min(length, positions)


def cross_encoder_length(folder, config):
    """The maximum length of a cross-encoder, which has `max_seq_length` only with modules."""
    folder = Path(folder)
    own = _object(folder / LENGTH) if (folder / MODULES).is_file() else {}
    return max_length_in(folder, config, own.get("max_seq_length"))


def cross_encoder_activation(folder, config_json, *, source):
    """The activation of the score of a cross-encoder: "sigmoid", "identity", or None of no one.

    Its versions store it in several places, the newest of which counts, as the path of a class,
    which is never imported. One without it has the sigmoid.

    Raises InputError for any other activation, and for a prompt in front of each query.
    """
    about = _object(Path(folder) / ABOUT)
    earlier = config_json.get("sentence_transformers")
    if not isinstance(earlier, dict | None):
        raise InputError(f"{source}: sentence_transformers should be an object.")
    is_one = about.get("model_type") == "CrossEncoder" or earlier is not None
    names = (
        about.get("activation_fn") if about.get("model_type") in (None, "CrossEncoder") else None,
        (earlier or {}).get("activation_fn"),
        config_json.get("sbert_ce_default_activation_function"),
    )
    prompts, default = about.get("prompts"), about.get("default_prompt_name")
    if is_one and isinstance(prompts, dict) and prompts.get(default):
        raise InputError(
            f"{Path(folder) / ABOUT}: the cross-encoder has the prompt {prompts[default]!r} in "
            "front of each first text, which is not supported. Write it into the queries, and "
            "set default_prompt_name to null."
        )
    name = next((name for name in names if name is not None), None)
    if name is None:
        return "sigmoid" if is_one else None
    if not isinstance(name, str) or name not in SCORE_ACTIVATIONS:
        known = ", ".join(dict.fromkeys(SCORE_ACTIVATIONS.values()))
        raise InputError(
            f"{folder} is a cross-encoder with the activation {name!r}, which is not "
            f"supported. Expected one of {known}, as the path of PyTorch's class."
        )
    return SCORE_ACTIVATIONS[name]


class SentenceTransformer:
    """The steps of a folder with a `modules.json`, read and checked.

    Args:
        folder: the path.
        config: the `EncoderConfig` of the folder.
        is_static: whether that is of static vectors.
        encoder_folder: the folder of the encoder's files; None is `folder`, the only one if it
            may be in a model folder.

    Attributes: `settings`, those of a `TextEmbedder` by name.

    Raises:
        InputError: a file is missing or invalid, or a step is not supported.
    """

    def __init__(self, folder, config, *, is_static=False, encoder_folder=None):
        self.folder, self._config, self._is_static = Path(folder), config, is_static
        self._encoder_folder = self.folder if encoder_folder is None else Path(encoder_folder)
        modules = self._modules()
        self._dense = [path for name, path in modules if name == "Dense"]
        about = _object(self.folder / ABOUT)
        width = config.hidden_size
        if is_static:
            settings = {"pooling": "mean", "include_prompt": True, "lowercase": False}
        else:
            settings = {**self._pooling(modules, width), **self._length()}
        layers, width = [], width * len(parts_of(settings["pooling"]))
        for path in self._dense:
            layer = self._projected(path, width)
            layers.append(layer)
            width = layer.units
        settings["dense"] = [str(layer) for layer in layers] or None
        settings["normalize"] = any(name == "Normalize" for name, _ in modules)
        settings |= self._about(about)
        self.settings = settings

    def _error(self, name, message):
        return InputError.naming("{}: {}", self.folder / name, message)

    def _modules(self):
        """-> (name, path) of each step, in order."""
        listed_modules = _parsed_modules(self.folder)
        valid = isinstance(listed_modules, list) and all(
            isinstance(module, dict)
            and isinstance(module.get("type"), str)
            and isinstance(module.get("path"), str)
            for module in listed_modules
        )
        if not valid:
            raise self._error(MODULES, "expected a list of objects with a type and a path.")
        modules = []
        for module in listed_modules:
            kind, where = module["type"], module["path"] if module["path"] != "." else ""
            name = kind.rpartition(".")[2]
            if name not in _SUPPORTED or not kind.startswith(_PACKAGE):
                raise self._error(
                    MODULES,
                    f"the module {kind} is not supported. Expected {listed(_SUPPORTED)}.",
                )
            if Path(where).name != where or where == ".." or "\0" in where:
                raise self._error(
                    MODULES, f"invalid path {where!r}. Expected the name of a folder in it."
                )
            modules.append((name, where))
        names = [name for name, _ in modules]
        start = [STATIC_EMBEDDING] if self._is_static else [TRANSFORMER, "Pooling"]
        expected = [*start, *["Dense"] * names.count("Dense")]
        if names not in (expected, [*expected, "Normalize"]):
            raise self._error(
                MODULES,
                f"the modules are {', '.join(names) or 'none'}. Expected {', '.join(start)}, any "
                "number of Dense, and maybe Normalize, in this order.",
            )
        return modules

    def _pooling(self, modules, width):
        name = f"{modules[1][1]}/config.json"
        config_json, source = read_json(self.folder / name), self.folder / name
        known = {*_KEYS.values(), *_OTHER_POOLING_KEYS}
        if unknown := [key for key in config_json if key not in known]:
            raise self._error(name, f"the key {unknown[0]} is not known.")
        sizes = [
            config_json[key]
            for key in ("embedding_dimension", "word_embedding_dimension")
            if key in config_json
        ]
        if not sizes or sizes[0] != width:
            found = sizes[0] if sizes else "none"
            raise self._error(
                name, f"the size of a token's vector is {found}. The encoder's is {width}."
            )
        modes = pooling_modes(config_json, source=source)
        if unknown := [mode for mode in modes if mode not in PARTS_OF_MODES]:
            raise self._error(
                name, f"unknown pooling {unknown[0]!r}. Choose from: {', '.join(PARTS_OF_MODES)}."
            )
        return {
            "pooling": "+".join(PARTS_OF_MODES[mode] for mode in modes),
            "include_prompt": config_json.get("include_prompt", True) is not False,
        }

    def _projected(self, path, width):
        name = f"{path}/config.json"
        config_json = read_json(self.folder / name)
        for key in ("module_input_name", "module_output_name"):
            if config_json.get(key) not in (None, "sentence_embedding"):
                raise self._error(name, f"{key} {config_json[key]!r} is not supported.")
        units, bias = config_json.get("out_features"), config_json.get("bias", True)
        if config_json.get("in_features") != width or type(units) is not int or units < 1:
            raise self._error(
                name,
                f"in_features is {config_json.get('in_features')!r} and out_features {units!r}. "
                f"The vector before it has {width} numbers.",
            )
        by_class = {place: name for name, place in _ACTIVATIONS.items()}
        given = config_json.get("activation_function", _ACTIVATIONS["tanh"])
        activation = by_class.get(given)
        if activation is None:
            raise self._error(
                name,
                f"the activation {given!r} is not supported. Choose from: {', '.join(by_class)}.",
            )
        residual = config_json.get("use_residual", False)
        return Projected(units, activation, use_bias=bool(bias), use_residual=bool(residual))

    def _length(self):
        path = next((p for n in _LENGTHS if (p := self._encoder_folder / n).exists()), None)
        config_json = {} if path is None else read_json(path)
        for key, usual in _REFUSED.items():
            if config_json.get(key) not in (None, usual):
                raise self._error(path.name, f"{key} {config_json[key]!r} is not supported.")
        return {
            "max_length": max_length_in(
                self._encoder_folder, self._config, config_json.get("max_seq_length")
            ),
            "lowercase": config_json.get("do_lower_case") is True,
        }

    def _about(self, about):
        similarity = about.get("similarity_fn_name") or COSINE
        if similarity not in SIMILARITIES:
            raise self._error(ABOUT, f"unknown similarity_fn_name {similarity!r}.")
        prompts, default = about.get("prompts") or {}, about.get("default_prompt_name")
        if not isinstance(prompts, dict) or not all(isinstance(p, str) for p in prompts.values()):
            raise self._error(ABOUT, "prompts should be an object from names to texts.")
        if default is not None and default not in prompts:
            raise self._error(ABOUT, f"default_prompt_name is {default!r}, which has no prompt.")
        return {
            "prompts": [f"{name}={text}" for name, text in prompts.items() if text] or None,
            "default_prompt": default if prompts.get(default) else None,
            "similarity": similarity,
            "size": about.get("truncate_dim"),
        }

    def assign(self, task):
        """Gives the dense layers of a task their weights."""
        for path, layer in zip(self._dense, task.projections, strict=True):
            tensors = tensor_files.open_folder(self.folder / path)
            expected = _tensors_of(layer)
            for name, (variable, is_kernel) in expected.items():
                shape = tuple(variable.shape)[::-1] if is_kernel else tuple(variable.shape)
                found = tensors.shapes.get(name)
                if found != shape:
                    found = "missing" if found is None else f"of the shape {found}"
                    raise self._error(path, f"the tensor {name} is {found}. Expected {shape}.")
                array = tensors.read(name)
                if not np.isfinite(array).all():
                    raise self._error(path, f"the tensor {name} has NaN or infinite numbers.")
                variable.assign(array.T if is_kernel else array)


def _tensors_of(layer):
    """{name: (variable, whether it is a kernel, of which the file has the transpose)}."""
    tensors = {"linear.weight": (layer.linear.kernel, True)}
    if layer.use_bias:
        tensors["linear.bias"] = (layer.linear.bias, False)
    if layer.residual is not None:
        tensors["residual.weight"] = (layer.residual.kernel, True)
    return tensors


def _object(path):
    return read_json(path) if path.exists() else {}


def files_of(task):
    """The files of a `TextEmbedder` beside those of its encoder and tokenizer.

    Returns {path in the folder: an object or a list for JSON, or tensors by name for safetensors};
    {} if sentence-transformers would compute something else.
    """
    if not task.is_standard():
        return {}
    settings, files, modules = task.settings, {}, []

    def add(kind, path=None):
        number = len(modules)
        path = f"{number}_{kind}" if path is None else path
        type_name = f"{_PACKAGE}models.{kind}"
        modules.append({"idx": number, "name": str(number), "path": path, "type": type_name})
        return path

    # The folder itself, which versions 3 and 4 take for a Transformer's if it is "".
    add(task.first_module, "" if task.first_module == TRANSFORMER else ".")
    width = task.config.hidden_size
    if task.first_module == TRANSFORMER:
        files[f"{add('Pooling')}/config.json"] = _pooling_json(settings, width)
        files[LENGTH] = {
            "max_seq_length": settings.max_length,
            "do_lower_case": settings.lowercase,
        }
    width *= len(parts_of(settings.pooling))
    for projected, layer in zip(settings.projections, task.projections, strict=True):
        path = add("Dense")
        residual = {"use_residual": True} if projected.use_residual else {}
        files[f"{path}/config.json"] = {
            "in_features": width,
            "out_features": projected.units,
            "bias": projected.use_bias,
            "activation_function": _ACTIVATIONS[projected.activation],
            **residual,
        }
        files[f"{path}/{tensor_files.FILE}"] = {
            name: np.ascontiguousarray(_array(variable).T if is_kernel else _array(variable))
            for name, (variable, is_kernel) in _tensors_of(layer).items()
        }
        width = projected.units
    if settings.normalize:
        add("Normalize")
    files[MODULES] = modules
    files[ABOUT] = {
        "__version__": {"keras_bert": __version__},
        "model_type": "SentenceTransformer",
        "prompts": settings.prompt_texts,
        "default_prompt_name": settings.default_prompt,
        "similarity_fn_name": settings.similarity,
        **({} if settings.size is None else {"truncate_dim": settings.size}),
    }
    return files


def _array(variable):
    return np.asarray(variable, dtype=np.float32)


def _pooling_json(settings, width):
    their_names = {ours: name for name, ours in PARTS_OF_MODES.items()}
    names = [their_names[part] for part in parts_of(settings.pooling)]
    about = {} if settings.include_prompt else {"include_prompt": False}
    if names != [name for name in PARTS_OF_MODES if name in names]:
        # Another order than that of the keys, which only version 6 has.
        modes = ["mean_sqrt_len_tokens" if name == "mean_sqrt_len" else name for name in names]
        return {"embedding_dimension": width, "pooling_mode": modes, **about}
    # The latter two are not known before version 2.4.
    modes = {
        key: name in names
        for name, key in _KEYS.items()
        if name in names or name not in ("weightedmean", "lasttoken")
    }
    return {"word_embedding_dimension": width, **modes, **about}
