"""The settings of the quickstart."""

import dataclasses

from keras_bert.base.settings import Settings, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuickstartSettings(Settings):
    """Settings of `keras_bert.quickstart`."""

    output: str = setting(
        help="a new or empty folder for all that is made", unit="FOLDER", is_path=True
    )
    seed: int = setting(0, help="same seed, same input, same result", at_least=0, at_most=2**32 - 1)
    force: bool = setting(
        False, help="begin anew: delete what this command left in the output before"
    )
