"""What a classifier is made with, and how its files are read."""

import dataclasses

from keras_bert.examples.settings import TextFileSettings, column_setting
from keras_bert.tasks.settings import TaskSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassifierSettings(TextFileSettings, TaskSettings):
    label_column: str | None = column_setting("label")
