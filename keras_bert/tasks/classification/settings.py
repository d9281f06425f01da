"""What a classifier is made with, and how its files are read."""

import dataclasses

from keras_bert.settings import setting
from keras_bert.tasks.settings import TaskSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassifierSettings(TaskSettings):
    text_column: str | None = setting(
        None,
        help="the column (from 1) or key of the text",
        unit="NAME|NUMBER",
        default_help="told by names and content",
        reads=True,
    )
    label_column: str | None = setting(
        None,
        help="the column (from 1) or key of the label",
        unit="NAME|NUMBER",
        default_help="told by names and content",
        reads=True,
    )
    header: bool | None = setting(
        None,
        help="whether the first line of a TSV names its columns",
        default_help="told by content",
        reads=True,
    )
