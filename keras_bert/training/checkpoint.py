"""Exact resume: everything that the next training step depends on, in one file.

Keras has nothing that does this: `.keras`, `.weights.h5`, `tf.train.Checkpoint` and
`BackupAndRestore` lose the state of dropout's seed generators, the batch and the place in the data.
Here a checkpoint is every variable of model and optimizer by path, seed generators among them, and
with it whatever the run says about itself (the step, from which the place in the data follows).
"""

import json
import math
import re
import zlib
from pathlib import Path

import keras
import ml_dtypes  # noqa: F401  (teaches numpy the name bfloat16, which a variable's type may be)
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from keras_bert.base.errors import InputError
from keras_bert.base.files import clear_leftovers_in, delete, new_file
from keras_bert.training.monitoring.history import NotFinite

_CHECKSUM = "crc32"
_STATE = "state"
_NAME = re.compile(r"step-(\d{9})\.safetensors")


class Checkpoint:
    """The checkpoints of one run, in the folder `folder`; the newest `keep` of them are kept.

    `save` and `restore` take the same `model`, compiled with an optimizer of `make_optimizer`.
    """

    def __init__(self, folder, model, *, keep=1):
        self.folder = Path(folder)
        self.model = model
        self.keep = keep
        clear_leftovers_in(self.folder)

    @property
    def latest(self):
        """As `latest_checkpoint` of the folder."""
        return latest_checkpoint(self.folder)

    def save(self, step, state):
        """Writes the checkpoint after `step` steps, with the JSON value `state`.

        It is written aside and renamed, so that a kill at any moment leaves a whole checkpoint;
        then those that are not kept are deleted. Raises `NotFinite` in place of writing weights
        that nothing could go on from.
        """
        path = self.folder / f"step-{step:09d}.safetensors"
        tensors = _in_memory(named_variables(self.model))
        if not all(np.isfinite(tensor).all() for tensor in tensors.values()):
            raise NotFinite(f"The weights are not numbers any more after step {step}", step=step)
        # Not in the header, of which safetensors reads 100 MB: a long run's history is longer.
        tensors[_STATE] = np.frombuffer(json.dumps(state).encode(), np.uint8)
        _write(path, tensors, {"step": str(step)})
        self._delete_older()

    def restore(self, report=None):
        """Puts the newest whole checkpoint into model and optimizer; returns (step, state).

        One that is not whole is deleted when an older one has taken its place, and `report`, a
        function, is told so in a line. Older ones than are kept are deleted then, and no sooner.

        Raises `InputError` where none is whole, or one holds other variables than the model. One
        that the system does not let be read may be whole, and ends the search: `InputError`, too.
        """
        variables = named_variables(self.model)
        *older, newest = checkpoints_in(self.folder)
        broken = []
        for path in (newest, *reversed(older)):
            try:
                metadata = read_variables(path, variables)
                break
            except NotWhole as error:
                broken.append((path, error))
        else:
            raise broken[0][1]
        for path, _ in broken:
            if report is not None:
                report(
                    f"{path} is not a whole checkpoint; the one before it is gone on with, of step "
                    f"{metadata['step']}."
                )
            delete(path)
        self._delete_older()  # a kill may have come between two deletions
        return int(metadata["step"]), json.loads(metadata["state"])

    def _delete_older(self):
        for path in checkpoints_in(self.folder)[: -self.keep]:
            delete(path)


class NotWhole(InputError):
    """A file of variables was cut, or has other bytes than were written."""


def write_variables(path, variables):
    """Writes variables, by name, into a safetensors file, aside and renamed."""
    _write(path, _in_memory(variables), metadata={})


def _in_memory(variables):
    """The values of variables by name, each a contiguous copy."""
    # np.ascontiguousarray would make a vector of a number.
    return {name: np.array(variable, order="C") for name, variable in variables.items()}


def _write(path, tensors, metadata):
    with new_file(path) as temporary:
        save_file(tensors, temporary, metadata={**metadata, _CHECKSUM: str(_checksum(tensors))})


