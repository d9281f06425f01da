"""Exact resume: everything that the next training step depends on, in one file.

Keras has no equivalent: `.keras`, `.weights.h5`, `tf.train.Checkpoint` and `BackupAndRestore` lose
the state of dropout's seed generators, the batch and the position in the data. A checkpoint here is
every variable of model and optimizer by path, seed generators among them, with the run's state (the
records; the step, which determines the position in the data). The weights that LoRA has frozen are
left out: the run reads them from the model that it starts from, which it checks.
"""

import json
import re
import zlib
from pathlib import Path

import keras
import ml_dtypes  # noqa: F401  (registers bfloat16, a variable's possible type, with numpy)
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from keras_bert.base.errors import InputError
from keras_bert.base.files import clear_leftovers_in, delete, new_file
from keras_bert.training.logs import NotFinite
from keras_bert.training.selection import best_record

_CHECKSUM = "crc32"
_STATE = "state"
_NAME = re.compile(r"step-(\d{9})\.safetensors")


class Checkpoint:
    """The checkpoints of one run, in the folder `folder`; the newest `keep` of them are kept.

    `save` and `restore` take the same `model`, compiled with an optimizer of `make_optimizer`.
    `frozen` are weights of the model that training does not change, which are not stored.
    """

    def __init__(self, folder, model, *, keep=1, frozen=()):
        self.folder = Path(folder)
        self.model = model
        self.keep = keep
        self.frozen = frozen
        clear_leftovers_in(self.folder)

    @property
    def latest(self):
        """Returns the `latest_checkpoint` of the folder."""
        return latest_checkpoint(self.folder)

    def save(self, step, state):
        """Writes the checkpoint after `step` steps, with the JSON value `state`.

        It is written to a temporary file and renamed, so that an interruption at any moment leaves
        a complete checkpoint; then older ones are deleted. Raises `NotFinite` instead of writing
        infinite or NaN weights.
        """
        path = self.folder / f"step-{step:09d}.safetensors"
        variables, _ = _changing(named_variables(self.model), self.frozen)
        tensors = _in_memory(variables)
        if not all(np.isfinite(tensor).all() for tensor in tensors.values()):
            raise NotFinite(f"The weights became infinite or NaN by step {step}", step=step)
        # Not in the header, which safetensors limits to 100 MB: a long history is larger.
        tensors[_STATE] = np.frombuffer(json.dumps(state).encode(), np.uint8)
        _write(path, tensors, {"step": str(step)})
        self._delete_older()

    def restore(self, report=None):
        """Restores the newest complete checkpoint (see `read`); returns (step, state)."""
        step, state, arrays = self.read(report)
        for name, variable in named_variables(self.model).items():
            if name in arrays:
                variable.assign(arrays[name])
        return step, state

    def read(self, report=None):
        """Returns (step, state, the values of variables by name) of the newest complete checkpoint.

        Damaged ones are deleted when an older one has been restored, each with a line to the
        function `report`. Only then are those deleted that are more than are kept.

        Raises `InputError` if all are damaged, one is of another model, or one cannot be read,
        which may be complete.
        """
        variables, frozen = _changing(named_variables(self.model), self.frozen)
        *older, newest = checkpoints_in(self.folder)
        damaged = []
        for path in (newest, *reversed(older)):
            try:
                metadata, arrays = _read(path, variables, ignored=frozen)
                break
            except DamagedCheckpoint as error:
                damaged.append((path, error))
        else:
            raise damaged[0][1]
        for path, _ in damaged:
            if report is not None:
                report(
                    f"The checkpoint {path} is damaged. Resuming from the one before it, of step "
                    f"{metadata['step']}."
                )
            delete(path)
        self._delete_older()  # an interruption may have come between two deletions
        return int(metadata["step"]), json.loads(metadata["state"]), arrays

    def _delete_older(self):
        for path in checkpoints_in(self.folder)[: -self.keep]:
            delete(path)


class DamagedCheckpoint(InputError):
    """A file of variables is truncated, or has other bytes than were written."""


def write_variables(path, variables):
    """Writes variables, by name, into a safetensors file, atomically."""
    _write(path, _in_memory(variables), metadata={})


def _in_memory(variables):
    """The values of variables by name, each a contiguous copy."""
    # np.ascontiguousarray would make a vector of a scalar.
    return {name: np.array(variable, order="C") for name, variable in variables.items()}


def _write(path, tensors, metadata):
    with new_file(path) as temporary:
        save_file(tensors, temporary, metadata={**metadata, _CHECKSUM: str(_checksum(tensors))})


def _changing(variables, frozen):
    """Variables by name -> (those that are not frozen, the names of the others)."""
    left_out = {id(variable) for variable in frozen}
    changing = {name: x for name, x in variables.items() if id(x) not in left_out}
    return changing, variables.keys() - changing.keys()


def read_variables(path, variables, *, ignored=frozenset()):
    """Assigns what `write_variables` wrote to variables, by name.

    The arguments and errors are those of `_read`; with an error the variables are unchanged.
    """
    _, arrays = _read(path, variables, ignored=ignored)
    for name, variable in variables.items():
        variable.assign(arrays[name])


