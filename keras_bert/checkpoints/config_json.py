"""The keys of a config.json besides the encoder's: class, labels, this library's own key."""

from math import isfinite
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.files import read_json
from keras_bert.readers.labels import is_missing
from keras_bert.readers.sources import is_text

CONFIG = "config.json"

# The key of this library in a config.json: its version, and the settings of the task that Hugging
# Face has no key for.
MARK = "keras_bert"

# Earlier names of stored settings, in folders that still load.
_EARLIER_NAMES = {
    "label_pieces": "label_subwords",
    "combine_pieces": "aggregation",
    "tune_for": "threshold_metric",
    "figure": "metric",
}

# A file may claim any number of labels, which get names here.
_MAX_LABELS = 1_000_000


def class_of(config_json):
    """The class that a `config.json` names first; None if it names none."""
    names = config_json.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else None


def stored(config_json, *, source):
    """The object under our own key of a `config.json`, settings under their present names."""
    options = config_json.get(MARK, {})
    if not isinstance(options, dict):
        raise InputError(f"{source}: {MARK} should be an object.")
    return {_EARLIER_NAMES.get(name, name): value for name, value in options.items()}


def labels_to_config(labels):
    """The keys of a `config.json` for a list of labels."""
    return {
        "id2label": {str(i): label for i, label in enumerate(labels)},
        "label2id": {label: i for i, label in enumerate(labels)},
    }


def labels_from_config(config_json, *, source):
    """The labels of a `config.json` in order; LABEL_0, LABEL_1 … if it has no names.

    Raises InputError if `id2label` is not an object from 0, 1, 2 … to different labels.
    """
    id2label = config_json.get("id2label")
    if id2label is None:
        count = config_json.get("num_labels", 2)  # the default of `transformers`
        if type(count) is not int or not 1 <= count <= _MAX_LABELS:
            raise InputError(
                f"{source}: num_labels is {count!r}. Expected a number from 1 to {_MAX_LABELS:,}."
            )
        return [f"LABEL_{i}" for i in range(count)]
    if not isinstance(id2label, dict) or not id2label:
        raise InputError(f"{source}: id2label should be an object from number to label.")
    try:
        by_number = {int(number): str(label) for number, label in id2label.items()}
    except ValueError as error:
        raise InputError(f"{source}: id2label has an invalid key: {error}.") from error
    for label in id2label.values():
        is_name = isinstance(label, str | int) or (isinstance(label, float) and isfinite(label))
        if not is_name or is_missing(label, na=False) or not is_text(str(label)):
            raise InputError(
                f"{source}: id2label has the label {label!r:.100}. Expected names without NUL."
            )
    if sorted(by_number) != list(range(len(by_number))):
        raise InputError(f"{source}: id2label should number its labels from 0 without a gap.")
    if len(set(by_number.values())) < len(by_number):
        raise InputError(f"{source}: id2label gives two numbers the same label.")
    return [by_number[i] for i in range(len(by_number))]


def columns_of(options, *, source):
    """{part of an example: its columns} in `stored` options, of the data that it was trained on."""
    columns = options.get("columns")
    is_valid = isinstance(columns, dict) and all(
        isinstance(names, list) and all(isinstance(name, str | int) for name in names)
        for names in columns.values()
    )
    if columns is not None and not is_valid:
        raise InputError(
            f"{source}, under {MARK}: `columns` should be an object with a list of columns for "
            "each part of an example."
        )
    return columns


def columns_of_training(folder):
    """`columns_of` the config.json of a folder; None without one."""
    config = Path(folder) / CONFIG
    if not config.exists():
        return None
    return columns_of(stored(read_json(config), source=config), source=config)