def read_variables(path, variables):
    """Puts what `write_variables` wrote into variables, by name; returns the metadata.

    The state of a checkpoint is in the metadata, too, a JSON text under "state".

    Raises `NotWhole` where the file is broken, and `InputError` where it holds other variables or
    the system does not let it be read; the variables are as they were then.
    """
    try:
        with open(path, "rb"):  # safetensors calls every file that it may not open missing
            pass
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            # An earlier version wrote the state into the metadata.
            has_state = _STATE in file.keys() and _STATE not in metadata
            names = {*variables, _STATE} if has_state else {*variables}
            _check(file, variables, names, path)
            tensors = {name: file.get_tensor(name) for name in names}
        said = metadata.get(_CHECKSUM)  # an earlier version wrote none
        if said is not None and said != str(_checksum(tensors)):
            raise SafetensorError("its bytes are not those that were written")
    except SafetensorError as error:
        raise NotWhole(
            f"{path} is not a whole checkpoint: {error}; begin anew with `force=True`."
        ) from error
    except OSError as error:  # it may be whole: what does not let it be read may pass
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}; the same command goes on where it "
            "can be."
        ) from error
    for name, variable in variables.items():
        variable.assign(tensors[name])
    if has_state:
        metadata[_STATE] = tensors[_STATE].tobytes().decode()
    return metadata


def _checksum(tensors):
    """A CRC-32 of arrays by name, in the order of the names."""
    checksum = 0
    for name in sorted(tensors):
        checksum = zlib.crc32(np.ascontiguousarray(tensors[name]).view(np.uint8).data, checksum)
    return checksum


def latest_checkpoint(folder):
    """The path of the latest checkpoint in a folder, which need not be there, or None."""
    return max(checkpoints_in(folder), default=None)


def checkpoints_in(folder):
    """The paths of all checkpoints in a folder, which need not be there, the latest one last."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def step_of(checkpoint):
    """The step that the checkpoint at a path is of."""
    return int(_NAME.fullmatch(checkpoint.name)[1])


def named_variables(model):
    """Returns every variable of a compiled model and its built optimizer by a name, its place.

    Names are Keras's paths, but for seed generators: Keras numbers those by how many the process
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
                    f"Two variables have one path, give layers names. Received: {name}"
                )
            named[name] = variable
    return named


def _check(file, variables, wanted, path):
    """Raises `InputError` unless the file holds the wanted names, variables in their shapes."""
    found = set(file.keys())
    for names, text in ((wanted - found, "lacks"), (found - wanted, "also holds")):
        if names:
            raise InputError(
                f"{path} is a checkpoint of another model: it {text} {min(names)}; begin anew "
                "with `force=True`."
            )
    for name in sorted(variables):
        shape, expected = tuple(file.get_slice(name).get_shape()), tuple(variables[name].shape)
        if shape != expected:
            raise InputError(
                f"{path} is a checkpoint of another model: it holds {name} in the shape {shape}, "
                f"and the model has {expected}; begin anew with `force=True`."
            )


class BestModel(keras.callbacks.Callback):
    """Writes the task's weights whenever an evaluation beats all before it.

    The first of equally good ones stays. Killed and resumed, a run comes to the same choice: steps
    that are done again get the same figure.

    Args:
        task: the task that is trained, or whose head is.
        path: the file of the best weights so far (see `keras_bert.training.checkpoint`).
        history: the `Curve` of the run; it stands before this callback in `fit`'s list.
    """

    def __init__(self, task, path, history):
        super().__init__()
        self.task = task
        self.path = path
        self.history = history

    def on_epoch_end(self, epoch, logs=None):
        if best_record(self.history.records, self.task.METRIC) is self.history.records[-1]:
            write_variables(self.path, _named(self.task))


def restore_best(task, path):
    """Puts the weights that `BestModel` wrote back into the task."""
    read_variables(path, _named(task))


def _named(task):
    return {weight.path: weight for weight in task.weights}


def best_record(records, metric):
    """The first of the entries of a `Curve` with the highest `metric` on held-out data, or None.

    One without a number for it is best only where none has one.
    """
    return max(_evaluated(records), key=lambda record: rank(value_of(record, metric)), default=None)


def value_of(record, metric):
    """The `metric` on held-out data that an entry has; None where it was NaN."""
    value = record["eval"].get(metric)  # metrics.json has None
    return None if value is None or math.isnan(value) else value


def rank(value):
    """What values of `value_of` are compared by: nothing compares with NaN, so it never wins."""
    return -math.inf if value is None else value


def evaluations_since_best(records, metric):
    """How many evaluations there were after that of `best_record`; 0 before the first one."""
    evaluated = _evaluated(records)
    return len(evaluated) - 1 - evaluated.index(best_record(records, metric)) if evaluated else 0


def _evaluated(records):
    return [record for record in records if "eval" in record]
