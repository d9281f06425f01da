"""The commands of an index of texts: index, search and mine-negatives."""

import json
import shlex

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, in_one_line, text_table
from keras_bert.cli.command import command, report, report_next
from keras_bert.search import (
    OPENSEARCH,
    AddSettings,
    EvaluateIndexSettings,
    IndexCommandSettings,
    IndexSettings,
    SearchCommandSettings,
)
from keras_bert.search.mining_settings import LABELS, MineSettings

_BACKENDS = ("tensorflow", "jax")
# The texts of an index above which a query takes so long that a database is named.
_LARGE = 1_000_000
_SHOWN = 100  # characters of a text in a table of results


@command(
    "index",
    "make texts searchable, by their vectors and words",
    settings=IndexCommandSettings,
    is_job_with_runner=True,
    backends=_BACKENDS,
)
def index(settings, arguments):
    """Build an index of texts, change one, or write one for a vector database.

    keras-bert index --model FOLDER --data texts/ --output texts.index --words
    keras-bert index --index texts.index --add more.csv --duplicates replace
    keras-bert index --index texts.index --delete a.txt --delete b.txt
    keras-bert index --index texts.index --compact
    keras-bert index --index texts.index --format qdrant --output points.jsonl

    The index appears complete or not at all, and so does each change. The same command resumes
    where it was interrupted.

    With --runner and other options of Apache Beam it is a job over many files, such as
    --data 'texts/*.csv' (docs/search.md). Ids are different in all of them.
    """
    given = IndexCommandSettings.of(settings)
    if arguments.beam_options:
        return _run_job(given, settings, arguments)
    from keras_bert.search.index import Index, load_index

    def only(cls, *leave_out):
        names = cls.names() - {*leave_out}
        return {name: value for name, value in settings.items() if name in names}

    options = {"progress": True, "report": report}
    if given.index is None:
        made = Index.build(
            given.model, given.data, output=given.output, **only(IndexSettings), **options
        )
        print(f"{given.output}: {counted(len(made), 'text')}, vectors of size {made.width}.")
        return _next(given.output, made)
    made = load_index(given.index, embedder=given.model)
    if given.format is not None:
        count = made.export(given.output, format=given.format, force=given.force)
        noun = "passage" if made.has_passages else "text"
        print(f"{given.output}: {counted(count, noun)}, vectors of size {made.width}.")
        return _upload(given)
    if given.add is not None:
        count = made.add(given.add, **only(AddSettings), **options)
        print(f"{given.index}: {counted(count, 'text')} added, {len(made):,} in all.")
    elif given.delete is not None:
        count = made.delete(given.delete)
        print(f"{given.index}: {counted(count, 'text')} deleted, {len(made):,} left.")
    else:
        made.compact()
        print(f"{given.index}: compacted, {counted(len(made), 'text')}.")
    return _next(given.index, made)


def _run_job(given, settings, arguments):
    """Builds an index as a job over many files."""
    if given.index is not None:
        raise InputError.naming("A job builds a new index. Leave {index} out.")
    from data_gen.inference import index_files

    names = IndexSettings.names() - {"force"}
    count = index_files(
        model=given.model,
        data=given.data,
        output=given.output,
        force=given.force,
        settings={name: value for name, value in settings.items() if name in names},
        beam_options=arguments.beam_options,
        report=report,
    )
    print(f"{given.output}: {counted(count, 'text')}.")
    return f'keras-bert search {shlex.quote(str(given.output))} "…"'


def _next(folder, made):
    folder = shlex.quote(str(folder))
    if len(made) > _LARGE:
        report(
            f"Note: {counted(len(made), 'text')} are compared one by one, which takes a while. For "
            "a vector database, write them with keras-bert index --index "
            f"{folder} --format qdrant (or opensearch) --output points.jsonl."
        )
    return f'keras-bert search {folder} "…"'


def _upload(given):
    file = shlex.quote(str(given.output))
    if given.format == OPENSEARCH:
        return (
            "curl -H 'Content-Type: application/x-ndjson' -X POST "
            f"http://localhost:9200/NAME/_bulk --data-binary @{file}"
        )
    return f"upsert the points of {file} with qdrant_client (docs/search.md)."


