"""Reading whole files that are small by their nature: configs, vocabularies, cards."""

from keras_bert.errors import InputError

_LARGEST = 256 << 20


def read_small(path):
    """The bytes of a file that should be small; an `OSError` goes through as it is.

    Raises `InputError` where it holds more than 256 MiB, or has no end (`/dev/zero`), without
    reading more.
    """
    with open(path, "rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise InputError(
            f"{path} holds more than {_LARGEST >> 20} MiB, which no file of its kind does."
        )
    return data
