"""Folders and globs of text files, each of which is one text, and a folder of them per class."""

import glob
import os
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed
from keras_bert.readers.sources import (
    FOLDER,
    TXT,
    TextFile,
    files_of,
    form_of,
    is_stored_table,
)
from keras_bert.readers.table import Table
from keras_bert.records.file_formats import PREFIX

_MOST_NAMED = 3


def text_files(data):
    """The text files of a folder, or of a glob, each of which is one text; None of anything else.

    Raises InputError if a glob matches nothing, or files of another form.
    """
    path = str(data)
    if os.path.isdir(path):
        return None if is_stored_table(path) else [*filter(_is_text, _entries(path))] or None
    if not glob.has_magic(path) or os.path.exists(path) or path.startswith(PREFIX):
        return None
    files = [*map(Path, files_of(path))]
    other = next((file for file in files if not _is_text(file)), None)
    if other is not None:
        raise InputError(
            f"{path} matches {other}. A glob, or a folder, is of .txt or .md files with one text "
            "each. Give a table as one file."
        )
    return files


def texts_of_files(data):
    """The table of `text_files`, or None."""
    files = text_files(data)
    if files is None:
        return None

    def rows(*, keep=False):
        for file in files:
            yield file.name, {"file": file.name, "text": _text(file)}

    format = f"{counted(len(files), 'file')} with one text each"
    if os.path.isdir(data):
        read = {*files}
        format += _not_read(path.name for path in _entries(data) if path not in read)
    return Table(str(data), FOLDER, format, rows, ["file", "text"], location="file")


def class_files(path):
    """The files of a folder with a folder of .txt files for each class; [] of anything else.

    These are what Keras's `text_dataset_from_directory` reads.
    """
    if not os.path.isdir(path) or is_stored_table(path):
        return []
    return [file for file in _in_folders(path) if file.suffix == ".txt"]


def texts_of_classes(path):
    """The table of a folder with `class_files`, or None."""
    files = class_files(path)
    if not files:
        return None

    def rows(*, keep=False):
        for file in files:
            yield _in_class(file), {"text": _text(file), "label": file.parent.name}

    read = {*files}
    others = [entry.name for entry in _entries(path) if not entry.is_dir()]
    others += [_in_class(file) for file in _in_folders(path) if file not in read]
    format = f"a folder of texts for each class{_not_read(others)}"
    return Table(str(path), FOLDER, format, rows, ["text", "label"], location="file")


def _entries(folder):
    """The files and folders in a folder, by name, without hidden ones."""
    return sorted(path for path in Path(folder).iterdir() if not path.name.startswith("."))


def _in_folders(path):
    """The files and folders in the folders of a folder."""
    return [file for folder in _entries(path) if folder.is_dir() for file in _entries(folder)]


def _is_text(path):
    return (form_of(path) == TXT or path.suffix.casefold() == ".md") and path.is_file()


def _in_class(path):
    return f"{path.parent.name}/{path.name}"


def _text(file):
    return "\n".join(line for _, line in TextFile(file).lines())


def _not_read(names):
    """The end of a description that names what a folder has besides the texts."""
    names = [*names]
    if not names:
        return ""
    return f" ({counted(len(names), 'other')} not read: {listed(names, most=_MOST_NAMED)})"
