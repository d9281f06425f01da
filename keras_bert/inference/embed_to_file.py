"""The embeddings of a file of texts as a Parquet file, or the vectors of texts as a NumPy file."""

import json
import os
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import parquet

from keras_bert.base import files, ownership
from keras_bert.base.errors import InputError
from keras_bert.base.formatting import listed
from keras_bert.base.progress import ProgressBar
from keras_bert.base.settings import takes
from keras_bert.checkpoints import find_model_folder
from keras_bert.checkpoints.model_folder import fingerprint_of_folder
from keras_bert.inference.embed import open_embedder, open_texts
from keras_bert.inference.table_files import (
    ParquetOutput,
    as_json,
    is_parquet_of,
    mark_of,
    marked,
    names_beside,
)
from keras_bert.inference.vector_settings import EmbedderSettings, EmbedToFileSettings
from keras_bert.readers.sources import TextFile, is_file
from keras_bert.text.vocabulary import note_on_unknown

# Numbers that are written together (16 MiB): Parquet row groups of a few texts are slow to read,
# and large ones take memory.
_NUMBERS_PER_GROUP = 1 << 22


@takes(EmbedToFileSettings)
def embed_to_file(*, progress=False, report=None, **settings) -> dict[str, int]:
    """Embeds texts and writes the vectors to a Parquet file.

    The file appears complete or not at all, and memory does not grow with the number of texts. If
    it already exists and was made from the same files with the same settings, nothing is done. See
    `ParquetFile` for its columns.

    Of a `TextEmbedder`, or a folder of sentence-transformers, there is also the column `embedding`,
    the vector of each text. With `tokens="none"` the columns are `line`, `text` and `embedding`
    alone. An `output` that ends in .npy gets the array of these vectors, float32 (N, D), which is
    in memory until it is written.

    Args:
        **settings: the fields of `EmbedToFileSettings`.
        progress: show a progress bar on the standard error stream.
        report: a function that is called with a line on how the file was read, and at the end with
            another one if the vocabulary does not fit the texts.

    `model` may also be a pair of an encoder and its tokenizer, and `data` a list of texts.

    Returns:
        A dictionary: `texts` and `tokens`, their numbers, and `width`, the size D of a vector.

    Raises:
        InputError: on bad input, or if `output` has another ending, already exists, or cannot be
            written.
    """
    settings = EmbedToFileSettings.of(settings)
    output = Path(settings.output)
    made_of = _made_of(settings)
    counts = None if settings.force else _counts_of_finished(output, made_of)
    if counts is not None:
        files.clear_leftovers(output)
        if report is not None:
            report(f"{output} is finished already; nothing is done.")
        return counts
    inputs = [path for path in (settings.model, settings.data) if is_file(path)]
    _check_output(output, inputs=inputs, force=settings.force)
    texts = open_texts(settings.data, settings, model=settings.model, report=report)
    embedder = open_embedder(settings.model, **settings.part(EmbedderSettings))
    if output.suffix == ".npy" and embedder.text_embedder is None:
        raise InputError(
            f"{output.name} is for the vectors of a text embedder, such as a folder of "
            "sentence-transformers. Give a name that ends in .parquet."
        )
    about = {
        "layers": settings.layers,
        "tokens": settings.tokens,
        "max_length": embedder.max_length,
        "width": embedder.width,
        "made_of": made_of,
    }
    columns = TextColumns(texts)
    counts = {"texts": 0, "tokens": 0, "width": embedder.width}
    total = _count_lines(settings.data) if progress and texts.location == "line" else None
    bar = ProgressBar("Embedding", unit="lines", total=total, line_seconds=10, enabled=progress)
    task = embedder.text_embedder
    if task is not None and (settings.tokens == "none" or output.suffix == ".npy"):
        about |= {"width": task.size_of(None)}
        with files.new_file(output) as temporary, bar:
            if output.suffix == ".npy":
                count = _write_array(temporary, embedder, texts, width=about["width"], bar=bar)
            else:
                count = _write_vectors(
                    temporary, embedder, texts, settings=about, columns=columns, bar=bar
                )
        return {**counts, "texts": count, "width": about["width"]}
    text_width = None if task is None else task.size_of(None)
    with (
        files.new_file(output) as temporary,
        ParquetFile(
            temporary,
            width=embedder.width,
            text_width=text_width,
            settings=about,
            columns=columns,
        ) as file,
        bar,
    ):
        for embedding in embedder(texts):
            file.write(embedding)
            counts["texts"] += 1
            counts["tokens"] += len(embedding.starts)
            bar.update(embedding.line if total else counts["texts"])
    note = note_on_unknown(embedder.unknown, embedder.tokens)
    if note and report is not None:
        report(f"Note: {note}")
    return counts


