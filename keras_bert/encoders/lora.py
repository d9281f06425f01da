"""LoRA of an encoder (Hu et al. 2021): its dense layers by the names of `peft`, and its weights."""

import dataclasses
from collections import defaultdict

import keras

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import listed
from keras_bert.base.rename import Rename, variable
from keras_bert.layers.dense import Dense


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lora:
    """The LoRA that an encoder has.

    Attributes:
        rank, alpha: see `Encoder.enable_lora`.
        layers: the names of the layers, as the caller gave them.
        is_conv: whether a model folder has their kernels as ours, as `Conv1D` of GPT-2 has.
        lines: of a rename table, from the layers' A and B to the names of `peft`.
        frozen: the weights that the encoder had before, which nothing trains.
    """

    rank: int
    alpha: float
    layers: tuple[str, ...]
    is_conv: bool
    lines: tuple[Rename, ...]
    frozen: tuple[keras.Variable, ...] = dataclasses.field(repr=False, compare=False)


def enable_lora(encoder, rank, *, alpha, layers):
    """Freezes an encoder and gives its layers LoRA; returns the `Lora`.

    The arguments are those of `Encoder.enable_lora`.
    """
    modules, layers = _modules(encoder), tuple(layers or encoder.default_lora_layers)
    _check_layers(layers, modules, encoder.config.model_type)
    chosen = {
        name: module for name, module in modules.items() if any(_is_called(name, n) for n in layers)
    }
    largest = max(max(layer.kernel.shape) for layer, _ in chosen.values())
    if not 1 <= rank <= largest:
        raise InputError.naming(
            "The rank of LoRA must be from 1 to {}, the largest size of the layers. Received: "
            "{lora_rank} {}.",
            largest,
            rank,
        )
    frozen = tuple(encoder.weights)
    for weight in frozen:
        weight.trainable = False
    parts = defaultdict(list)  # of each dense layer that is adapted
    for layer, line in chosen.values():
        parts[layer].append(line.part or (0, 1))
    for layer in parts:
        layer.enable_lora(rank, alpha, parts=parts[layer])
    return Lora(
        rank=rank,
        alpha=alpha,
        layers=layers,
        is_conv=not any(line.transposed for _, line in chosen.values()),
        lines=tuple(
            line
            for name, (layer, kernel_line) in chosen.items()
            for line in _lines(name, kernel_line, layer, parts[layer])
        ),
        frozen=frozen,
    )


def _check_layers(layers, modules, model_type):
    """Raises `InputError` unless each of the layers is one of the modules."""
    if not modules:
        raise InputError(
            f"LoRA trains updates of dense layers, and a {model_type} encoder has none."
        )
    endings = listed(dict.fromkeys(name.split(".")[-1] for name in modules), most=20)
    if not layers:
        raise InputError(
            f"A {model_type} encoder has no layers that LoRA trains by default. Choose from "
            f"{endings}."
        )
    for layer in layers:
        if not any(_is_called(name, layer) for name in modules):
            raise InputError(
                f"A {model_type} encoder has no dense layer {layer!r}. Choose from {endings}."
            )


def _modules(encoder):
    """{name of a module in a model folder: (the `Dense`, the line of its kernel)}."""
    kernels = {
        id(layer.kernel): layer
        for layer in encoder._flatten_layers()
        if isinstance(layer, Dense) and layer.built
    }
    modules = {}
    for line in encoder.tensor_names(encoder.config).table():
        layer = kernels.get(id(variable(encoder, line.ours)))
        if layer is not None and line.their_part is None:
            modules[line.theirs.rpartition(".")[0]] = layer, line
    return modules


def _is_called(module, name):
    """Whether a name is that of a module, or its end, as in `target_modules` of `peft`."""
    return f".{module}".endswith(f".{name}")


def _lines(module, kernel_line, layer, parts):
    """The lines of a module's A and B, which are `torch.nn.Linear`s in `peft`."""
    path = kernel_line.ours.removesuffix("kernel")
    part = parts.index(kernel_line.part or (0, 1)), len(parts)
    inputs, units = layer.lora_kernel_a.shape[0], layer.units // parts[0][1]
    for ours, theirs, shape in (
        ("lora_kernel_a", "lora_A", f"{inputs} {layer.lora_rank}"),
        ("lora_kernel_b", "lora_B", f"{layer.lora_rank} {units}"),
    ):
        yield Rename(path + ours, f"{module}.{theirs}.weight", shape, transposed=True, part=part)
