"""A folder of documents, queries and which documents are relevant to each, as BEIR has them.

`corpus.jsonl` has `_id`, `text` and maybe `title`, `queries.jsonl` has `_id` and `text`, and a file
of `qrels/` has a line for each query and document: `query-id`, `corpus-id` and `score` in a TSV
with a header, or TREC's four columns `query 0 document grade`.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed
from keras_bert.readers.examples import Example, ExampleSource
from keras_bert.readers.labels import parsed_number
from keras_bert.readers.sources import FOLDER, TextFile
from keras_bert.readers.table import Table
from keras_bert.readers.tables import json_objects

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels"
RETRIEVAL = "retrieval"
_HEADER = ("query-id", "corpus-id", "score")


def is_retrieval_folder(data):
    """Whether `data` is the path of such a folder."""
    is_path = isinstance(data, str | os.PathLike) and os.path.isdir(data)
    return is_path and all(Path(data, name).exists() for name in (CORPUS, QUERIES))


@dataclass(slots=True)
class RetrievalText(Example):
    """A query, with the grades of its relevant documents by their ids, or a document.

    Attributes:
        id: its id, a string.
        text: the text.
        relevant: {id of a document: its grade above 0}; None of a document.
    """

    id: str
    text: str
    relevant: dict[str, float] | None = field(default=None)
    label: None = None
    form: str = RETRIEVAL

    @property
    def texts(self):
        return (self.text,)

    @property
    def labels(self):
        return (None,)

    @property
    def unit(self):
        return self.texts


class RetrievalSource(ExampleSource):
    """The `RetrievalText`s of a folder: the queries with a relevant document, then all documents.

    Args:
        data: the folder.
        qrels: the name of a file in its folder qrels; None is the only one.
        common: see `ExampleSource`.

    Attributes: `form`, and those of `ExampleSource`.
    """

    form = RETRIEVAL

    def __init__(self, data, *, qrels=None, **common):
        self._folder, self._qrels = Path(data), qrels
        self._unjudged, self._unknown = 0, 0
        super().__init__(data, **common)

    def _open(self, data):
        path = self._qrels_file()
        relevant = _relevant(path)

        def rows(*, keep=False):
            self._unjudged, self._unknown = 0, 0
            for where, record in _records(self._folder / QUERIES):
                grades = relevant.get(record["id"], {})
                grades = {id: grade for id, grade in grades.items() if grade > 0}
                if grades:
                    yield where, {**record, "relevant": grades}
                else:
                    self._unjudged += 1
            wanted = {id for grades in relevant.values() for id, grade in grades.items()}
            for where, record in _records(self._folder / CORPUS):
                wanted.discard(record["id"])
                yield where, record
            self._unknown = len(wanted)

        format = f"a retrieval folder, with qrels/{path.name}"
        return Table(str(data), FOLDER, format, rows, ["id", "text"], location="file")

    def _qrels_file(self):
        folder = self._folder / QRELS
        files = {path.stem: path for path in sorted(folder.glob("*")) if path.is_file()}
        if self._qrels is None and len(files) != 1:
            found = listed(files) if files else "none"
            raise InputError.naming(
                "{} should have one file, which says what is relevant to the queries. Found: {}. "
                "Name one as {qrels}.",
                folder,
                found,
            )
        if self._qrels is not None and self._qrels.removesuffix(".tsv") not in files:
            raise InputError.naming(
                "{} has no {qrels} {!r}. Choose from: {}.", folder, self._qrels, listed(files)
            )
        return (
            next(iter(files.values()))
            if self._qrels is None
            else files[self._qrels.removesuffix(".tsv")]
        )

    def _examples_of(self, table):
        self.how = table.format
        return self._each(table, self._example)

    def _example(self, line, record):
        relevant = record.get("relevant")
        return RetrievalText(line, record["id"], record["text"], relevant, source=self)

    def _more_notes(self):
        if self._unjudged:
            yield (
                f"{self._unjudged:,} of the queries have no relevant document in the qrels, and "
                "are left out."
            )
        if self._unknown:
            count = counted(self._unknown, "document")
            yield f"{count} of the qrels are not in {CORPUS}, and count as not found."


def corpus_records(folder):
    """Yields (where, {id, text}) of the documents of a folder, in their order."""
    return _records(Path(folder, CORPUS))


def _records(path):
    """Yields (where, {id, text}) of a JSON Lines file; InputError for an id that comes twice."""
    file, seen = TextFile(path), set()
    for line, record in json_objects(file):
        id, text, title = (record.get(name) for name in ("_id", "text", "title"))
        id = str(id) if isinstance(id, int) and not isinstance(id, bool) else id
        if not isinstance(id, str) or not isinstance(text, str):
            raise file.error(line, 'an object needs the strings "_id" and "text".')
        if id in seen:
            raise file.error(line, f'the "_id" {id!r} comes a second time.')
        seen.add(id)
        title = title if isinstance(title, str) else ""
        yield f"{path.name}, line {line}", {"id": id, "text": f"{title} {text}".strip()}


def _relevant(path):
    """{id of a query: {id of a document: grade}} of a file of qrels."""
    file, relevant = TextFile(path), {}
    for line, text in file.lines():
        cells = text.rstrip("\r\n").split("\t") if "\t" in text else text.split()
        if not text.strip() or (line == 1 and tuple(cells) == _HEADER):
            continue
        if len(cells) == 4:
            del cells[1]
        grade = parsed_number(cells[-1]) if len(cells) == 3 else float("nan")
        if grade != grade:
            raise file.error(
                line,
                "expected a query, a document and a grade, as BEIR has them, or TREC's four "
                "columns.",
            )
        query, document, _ = cells
        relevant.setdefault(query, {})[document] = grade
    return relevant