def _write_array(path, embedder, texts, *, width, bar):
    """Writes the vectors of texts as a NumPy file; returns their number."""
    vectors, count = [np.empty((0, width), np.float32)], 0
    for block, block_vectors in embedder.text_vectors(texts):
        vectors.append(block_vectors)
        count += len(block)
        bar.update(count)
    vectors = np.concatenate(vectors)
    with open(path, "wb") as file:  # `np.save` would add an ending to a name
        np.save(file, vectors)
    return len(vectors)


def _write_vectors(path, embedder, texts, *, settings, columns, bar):
    """Writes line, text and vector of each text, and its columns; returns the number of texts."""
    vector = pyarrow.list_(pyarrow.float32(), settings["width"])
    fields = [("line", pyarrow.int64()), ("text", pyarrow.string()), ("embedding", vector)]
    fields = [*columns.fields, *fields]
    schema, count = pyarrow.schema(fields, metadata=marked("embed", **settings)), 0
    with ParquetOutput(path, schema, compression="zstd", use_dictionary=False) as file:
        for block, vectors in embedder.text_vectors(texts):
            arrays = [
                *columns.arrays([texts.row_of(text) or {} for text in block]),
                pyarrow.array(_lines(block, count), pyarrow.int64()),
                pyarrow.array([_as_utf8(text.text) for text in block], pyarrow.string()),
                _lists_of_one_size(vectors),
            ]
            file.write(pyarrow.Table.from_arrays(arrays, schema=schema))
            count += len(block)
            bar.update(count)
    return count


def _lists_of_one_size(vectors):
    """Float32 (N, D) as an array of Arrow."""
    flat = pyarrow.array(np.ascontiguousarray(vectors).reshape(-1))
    return pyarrow.FixedSizeListArray.from_arrays(flat, vectors.shape[1])


def read_vectors(path, *, column=None):
    """-> (the vectors of the texts in a file of `embed_to_file`, float32 (N, D), their values).

    The vectors are those of a text embedder, or else the means. The values are those of a column, a
    list with None for a missing one; None without `column`.

    Raises InputError if there is no such column.
    """
    path = Path(path)
    if path.suffix == ".npy":
        return np.load(path), None
    with parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        if column is not None and column not in schema.names:
            own = [name for name in schema.names if name not in _COLUMNS]
            raise InputError.naming(
                "{} has no column {!r}. {colour_by} may be: {}.",
                path,
                column,
                listed(own) or "nothing, as the data are texts without columns",
            )
        name = "embedding" if "embedding" in schema.names else "mean"
        table = file.read([name, *([] if column is None else [column])])
    vectors = table.column(name).combine_chunks()
    width = schema.field(name).type.list_size
    array = np.asarray(vectors.flatten(), np.float32).reshape(-1, width)
    if column is None:
        return array, None
    return array, [None if value == "" else value for value in table.column(column).to_pylist()]


