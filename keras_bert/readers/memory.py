"""Tables and sequences in memory, of pandas, `datasets`, `tf.data` and Python, as rows."""

from collections.abc import Iterable, Mapping
from itertools import chain

from keras_bert.base.errors import InputError
from keras_bert.readers.sources import is_file
from keras_bert.records.file_formats import with_names


def rows_in_memory(data):
    """-> (the columns' names, or None of a sequence, its rows or items, names of several)."""
    if hasattr(data, "itertuples"):  # a DataFrame
        names, repeated = unique_names([str(name) for name in data.columns])
        rows = data.itertuples(index=False, name=None)
        return names, [dict(zip(names, map(plain, row), strict=True)) for row in rows], repeated
    if isinstance(getattr(data, "column_names", None), dict):  # a DatasetDict
        raise InputError(
            f"The data have the splits {', '.join(data)}. Give one of them, such as "
            f"data[{next(iter(data))!r}]."
        )
    if hasattr(data, "column_names") and hasattr(data, "features"):
        labels = class_names(data)
        return data.column_names, [plain(with_names(row, labels)) for row in data], ()
    if isinstance(data, Mapping):
        columns = {str(name): [*column] for name, column in data.items() if not is_file(column)}
        if len(columns) < len(data) or len({*map(len, columns.values())}) > 1:
            raise InputError(
                "A dictionary must have a list for each column, all of the same length. Received: "
                f"the keys {', '.join(map(str, data))}."
            )
        return [*columns], records_of_columns(plain(columns)) if columns else [], ()
    if not isinstance(data, Iterable):
        raise InputError(
            "Expected a file, a table in memory or a sequence of examples. Received: "
            f"{type(data).__name__}."
        )
    items = data.as_numpy_iterator() if hasattr(data, "as_numpy_iterator") else data
    rows = [plain(item) for item in items]
    is_table = rows and all(isinstance(row, dict) for row in rows)
    return [*dict.fromkeys(chain.from_iterable(rows))] if is_table else None, rows, ()


def class_names(data):
    """The names of the labels in each column of labels, or of lists of them, of a `Dataset`."""
    features = getattr(data, "features", None)
    features = features.items() if isinstance(features, Mapping) else ()
    features = {column: getattr(feature, "feature", feature) for column, feature in features}
    return {name: feature.names for name, feature in features.items() if hasattr(feature, "names")}


def plain(value):
    """A value in memory in Python's own types; None for what pandas has in place of a value."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if value != value else float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else tuple(value)
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return plain(value.tolist()) if hasattr(value, "tolist") else value


def records_of_columns(columns):
    """{"text": […], "start": […]} -> a list of dictionaries; None where the lengths differ."""
    lists = list(columns.values())
    if not all(isinstance(cells, list) and len(cells) == len(lists[0]) for cells in lists):
        return None
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*lists, strict=True)]


def unique_names(names):
    """-> (names of the columns as pandas makes them unique, the names of several columns)."""
    unique, seen = [], {}
    for number, name in enumerate(names):
        name = name or f"Unnamed: {number}"
        count = seen[name] = seen.get(name, 0) + 1
        unique.append(name if count == 1 else f"{name}.{count - 1}")
    return unique, frozenset(name for name, count in seen.items() if count > 1)


def is_unnamed(name):
    """Whether a column has no name, as the index that pandas writes."""
    return name.startswith("Unnamed: ")
