"""Texts become segments: read, cut into passages, encoded, written."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.base.progress import ProgressBar
from keras_bert.search import FLOAT16, INT8
from keras_bert.search.passages import passages
from keras_bert.search.rows import Row, Rows
from keras_bert.search.segments import (
    CODES,
    PASSAGES,
    RANGES,
    ROWS,
    VECTORS,
    Change,
    write_rows,
)
from keras_bert.search.vectors import Int8Vectors
from keras_bert.search.words import WordReader, write_words
from keras_bert.tasks.text_embedding import COSINE
from keras_bert.tasks.text_embedding.metrics import unit

# The texts of a segment, and the characters with which one is written: what an interruption loses.
_TEXTS, _CHARACTERS = 1 << 14, 64 << 20
_ENCODED_TOGETHER = 1024


class Contents(NamedTuple):
    """The contents of a segment besides its rows.

    Attributes:
        dtype: "float32", "float16" or "int8".
        similarity: how vectors are compared.
        encode: a function from texts, and the number of the first of them, to vectors (N, D).
        passages: a function from texts to the passages of each (see `passages`), or None.
        words: the `WordReader`, or None.
    """

    dtype: str
    similarity: str
    encode: Callable[[list[str], int], np.ndarray]
    passages: Callable[[list[str]], Any] | None = None
    words: WordReader | None = None


def word_reader(about: Any) -> WordReader | None:
    """The `WordReader` of what an index says of its words; None without words."""
    if about is None:
        return None
    return WordReader(stop_words=about["stop_words"], stemming=about["stemming"])


def contents_of(about: Any, task: Any, vectors: Any, batch_size: int) -> Contents:
    """The `Contents` of the segments of an index, with a model or given vectors (N, D)."""

    def encode(texts, first):
        if task is None:
            return vectors[first : first + len(texts)]
        return task.encode_document(texts, batch_size=batch_size)

    return Contents(
        dtype=about["dtype"],
        similarity=about["similarity"],
        encode=encode,
        passages=partial(passages, task) if about["passages"] else None,
        words=word_reader(about["words"]),
    )


def add_rows(
    change: Change,
    rows: Rows,
    contents: Contents,
    *,
    check: Callable[[list[str]], Any] = lambda ids: None,
    progress: bool = False,
) -> int:
    """Writes the segments of rows that are not written yet; returns the number of all rows.

    Args:
        change: of the index.
        rows: all of them; the first `change.done` are written.
        contents: see `Contents`.
        check: a function that is called with the ids of each segment before it is written, and
            raises InputError if one may not be added.
        progress: show a progress bar on the standard error stream.
    """
    count, waiting, size = 0, [], 0
    with ProgressBar("Indexing", unit="texts", enabled=progress) as bar:

        def write():
            check([row.id for row in waiting])
            first = count - len(waiting)
            change.add_segment(
                lambda folder: _write_segment(folder, waiting, rows, contents, first, bar),
                done=count,
            )

        for row in rows:
            count += 1
            if count <= change.done:
                continue
            waiting.append(row)
            size += len(row.text)
            if len(waiting) == _TEXTS or size >= _CHARACTERS:
                write()
                waiting, size = [], 0
        if waiting:
            write()
    return count


def _write_segment(folder, waiting: list[Row], rows, contents, first, bar):
    """Writes the files of a segment; returns the number of its texts."""
    texts = [row.text for row in waiting]
    if contents.passages is not None:
        bounds = contents.passages(texts)
        places = np.array(
            [
                (number, *bound)
                for number, text_bounds in enumerate(bounds)
                for bound in text_bounds
            ],
            np.int32,
        )
        np.save(folder / PASSAGES, places)
        texts = [texts[number][start:end] for number, start, end in places.tolist()]
    vectors = []
    for begin in range(0, len(texts), _ENCODED_TOGETHER):
        some = texts[begin : begin + _ENCODED_TOGETHER]
        vectors.append(contents.encode(some, first + begin))
        bar.update(first + round((begin + len(some)) * len(waiting) / len(texts)))
    write_vectors(folder, np.concatenate(vectors), contents.dtype, contents.similarity)
    if contents.words is not None:
        write_words(folder, *contents.words(texts))
    write_rows(folder / ROWS, rows.table(waiting))
    return len(waiting)


def write_vectors(folder: Any, vectors: np.ndarray, dtype: str, similarity: str | None) -> None:
    """Writes the vectors (P, D) of a segment; by cosine, divided by their norms."""
    if similarity == COSINE:
        vectors = unit(vectors)
    if dtype == INT8:
        ranges = np.stack([vectors.min(axis=0), vectors.max(axis=0)])
        np.save(folder / CODES, Int8Vectors.of(vectors, ranges=ranges).codes)
        np.save(folder / RANGES, ranges)
    if dtype == FLOAT16 and np.abs(vectors).max() > np.finfo(np.float16).max:
        raise InputError.naming(
            "A vector has the number {}, which float16 cannot hold. Use {dtype} float32.",
            float(np.abs(vectors).max()),
        )
    np.save(folder / VECTORS, vectors.astype(FLOAT16) if dtype == FLOAT16 else vectors)


def check_vectors(
    vectors: Any, *, count: int | None = None, width: int | None = None
) -> np.ndarray:
    """The array of given vectors, float32 (N, D); N is `count` and D `width` if these are given.

    Raises InputError if it is of another shape, or has a number that is not finite.
    """
    vectors = np.asarray(vectors)
    if vectors.ndim != 2 or not vectors.shape[1] or not np.issubdtype(vectors.dtype, np.number):
        raise InputError.naming(
            "{vectors} must be an array (N, D) of numbers. Received: {} of shape {}.",
            vectors.dtype,
            vectors.shape,
        )
    vectors = vectors.astype(np.float32, copy=False)
    is_finite = np.isfinite(vectors).all(axis=1)
    if not is_finite.all():
        raise InputError.naming(
            "{vectors} has a number that is not finite, in row {}.", int(np.argmin(is_finite))
        )
    if width not in (None, vectors.shape[1]) or count not in (None, len(vectors)):
        raise InputError.naming(
            "{vectors} must be of shape ({}, {}). Received: {}.",
            "N" if count is None else count,
            width,
            vectors.shape,
        )
    return vectors


def check_count(vectors: np.ndarray, count: int, name: str) -> None:
    """Raises InputError unless there is a vector for each of the texts."""
    if len(vectors) != count:
        raise InputError.naming(
            "{vectors} has {}, and {} has {}.",
            counted(len(vectors), "row"),
            name,
            counted(count, "text"),
        )


def copy_segments(change: Change, snapshot: Any, words: WordReader | None) -> None:
    """Writes the texts of an index that are not deleted into few segments.

    `change.done` counts the segments that are written.
    """
    about, groups = snapshot.about, snapshot.groups()
    for number in range(change.done, len(groups)):
        change.add_segment(
            lambda folder, group=groups[number]: _merge(folder, group, about, words),  # type: ignore[misc]
            done=number + 1,
        )


def _merge(folder, group, about, words):
    """Writes the texts of segments, pairs of one and its `alive`, into one; returns their number.

    Vectors stay as they are, and words are read again.
    """
    tables, vectors, places, count = [], [], [], 0
    for segment, mask in group:
        kept = np.arange(segment.count) if mask is None else np.flatnonzero(mask)
        tables.append(segment.table().take(kept))
        numbers = np.full(segment.count, -1, np.int64)
        numbers[kept] = count + np.arange(len(kept))
        number_of_passage = numbers[segment.texts_of(np.arange(len(segment.vectors)))]
        vectors.append(segment.vectors[number_of_passage >= 0])
        if segment.passages is not None:
            some = np.array(segment.passages[number_of_passage >= 0])
            some[:, 0] = number_of_passage[number_of_passage >= 0]
            places.append(some)
        count += len(kept)
    table = _one_table(tables)
    texts = table.column("text").to_pylist() if words is not None else []
    if places:
        bounds = np.concatenate(places)
        np.save(folder / PASSAGES, bounds)
        if words is not None:
            texts = [texts[number][start:end] for number, start, end in bounds.tolist()]
    write_vectors(folder, np.concatenate(vectors), about["dtype"], similarity=None)
    if words is not None:
        write_words(folder, *words(texts))
    write_rows(folder / ROWS, table)
    return count


def _one_table(tables):
    """Tables with maybe other columns as one; values of several types are text."""
    try:
        return pyarrow.concat_tables(tables, promote_options="permissive")
    except pyarrow.ArrowException:
        kinds: dict[str, set] = {}
        for field in (field for table in tables for field in table.schema):
            kinds.setdefault(field.name, set()).add(field.type)
        mixed = {name for name, types in kinds.items() if len(types) > 1}
        tables = [
            table.cast(
                pyarrow.schema(
                    (field.name, pyarrow.string() if field.name in mixed else field.type)
                    for field in table.schema
                )
            )
            for table in tables
        ]
        return pyarrow.concat_tables(tables, promote_options="permissive")