def _made_of(settings):
    """A hash of everything that the vectors depend on; None if model or texts are not files."""
    if not (isinstance(settings.model, str) and isinstance(settings.data, str)):
        return None
    if not os.path.isfile(settings.data):
        return None
    recorded = settings.recorded()
    recorded["model"] = fingerprint_of_folder(Path(find_model_folder(settings.model)))
    recorded["data"] = files.hash_of_file(settings.data).hexdigest()
    recorded["columns"] = "kept"  # which earlier versions did not
    return files.hash_of_json(recorded)


def _counts_of_finished(output, made_of):
    """Returns the result of `embed_to_file` for an output that is up to date, else None."""
    if made_of is None or not (output.is_file() and is_parquet_of(output, "embed")):
        return None
    settings, texts, tokens = ParquetFile.describe(output)
    if settings.get("made_of") != made_of:
        return None
    return {"texts": texts, "tokens": tokens, "width": settings["width"]}


def _check_output(output, *, inputs, force):
    """Raises `InputError` if the output cannot be written there."""
    if output.suffix == ".npz":
        raise InputError.naming(
            "NumPy archives (.npz) were removed: give {output} a name that ends in .parquet. "
            "Received: {}.",
            output,
        )
    if output.suffix not in (".parquet", ".npy"):
        raise InputError(f"The output {output} should end in .parquet, or in .npy.")
    if not output.parent.is_dir():
        raise InputError(f"There is no folder {output.parent} for the output {output.name}.")
    # A NumPy file has no mark.
    is_ours = partial(is_parquet_of, command="embed")
    ownership.check_output_file(output, is_ours=is_ours, inputs=inputs, force=force)


def _count_lines(path):
    """The number of lines of a file, for a progress bar; None for anything else."""
    if not isinstance(path, str) or not os.path.isfile(path):
        return None
    return sum(1 for _ in TextFile(path).raw_lines())


class TextColumns:
    """The columns of a table of texts, in the types that Parquet holds them in.

    A column that is called as one of the output is renamed `input_NAME`, and the text's own one
    that is called `text` is that. Numbers, dates and the like keep their types; values of several
    types, or of a type that Parquet lacks, are text, and what is no text is JSON.

    Args:
        source: the `TextSource`, whose table is read once for the types if it can be read again.
        output: the columns of the output; None is those of an embedding.
        own: the names of columns that the output has under another name.
    """

    def __init__(self, source, *, output=None, own=()):
        columns = source.columns_for_output()
        columns = {name: kind for name, kind in columns.items() if name not in own}
        text = [name for name in ("text",) if (source.schema or {}).get("text") == [name]]
        self._names = names_beside(source, columns, output or _COLUMNS, text)
        self._types = {name: columns[name] for name in self._names.values()}

    @property
    def fields(self):
        """Pairs of a name and its Arrow type."""
        return [(new, self._types[name]) for new, name in self._names.items()]

    def arrays(self, rows):
        """The Arrow array of each column, for rows of the table."""
        for name, kind in self._types.items():
            values = [row.get(name) for row in rows]
            if pyarrow.types.is_string(kind):
                values = [_as_text(value) for value in values]
            yield pyarrow.array(values, kind)


def _as_text(value):
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(as_json(value), ensure_ascii=False)
    return _as_utf8(text)


# Those of an embedding.
_COLUMNS = ("line", "text", "tokens", "starts", "ends", "vectors", "cls", "mean", "embedding")


