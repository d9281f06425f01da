"""Writes a task as a SavedModel that any process with TensorFlow and TensorFlow Text can run."""

from pathlib import Path

import keras

from keras_bert.checkpoints import find_model_folder, load_task
from keras_bert.errors import InputError
from keras_bert.export.settings import ExportSettings
from keras_bert.export.warmup import write_warmup_requests
from keras_bert.files import clear_leftovers_in, held_names, new_folder
from keras_bert.input_pipeline.framing import check_max_length
from keras_bert.settings import takes

BATCHING_FILE = "batching_params.pbtxt"
# Read by TensorFlow Serving with --enable_batching --enable_per_model_batching_parameters. Requests
# of strings join whatever their lengths; those of ids only if they are padded alike.
_BATCHING = """\
max_batch_size { value: 32 }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 256 }
pad_variable_length_inputs: true
"""


@takes(ExportSettings)
def export(**settings):
    """`export_task` for a model folder, or the output folder of a run that made it.

    Args:
        {settings}

    Raises:
        InputError: see `export_task`.
    """
    settings = ExportSettings.of(settings)
    task = load_task(find_model_folder(settings.model))
    return export_task(task, settings.output, max_length=settings.max_length)


def export_task(task, output, *, max_length=None):
    """Writes `task` under `output` as its next version: `output/1`, then `output/2`, …

    Args:
        task: a task with a tokenizer.
        output: the folder of all versions of this model; a server is pointed at it.
        max_length: tokens that a text is cut to, special tokens counted in; None is the length
            that the task was trained with.

    Returns the `Path` of the new version. It appears there whole or not at all.

    Raises:
        InputError: `output` holds something else than versions of a SavedModel, `max_length` is
            over the model's positions, or there is nothing to export for this kind of task.
    """
    output = Path(output)
    if task.tokenizer is None:
        raise ValueError("A task without a tokenizer cannot take strings. Received: tokenizer=None")
    if max_length is not None:
        check_max_length(max_length, task.config)
    signatures = task.signatures(max_length=max_length)
    version = output / str(_next_version(output))
    archive = keras.export.ExportArchive()
    archive.track(task)
    for name, signature in signatures.items():
        archive.add_endpoint(name, signature.function, list(signature.inputs))
    requests = [
        (name, inputs) for name, signature in signatures.items() for inputs in signature.warmup
    ]
    clear_leftovers_in(output)  # of an export that was killed
    with new_folder(version) as aside:  # hidden: servers look at numbered folders only
        archive.write_out(str(aside), verbose=False)
        write_warmup_requests(aside, requests, model_name=output.resolve().name)
        (aside / BATCHING_FILE).write_text(_BATCHING, encoding="utf-8")
    return version


def _next_version(output):
    """The number after the highest; refuses a folder of other things."""
    if not output.exists():
        return 1
    if not output.is_dir():
        raise InputError(f"The output {output} is a file; give a folder.")
    versions = [0]
    for entry in map(output.joinpath, held_names(output)):
        if not (entry.name.isdigit() and (entry / "saved_model.pb").is_file()):
            raise InputError(
                f"The output folder {output} holds something else ({entry.name}); give a new "
                "folder, or one that holds only numbered versions of a SavedModel."
            )
        versions.append(int(entry.name))
    return max(versions) + 1
