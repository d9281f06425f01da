"""A task's labels in Hugging Face's `config.json`: `id2label` and `label2id`."""

from keras_bert.base.errors import InputError

# Labels that are named here: a file may claim any number of them.
_MOST = 1_000_000


def to_config(labels):
    """The two entries for a list of labels."""
    return {
        "id2label": {str(i): label for i, label in enumerate(labels)},
        "label2id": {label: i for i, label in enumerate(labels)},
    }


def from_config(values, *, source):
    """The labels of a `config.json` in order; LABEL_0, LABEL_1 … where it says no names.

    Args:
        values: the dictionary of the file.
        source: its path, for messages.

    Raises:
        InputError: the entry is not an object from the numbers 0, 1, 2 … to labels, each once.
    """
    id2label = values.get("id2label")
    if id2label is None:
        # Two is what `transformers` takes where the file gives no number.
        count = values.get("num_labels", 2)
        if type(count) is not int or not 1 <= count <= _MOST:
            raise InputError(
                f"{source}: num_labels is {count!r}; it should be a number from 1 to {_MOST:,}."
            )
        return [f"LABEL_{i}" for i in range(count)]
    if not isinstance(id2label, dict) or not id2label:
        raise InputError(f"{source}: id2label should be an object from number to label.")
    try:
        by_number = {int(number): str(label) for number, label in id2label.items()}
    except ValueError as error:
        raise InputError(f"{source}: id2label has a key that is no number: {error}.") from error
    if sorted(by_number) != list(range(len(by_number))):
        raise InputError(f"{source}: id2label should number its labels from 0 without a gap.")
    if len(set(by_number.values())) < len(by_number):
        raise InputError(f"{source}: id2label gives two numbers the same label.")
    return [by_number[i] for i in range(len(by_number))]
