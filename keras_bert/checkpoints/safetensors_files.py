"""Reading and writing safetensors: plain arrays with names, never anything that runs."""

from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from keras_bert.base.errors import InputError
from keras_bert.base.files import check_regular, read_json
from keras_bert.checkpoints import torch_files

FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"

_FLOATING = ("F64", "F32", "F16", "BF16")

# numpy learns the name "bfloat16", which such files use, from this package.
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class Tensors:
    """The tensors of one or several safetensors files, read one at a time.

    `shapes` is a dictionary from name to shape. Files of any floating type are read as float32.

    Args:
        paths: the files.

    Raises:
        InputError: a file is truncated, is not safetensors, or two of them share a name.
    """

    def __init__(self, paths):
        self._source = Path(paths[0]).parent
        self.shapes = {}
        self._files = {}
        for path in paths:
            check_regular(path)
            try:
                opened = safe_open(path, framework="numpy")
            except FileNotFoundError as error:
                raise InputError(f"There is no file {path}.") from error
            except (SafetensorError, OSError) as error:
                said = getattr(error, "strerror", None) or error
                raise InputError(f"{path} is not a whole safetensors file: {said}.") from error
            for name in opened.keys():
                if name in self._files:
                    raise InputError(f"{path} holds the tensor {name} a second time.")
                self._files[name] = opened
                self.shapes[name] = tuple(opened.get_slice(name).get_shape())

    def read(self, name):
        """The tensor as a float32 array; InputError where it holds no floating-point numbers."""
        kind = self._files[name].get_slice(name).get_dtype()
        if kind not in _FLOATING:
            raise InputError(
                f"{self._source}: the tensor {name} holds {kind} numbers; weights should be one "
                f"of {', '.join(_FLOATING)}."
            )
        return np.asarray(self._files[name].get_tensor(name)).astype("float32", copy=False)


def open_folder(folder):
    """The `Tensors` of a model folder, in one file or in shards with an index.

    Where there is nothing but `pytorch_model.bin`, the `TorchTensors` of it.

    Raises:
        InputError: there are none, or only in a form that nothing installed opens safely.
    """
    folder = Path(folder)
    if (folder / FILE).exists():
        return Tensors([folder / FILE])
    if (folder / INDEX).exists():
        return Tensors(_shards(folder, INDEX))
    if (folder / torch_files.FILE).exists():
        return torch_files.TorchTensors([folder / torch_files.FILE])
    if (folder / torch_files.INDEX).exists():
        return torch_files.TorchTensors(_shards(folder, torch_files.INDEX))
    raise InputError(
        f"{folder} holds no weights that can be read: {FILE} is needed, or {torch_files.FILE}."
    )


def write(tensors, path):
    """Writes arrays by name as one safetensors file that PyTorch programs read too.

    Args:
        tensors: a dictionary of contiguous arrays.
        path: the file.
    """
    save_file(tensors, path, metadata={"format": "pt"})


def _shards(folder, index_file):
    path = folder / index_file
    weight_map = read_json(path).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise InputError(f"{path} has no weight_map.")
    names = sorted({str(name) for name in weight_map.values()})
    for name in names:
        if Path(name).name != name or name in ("", "..") or "\0" in name:
            raise InputError(f"{path} names a file outside its folder: {name!r}.")
    return [folder / name for name in names]
