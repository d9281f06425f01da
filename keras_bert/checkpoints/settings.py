"""The settings of a conversion and of a push."""

import dataclasses

from keras_bert.base.settings import Settings, setting

FORMATS = ("huggingface", "google", "keras-nlp")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertSettings(Settings):
    """Settings of `keras_bert.convert`."""

    input: str = setting(
        help="a Hugging Face folder, a Google checkpoint (folder, prefix or archive), a keras-nlp "
        "preset, hf://owner/name",
        unit="PATH",
        is_path=True,
    )
    output: str = setting(help="the folder to write", unit="PATH", is_path=True)
    to: str = setting(
        "huggingface",
        help="the format to write; every command here reads huggingface, and keras-nlp contains "
        "the encoder only",
        choices=FORMATS,
    )
    force: bool = setting(False, help="replace an output that this command wrote before")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PushSettings(Settings):
    """Settings of `keras_bert.push`."""

    model: str = setting(help="a model folder, or the output of a run", unit="FOLDER", is_path=True)
    to: str = setting(help="its name on the hub: owner/name", unit="OWNER/NAME")
    private: bool = setting(
        False, help="visible to you alone; an error if the repository exists and is public"
    )
    revision: str | None = setting(
        None, help="the branch to push to; created if needed", unit="BRANCH", default_help="main"
    )
    message: str = setting("A model of keras-bert", help="the commit message", unit="TEXT")
