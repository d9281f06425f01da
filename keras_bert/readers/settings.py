"""How a file of texts is read."""

import dataclasses

from keras_bert.base.settings import Settings, setting

REPAIR, REFUSE = "repair", "refuse"


def column_setting(what):
    """The setting that says which column of a table holds something."""
    return setting(
        None,
        help=f"the column (from 1) or key of the {what}",
        unit="NAME|NUMBER",
        default_help="told by names and content",
        reads=True,
    )


def fields_setting(example):
    """The setting that says in one line which column, key or tfds feature holds what."""
    return setting(
        None,
        help="which column (by its name, or its number from 1), key or tfds feature holds what: "
        f"{example}",
        unit="NAME=COLUMN,…",
        default_help="told by names and content",
        reads=True,
    )


def broken_tags_setting():
    """The setting that says what becomes of tags that break their scheme."""
    return setting(
        REPAIR,
        help="what to do with tags that break their scheme: read the chunks as conlleval does, or "
        "refuse the file",
        choices=(REPAIR, REFUSE),
        reads=True,
    )


def header_setting():
    """The setting that says whether a table begins with the names of its columns."""
    return setting(
        None,
        help="whether the first line of a TSV names its columns",
        default_help="told by content",
        reads=True,
    )


def glue_setting():
    """The setting that says which of GLUE's tasks a file is of."""
    return setting(
        None,
        help="the file is one of this task of GLUE (MNLI-mm: the mismatched one), whose columns "
        "are known",
        unit="NAME",
        default_help="any other file",
        reads=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextFileSettings(Settings):
    """What can be said of a file with a text a row."""

    text_column: str | None = column_setting("text")
    header: bool | None = header_setting()
