"""The right one of several choices for a context; the settings of the task."""

import typing

from keras_bert.readers import TableSettings, fields_setting
from keras_bert.tasks.classification import PoolingSettings


class MultipleChoiceSettings(TableSettings, PoolingSettings):
    # Flags cannot express a context with any number of choices.
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ()

    fields: str | None = fields_setting("context=question,choices=option_a|option_b,label=answer")
