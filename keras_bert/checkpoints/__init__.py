"""Model folders and other programs' checkpoints: loading, saving and conversion.

Names load their module on first use: the settings of a conversion need no Keras.
"""

from keras_bert.base import lazy_names

_HOMES = {
    **dict.fromkeys(("find_model_folder", "load", "load_task"), "keras_bert.checkpoints.loading"),
    "save_folder": "keras_bert.checkpoints.model_folder",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
