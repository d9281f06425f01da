"""The settings of a conversion."""

import dataclasses

from keras_bert.settings import Settings, setting

FORMATS = ("folder", "google", "keras-nlp")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertSettings(Settings):
    """Settings of `keras_bert.checkpoints.convert.convert`."""

    input: str = setting(
        help="a Hugging Face folder, a Google checkpoint (folder, prefix or archive), a keras-nlp "
        "preset, hf://owner/name",
        unit="PATH",
        is_path=True,
    )
    output: str = setting(help="the folder to write", unit="PATH", is_path=True)
    to: str = setting(
        "folder",
        help="the format to write; folder is Hugging Face's, which every command here reads, and "
        "keras-nlp holds the encoder alone",
        choices=FORMATS,
    )
    force: bool = setting(False, help="replace an output that this command wrote before")
