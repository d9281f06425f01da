"""Settings of semantic role labelling and of how its files are read."""

import dataclasses
import typing

from keras_bert.base.settings import setting
from keras_bert.readers.columns import invalid_tags_setting, unknown_labels_setting
from keras_bert.tasks.settings import TaskSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class SemanticRoleSettings(TaskSettings):
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ()

    invalid_tags: str = invalid_tags_setting()
    unknown_labels: str = unknown_labels_setting()
    crf: bool = setting(
        False,
        help="add a conditional random field over the words, which learns the transitions between "
        "tags and allows only those of the scheme",
        stored=True,
    )
