"""The arguments of a predicate and their roles; the settings of the task."""

import typing

from keras_bert.readers.settings import invalid_tags_setting, unknown_labels_setting
from keras_bert.tasks.settings import TaskSettings
from keras_bert.tasks.tagging import crf_setting


class SemanticRoleSettings(TaskSettings):
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ()
    # The defaults of a tagger, which have no choice here.
    label_subwords: typing.ClassVar[None] = None
    aggregation: typing.ClassVar[None] = None
    document_context: typing.ClassVar[bool] = False

    invalid_tags: str = invalid_tags_setting()
    unknown_labels: str = unknown_labels_setting()
    crf: bool = crf_setting()