@command(
    "search",
    "find texts in an index",
    settings=SearchCommandSettings,
    more_flags=lambda parser: parser.add_argument(
        "--json", action="store_true", help="print each result as a line of JSON"
    ),
    backends=_BACKENDS,
)
def search(settings, arguments):
    """Find the texts of an index that are most similar to a text, or to each text of a file.

    keras-bert search texts.index "how to log in"
    keras-bert search texts.index "how to log in" --by words --filter source=mail
    keras-bert search texts.index "how to log in" --rerank runs/reranker
    keras-bert search texts.index --data queries.txt --top-k 100 --output results.csv

    The search is exact. By vectors, a score is the similarity of the model; by words, it is BM25;
    by both, it is the sum of 1 / (60 + rank) over the two ranks. With --rerank, the first 50 are
    ordered by a cross-encoder, whose score it is.
    """
    given = SearchCommandSettings.of(settings)
    from keras_bert.inference.table_files import as_json, check_table_output, write_table
    from keras_bert.readers.examples import report_notes, report_source
    from keras_bert.readers.texts import TextSource
    from keras_bert.search.index import load_index

    if given.output is not None:
        inputs = [p for p in (given.index, given.data, given.rerank) if p is not None]
        check_table_output(given.output, inputs=inputs, force=given.force, command="search")
    opened = load_index(given.index, embedder=given.model)
    texts = [given.text]
    if given.data is not None:
        source = TextSource(given.data, need_labels=False)
        report_source(source, report)
        texts = [example.text for example in source]
        report_notes(source, report)
    options = {"filter": given.filters, "rerank": given.rerank, "rerank_top": given.rerank_top}
    results = opened.search(texts, top_k=given.top_k, by=given.by, **options)
    if given.output is not None:
        columns = opened.result_columns
        count = write_table(iter(results), given.output, columns=columns, command="search")
        print(f"Wrote {given.output}: {counted(count, 'result')}.")
    elif arguments.json:
        for row in results:
            print(json.dumps(as_json(row), ensure_ascii=False, allow_nan=False))
    else:
        print(results_text(results, texts))
    report_next(f"keras-bert serve {shlex.quote(str(given.index))}")


def results_text(results, texts):
    """The results of each text as a table, with the best passage of each."""
    rows_by_query = {}
    for row in results:
        rows_by_query.setdefault(row["query"], []).append(row)
    tables = []
    for text in dict.fromkeys(texts):
        rows = rows_by_query.get(text, [])
        table = [[r["rank"], r["score"], r["id"], _cut(r.get("passage", r["text"]))] for r in rows]
        shown = text_table(table, header=("rank", "score", "id", "text")) if rows else "No results."
        tables.append(shown if len(texts) == 1 else f"{in_one_line(text)}\n{shown}")
    return "\n\n".join(tables)


def _cut(text):
    text = in_one_line(text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@command(
    "mine-negatives",
    "find hard negatives for pairs, to train on",
    settings=MineSettings,
    backends=_BACKENDS,
)
def mine_negatives(settings, arguments):
    """Find texts that a model wrongly takes for answers: hard negatives.

    keras-bert mine-negatives --index texts.index --data pairs.csv --output negatives.parquet
    keras-bert mine-negatives --model FOLDER --data pairs.csv --relative-margin 0.05 \\
      --output negatives.parquet
    keras-bert mine-negatives --index texts.index --data pairs.csv --filter-by runs/reranker \\
      --margin 0.2 --format labels --output labels.parquet

    Without --output, only the numbers are printed. Every pair is written, also with fewer negatives
    than asked for.
    """
    from keras_bert.search.mining import mine_negatives

    mined = mine_negatives(**settings, progress=True, report=report)
    for line in mined.lines():
        print(line)
    given = MineSettings.of(settings)
    if given.output is None:
        return "the same command with --output NAME.parquet."
    print(f"Wrote {given.output}: {counted(len(mined), 'row')}.")
    data = shlex.quote(str(given.output))
    if given.format == LABELS:
        return f"keras-bert finetune --task regression --model FOLDER --train {data} --output DIR"
    model = "FOLDER" if given.model is None else shlex.quote(str(given.model))
    return f"keras-bert finetune --task text-embedding --model {model} --train {data} --output DIR"


def evaluate_index(settings):
    """The command `evaluate` with an index -> (metrics, the table that was written, next step)."""
    from keras_bert.search.index import load_index

    given = EvaluateIndexSettings.of(settings)
    index = load_index(given.index, embedder=given.model)
    options = {"qrels": given.qrels, "output": given.output, "force": given.force}
    options |= {"rerank": given.rerank, "rerank_top": given.rerank_top}
    metrics = index.evaluate(given.data, **options, report=report)
    return metrics, given.output, f'keras-bert search {shlex.quote(str(given.index))} "…"'
