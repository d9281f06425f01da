"""Reads and writes tensors by name: safetensors, and PyTorch's files through its safe loader.

Those of TensorFlow that `transformers` 4 wrote are read, too.
"""

import re
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from keras_bert.base.errors import InputError, input_errors
from keras_bert.base.files import check_regular, read_json

FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
TORCH_FILE = "pytorch_model.bin"
TORCH_INDEX = "pytorch_model.bin.index.json"
KERAS_FILE = "tf_model.h5"
_KERAS_INDEX = "tf_model.h5.index.json"
# The last part of a name of Keras -> that of PyTorch.
_PYTORCH_ENDS = {"kernel": "weight", "embeddings": "weight", "gamma": "weight", "beta": "bias"}

_FLOATING = ("F64", "F32", "F16", "BF16")

# numpy learns the name "bfloat16", which safetensors files use, from this package.
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

# The first version whose weights-only loader runs no code from a file (CVE-2025-32434).
_SAFE_TORCH = (2, 6)


class Tensors:
    """The tensors of one or several safetensors files, read one at a time.

    Args:
        paths: the files.

    Attributes:
        shapes: the shape of each tensor by name.

    Raises:
        InputError: a file is broken or in another format, or two files contain the same name.
    """

    def __init__(self, paths):
        self._source = Path(paths[0]).parent
        self._tensors = {}
        self.shapes = {}
        for path in paths:
            for name, tensor, shape in self._open(path):
                if name in self.shapes:
                    raise InputError(f"{path} contains the tensor {name} a second time.")
                self._tensors[name], self.shapes[name] = tensor, tuple(shape)

    def remove_prefix(self, prefix):
        """Renames the tensors whose names begin with a prefix; InputError if names become equal."""
        renamed = {name: name.removeprefix(prefix) for name in self.shapes}
        if len(set(renamed.values())) < len(renamed):
            raise InputError(
                f"{self._source} contains tensors with the same name with and without {prefix!r}. "
                "Remove one of them."
            )
        self._tensors = {renamed[name]: tensor for name, tensor in self._tensors.items()}
        self.shapes = {renamed[name]: shape for name, shape in self.shapes.items()}

    def _open(self, path):
        """Yields (name, what `read` needs, shape) of each tensor in a file."""

        def message(error):
            if isinstance(error, FileNotFoundError):
                return f"There is no file {path}."
            if isinstance(error, SafetensorError | OSError):
                reason = getattr(error, "strerror", None) or error
                return f"{path} is not a whole safetensors file: {reason}."

        check_regular(path)
        with input_errors(message):
            opened = safe_open(path, framework="numpy")
        for name in opened.keys():
            yield name, (opened, name), opened.get_slice(name).get_shape()

    def read(self, name):
        """The tensor as a float32 array; InputError unless it contains floating-point numbers."""
        file, stored_name = self._tensors[name]
        dtype = file.get_slice(stored_name).get_dtype()
        self._check_dtype(name, dtype, is_floating=dtype in _FLOATING)
        return np.asarray(file.get_tensor(stored_name)).astype("float32", copy=False)

    def read_numbers(self, name):
        """The tensor as a float32 array, or as it is if it contains integers."""
        file, stored_name = self._tensors[name]
        is_floating = file.get_slice(stored_name).get_dtype() in _FLOATING
        return self.read(name) if is_floating else np.asarray(file.get_tensor(stored_name))

    def _check_dtype(self, name, dtype, *, is_floating):
        if not is_floating:
            raise InputError(
                f"{self._source}: the tensor {name} contains {dtype} numbers. Expected "
                "floating-point weights."
            )


class TorchTensors(Tensors):
    """The tensors of files of `torch.save`, opened by its weights-only loader; see `Tensors`."""

    def _open(self, path):
        def message(error):
            if isinstance(error, FileNotFoundError):
                return f"There is no file {path}."
            reason = " ".join(str(error).split()) or type(error).__name__
            return (
                f"{path} is broken, or contains more than plain weights, and nothing else is "
                f"opened: {reason.split('. ')[0].rstrip('.')[:200]}."
            )

        torch = safe_torch(path)
        check_regular(path)
        with input_errors(message):  # any error of pickle, zipfile and torch
            # Files from before 2020 are not zip archives and cannot be mapped into memory.
            mapped = zipfile.is_zipfile(path)
            tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
        if not isinstance(tensors, dict) or not all(
            isinstance(name, str) and torch.is_tensor(tensor) for name, tensor in tensors.items()
        ):
            raise InputError(
                f"{path} contains something else than tensors by name. Expected a model's "
                "state_dict."
            )
        for name, tensor in tensors.items():
            if tensor.is_nested:
                raise InputError(f"{path}: the tensor {name} is nested. Expected a single shape.")
            if tensor.is_meta:
                raise InputError(f"{path}: the tensor {name} has no values (its device is meta).")
            yield name, tensor, tensor.shape

    def read(self, name):
        tensor = self._tensors[name]
        dtype = str(tensor.dtype).removeprefix("torch.")
        self._check_dtype(name, dtype, is_floating=tensor.is_floating_point())
        # A file may contain parameters, which require gradients, and sparse tensors.
        return np.ascontiguousarray(tensor.detach().to_dense().float().numpy())

    def read_numbers(self, name):
        tensor = self._tensors[name]
        return self.read(name) if tensor.is_floating_point() else tensor.numpy()


