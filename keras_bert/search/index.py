"""An index of texts: built once, changed in pieces, searched exactly."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from keras_bert.base import files
from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed
from keras_bert.base.ownership import check_output_folder
from keras_bert.base.settings import Report
from keras_bert.inference.table_files import import_pandas
from keras_bert.readers import TextFileSettings
from keras_bert.readers.sources import is_file
from keras_bert.search import (
    BOTH,
    BY,
    FORMATS,
    REPLACE,
    RERANKED,
    VECTORS,
    WORDS,
    AddSettings,
    IndexSettings,
    SearchSettings,
)
from keras_bert.search.building import (
    add_rows,
    check_count,
    check_vectors,
    contents_of,
    copy_segments,
    word_reader,
)
from keras_bert.search.bulk_files import write_bulk
from keras_bert.search.embedders import fingerprint, name_of, open_embedder
from keras_bert.search.evaluation import evaluate_index
from keras_bert.search.ranking import Snapshot
from keras_bert.search.reranking import Reranker
from keras_bert.search.rows import Rows, hash_of_data
from keras_bert.search.segments import changing, is_index, is_unfinished, last_change, tidy
from keras_bert.search.words import about_words
from keras_bert.tasks.text_embedding import COSINE, SIMILARITIES
from keras_bert.tasks.text_embedding.text_embedder import TextEmbedder


class Index:
    """Texts with their vectors, and maybe their words, in a folder.

        index = kb.Index.build("model", "texts.csv", output="texts.index", words=True)
        index.search("a question", top_k=3, filter={"source": "mail"})
        index.add("more.csv")
        index.delete(["17"])

    An index is opened as it is now. What another process changes is there after `reload`.

    Args:
        folder: the output of `build` or of the command `index`.
        embedder: the model of the index, a folder or a `TextEmbedder`; None is the folder that it
            was built with, which is loaded when it is needed.

    Attributes: `folder`, `similarity` (of vectors), `width` (D), `dtype`, `has_words`,
    `has_passages`, `columns`, the names of the columns of a text, and `result_columns`, those of a
    result.

    Raises:
        InputError: the folder is no index, is not finished, is damaged, or has another model.
    """

    _embedder: TextEmbedder | None

    def __init__(self, folder: Any, *, embedder: Any = None):
        self.folder, self._embedder = Path(folder), None
        self._temporary: Any = None
        self._given, self._reader = embedder, None
        self._reranked_by: Any = None  # the model that was given last, and its `Reranker`
        self.reload()

    def reload(self) -> None:
        """Opens the index as it is now."""
        self._snapshot = Snapshot.open(self.folder)
        about = self._snapshot.about
        self.similarity, self.width, self.dtype = (
            about[name] for name in ("similarity", "width", "dtype")
        )
        self.has_words, self.has_passages = about["words"] is not None, about["passages"]
        self.columns = self._snapshot.columns
        self.result_columns = ["query", *self._snapshot.result_columns]

    def __len__(self) -> int:
        """The number of texts."""
        return self._snapshot.count

    def __repr__(self) -> str:
        return f"<Index {self.folder}: {counted(len(self), 'text')}, {self.width} numbers each>"

    @property
    def has_model(self) -> bool:
        """Whether it was built with a model, and not from given vectors."""
        return self._snapshot.about["model"] is not None

    @property
    def ids(self) -> list[str]:
        """The ids of all texts."""
        return self._snapshot.ids()

    @property
    def embedder(self) -> TextEmbedder:
        """The model of the index.

        Raises InputError if it has none, or there is another one in its place.
        """
        if self._embedder is None:
            model = self._snapshot.about["model"]
            if model is None:
                raise InputError.naming(
                    "The index {} was built from vectors and has no model. Pass {vectors}.",
                    self.folder,
                )
            given = model["name"] if self._given is None else self._given
            if given is None:
                raise InputError.naming(
                    "The index {} was built with a model in memory. Pass it as {embedder}.",
                    self.folder,
                )
            task = open_embedder(given)
            if fingerprint(task) != model["fingerprint"]:
                raise InputError(
                    f"The index {self.folder} was built with another model than "
                    f"{given if is_file(given) else 'the given one'}, so that its vectors cannot "
                    "be compared. Build the index again, or give the model that it was built with."
                )
            self._embedder = task
        return self._embedder

    # Building.

    @classmethod
    def build(
        cls,
        embedder: Any,
        table: Any,
        *,
        output: Any = None,
        vectors: Any = None,
        similarity: str | None = None,
        progress: bool = False,
        report: Report = None,
        **settings: Any,
    ) -> Self:
        """Builds an index of the texts of a file, a table or a sequence.

        Texts are encoded as documents. The index appears complete or not at all. A build of files
        that was interrupted resumes where it was, and one that is finished is opened.

        Args:
            embedder: a folder of a model with vectors of texts, or a `TextEmbedder`; None with
                `vectors`.
            table: a path, a table in memory or a list of texts (see `TextSource`), or a retrieval
                folder, as BEIR has them.
            output: the folder; None is a temporary one, which ends with this object.
            vectors: the vectors of the texts, (N, D), in place of a model.
            similarity: how vectors are compared: "cosine", "dot", "euclidean" or "manhattan"; None
                is as the model does, and cosine of `vectors`.
            progress: show a progress bar on the standard error stream.
            report: a function that is called with a line on how the file was read.
            **settings: the fields of `IndexSettings`.

        Raises:
            InputError: on bad input, or if `output` is there already, or cannot be written.
        """
        options = IndexSettings.of(settings)
        if (embedder is None) == (vectors is None):
            raise InputError.naming("Pass either {embedder} or {vectors}.")
        if similarity not in (None, *SIMILARITIES):
            raise InputError.naming(
                "{similarity} is {!r}. Choose from: {}.", similarity, ", ".join(SIMILARITIES)
            )
        if vectors is not None and options.passages:
            raise InputError.naming("{passages} need a model. Leave {vectors} out.")
        model = None
        if embedder is None:
            vectors = check_vectors(vectors)
            options = IndexSettings.of({**settings, "missing": "error"})
        else:
            task = open_embedder(embedder)
            model = {"name": name_of(embedder), "fingerprint": fingerprint(task)}
        new = {
            "model": model,
            "dtype": options.dtype,
            "similarity": similarity or (task.settings.similarity if model else COSINE),
            "width": task.size_of(None) if model else vectors.shape[1],
            "words": about_words(options) if options.words else None,
            "passages": options.passages,
        }
        hashed = hash_of_data(table) if vectors is None else None
        reading = options.part(TextFileSettings) | {"id_column": options.id_column}
        made_of = hashed and files.hash_of_json([new["model"]["fingerprint"], hashed, new, reading])
        temporary = None
        if output is None:
            temporary = tempfile.TemporaryDirectory(prefix="keras-bert-index-")
            output = Path(temporary.name, "index")
        elif not options.force and made_of and last_change(output) == made_of:
            tidy(output)
            if report is not None:
                report(f"{output} is finished already; nothing is done.")
            return cls(output, embedder=embedder)
        else:
            inputs = [path for path in (embedder, table) if is_file(path)]
            may_replace = options.force or is_unfinished(output)
            check_output_folder(output, is_ours=is_index, inputs=inputs, force=may_replace)
        rows = Rows(table, options, id_column=options.id_column, report=report)
        with changing(output, made_of=made_of, new={**new, "schema": rows.schema}) as change:
            contents = contents_of(new, task if model else None, vectors, options.batch_size)
            count = add_rows(change, rows, contents, progress=progress)
            if vectors is not None:
                check_count(vectors, count, rows.name)
            if not count:
                raise InputError(f"{rows.name} has no texts.")
            change.commit()
        index = cls(output, embedder=task if model else None)
        index._temporary = temporary
        return index

    def add(
        self,
        table: Any,
        *,
        vectors: Any = None,
        progress: bool = False,
        report: Report = None,
        **settings: Any,
    ) -> int:
        """Adds texts, all at once; returns their number.

        What was interrupted, and is of files, resumes where it was; what is finished already is not
        added again.

        Args:
            table, progress, report: as of `build`.
            vectors: the vectors of the texts, (N, D), of an index that was built from vectors.
            **settings: the fields of `AddSettings`. Columns are those of the texts that are there.

        Raises InputError: on bad input, an id that is there already, or an index that is changed by
            another process.
        """
        options, about = AddSettings.of(settings), self._snapshot.about
        if vectors is not None:
            if about["model"] is not None:
                raise InputError.naming("The index has a model. Leave {vectors} out.")
            vectors = check_vectors(vectors, width=self.width)
            options = AddSettings.of({**settings, "missing": "error"})
        task = self.embedder if vectors is None else None
        hashed = hash_of_data(table) if vectors is None else None
        made_of = hashed and files.hash_of_json([hashed, options.recorded()])
        if made_of and self._snapshot.about["change"] == made_of:
            tidy(self.folder)
            if report is not None:
                report(f"{table} was added already; nothing is done.")
            return 0
        given = dict(id_column=options.id_column, schema=about["schema"], report=report)
        rows = Rows(table, options, **given)
        with changing(self.folder, made_of=made_of) as change:
            snapshot = Snapshot.open(self.folder)
            contents = contents_of(about, task, vectors, options.batch_size)

            def check(ids):
                known = [id for ids in snapshot.places(ids).values() for id in ids]
                if options.duplicates != REPLACE and known:
                    raise InputError.naming(
                        "{}: {} in the index already: {}. Replace the earlier texts with "
                        '{duplicates="replace"}, or name another column with {id_column}.',
                        rows.name,
                        f"{counted(len(known), 'id')} {'is' if len(known) == 1 else 'are'}",
                        listed(known, most=3, quote='"'),
                    )

            count = add_rows(change, rows, contents, check=check, progress=progress)
            if vectors is not None:
                check_count(vectors, count, rows.name)
            if options.duplicates == REPLACE:
                for segment in change.added:
                    change.delete(snapshot.places(segment.ids))
            change.commit()
        self.reload()
        return count

    def delete(self, ids: Sequence[str]) -> int:
        """Deletes the texts with some ids, all at once; returns their number.

        Raises InputError if there is no text with an id.
        """
        ids = [ids] if isinstance(ids, str) else [str(id) for id in ids]
        with changing(self.folder, made_of=None) as change:
            places = Snapshot.open(self.folder).places(ids)
            if unknown := sorted({*ids}.difference(*places.values())):
                raise InputError(
                    f"The index {self.folder} has no text with "
                    f"{'the id' if len(unknown) == 1 else 'the ids'} "
                    f"{listed(unknown, most=3, quote=chr(34))}."
                )
            change.delete(places)
            change.commit()
        self.reload()
        return len({*ids})

    def compact(self) -> None:
        """Writes the segments again as few large ones, without deleted texts; the texts stay."""
        made_of = files.hash_of_json(["compact", self._snapshot.about["segments"]])
        with changing(self.folder, made_of=made_of) as change:
            snapshot = Snapshot.open(self.folder)
            if snapshot.needs_compacting():
                copy_segments(change, snapshot, word_reader(snapshot.about["words"]))
                change.commit(keeps=False)
        self.reload()

    # Searching.

    def search(
        self,
        texts: Any = None,
        *,
        top_k: int = 10,
        by: str | None = None,
        filter: Mapping[str, Any] | None = None,
        vectors: Any = None,
        rerank: Any = None,
        rerank_top: int = RERANKED,
        as_dataframe: bool = False,
    ) -> Any:
        """The texts of the index that are most similar to each of some texts.

        The search is exact: the result is that of comparing each vector. Equal scores are ordered
        by id. By "both", the score is the sum of 1 / (60 + rank) over the ranks by vectors and by
        words. With passages, the score of a text is that of its best passage. With `rerank`, it is
        the cross-encoder's score of the query and the text, or its best passage.

        Args:
            texts: a text, or several, which are encoded as queries.
            top_k: results for each.
            by: "vectors", "words" or "both"; None is both of an index with words, else vectors.
            filter: {column: value}, only texts with this value, or one of a list of values.
            vectors: the vectors of the queries, (Q, D), in place of a model.
            rerank: a cross-encoder that orders what was found: a folder or a `Regressor` of pairs.
            rerank_top: how many of the first results it orders, at least `top_k`.
            as_dataframe: return a pandas DataFrame.

        Returns:
            A list of dictionaries, of one query after another, the best result first: `query` (the
            text, or its number from 0 if only vectors are given), `rank` from 1, `score`, `id`,
            `text`, and the other columns. With passages, also `passage` with its `start` and `end`,
            characters of the text.

        Raises InputError: on bad input, or if the model of the index is another one.
        """
        pandas = import_pandas() if as_dataframe else None
        queries = [texts] if isinstance(texts, str) else texts
        queries = None if queries is None else [*queries]
        options = {"filter": filter, "rerank": rerank, "rerank_top": rerank_top}
        each = self.search_each(queries, top_k=top_k, by=by, vectors=vectors, **options)
        queries = range(len(each)) if queries is None else queries
        pairs = zip(queries, each, strict=True)
        results = [{"query": query, **row} for query, rows in pairs for row in rows]
        if pandas is not None:
            return pandas.DataFrame(results, columns=self.result_columns)
        return results

    def search_each(
        self,
        texts: Sequence[str] | None,
        *,
        top_k: int = 10,
        by: str | None = None,
        filter: Mapping[str, Any] | None = None,
        vectors: Any = None,
        rerank: Any = None,
        rerank_top: int = RERANKED,
    ) -> list[list[dict[str, Any]]]:
        """The results of `search` as a list for each text, without the column query."""
        given = {"top_k": top_k, "by": by, "rerank": rerank, "rerank_top": rerank_top}
        settings = SearchSettings.of(given)
        by = settings.by or (BOTH if self.has_words and texts is not None else VECTORS)
        if by != VECTORS and not self.has_words:
            raise InputError.naming(
                "The index {} has no words. Search it with {by=vectors}, or build it with "
                "{words=True}.",
                self.folder,
            )
        if texts is None and (by != VECTORS or vectors is None or rerank is not None):
            raise InputError("Pass the texts to find.")
        reranker = None if rerank is None else self._reranker_of(rerank)
        vectors = None if by == WORDS else self._query_vectors(texts, vectors)
        words = None if by == VECTORS else self._words_of(texts)
        depth = settings.top_k if reranker is None else max(settings.top_k, settings.rerank_top)
        hits = self._snapshot.ranked(vectors, words, top_k=depth, filter=filter)
        results = [self._snapshot.results(query_results) for query_results in hits]
        if reranker is not None:
            results = reranker.reranked(texts, results)
        return [query_results[: settings.top_k] for query_results in results]

    def _reranker_of(self, model):
        """The `Reranker` of a model; the last one is kept."""
        if self._reranked_by is None or self._reranked_by[0] != model:
            self._reranked_by = model, Reranker.of(model)
        return self._reranked_by[1]

    def ranked_ids(
        self, texts: Sequence[str], *, top_k: int
    ) -> Iterator[tuple[str, list[list[str]]]]:
        """Yields ("vectors", "words" or "both", the ids of the results of each text)."""
        texts, snapshot = [*texts], self._snapshot
        vectors = self._query_vectors(texts, None)
        words = self._words_of(texts) if self.has_words else None
        inputs_by_kind = {VECTORS: (vectors, None), WORDS: (None, words), BOTH: (vectors, words)}
        for by in BY if self.has_words else (VECTORS,):
            ranked = snapshot.ranked(*inputs_by_kind[by], top_k=top_k)
            yield by, [snapshot.id_of_texts(hit.text for hit in hits) for hits in ranked]

    def evaluate(
        self,
        data: Any,
        *,
        qrels: str | None = None,
        rerank: Any = None,
        rerank_top: int = RERANKED,
        output: Any = None,
        force: bool = False,
        report: Report = None,
    ) -> dict[str, Any]:
        """How well the index finds the relevant documents of queries.

        Args:
            data: a retrieval folder as BEIR has them; its documents are those of the index.
            qrels: the name of a file in its folder qrels; None is the only one.
            rerank: a cross-encoder that orders what was found, as of `search`.
            rerank_top: how many of the first results it orders.
            output: a table NAME.csv, NAME.parquet or NAME.jsonl with rows for each query, or None.
            force: replace a table that this method wrote before.
            report: a function that is called with a line on how the folder was read.

        Returns:
            A dictionary: `queries` and `documents`, their numbers, and `by`, the metrics by
            "vectors", and with words by "words" and "both": those of `evaluate`, and `recall@100`.
            With `rerank` also "reranked".

        Raises InputError: on bad input, or if the output is there already.
        """
        options = {"qrels": qrels, "rerank": rerank, "rerank_top": rerank_top, "output": output}
        return evaluate_index(self, data, force=force, report=report, **options)

    def pairs(self, *, above: float, as_dataframe: bool = False) -> Any:
        """The pairs of texts whose vectors are similar, the most similar first.

        All pairs are compared, by blocks. With passages, two texts are as similar as the most
        similar passages of both.

        Args:
            above: the lowest similarity.
            as_dataframe: return a pandas DataFrame.

        Returns:
            A list of dictionaries: `id_a` and `id_b`, in the order of ids, and `score`.
        """
        pandas = import_pandas() if as_dataframe else None
        pairs = self._snapshot.pairs(above)
        if pandas is not None:
            return pandas.DataFrame(pairs, columns=["id_a", "id_b", "score"])
        return pairs

    def export(self, output: Any, *, format: str, force: bool = False) -> int:
        """Writes a file for a vector database, "qdrant" or "opensearch"; see `write_bulk`.

        Returns how many texts, or passages, it has.
        """
        if format not in FORMATS:
            raise InputError.naming(
                "{format} is {!r}. Choose from: {}.", format, ", ".join(FORMATS)
            )
        return write_bulk(self._snapshot, output, format=format, force=force)

    def _query_vectors(self, texts, vectors):
        if vectors is None:
            return self.embedder.encode_query(texts) if texts else np.zeros((0, self.width))
        count = None if texts is None else len(texts)
        return check_vectors(np.atleast_2d(vectors), count=count, width=self.width)

    def _words_of(self, texts):
        """The words of each query."""
        if self._reader is None:
            self._reader = word_reader(self._snapshot.about["words"])
        words, counts = self._reader(texts)
        ends = np.cumsum(counts).tolist()
        return [words[end - count : end] for end, count in zip(ends, counts.tolist(), strict=True)]


def load_index(folder: Any, *, embedder: Any = None) -> Index:
    """Opens an index; see `Index`, which has the same arguments."""
    return Index(folder, embedder=embedder)
