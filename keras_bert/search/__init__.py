"""An index of texts, by their vectors and words. Here are the settings, without Keras."""

from collections.abc import Sequence
from dataclasses import InitVar

from keras_bert.base.errors import InputError, argument, arguments
from keras_bert.base.settings import (
    PathText,
    Report,
    Settings,
    checkpoint_setting,
    data_setting,
    model_setting,
    optimisation_setting,
    required,
    setting,
)
from keras_bert.readers import TextFileSettings

VECTORS, WORDS, BOTH = BY = ("vectors", "words", "both")
FLOAT32, FLOAT16, INT8 = DTYPES = ("float32", "float16", "int8")
ERROR, REPLACE = DUPLICATES = ("error", "replace")
QDRANT, OPENSEARCH = FORMATS = ("qdrant", "opensearch")
RERANKED = 50  # results that a cross-encoder orders
_EMBEDDER_FOLDER = (
    "a folder of sentence-transformers, the output of finetune --task text-embedding, or "
    "hf://owner/name"
)


def _batch_size_setting():
    return optimisation_setting(32, help="texts per batch of the model", unit="TEXTS", at_least=1)


class RowsSettings(TextFileSettings):
    """How the texts of an index are read."""

    id_column: str | None = setting(
        None,
        help="the column (its name, or its number from 1) or key of the id",
        unit="NAME|NUMBER",
        default_help="id or _id, else the name of a text's own file, else the number of the text",
        reads=True,
        common=True,
    )


class IndexSettings(RowsSettings):
    """Settings of a new index; see `keras_bert.Index.build`."""

    dtype: str = setting(
        FLOAT32,
        help="the numbers of the vectors. With int8, codes of a byte are searched, and float32 "
        "vectors on the disk rank four times the results",
        choices=DTYPES,
        common=True,
    )
    words: bool = setting(False, help="also index the words of the texts (BM25)", common=True)
    stop_words: str | None = setting(
        None,
        help="words that are not indexed: english, or a file with one word per line",
        unit="NAME|FILE",
        default_help="none",
    )
    stemming: str | None = setting(
        None,
        help="index the stems of words of this language, such as english, by the package "
        "snowballstemmer",
        unit="LANGUAGE",
        default_help="words are indexed as they are",
    )
    passages: bool = setting(
        False,
        help="cut texts that are longer than the model's maximum length into overlapping passages, "
        "each with a vector",
        common=True,
    )
    batch_size: int = _batch_size_setting()
    force: bool = checkpoint_setting(
        False, help="replace an index that is there already", recorded=False
    )

    def check(self):
        super().check()
        for name in ("stop_words", "stemming"):
            if getattr(self, name) is not None and not self.words:
                raise InputError.naming("{} is for {words}. Leave it out.", argument(name))


class AddSettings(RowsSettings):
    """How texts are added to an index; see `keras_bert.Index.add`."""

    duplicates: str = setting(
        ERROR,
        help="what is done with a text whose id is there already: an error, or it replaces the "
        "earlier one",
        choices=DUPLICATES,
        common=True,
    )
    batch_size: int = _batch_size_setting()


class IndexCommandSettings(IndexSettings, AddSettings):
    """Settings of the command `index`."""

    report: InitVar[Report] = None

    model: PathText | None = model_setting(
        None, help=_EMBEDDER_FOLDER, unit="FOLDER", default_help="that of the index", common=True
    )
    data: PathText | None = data_setting(
        None,
        help="the texts: a folder of .txt and .md files, one text per line (.txt), CSV, TSV, "
        "JSON Lines, Parquet, or a retrieval folder as BEIR has them; - is standard input",
        unit="FILE",
        default_help="pass `index`",
        common=True,
    )
    output: PathText | None = setting(
        None,
        help="the folder of the new index; with `format` the file to write",
        unit="FOLDER",
        default_help="the index is changed",
        recorded=False,
        common=True,
    )
    index: PathText | None = setting(
        None,
        help="an index that is there, to change it or to write it in another format",
        unit="INDEX",
        default_help="a new one is built",
        common=True,
    )
    add: PathText | None = data_setting(
        None,
        help="add the texts of a file to `index`",
        unit="FILE",
        default_help="nothing is added",
        common=True,
    )
    delete: Sequence[str] | None = setting(
        None,
        help="delete the text with this id from `index`; repeat it for several",
        unit="ID",
        default_help="nothing is deleted",
        common=True,
    )
    compact: bool = setting(
        False, help="write `index` as if it had been built at once, without what was deleted"
    )
    format: str | None = setting(
        None,
        help="write `index` for a vector database: JSON Lines of points for Qdrant, or pairs of "
        "lines for the _bulk request of OpenSearch and Elasticsearch",
        choices=FORMATS,
        default_help="not written",
    )
    force: bool = checkpoint_setting(
        False, help="replace an output that this command wrote before", recorded=False
    )

    def check(self):
        super().check()
        changes = [name for name in ("add", "delete", "format") if getattr(self, name) is not None]
        changes += ["compact"] * self.compact
        if self.index is None:
            missing = [n for n in ("model", "data", "output") if getattr(self, n) is None]
            if changes:
                raise InputError.naming("{} is for an {index}. Give it.", argument(changes[0]))
            if missing:
                raise InputError.naming(
                    "Missing required arguments: {}. To change an index, give {index}.",
                    arguments(missing),
                )
            return
        if len(changes) != 1:
            raise InputError.naming(
                "Give one of {add}, {delete}, {compact} and {format} with {index}. Received: {}.",
                arguments(changes, " and ") if changes else "none",
            )
        if self.data is not None:
            raise InputError.naming("{data} is for a new index. Give {add} with {index}.")
        if (self.output is not None) != (self.format is not None):
            raise InputError.naming("With {index}, {output} and {format} belong together.")


