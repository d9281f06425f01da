"""What a multiple-choice task is made with, and how its files are read."""

import dataclasses
import typing

from keras_bert.readers.settings import fields_setting, header_setting
from keras_bert.tasks.classification.settings import PoolingSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultipleChoiceSettings(PoolingSettings):
    # A context with any number of choices has no form as flags.
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ()

    header: bool | None = header_setting()
    fields: str | None = fields_setting("context=question,choices=option_a|option_b,label=answer")
