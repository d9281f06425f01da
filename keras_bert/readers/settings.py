"""Settings of how labelled files are read."""

import dataclasses

from keras_bert.base.settings import Settings, setting

REPAIR, ERROR, COUNT = "repair", "error", "count"


def column_setting(what):
    """The setting for the column of a table that holds something."""
    return setting(
        None,
        help=f"the column (from 1) or key of the {what}",
        unit="NAME|NUMBER",
        default_help="detected from names and content",
        reads=True,
    )


def fields_setting(example):
    """The setting for all columns, keys or tfds features in one."""
    return setting(
        None,
        help="the column (its name, or its number from 1), key or tfds feature of each part: "
        f"{example}",
        unit="NAME=COLUMN,…",
        default_help="detected from names and content",
        reads=True,
    )


def invalid_tags_setting():
    """The setting for tags that break their scheme."""
    return setting(
        REPAIR,
        help="what to do with tags that break their scheme: read the chunks as conlleval does, or "
        "raise an error",
        choices=(REPAIR, ERROR),
        reads=True,
    )


def unknown_labels_setting():
    """The setting for labels that the model does not have."""
    return setting(
        COUNT,
        help="what to do with a label or tag that the model does not have: count it as an error of "
        "the model, or raise an error",
        choices=(COUNT, ERROR),
        reads=True,
    )


def header_setting():
    """The setting for whether a table begins with the names of its columns."""
    return setting(
        None,
        help="whether the first line of a TSV names its columns",
        default_help="detected from the content",
        reads=True,
    )


def glue_setting():
    """The setting for the task of GLUE to which a file belongs."""
    return setting(
        None,
        help="the file is of this GLUE task, whose columns are known (MNLI-mm: the mismatched dev "
        "file)",
        unit="NAME",
        default_help="not a file of GLUE",
        reads=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextFileSettings(Settings):
    """Settings of a file with one text per record."""

    text_column: str | None = column_setting("text")
    header: bool | None = header_setting()
