"""Batch sizes that the memory of a device holds, found by trying: `auto`, and after a failure."""

import contextlib
import dataclasses
import gc
import traceback

from keras_bert.base.errors import InputError, Naming, argument
from keras_bert.base.settings import as_list
from keras_bert.programs import Devices, has_accelerator, is_out_of_memory
from keras_bert.training.run_folder import check_output

AUTO = "auto"
_FIRST = 32
_PARTS = "gradient_accumulation"


def largest_batch_size(fits, *, most):
    """The largest power of two up to `most` that fits, by trying; None if 1 does not.

    It is doubled from 32 on, or halved if 32 is too large: `fits(size)` is asked seldom, since a
    program is compiled for each size.
    """
    size = min(_FIRST, 1 << max(1, most).bit_length() - 1)
    if not fits(size):
        while size > 1:
            size //= 2
            if fits(size):
                return size
        return None
    while 2 * size <= most and fits(2 * size):
        size *= 2
    return size


def with_batch_size(settings, train, *, command, most, report):
    """The settings with a number in place of the batch size `auto`, which run.json then has.

    A run that resumes takes it from there.

    Args:
        settings: those of the whole command.
        train: a function that trains a new model for a step with the settings that it gets.
        command: the command.
        most: the largest size that makes sense.
        report: called with a line about the size.

    Raises InputError: the device is a CPU, or there are several workers.
    """
    if settings.batch_size != AUTO:
        return settings
    run = check_output(settings.output, command=command)
    if run is not None and not settings.force:
        return dataclasses.replace(settings, batch_size=run["settings"]["batch_size"])
    if not has_accelerator() or Devices().workers > 1:
        raise InputError.naming(
            "{batch_size} auto needs a GPU or TPU, which says if its memory is not enough, and a "
            "single process. Give a number."
        )

    size = largest_batch_size(
        lambda size: _fits(train, dataclasses.replace(settings, batch_size=size)), most=most
    )
    if size is None:
        raise _no_room(settings)
    report(f"Training with batches of {size}, the largest power of two up to {most:,} that fits.")
    return dataclasses.replace(settings, batch_size=size)


def _fits(train, settings):
    """Whether `train`, as for `with_batch_size`, has enough memory with some settings."""
    try:
        train(settings)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return False
    finally:
        gc.collect()  # the model and its memory
    return True


class OutOfMemory(InputError):
    """A step of a run does not fit into the memory of its device."""


@contextlib.contextmanager
def memory_is_enough(settings):
    """The context of the steps of a run; `OutOfMemory` if they do not fit into the memory."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        name, sizes = _size_of(settings)
        half = [size // 2 for size in sizes]
        raise OutOfMemory.naming(
            "The memory of the device is not enough for a step. Use a smaller {}, {}"
            "{batch_size} auto, which finds the largest that fits on a GPU or TPU, {}.",
            argument(name),
            f"such as {_written(half)}, " if all(half) else "",
            _other_ways(settings),
        ) from error


def run_or_say_what_fits(run, settings, train, *, report):
    """Returns `run()`; if it raises `OutOfMemory`, tries what fits and raises one that says it.

    A step is tried with 1/2, 1/4, … of its examples, or in 2, 4, … parts if the command can split
    it. On a CPU, where the system may end the process, and with several workers nothing is tried.

    Args:
        run: a function that makes a run, and of which nothing is in memory once it has ended.
        settings: the settings of the run.
        train, report: as for `with_batch_size`.
    """
    try:
        return run()
    except OutOfMemory as error:
        if not has_accelerator() or Devices().workers > 1:
            raise
        _free_memory_of(error)
    name, sizes = _size_of(settings)
    report(f"The memory is not enough for steps of {_written(sizes)}. Looking for what fits.")
    found = _largest_that_fits(settings, train)
    if found is None:
        raise _no_room(settings)
    smaller, parts = found
    raise OutOfMemory.naming(
        "The memory of the device is not enough for {} {}. What fits: {} {}{}. Or use {}.",
        argument(name),
        _written(sizes),
        argument(name),
        _written(smaller),
        Naming(", or {gradient_accumulation} {}", parts) if parts else "",
        _other_ways(settings, but=_PARTS),
    )


def _largest_that_fits(settings, train):
    """-> (sizes of a step that fit, or parts of the whole step of such sizes, else 0)."""
    name, sizes = _size_of(settings)
    for divisor in (2**n for n in range(1, min(sizes).bit_length())):
        smaller = [size // divisor for size in sizes]
        parts = divisor * getattr(settings, _PARTS, 0)
        if any(size % max(1, parts) for size in sizes):
            parts = 0
        value = smaller if isinstance(getattr(settings, name), list) else smaller[0]
        changes = {_PARTS: parts} if parts else {name: value}
        with contextlib.suppress(InputError):  # there is no such step
            if _fits(train, dataclasses.replace(settings, **changes)):
                return smaller, parts
    return None


def _size_of(settings):
    """-> (the setting that has the size of a step, the sizes of all phases)."""
    by_tokens = getattr(settings, "batch_tokens", None) is not None
    name = "batch_tokens" if by_tokens else "batch_size"
    return name, as_list(getattr(settings, name))


def _written(sizes):
    return " ".join(map(str, sizes))


def _other_ways(settings, *, but=None):
    """Returns a `Naming` of what saves memory in a command, beside the size of a step."""
    ways = {"max_length": "a shorter {max_length}", _PARTS: f"{{{_PARTS}}}"}
    if not settings.recompute:
        ways["recompute"] = "{recompute}"
    given = [way for name, way in ways.items() if name in settings.names() and name != but]
    return Naming(" or ".join(filter(None, (", ".join(given), "a smaller model"))))


def _no_room(settings):
    return OutOfMemory.naming(
        "The memory of the device is not enough for a step of one example. Use {}.",
        _other_ways(settings, but=_PARTS),
    )


def _free_memory_of(error):
    """Frees what the functions that have raised an error hold, such as a model."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
    gc.collect()
