"""The texts that an index is made of, with their ids and other columns."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow

from keras_bert.base import files
from keras_bert.base.errors import InputError, argument
from keras_bert.base.formatting import in_one_line, listed
from keras_bert.inference.embed_to_file import TextColumns
from keras_bert.readers import TextFileSettings
from keras_bert.readers.examples import report_notes, report_source
from keras_bert.readers.folders import text_files
from keras_bert.readers.retrieval_folder import CORPUS, corpus_records, is_retrieval_folder
from keras_bert.readers.sources import FOLDER, is_file, plain
from keras_bert.readers.texts import TextSource

ID_NAMES = ("id", "_id")
# The columns of search results: those of the table that are called so get another name.
RESULT = ("query", "rank", "score", "id", "text", "passage", "start", "end")


class Row(NamedTuple):
    """A text with its id; `columns` is its row in the table, or {}."""

    id: str
    text: str
    columns: dict[str, Any]


class Rows:
    """The `Row`s of a file, a folder of text files or of BEIR, a table or a sequence of texts.

    The id is in the column `id_column`, else in the one called id or _id, else it is the name of
    the text's own file, else the number of the text, from 1.

    Args:
        data: see `TextSource`; or a retrieval folder, whose documents these are.
        settings: `TextFileSettings`.
        id_column: the column of the ids, its name or its number from 1.
        schema: `schema` of the rows that the index has, which are read in the same way.
        report: a function that is called with a line on how the file was read.

    Attributes: `name`, for messages; `fields`, pairs of a name and an Arrow type, of the columns
    besides id and text; `schema`, the columns of the texts and of the ids, {"text": […], "id":
    […]}.

    Raises:
        InputError: on bad input, at the latest when its row is reached; an id is missing, or comes
            a second time.
    """

    def __init__(self, data, settings, *, id_column=None, schema=None, report=None):
        self._records, self.schema = None, {}
        if is_retrieval_folder(data):
            self.name, self._records = str(Path(data, CORPUS)), corpus_records(data)
            self._columns, self._id = None, None
            return
        schema = dict(schema or {})
        (trained_id_column,) = schema.pop("id", [None])
        reading = settings.part(TextFileSettings)
        source = TextSource(data, need_labels=False, schema=schema, **reading)
        source.keep_rows()
        source.keeps_columns = True
        report_source(source, report)
        source.at_end = partial(report_notes, source, report)
        self._source, self.name = source, source.name
        self._id = self._id_column(id_column, trained_id_column)
        self.schema = {**(source.schema or {}), **({"id": [self._id]} if self._id else {})}
        text = (source.schema or {}).get("text", [])
        own = [self._id, *(text if len(text) == 1 else [])]
        self._columns = TextColumns(source, output=RESULT, own=own)

    def _id_column(self, given, remembered):
        source = self._source
        names = source.column_names() if source.kind not in ("given", "lines") else []
        if given is not None:
            if not names:
                raise InputError.naming("{id_column} is for tables. {} has none.", self.name)
            return source.existing_column(given)
        if source.kind == FOLDER and "file" in names:
            return "file"
        if remembered in names:
            return remembered
        found = [name for name in names if name.strip().casefold() in ID_NAMES]
        if len(found) > 1:
            raise InputError.naming(
                "{} has several columns that could be the ids: {}. Give {}.",
                self.name,
                listed(found, quote='"'),
                argument("id_column", f'"{found[0]}"'),
            )
        return found[0] if found else None

    @property
    def fields(self) -> list[tuple[str, pyarrow.DataType]]:
        return [] if self._columns is None else self._columns.fields

    def arrays(self, rows: list[Row]) -> list[pyarrow.Array]:
        """The Arrow array of each of `fields`."""
        if self._columns is None:
            return []
        return [*self._columns.arrays([row.columns for row in rows])]

    def table(self, rows: list[Row]) -> pyarrow.Table:
        """The Arrow table of rows: id, text and `fields`."""
        schema = [("id", pyarrow.string()), ("text", pyarrow.string()), *self.fields]
        ids, texts = ([_utf8(row[place]) for row in rows] for place in (0, 1))
        arrays = [pyarrow.array(ids, pyarrow.string()), pyarrow.array(texts, pyarrow.string())]
        arrays += self.arrays(rows)
        return pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(schema))

    def __iter__(self) -> Iterator[Row]:
        places: dict[str, Any] = {}
        for where, row in self._each():
            if row.id in places:
                raise self._error(
                    where,
                    f"the id {row.id!r} comes a second time, after {self._place(places[row.id])}. "
                    "Ids must be different.",
                )
            places[row.id] = where
            yield row

    def _each(self):
        if self._records is not None:
            for where, record in self._records:
                yield where, Row(record["id"], record["text"], {})
            return
        for number, example in enumerate(self._source, start=1):
            columns = self._source.row_of(example) or {}
            id = str(number) if self._id is None else self._id_of(example, columns)
            yield example.line, Row(id, example.text, columns)

    def _id_of(self, example, columns):
        id = plain(columns.get(self._id))
        if isinstance(id, int) and not isinstance(id, bool):
            id = str(id)
        if not isinstance(id, str) or not id.strip():
            raise example.error(
                f'the id in "{self._id}" is {in_one_line(repr(id))}. Expected a text or a whole '
                "number."
            )
        return id

    def _place(self, where):
        if self._records is not None or isinstance(where, str):
            return where
        return f"{self._source.location} {self._source.label(where)}"

    def _error(self, where, message):
        if self._records is not None:
            return InputError(f"{self.name}, {where}: {message}")
        return self._source.error(where, message)


def _utf8(text):
    return text.encode("utf-8", "replace")


def hash_of_data(data: Any) -> str | None:
    """A hash of the files that texts are read from; None of data in memory, or of a pipe."""
    if not is_file(data) or str(data) == "-":
        return None
    path = Path(data)
    if is_retrieval_folder(path):
        paths = [path / CORPUS]
    elif path.is_file():
        paths = [path]
    else:
        paths = text_files(data) or []
    hashes = [(p.name, files.hash_of_file(p).hexdigest()) for p in paths if Path(p).is_file()]
    return files.hash_of_json(hashes) if hashes else None