class ParquetFile(ParquetOutput):
    """Writes `TextEmbedding`s to a Parquet file, in memory that does not grow with their number.

    Columns: those of the table, if there is one (see `TextColumns`); `line` int64, the number of
    the text if it has no line; `text` string, `tokens` list of strings, `starts` and `ends` lists
    of int32, `vectors` a list of D float32 each, `cls` and `mean` D float32, and maybe `embedding`.
    The file's metadata has the settings as JSON under `keras_bert`.

    The file is complete at the end of a `with`, unless its body failed.

    Args:
        path: the file, replaced if it exists.
        width: D, the size of a vector.
        text_width: the size of `embedding`, the vector of a text; None without that column.
        settings: a dictionary that describes how the vectors were made.
        columns: the `TextColumns`, or None.
    """

    def __init__(self, path, *, width, settings, text_width=None, columns=None):
        self._width, self._columns, self._count = width, columns, 0
        self._has_texts = text_width is not None
        vector, text_columns = pyarrow.list_(pyarrow.float32(), width), []
        if self._has_texts:
            text_columns = [("embedding", pyarrow.list_(pyarrow.float32(), text_width))]
        schema = pyarrow.schema(
            [
                *(columns.fields if columns is not None else []),
                ("line", pyarrow.int64()),
                ("text", pyarrow.string()),
                ("tokens", pyarrow.list_(pyarrow.string())),
                ("starts", pyarrow.list_(pyarrow.int32())),
                ("ends", pyarrow.list_(pyarrow.int32())),
                ("vectors", pyarrow.list_(vector)),
                ("cls", vector),
                ("mean", vector),
                *text_columns,
            ],
            metadata=marked("embed", **settings),
        )
        self._waiting, self._numbers = [], 0
        # Vectors hardly repeat, so a dictionary of them takes time and saves nothing.
        super().__init__(path, schema, compression="zstd", use_dictionary=["tokens.list.element"])

    def write(self, embedding):
        """Takes the embedding of the next text."""
        self._waiting.append(embedding)
        self._numbers += embedding.vectors.size + 2 * self._width
        if self._numbers >= _NUMBERS_PER_GROUP:
            self.flush()

    def flush(self):
        """Writes the embeddings that are waiting as one row group."""
        if not self._waiting:
            return
        waiting = self._waiting
        splits = np.concatenate([[0], np.cumsum([len(text.starts) for text in waiting])])
        tokens = [_as_utf8(token) for text in waiting for token in text.tokens]

        def lists(items):
            return pyarrow.ListArray.from_arrays(pyarrow.array(splits, pyarrow.int32()), items)

        def offsets(name):
            numbers = np.concatenate([getattr(text, name) for text in waiting])
            return lists(pyarrow.array(numbers, pyarrow.int32()))

        def vectors(name):
            numbers = np.concatenate([getattr(text, name) for text in waiting]).reshape(-1)
            return pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(numbers), self._width)

        lines = _lines(waiting, self._count)
        self._count += len(waiting)
        table_columns = (
            self._columns.arrays([text.row or {} for text in waiting]) if self._columns else []
        )
        columns = [
            *table_columns,
            pyarrow.array(lines, pyarrow.int64()),
            pyarrow.array([_as_utf8(text.text) for text in waiting], pyarrow.string()),
            lists(pyarrow.array(tokens, pyarrow.string())),
            offsets("starts"),
            offsets("ends"),
            lists(vectors("vectors")),
            vectors("cls"),
            vectors("mean"),
        ]
        if self._has_texts:
            columns.append(_lists_of_one_size(np.stack([text.embedding for text in waiting])))
        super().write(pyarrow.Table.from_arrays(columns, schema=self.schema))
        self._waiting, self._numbers = [], 0

    @staticmethod
    def describe(path):
        """The settings in a file of ours, and its numbers of texts and tokens."""
        with parquet.ParquetFile(path) as file:
            settings = mark_of(file.schema_arrow.metadata)
            if "starts" not in file.schema_arrow.names:
                return settings, file.metadata.num_rows, 0
            batches = file.iter_batches(columns=["starts"])
            tokens = sum(len(batch.column(0).flatten()) for batch in batches)
            return settings, file.metadata.num_rows, tokens


def _lines(texts, count):
    """The line of each text, or its number after `count` others if it has none."""
    return [
        text.line if isinstance(text.line, int) else count + number
        for number, text in enumerate(texts, start=1)
    ]


def _as_utf8(text):
    """The text as bytes; half of a surrogate pair, which has no UTF-8, as one question mark."""
    return text.encode("utf-8", "replace")
