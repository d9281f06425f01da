"""SavedModels that take strings and stand alone."""

from keras_bert.export.saved_model import export, export_task

__all__ = ["export", "export_task"]