class KerasTensors(Tensors):
    """The tensors of `tf_model.h5` under PyTorch's names, by the rules of `transformers` 4.

    See `Tensors`. A file of weights of Keras 2 has a group per layer of the model, in which a
    weight has its whole name, `tf_bert_model/bert/encoder/layer_._0/output/dense/kernel:0`. The
    group of a masked-LM head repeats the embeddings.
    """

    def _open(self, path):
        import h5py

        def message(error):
            if isinstance(error, FileNotFoundError):
                return f"There is no file {path}."
            return f"{path} is not a whole HDF5 file: {error}."

        check_regular(path)
        with input_errors(message):
            file, found = h5py.File(path, "r"), []
            file.visititems(lambda name, item: found.append(name))
            items = {name.partition("/")[2]: file[name] for name in found}  # without the group
        for name, item in items.items():
            if isinstance(item, h5py.Dataset):
                yield self._named(name, item)

    def _named(self, name, item):
        """The name of PyTorch, what `read` needs, and the shape there."""
        name = re.sub(r"/[^/]*___([^/]*)/", r"/\1/", name.removesuffix(":0"))
        path = name.replace("_._", "/").split("/")
        *parts, last = path[1:] or path  # the first part is the name of the whole model
        shape = item.shape
        if last == "kernel":
            shape = shape[::-1]
        elif last == "bias" and len(shape) == 2:  # of GPT's `Conv1D`, (1, E)
            shape = shape[1:]
        name = ".".join((*parts, _PYTORCH_ENDS.get(last, last)))
        return name, (item, last == "kernel"), shape

    def read(self, name):
        item, is_transposed = self._tensors[name]
        self._check_dtype(name, item.dtype, is_floating=item.dtype.kind == "f")
        array = np.asarray(item).astype("float32", copy=False)
        return array.T if is_transposed else array.reshape(self.shapes[name])

    read_numbers = read


def safe_torch(source):
    """The module torch; InputError if its weights-only loader can run code, or there is none."""
    try:
        import torch
    except ImportError:
        raise InputError(
            f"{source} can run code when Python opens it, so only torch's weights-only loader is "
            "used: pip install 'torch>=2.6', or use a folder with model.safetensors (transformers "
            "writes one with save_pretrained)."
        ) from None
    if torch.__version__ < _SAFE_TORCH:
        raise InputError(
            f"{source} was not opened: torch {torch.__version__} can run code from such a file "
            "(CVE-2025-32434). Install 'torch>=2.6', or use a folder with model.safetensors."
        )
    return torch


def open_folder(folder):
    """The `Tensors` of a model folder: safetensors if there are some, or else PyTorch's.

    They are in one file, or in shards with an index, or else in TensorFlow's file. Raises
    InputError if there are none.
    """
    paths, kind = files_of(folder)
    return kind(paths)


def files_of(folder):
    """-> (the paths of the files with a model folder's weights, the class that reads them)."""
    folder = Path(folder)
    for file, index, kind in ((FILE, INDEX, Tensors), (TORCH_FILE, TORCH_INDEX, TorchTensors)):
        if (folder / file).exists():
            return [folder / file], kind
        if (folder / index).exists():
            return _shards(folder / index), kind
    if (folder / KERAS_FILE).exists():
        return [folder / KERAS_FILE], KerasTensors
    names = [path.name for path in (folder.iterdir() if folder.is_dir() else ())]
    if any(name == _KERAS_INDEX or ".ckpt" in name for name in names):
        raise InputError(
            f"{folder} contains weights of TensorFlow in a form that is not read. Of those only "
            f"{KERAS_FILE} in one file is. Write {FILE} with transformers 4: "
            "AutoModel.from_pretrained(FOLDER, from_tf=True).save_pretrained(OUTPUT)."
        )
    raise InputError(f"{folder} contains no supported weights. Expected {FILE} or {TORCH_FILE}.")


def write(tensors, path):
    """Writes a dictionary of contiguous arrays as a safetensors file that PyTorch reads too."""
    save_file(tensors, path, metadata={"format": "pt"})


def _shards(index):
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise InputError(f"{index} has no weight_map.")
    names = sorted({str(name) for name in weight_map.values()})
    for name in names:
        if Path(name).name != name or name in ("", "..") or "\0" in name:
            raise InputError(f"{index} names a file outside its folder: {name!r}.")
    return [index.parent / name for name in names]
