"""Model folders and other people's checkpoints, in and out."""

from keras_bert.checkpoints.folder import load, load_task, save_folder

__all__ = ["load", "load_task", "save_folder"]
