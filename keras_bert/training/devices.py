"""The devices of a run: the scope of its strategy, and its folder, which one process writes."""

import contextlib
import dataclasses
from concurrent.futures import ThreadPoolExecutor

from keras_bert.base.errors import InputError
from keras_bert.programs import computes_in_bfloat16, scope_of, workers_in_scope
from keras_bert.training.run_folder import RunFolder, check_output
from keras_bert.training.workers import run_of_workers


@contextlib.contextmanager
def scope_of_run(settings, report, *, command):
    """`scope_of` a command's strategy, in which its output is checked before anything is read.

    Gives the settings with the `dtype` of its devices.
    """
    with scope_of(settings.strategy, report):
        workers, earlier = workers_in_scope(), None
        if workers is None:
            force, inputs = settings.force, settings.paths()
            earlier = check_output(settings.output, command=command, force=force, inputs=inputs)
        elif workers.is_chief:
            with contextlib.suppress(InputError):  # it is reported when all workers have read
                earlier = check_output(settings.output, command=command)
        earlier = None if settings.force else earlier
        yield with_dtype(settings, report, earlier=earlier, workers=workers)


def with_dtype(settings, report, *, earlier=None, workers=None):
    """The settings with the `dtype` that the devices in scope are fastest in, if none is given.

    A run that resumes keeps that of `earlier`, its run.json. That of several `workers` is the
    chief's.
    """
    dtype = settings.dtype
    if dtype is None:
        dtype = "mixed_bfloat16" if computes_in_bfloat16() else "float32"
        if earlier is not None:
            dtype = earlier["settings"].get("dtype", dtype)
    if workers is not None:
        of_chief = workers.broadcast(dtype)  # also if this worker has one, as others may not
        dtype = settings.dtype or of_chief
    if settings.dtype is not None:
        return settings
    if dtype != "float32":
        report(f"Computing in {dtype}, in which this device is faster. The weights are float32.")
    return dataclasses.replace(settings, dtype=dtype)


def run_of(settings, *, command, inputs, rewrites_model=False):
    """The context of a run: its `RunFolder`, or the `FollowedRun` of a worker that does not write.

    All workers call it; their settings and inputs must be the same.

    Raises:
        InputError: as `RunFolder.of`, and with several workers as `run_of_workers`.
    """
    folder = RunFolder.of(settings, command=command, inputs=inputs, rewrites_model=rewrites_model)
    workers = workers_in_scope()
    return folder if workers is None else run_of_workers(workers, folder, settings, inputs)


def out_of_scope(function, *arguments):
    """Calls a function outside the scope of a strategy, on one device of this process."""
    with ThreadPoolExecutor(max_workers=1) as thread:  # a scope belongs to its thread
        return thread.submit(function, *arguments).result()
