"""Model folders and other people's checkpoints, in and out."""

from keras_bert.checkpoints.folder import find_model_folder, load, load_task, save_folder

__all__ = ["find_model_folder", "load", "load_task", "save_folder"]
