"""Weights in `pytorch_model.bin`, opened by PyTorch's weights-only loader: nothing in them runs."""

import zipfile
from pathlib import Path

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.files import check_regular

FILE = "pytorch_model.bin"
INDEX = "pytorch_model.bin.index.json"

# The first version whose weights-only loader runs nothing (CVE-2025-32434).
_SAFE_FROM = (2, 6)


class TorchTensors:
    """As `Tensors` of safetensors files, for files of `torch.save`.

    Args:
        paths: the files.

    Raises:
        InputError: torch is not installed or too old, a file is broken or holds something else
            than tensors by name, or two of them share a name.
    """

    def __init__(self, paths):
        self._source = Path(paths[0]).parent
        self.shapes = {}
        self._tensors = {}
        for path in paths:
            for name, tensor in _opened(path).items():
                if name in self._tensors:
                    raise InputError(f"{path} holds the tensor {name} a second time.")
                self._tensors[name] = tensor
                self.shapes[name] = tuple(tensor.shape)

    def read(self, name):
        """The tensor as a float32 array; InputError where it holds no floating-point numbers."""
        tensor = self._tensors[name]
        if not tensor.is_floating_point():
            kind = str(tensor.dtype).removeprefix("torch.")
            raise InputError(
                f"{self._source}: the tensor {name} holds {kind} numbers; weights should be floats."
            )
        # A file may hold parameters, which want gradients, and sparse tensors.
        return np.ascontiguousarray(tensor.detach().to_dense().float().numpy())


def safe_torch(source):
    """The module torch, whose weights-only loader is safe.

    Args:
        source: the file or model that it is needed for, for messages.

    Raises:
        InputError: torch is not installed, or its loader can run code that a file holds.
    """
    try:
        import torch
    except ImportError:
        raise InputError(
            f"{source} can run code when it is opened as Python does it; the loader that reads "
            "weights alone is torch's: pip install 'torch>=2.6', or take a folder with "
            "model.safetensors (transformers writes one with save_pretrained)."
        ) from None
    if torch.__version__ < _SAFE_FROM:
        raise InputError(
            f"{source} was not opened: torch {torch.__version__} can run code that such a file "
            "holds (CVE-2025-32434). Install 'torch>=2.6', or use a folder with model.safetensors."
        )
    return torch


def _opened(path):
    torch = safe_torch(path)
    check_regular(path)
    try:
        # Files of before 2020 are no archives, and cannot be mapped into memory.
        mapped = zipfile.is_zipfile(path)
        tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}.") from error
    except Exception as error:  # of pickle, zip and torch, whatever a broken file meets first
        raise InputError(
            f"{path} is cut or broken, or holds more than plain weights, which alone are opened: "
            f"{_first_sentence(error)}"
        ) from error
    if not isinstance(tensors, dict) or not all(
        isinstance(name, str) and torch.is_tensor(tensor) for name, tensor in tensors.items()
    ):
        raise InputError(
            f"{path} holds something else than tensors by name; it should hold a model's "
            "state_dict alone."
        )
    for name, tensor in tensors.items():
        if tensor.is_nested:
            raise InputError(f"{path}: the tensor {name} is nested; weights have one shape.")
        if tensor.is_meta:
            raise InputError(f"{path}: the tensor {name} holds no numbers (its device is meta).")
    return tensors


def _first_sentence(error):
    text = " ".join(str(error).split()) or type(error).__name__
    return text.split(". ")[0].rstrip(".")[:200] + "."
