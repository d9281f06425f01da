"""Model folders and other people's checkpoints, in and out.

A name brings its module in when it is first used: the settings of a conversion need no Keras.
"""

from importlib import import_module

__all__ = ["find_model_folder", "load", "load_task", "save_folder"]


def __getattr__(name):
    if name in __all__:
        return getattr(import_module("keras_bert.checkpoints.folder"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
