"""The settings of an export."""

import dataclasses

from keras_bert.settings import Settings, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportSettings(Settings):
    """Settings of `keras_bert.export`."""

    model: str = setting(
        help="a fine-tuned model folder, the output of finetune, or hf://owner/name",
        unit="FOLDER",
        is_path=True,
    )
    output: str = setting(
        help="the folder of all versions of this model, such as savedmodels/NAME; a server is "
        "pointed at it",
        unit="FOLDER",
        is_path=True,
    )
    max_length: int | None = setting(
        None,
        help="tokens in a row, [CLS] and [SEP] counted in",
        unit="TOKENS",
        default_help="those of training",
        at_least=3,
    )
