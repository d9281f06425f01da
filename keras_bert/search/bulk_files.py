"""An index as the file that a vector database reads."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, new_file, parse_json
from keras_bert.base.ownership import check_output_file
from keras_bert.inference.table_files import as_json
from keras_bert.search import OPENSEARCH
from keras_bert.search.ranking import Snapshot

VECTOR = "vector"
_TOGETHER = 512


def write_bulk(snapshot: Snapshot, path: Any, *, format: str, force: bool = False) -> int:
    """Writes the texts of an index with their vectors; returns how many there are.

    With passages, each passage is one. Vectors are those that are compared: by cosine, they have
    the norm 1.

    Args:
        snapshot: of the index.
        path: the file, NAME.jsonl.
        format: "qdrant", a line per point with `id`, `vector` and `payload`, or "opensearch", two
            lines per text for the _bulk request: the action with its `_id`, and the source. A point
            of Qdrant needs a UUID, which follows from the id; the id itself is in the payload.
        force: replace such a file.

    Raises InputError: there is something at the path, or the index has a column called vector.
    """
    path = Path(path)
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        raise InputError.naming("{output} must be a file NAME.jsonl. Received: {}.", path)
    if VECTOR in snapshot.columns and format == OPENSEARCH:
        raise InputError('The index has a column called "vector", as the field of the vectors is.')
    check_output_file(path, is_ours=_is_bulk, force=force)
    lines = _opensearch_lines if format == OPENSEARCH else _qdrant_lines
    count = 0
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        for id, row, vector in _passages(snapshot):
            for line in lines(id, row, vector):
                file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
            count += 1
    return count


def _is_bulk(path):
    """Whether a file begins as one of these."""
    try:
        with path.open(encoding="utf-8") as file:
            first = parse_json(file.readline())
    except (UnicodeDecodeError, NotJson):
        return False
    return isinstance(first, dict) and [*first] in (["index"], ["id", VECTOR, "payload"])


def _qdrant_lines(id, row, vector):
    point = str(uuid.uuid5(uuid.NAMESPACE_URL, id))
    yield {"id": point, VECTOR: vector, "payload": row}


def _opensearch_lines(id, row, vector):
    yield {"index": {"_id": id}}
    yield {VECTOR: vector, **row}


def _passages(snapshot: Snapshot) -> Iterator[tuple[str, dict[str, Any], list[float]]]:
    """Yields (an id, the columns, the vector) of each passage of a text that is not deleted."""
    for segment in snapshot.segments:
        alive = segment.alive
        numbers = np.arange(len(segment.vectors))
        texts = segment.texts_of(numbers)
        if alive is not None:
            numbers, texts = numbers[alive[texts]], texts[alive[texts]]
        counts: dict[int, int] = {}
        for first in range(0, len(numbers), _TOGETHER):
            some = numbers[first : first + _TOGETHER]
            vectors = np.asarray(segment.vectors[some], np.float32).tolist()
            for number, text, vector in zip(some, texts[first:], vectors, strict=False):
                row = as_json(segment.row(int(text)))
                id = row["id"]
                if segment.passages is not None:
                    start, end = segment.passages[number, 1:].tolist()
                    place = counts[text] = counts.get(text, -1) + 1
                    row |= {"passage": row["text"][start:end], "start": start, "end": end}
                    id = f"{id}#{place}"
                yield id, row, vector
