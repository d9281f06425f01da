"""Model folders and other people's checkpoints, in and out.

A name brings its module in when it is first used: the settings of a conversion need no Keras.
"""

from keras_bert.lazy import lazy_names

__all__ = ["find_model_folder", "holds_task", "load", "load_task", "save_folder"]
__getattr__, __dir__ = lazy_names(__name__, dict.fromkeys(__all__, "keras_bert.checkpoints.folder"))
