"""How a file of texts is read."""

import dataclasses

from keras_bert.settings import Settings, setting


def column_setting(what):
    """The setting that says which column of a table holds something."""
    return setting(
        None,
        help=f"the column (from 1) or key of the {what}",
        unit="NAME|NUMBER",
        default_help="told by names and content",
        reads=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextFileSettings(Settings):
    """What can be said of a file with a text a row."""

    text_column: str | None = column_setting("text")
    header: bool | None = setting(
        None,
        help="whether the first line of a TSV names its columns",
        default_help="told by content",
        reads=True,
    )