def _read(path, variables, *, ignored):
    """Returns (the metadata, the values by name) of what `write_variables` wrote.

    A file of an earlier version may also have the names that are `ignored`. The state of a
    checkpoint is added to the metadata as a JSON text under "state".

    Raises `DamagedCheckpoint` if the file is damaged, and `InputError` if it contains other
    variables or cannot be read.
    """
    try:
        with open(path, "rb"):  # safetensors reports every file that it cannot open as missing
            pass
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            # An earlier version wrote the state into the metadata.
            has_state = _STATE in file.keys() and _STATE not in metadata
            names = {*variables, _STATE} if has_state else {*variables}
            # An earlier version wrote an encoder's pooler that the head does not read.
            names |= {name for name in file.keys() if name.startswith(("model/pooler/", "pooler/"))}
            names |= ignored & set(file.keys())
            _check(file, variables, names, path)
            tensors = {name: file.get_tensor(name) for name in names}
        checksum = metadata.get(_CHECKSUM)  # an earlier version wrote none
        if checksum is not None and checksum != str(_checksum(tensors)):
            raise SafetensorError("its checksum does not match")
    except SafetensorError as error:
        raise DamagedCheckpoint.naming(
            "The checkpoint {} is damaged: {}. Use {force=True} to start over.", path, error
        ) from error
    except OSError as error:  # it may be complete, and readable later
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}. Run the same command again when it "
            "can be."
        ) from error
    if has_state:
        metadata[_STATE] = tensors[_STATE].tobytes().decode()
    return metadata, {name: tensors[name] for name in variables}


def _checksum(tensors):
    """A CRC-32 of arrays by name, in the order of the names."""
    checksum = 0
    for name in sorted(tensors):
        checksum = zlib.crc32(np.ascontiguousarray(tensors[name]).view(np.uint8).data, checksum)
    return checksum


def latest_checkpoint(folder):
    """The path of the latest checkpoint in a folder, or None; the folder may be missing."""
    return max(checkpoints_in(folder), default=None)


def checkpoints_in(folder):
    """The paths of all checkpoints in a folder, the latest one last; the folder may be missing."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def step_of(checkpoint):
    """The step of the checkpoint at a path."""
    return int(_NAME.fullmatch(checkpoint.name)[1])


def named_variables(model):
    """Every variable of a compiled model and its built optimizer, by name.

    Names are Keras's paths, except of seed generators: Keras numbers those by how many the process
    has made, so here they are numbered in the model's order.
    """
    named = {}
    for prefix, variables in (("model", model.variables), ("optimizer", model.optimizer.variables)):
        seeds = 0
        for variable in variables:
            name = f"{prefix}/{variable.path}"
            if variable.name == "seed_generator_state":
                name = f"{prefix}/seed_generators/{seeds}"
                seeds += 1
            if name in named:
                raise ValueError(
                    f"Two variables have the same path. Give layers unique names. Received: {name}."
                )
            named[name] = variable
    return named


def _check(file, variables, expected, path):
    """Raises `InputError` unless the file has the expected names, and variables in their shapes."""
    names = set(file.keys())
    problems = [f"it lacks {name}" for name in sorted(expected - names)]
    problems += [f"it also contains {name}" for name in sorted(names - expected)]
    if not problems:
        for name in sorted(variables):
            shape, wanted = tuple(file.get_slice(name).get_shape()), tuple(variables[name].shape)
            if shape != wanted:
                problems.append(f"{name} has the shape {shape}, and {wanted} in the model")
    if problems:
        raise InputError.naming(
            "{} is a checkpoint of another model: {}. Use {force=True} to start over.",
            path,
            problems[0],
        )


class BestModel(keras.callbacks.Callback):
    """Writes the task's weights whenever an evaluation is better than all before it.

    Of equal metrics the one with the lower loss is better (see `quality`). A resumed run makes the
    same choice: repeated steps get the same metrics.

    Args:
        task: the task that is trained, or whose head is.
        path: the file for the best weights so far.
        history: the `History` of the run, which comes before this callback in `fit`'s list.
    """

    def __init__(self, task, path, history):
        super().__init__()
        self.task = task
        self.path = path
        self.history = history

    def on_epoch_end(self, epoch, logs=None):
        if best_record(self.history.records, self.task.METRIC) is self.history.records[-1]:
            variables, _ = _variables_of(self.task)
            write_variables(self.path, variables)


def restore_best(task, path):
    """Restores the weights that `BestModel` wrote."""
    variables, frozen = _variables_of(task)
    read_variables(path, variables, ignored=frozen)


def _variables_of(task):
    return _changing({weight.path: weight for weight in task.weights}, frozen_weights(task))


def frozen_weights(task):
    """The weights of a task that LoRA has frozen; none without it."""
    lora = task.encoder.lora
    return () if lora is None else [weight for weight in lora.frozen if not weight.trainable]
