"""An exported task, a SavedModel, in the place of the task that it was made of: its predictions.

An export has the file `ABOUT_EXPORT`, which says what its outputs do not: the type of the task, its
labels and its settings. What a task computes without its weights (how a file is read, what the
metrics are) is then computed here by the methods of its class.
"""

import inspect
import json
from itertools import islice
from pathlib import Path

import tensorflow as tf
import tensorflow_text  # noqa: F401  the operations of tokenizers

from keras_bert.base.errors import InputError, damaged
from keras_bert.base.files import parse_json, read_small
from keras_bert.inference.settings import ABOUT_EXPORT
from keras_bert.readers.passage_lists import PassageList
from keras_bert.tasks import task_class, task_type_named
from keras_bert.tasks.exported_predictions import characters_of, words_in_text

_SIGNATURE = "serving_default"
_EXAMPLE_PARTS = ("text", "question", "context", "choices")


def about_export(task):
    """The content of the file `ABOUT_EXPORT` of an exported task, JSON."""
    about = {
        "task": task.TASK_TYPE,
        "metric": task.METRIC,
        "labels": list(task.labels) if task.MIN_LABELS else [],
        "settings": {name: getattr(task.settings, name) for name in task.stored_settings()},
        "inferred_arguments": task.inferred_arguments,
        "columns": task.columns,
    }
    return json.dumps(about, ensure_ascii=False, indent=2) + "\n"


class ExportedTask:
    """A SavedModel that `export` made of a task, with the task's methods that need no weights.

    Its words are the tokenizer's. A file with words of its own, such as CoNLL, is joined by spaces,
    and each of its words has the tag of the first word that the SavedModel finds in it.

    Args:
        folder: a version of an export.

    Attributes: `labels`, `settings`, `columns`, `inferred_arguments` and METRIC as in the task;
    `inputs`, the names of the SavedModel's inputs.

    Raises:
        InputError: the folder has no file `ABOUT_EXPORT`: it is an encoder's, or of an earlier
            version. Or the kind of task has no `exported_prediction`.
    """

    def __init__(self, folder):
        path = Path(folder, ABOUT_EXPORT)
        advice = "Export the model again."
        if not path.is_file():
            raise InputError(
                f"{folder} does not say what task it is of: it is the export of an encoder, of "
                f"pre-training or of an earlier version. {advice}"
            )
        with damaged(path, advice):
            about = parse_json(read_small(path))
            self._class = task_class(task_type_named(about["task"]))
            self.METRIC, self.labels = about["metric"], tuple(about["labels"])
            self.settings = self._class.SETTINGS.of(about["settings"])
            self.inferred_arguments, self.columns = about["inferred_arguments"], about["columns"]
        if self._class.exported_prediction is None:
            raise InputError(
                f"{folder} is an export of the task {self._class.TASK_TYPE}, whose outputs are not "
                "predictions. Use the folder that it was exported from."
            )
        self._model = tf.saved_model.load(str(folder))
        self._compute = self._model.signatures[_SIGNATURE]
        self.inputs = sorted(self._compute.structured_input_signature[1])  # text_a before text_b

    def __getattr__(self, name):
        if name.startswith("__") or name == "_class":  # of a copy that has no attributes yet
            raise AttributeError(name)
        attribute = inspect.getattr_static(self._class, name)
        bind = getattr(type(attribute), "__get__", None)
        return attribute if bind is None else bind(attribute, self, self._class)

    def outputs(self, columns):
        """The outputs of the SavedModel, NumPy arrays by name, for a list of inputs by name."""
        inputs = {name: _column([c[name] for c in columns]) for name in self.inputs}
        return {name: x.numpy() for name, x in self._compute(**inputs).items()}


class ExportedInference:
    """The `Inference` of an `ExportedTask`; it counts no tokens."""

    tokens = unknown = 0

    def __init__(self, task, *, batch_size):
        self._task, self._batch_size = task, batch_size

    def predict_examples(self, examples):
        """Yields (list of examples, list of predictions), as `Inference.predict_examples`."""
        iterator = iter(examples)
        while chunk := [*islice(iterator, self._batch_size)]:
            if isinstance(chunk[0], PassageList):
                raise chunk[0].error(
                    "an export scores pairs of texts, and this is a list of passages. Use the "
                    "model folder that it was exported from."
                )
            outputs = self._task.outputs([_inputs_of(e, self._task.inputs) for e in chunk])
            rows = ({name: x[n] for name, x in outputs.items()} for n in range(len(chunk)))
            predict = self._task.exported_prediction
            yield chunk, [predict(e, row) for e, row in zip(chunk, rows, strict=True)]


def _column(values):
    """The tensor of an input: int32 (B,), string (B,) or, of lists, (B, n) padded with ""."""
    if isinstance(values[0], int):
        return tf.constant(values, tf.int32)
    if isinstance(values[0], str):
        return tf.constant(values)
    width = max(map(len, values))
    return tf.constant([[*value, *[""] * (width - len(value))] for value in values])


def _inputs_of(example, names):
    """The inputs of an example by name."""
    texts = getattr(example, "texts", None)  # one, or the two of a pair
    if texts is not None:
        return dict(zip(names, texts, strict=True))
    inputs = {name: getattr(example, name) for name in names if name in _EXAMPLE_PARTS}
    if "text" in names:
        inputs["text"], _ = words_in_text(example)
    for name in names:
        part, _, side = name.rpartition("_")
        if name not in inputs:
            inputs[name] = characters_of(example, getattr(example, part))[side == "end"]
    return inputs
