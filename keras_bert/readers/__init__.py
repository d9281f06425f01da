"""Labelled files, one module per format; here are the settings of how they are read."""

from functools import partial

from keras_bert.base.settings import Settings, setting

# What is done with tags that break their scheme, with labels that the model does not have, and with
# rows that lack a text or a label.
REPAIR, ERROR, COUNT, SKIP = "repair", "error", "count", "skip"


def column_setting(content, *, common=True):
    """The setting for the column of a table that holds something."""
    return setting(
        None,
        help=f"the column (its name, or its number from 1) or key of the {content}",
        unit="NAME|NUMBER",
        default_help="that of training, else by the usual names, else the only one that is left",
        reads=True,
        common=common,
    )


def fields_setting(example):
    """The setting for all columns, keys or tfds features in one."""
    return setting(
        None,
        help="the column (its name, or its number from 1), key or tfds feature of each part: "
        f"{example}",
        unit="NAME=COLUMN,…",
        default_help="those of training, else by the usual names, else the only one that is left",
        reads=True,
        common=True,
    )


def _treatment_setting(default, help):
    """The setting for what is done with something unusual, if the other choice is an error."""
    help = f"what to do with {help}, or raise an error"
    return setting(default, help=help, choices=(default, ERROR), reads=True)


invalid_tags_setting = partial(
    _treatment_setting, REPAIR, "tags that break their scheme: read the chunks as conlleval does"
)
unknown_labels_setting = partial(
    _treatment_setting,
    COUNT,
    "a label or tag that the model does not have: count it as an error of the model",
)
glue_setting = partial(
    setting,
    None,
    help="the file is of this GLUE task, whose columns are known (MNLI-mm: the mismatched dev "
    "file)",
    unit="NAME",
    default_help="not a file of GLUE",
    reads=True,
    common=True,
)


class RowSettings(Settings):
    """Settings of a file or table of examples."""

    missing: str = _treatment_setting(
        SKIP, "a row that lacks a text or its label: leave it out and say its line"
    )


class TableSettings(RowSettings):
    """Settings of a file or table with texts, and with labels or without."""

    header: bool | None = setting(
        None,
        help="whether the first line of a CSV or TSV names its columns",
        default_help="yes for .csv; for .tsv if the first line holds a known name",
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
