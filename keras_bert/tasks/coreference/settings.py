"""Settings of coreference resolution."""

import dataclasses

from keras_bert.base.settings import setting
from keras_bert.tasks.settings import TaskSettings

MAX_SPAN_LENGTH = 10
MAX_ANTECEDENTS = 50


@dataclasses.dataclass(frozen=True, kw_only=True)
class CoreferenceSettings(TaskSettings):
    max_span_length: int = setting(
        MAX_SPAN_LENGTH,
        help="maximum words of a mention; longer ones are not found",
        unit="WORDS",
        at_least=1,
        stored=True,
    )
    max_antecedents: int = setting(
        MAX_ANTECEDENTS,
        help="how many candidates before a mention may be its antecedent, the nearest ones",
        unit="N",
        at_least=1,
        stored=True,
    )
