"""How a file of texts is read."""

import dataclasses

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import listed
from keras_bert.base.settings import Settings, setting


def parse_fields(text, *, known):
    """The dictionary of `fields`; {} for None.

    Raises InputError where a part is no NAME=COLUMN, or names none of `known`.
    """
    fields = {}
    for part in text.split(",") if text is not None else ():
        name, equals, column = (token.strip() for token in part.partition("="))
        if not (name and equals and column):
            raise InputError(
                f'`fields` has the part "{part}"; it should be NAME=COLUMN, as in '
                f"{','.join(f'{one}=…' for one in known)}."
            )
        if name not in known:
            raise InputError(f'`fields` names "{name}"; it should be {listed(known)}.')
        if name in fields:
            raise InputError(f'`fields` names "{name}" twice.')
        fields[name] = column
    return fields


REPAIR, ERROR = "repair", "error"


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


def invalid_tags_setting():
    """The setting that says what becomes of tags that break their scheme."""
    return setting(
        REPAIR,
        help="what to do with tags that break their scheme: read the chunks as conlleval does, or "
        "raise an error",
        choices=(REPAIR, ERROR),
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
