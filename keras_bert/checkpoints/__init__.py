"""Model folders and other people's checkpoints, in and out.

A name brings its module in when it is first used: the settings of a conversion need no Keras.
"""

from keras_bert.base.lazy import lazy_names

_HOMES = {
    **dict.fromkeys(
        ("find_model_folder", "holds_task", "load", "load_task"), "keras_bert.checkpoints.folder"
    ),
    "save_folder": "keras_bert.checkpoints.saving",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