class _OutputOfIndexSettings(Settings):
    """The settings that commands share which ask an index and may write a table."""

    report: InitVar[Report] = None

    output: PathText | None = setting(
        None,
        help="write a table NAME.csv, NAME.parquet or NAME.jsonl: the results, or the metrics of "
        "each query",
        unit="FILE",
        default_help="not written",
        recorded=False,
        common=True,
    )
    model: PathText | None = model_setting(
        None,
        help="the model of the index, if its folder was moved",
        unit="FOLDER",
        default_help="that of the index",
    )
    force: bool = checkpoint_setting(
        False, help="replace an output that this command wrote before", recorded=False
    )

    def check(self):
        super().check()
        if self.force and self.output is None:
            raise InputError.naming("{force} is for {output}. Leave it out.")


class RerankSettings(Settings):
    """How what was found is ordered once more."""

    rerank: object = model_setting(
        None,
        help="order what was found by this cross-encoder: a folder of sentence-transformers' "
        "CrossEncoder, the output of finetune --task regression, or hf://owner/name",
        unit="FOLDER",
        default_help="the order in which it was found",
        common=True,
    )
    rerank_top: int = setting(
        RERANKED, help="how many of the first results `rerank` orders", unit="N", at_least=1
    )

    def check(self):
        super().check()
        if self.rerank_top != RERANKED and self.rerank is None:
            raise InputError.naming("{rerank_top} is for {rerank}. Leave it out.")


class EvaluateIndexSettings(RerankSettings, _OutputOfIndexSettings):
    """Settings of the command `evaluate` with an index."""

    index: PathText = required(help="an index, the output of index", unit="INDEX")
    data: PathText = required(
        help="a retrieval folder as BEIR has them, whose documents are indexed", unit="FOLDER"
    )
    qrels: str | None = setting(
        None,
        help="the file in its folder qrels that says which documents are relevant",
        unit="NAME",
        default_help="the only one",
        common=True,
    )


class SearchSettings(RerankSettings):
    """Settings of a search; see `keras_bert.Index.search`."""

    top_k: int = setting(10, help="number of results", unit="N", at_least=1, common=True)
    by: str | None = setting(
        None,
        help="what is compared: vectors, words (BM25), or both, merged by reciprocal ranks",
        choices=BY,
        default_help="both of an index with words, else vectors",
        common=True,
    )


class SearchCommandSettings(SearchSettings, _OutputOfIndexSettings):
    """Settings of the command `search`."""

    index: PathText = required(help="an index, the output of index", unit="INDEX", positional=True)
    text: str | None = setting(
        None,
        help="what to find",
        unit="TEXT",
        positional=True,
        default_help="pass `data`",
    )
    filter: Sequence[str] | None = setting(
        None,
        help="only texts with this value in a column; repeat it for other columns, or for other "
        "values of the column",
        unit="COLUMN=VALUE",
        default_help="all texts",
        common=True,
    )
    data: PathText | None = data_setting(
        None,
        help="a file of texts to find, one per line (.txt), CSV, TSV or JSON Lines",
        unit="FILE",
        default_help="pass the text",
        common=True,
    )

    def check(self):
        super().check()
        if (self.text is None) == (self.data is None):
            raise InputError.naming("Pass either the text to find, or {data}, a file of them.")
        filters_of(self.filter)

    @property
    def filters(self) -> dict[str, list[str]]:
        """`filter` as `filters_of` reads it."""
        return filters_of(self.filter)


def filters_of(conditions: Sequence[str] | None) -> dict[str, list[str]]:
    """{name of a column: values} of conditions COLUMN=VALUE; `InputError` for another form."""
    filters: dict[str, list[str]] = {}
    for condition in conditions or ():
        column, equals, value = condition.partition("=")
        if not (equals and column.strip()):
            raise InputError.naming(
                "{filter} is {!r}. Expected COLUMN=VALUE, such as {}.",
                condition,
                argument("filter", '"source=mail"'),
            )
        filters.setdefault(column.strip(), []).append(value)
    return filters
