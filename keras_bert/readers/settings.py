"""Settings of how labelled files and tables are read."""

from keras_bert.base.settings import Settings, setting

# What is done with tags that break their scheme, with labels that the model does not have, and with
# rows that lack a text or a label.
REPAIR, ERROR, COUNT, SKIP = "repair", "error", "count", "skip"


def column_setting(content):
    """The setting for the column of a table that holds something."""
    return setting(
        None,
        help=f"the column (its name, or its number from 1) or key of the {content}",
        unit="NAME|NUMBER",
        default_help="that of training, else by the usual names, else the only possible one",
        reads=True,
    )


def fields_setting(example):
    """The setting for all columns, keys or tfds features in one."""
    return setting(
        None,
        help="the column (its name, or its number from 1), key or tfds feature of each part: "
        f"{example}",
        unit="NAME=COLUMN,…",
        default_help="those of training, else by the usual names, else the only possible ones",
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
        help="whether the first line of a CSV or TSV names its columns",
        default_help="yes for .csv; for .tsv where the first line holds a known name",
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


class TableSettings(Settings):
    """Settings of a file or table with texts, and with labels or without."""

    header: bool | None = header_setting()
    missing: str = setting(
        SKIP,
        help="what to do with a row that lacks a text or its label: leave it out and say its line, "
        "or raise an error",
        choices=(SKIP, ERROR),
        reads=True,
    )
    keep_na: bool = setting(
        False,
        help="NA, None, null and the like in a CSV or TSV are texts and labels, and not missing as "
        "in pandas",
        reads=True,
    )


class TextFileSettings(TableSettings):
    """Settings of a file or table with one text per row."""

    text_column: str | None = column_setting("text")
