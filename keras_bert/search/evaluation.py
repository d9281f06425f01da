"""How well an index finds what is relevant: by vectors, by words, by both, and reranked."""

from itertools import takewhile
from typing import Any

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.base.settings import Report
from keras_bert.inference.predict import rounded
from keras_bert.inference.table_files import check_table_output, write_table
from keras_bert.readers.examples import report_notes, report_source
from keras_bert.readers.retrieval_folder import RetrievalSource, is_retrieval_folder
from keras_bert.search import RERANKED
from keras_bert.search.reranking import Reranker
from keras_bert.tasks.text_embedding.metrics import RANKED, retrieval_metrics

_RECALL = f"recall@{RANKED}"
# The metrics of each query in a file.
_QUERY_METRICS = ("ndcg@10", "mrr@10", "map@100", "recall@10", _RECALL)


def evaluate_index(
    index: Any,
    data: Any,
    *,
    qrels: str | None = None,
    rerank: Any = None,
    rerank_top: int = RERANKED,
    output: Any = None,
    force: bool = False,
    report: Report = None,
) -> dict[str, Any]:
    """The metrics of an index; see `keras_bert.Index.evaluate`."""
    if not is_retrieval_folder(data):
        raise InputError(
            f"{data} is not a retrieval folder. Expected corpus.jsonl, queries.jsonl and qrels/."
        )
    if output is not None:
        inputs = [index.folder, data]
        check_table_output(output, inputs=inputs, force=force, command="evaluate")
    source = RetrievalSource(data, qrels=qrels)
    report_source(source, report)
    queries = [*takewhile(lambda example: example.relevant is not None, source)]
    report_notes(source, report)
    if not queries:
        raise InputError(f"{source.name} has no query with a relevant document.")
    relevant = [query.relevant for query in queries]
    missing = {id for relevance in relevant for id in relevance}.difference(index.ids)
    if missing and report is not None:
        report(
            f"Note: {counted(len(missing), 'relevant document')} of the qrels are not in the "
            "index, and count as not found."
        )
    rows, metrics = [], {"queries": len(queries), "documents": len(index), "by": {}}
    for by, ranked in _each_way([query.text for query in queries], index, rerank, rerank_top):
        # A document with the id of a query is the query itself.
        ranked = [
            [id for id in ids if id != query.id][:RANKED]
            for ids, query in zip(ranked, queries, strict=True)
        ]
        metrics["by"][by] = _metrics(ranked, relevant)
        for query, ids in zip(queries, ranked, strict=True):
            relevance = _metrics([ids], [query.relevant])
            row = {"query": query.id, "text": query.text, "by": by}
            rows.append(
                row | {name: relevance[name] for name in _QUERY_METRICS} | {"first": ids[:10]}
            )
    if output is not None:
        write_table(iter(rounded(rows)), output, command="evaluate")
    return rounded(metrics)


def _each_way(texts, index, rerank, rerank_top):
    """Yields (a way to search, the ids of the results of each text), of `RANKED` and one more.

    The last way is "reranked": the first `rerank_top` of the index's usual way, in the order of
    the cross-encoder `rerank`, and then the others.
    """
    reranker = None if rerank is None else Reranker.of(rerank)
    yield from index.ranked_ids(texts, top_k=RANKED + 1)
    if reranker is not None:
        found = index.search_each(texts, top_k=RANKED + 1)
        ordered = reranker.reranked(texts, [rows[:rerank_top] for rows in found])
        yield (
            "reranked",
            [
                [row["id"] for row in (*first, *rows[rerank_top:])]
                for first, rows in zip(ordered, found, strict=True)
            ],
        )


def _metrics(ranked, relevant):
    """`retrieval_metrics`, and the recall among the first hundred."""
    found = [
        len(relevance.keys() & {*ids}) / len(relevance)
        for ids, relevance in zip(ranked, relevant, strict=True)
    ]
    return retrieval_metrics(ranked, relevant) | {_RECALL: sum(found) / len(found)}
