"""SavedModels that take strings; the settings of an export, which need no Keras."""

from dataclasses import InitVar

from keras_bert.base.settings import (
    PathText,
    Report,
    Settings,
    hardware_setting,
    model_setting,
    required,
    setting,
)
from keras_bert.heads import check_layers
from keras_bert.inference.vector_settings import TOKENS

PRECISIONS = ("float32", "bfloat16", "float16", "int8")


class ExportSettings(Settings):
    """Settings of `keras_bert.export`."""

    report: InitVar[Report] = None

    model: PathText = required(
        help="a model folder, the output of a run, or hf://owner/name: fine-tuned, pre-trained "
        "(exported for [MASK]) or an encoder alone (for embeddings)",
        unit="FOLDER",
    )
    output: PathText = required(
        help="the folder of all versions of this model, such as savedmodels/NAME, for a server; or "
        "NAME.tflite, a file for LiteRT that takes token ids",
        unit="FOLDER",
    )
    max_length: int | None = model_setting(
        None,
        help="maximum length of a sequence, including [CLS] and [SEP]",
        unit="TOKENS",
        default_help="those of training",
        at_least=3,
        common=True,
    )
    precision: str = hardware_setting(
        "float32",
        help="the precision of the stored weights; bfloat16 and float16 also compute in it, int8 "
        "computes in float32",
        choices=PRECISIONS,
        common=True,
    )
    encoder: bool = setting(
        False, help="export the encoder's embeddings, not the predictions of the model's task"
    )
    layers: str | None = model_setting(
        None,
        help="for embeddings: the layers that a vector is made from, as in embed",
        unit="LAYERS",
        default_help="last",
        common=True,
    )
    tokens: str | None = setting(
        None,
        help="for embeddings: what has a vector in addition to the text itself, as in embed",
        default_help="words-mean",
        choices=TOKENS,
        common=True,
    )
    top_k: int | None = setting(
        None,
        help="for [MASK]: number of candidates each",
        unit="N",
        default_help="5",
        at_least=1,
        common=True,
    )

    def check(self):
        super().check()
        if self.layers is not None:
            check_layers(self.layers)
