"""Which mentions in a document refer to the same; the settings of the task."""

from keras_bert.base.settings import setting
from keras_bert.readers import RowSettings
from keras_bert.tasks import TaskSettings
from keras_bert.tasks.span_classification import max_span_length_setting


class CoreferenceSettings(RowSettings, TaskSettings):
    max_span_length: int = max_span_length_setting("mention")
    max_antecedents: int = setting(
        50,
        help="how many candidates before a mention may be its antecedent, the nearest ones",
        unit="N",
        at_least=1,
        stored=True,
    )
