"""The files of a run's output folder: their names, hashes of those it promises, its results."""

import functools
import re
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, hash_of_file, parse_json, read_small
from keras_bert.base.ownership import check_only_ours, files_below
from keras_bert.training.parts.bad_batch import BadBatch
from keras_bert.training.parts.lora import Lora
from keras_bert.training.parts.tensorboard import TensorBoard

RECORDS = (
    "metrics.json",
    "checkpoints",
    *TensorBoard.FILES,
    "runs",
    "ensemble",
    "model",
    *Lora.FILES,
    "pictures",
    "curves.png",
    "submission.zip",
    "submission",
    *BadBatch.FILES,
    "run.json",
)  # in the order of deletion: metrics.json promises the model
# Names of the pictures, in OUTPUT/pictures.
PICTURES = (
    *("learning_curve.png", "training_sizes.png", "layers.png"),
    *("confusion.png", "labels.png", "reliability.png"),
)
# What a finished run must have as it was written, and how a message calls it.
_PROMISED = {
    "model": "model",
    "adapter": "adapter",
    "ensemble": "ensemble",
    "submission": "submission",
    "submission.zip": "submission",
}
_IN_MODEL = re.compile(r"(?:runs/[^/]+/)*(?:model|adapter)/(.+)")
_EDITED = "README.md"  # the model card, which people edit
_TRAINING_RESULTS = {"steps": int, "parameters": int, "seconds": int | float}
_LABELLED_RESULTS = {**_TRAINING_RESULTS, "kept": dict, "dev": dict}
# The results that a command has always written, with their types.
_RESULTS = {
    "pretrain": {**_TRAINING_RESULTS, "eval": dict | None},
    "finetune": _LABELLED_RESULTS,
    "distill": _LABELLED_RESULTS,
    "sweep": {**_LABELLED_RESULTS, "runs": dict},
    "glue": {"tasks": dict, "average": dict, "missing": list},
}


def check_own_records(folder, names=RECORDS, *, command):
    """Raises `InputError` if the records of a run hold a file that no run writes."""
    check_only_ours(folder, names, is_of_run, writer=command)


def is_of_run(path):
    """Whether runs write a file of this path, relative to the output folder."""
    from keras_bert.checkpoints.model_folder import is_of_model  # which loads Keras

    other, in_model = _own().fullmatch(path), _IN_MODEL.fullmatch(path)
    return other is not None or (in_model is not None and is_of_model(in_model[1]))


@functools.cache
def _own():
    """The pattern of the files that runs write beside models, relative to the output folder."""
    from keras_bert.readers.glue import GLUE

    def any_of(names):
        return f"(?:{'|'.join(map(re.escape, sorted(names)))})"

    submissions = {task.submission_file for task in GLUE.values()}
    return re.compile(
        r"(?:runs/[^/]+/)*(?:"
        r"(?:metrics|run)\.json|curves\.png|bad_batch\.npz|submission\.zip|"
        r"checkpoints/(?:step-\d{9}|best)\.safetensors|"
        r"logs/(?:.+/)?(?:events\.out\.tfevents\.[^/]+|plugins/.+)|"
        rf"pictures/{any_of(PICTURES)}|"
        r"ensemble/\d+/(?:[^/]+\.pb|[^/]+\.pbtxt|(?:variables|assets|assets\.extra)/.+)|"
        rf"submission/{any_of(submissions)})"
    )


def promised_hashes(folder):
    """{what a run promises: {the path of a file in it: its SHA-256}}, of all that is there."""
    hashes = {name: _hashes(Path(folder, name)) for name in _PROMISED}
    return {name: file_hashes for name, file_hashes in hashes.items() if file_hashes}


def broken_promise(folder, published):
    """A phrase for what is missing or was changed of what `promised_hashes` gave, or None."""
    for name, noun in _PROMISED.items():
        path, expected = Path(folder, name), published.get(name, {})
        if not isinstance(expected, dict):
            return f"{Path(folder, 'run.json')} is damaged: the hashes of {name} are not an object"
        if expected and not path.exists():
            return f"the {noun} {path} is missing"
        hashes = _hashes(path) if expected else {}
        for inner, value in expected.items():
            if hashes.get(inner) != value:
                state = "changed" if inner in hashes else "deleted"
                return f"the {noun} is damaged: {path / inner} was {state} after the run"
    return None


def _hashes(path):
    """The SHA-256 of a file under ".", or of each file of a folder by its path in it."""
    return {
        file.relative_to(path).as_posix(): hash_of_file(file).hexdigest()
        for file in sorted(files_below(path.parent, [path.name]))
        if file.name != _EDITED and file.is_file()
    }


def read_metrics(path, *, command=None):
    """Returns the contents of a run's metrics.json.

    Raises `InputError` if the file is damaged, or lacks what the `command` writes.
    """
    try:
        metrics = parse_json(read_small(path))
    except NotJson as error:
        metrics, why = None, f"not JSON ({error})"
    else:
        why = "not the results of a run"
    if not isinstance(metrics, dict) or not metrics:
        raise InputError(f"{path} is damaged: it is {why}.")
    for name, types in _RESULTS.get(command, {}).items():
        if not isinstance(metrics.get(name), types):
            raise InputError(f'{path} is damaged: "{name}" is missing or of another type.')
    return metrics
