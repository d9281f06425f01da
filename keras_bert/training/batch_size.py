"""The batch size `auto`: the largest power of two that the memory of a device holds."""

import dataclasses
import gc

from keras_bert.base.errors import InputError
from keras_bert.programs import Devices, has_accelerator, is_out_of_memory
from keras_bert.training.run_folder import check_output

AUTO = "auto"
_FIRST = 32


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

    def fits(size):
        try:
            train(dataclasses.replace(settings, batch_size=size))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            return False
        finally:
            gc.collect()  # the model and its memory
        return True

    size = largest_batch_size(fits, most=most)
    if size is None:
        raise InputError.naming(
            "The memory of the device is not enough for a step of one example. Use a smaller "
            "model, a shorter {max_length} or {recompute}."
        )
    report(f"Training with batches of {size}, the largest power of two up to {most:,} that fits.")
    return dataclasses.replace(settings, batch_size=size)


def out_of_memory(settings):
    """The `InputError` if a step of a run does not fit into the memory of its device."""
    size = settings.batch_size
    smaller = f"such as {size // 2}, " if isinstance(size, int) and size > 1 else ""
    others = ("max_length", "gradient_accumulation", "recompute")
    others = " or ".join(f"{{{name}}}" for name in others if name in settings.names())
    return InputError.naming(
        "The memory of the device is not enough for a step. Use a smaller {batch_size}, {}"
        "{batch_size} auto, which finds the largest that fits on a GPU or TPU, or " + others + ".",
        smaller,
    )
