"""What a `config.json` says of its folder: the class of `transformers`, and the kind of task."""

from keras_bert.base.errors import InputError
from keras_bert.checkpoints import labels as labels_format
from keras_bert.tasks import task_class

# In a config.json that this library wrote, and in no other: the version, and what a task is made
# with that Hugging Face has no key for.
MARK = "keras_bert"


def class_of(values):
    """The class that a `config.json` names first, whatever it is; None where it names none."""
    names = values.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else None


# The names that stored settings had before, in folders that still load.
_EARLIER_NAMES = {
    "label_pieces": "label_subwords",
    "combine_pieces": "aggregation",
    "tune_for": "threshold_metric",
    "figure": "metric",
}


def stored(values, *, source):
    """What our own key in a `config.json` holds; settings that were renamed, under their names."""
    found = values.get(MARK, {})
    if not isinstance(found, dict):
        raise InputError(f"{source}: {MARK} should be an object.")
    return {_EARLIER_NAMES.get(name, name): value for name, value in found.items()}


def check_class(values, names, *, source):
    """Raises InputError where a `config.json` names a class of another model type."""
    name = class_of(values)
    if name in names.foreign_classes:
        raise InputError(
            f"{source} has the model type {values.get('model_type')!r} and names the class {name}, "
            f"which has the model type {names.foreign_classes[name]!r}."
        )


def holds_task(values, names, *, source):
    """Whether a folder with this `config.json` holds a task's head, and not an encoder alone."""
    return class_of(values) in names.classes or "task" in stored(values, source=source)


def task_of(values, names, *, source):
    """The class of the task that a `config.json` describes.

    Our own key says which of several kinds that one class of `transformers` serves; what another
    program has made another class of since is what its class says.

    Args:
        values: the dictionary of the file.
        names: the encoder's `TensorNames`.
        source: its path, for messages.

    Raises:
        InputError: it names no class, or one that is no task here.
    """
    name = class_of(values)
    known = ", ".join(names.classes) or "none"
    if name is None:
        raise InputError(
            f"{source} does not say what it is: `architectures` should be a list with one of "
            f"{known}."
        )
    held = stored(values, source=source)
    if "task" in held:
        try:
            found = task_class(str(held["task"]))
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
        if name in (names.class_of(found.KIND), names.base_class):
            return found
    if name == names.base_class:
        raise InputError(
            f"{source} holds a {name}, which is an encoder alone and no task. Fine-tune it first."
        )
    if name not in names.classes:
        raise InputError(f"{source} holds a {name}, which is no task here; known are {known}.")
    kind = names.classes[name].kinds[0]
    if "regression" in names.classes[name].kinds and _scores(values, source=source):
        kind = "regression"
    return task_class(kind)


def _scores(values, *, source):
    """Whether a class of sequence classification gives a score, as `transformers` tells it.

    Raises:
        InputError: it gives several.
    """
    count = len(labels_format.from_config(values, source=source))
    if count > 1 and values.get("problem_type") == "regression":
        raise InputError(
            f"{source} holds a regression to {count} numbers; one is what is read here."
        )
    return count == 1
