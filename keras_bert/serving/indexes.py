"""The indexes of a server, which are searched for requests, and opened again when they change."""

import threading
from pathlib import Path
from typing import Any

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed
from keras_bert.search import BOTH, RERANKED, VECTORS, WORDS
from keras_bert.search.index import load_index
from keras_bert.search.reranking import Reranker
from keras_bert.search.segments import INFO, is_index
from keras_bert.serving.errors import ServerError

_MOST_RESULTS = 1000
_KEYS = ("text", "texts", "vectors", "top_k", "by", "filter", "rerank", "rerank_top")


def index_folders(index: Any, folders: Any) -> dict[str, Path]:
    """{name: folder} of a given index, of those among some folders, and of those in them.

    Raises InputError if two have the same name.
    """
    found = [] if index is None else [Path(index)]
    for folder in map(Path, folders or ()):
        found += filter(is_index, [folder, *(folder.iterdir() if folder.is_dir() else ())])
    named: dict[str, Path] = {}
    for folder in found:
        name = folder.absolute().name
        if ":" in name or not name.isprintable():
            raise InputError(
                f"The folder name {str(folder)!r} is not a valid name of an index: it has a colon "
                "or a control character. Rename the folder."
            )
        if named.setdefault(name, folder).resolve() != folder.resolve():
            raise InputError(f"{named[name]} and {folder} have the same name {name}.")
    return named


class ServedIndex:
    """An index that is searched for requests, one at a time.

    Args:
        name: of the index.
        folder: of the index; its model is loaded, so that the first request is as fast as others.
        reranker: the `Reranker` that orders what was found, or None.

    Raises InputError: it cannot be opened, or its model cannot be loaded.
    """

    def __init__(self, name: str, folder: Path, reranker: Reranker | None = None):
        self.name, self._folder, self._lock = name, folder, threading.Lock()
        self._reranker = reranker
        self._index = load_index(folder)
        self._stamp = None  # a change since then is seen by the first `refresh`
        if self._index.has_model:
            self._index.search("warm-up", top_k=1, rerank=reranker)

    def _now(self):
        status = (self._folder / INFO).stat()
        return status.st_mtime_ns, status.st_ino

    def refresh(self) -> str | None:
        """Opens the index again if it was changed; returns a line for the log, or None."""
        try:
            now = self._now()
            if now == self._stamp:
                return None
            with self._lock:
                self._index.reload()
        except (InputError, OSError) as error:
            return f"Index {self.name} could not be opened again, and is served as it was: {error}"
        self._stamp = now
        return self.line

    @property
    def line(self) -> str:
        """A line for the log."""
        return f"Index {self.name}: {counted(len(self._index), 'text')}."

    def describe(self) -> dict[str, Any]:
        """Describes what a client can ask: the ways to search, and the columns."""
        by = [WORDS] if self._index.has_words else []
        if self._index.has_model:
            by = [*([BOTH] if by else []), VECTORS, *by]
        return {
            "name": self.name,
            "texts": len(self._index),
            "by": by,
            "columns": self._index.columns,
            "passages": self._index.has_passages,
            "rerank": self._reranker is not None,
        }

    def search(self, asked: dict[str, Any], *, max_batch: int) -> dict[str, Any]:
        """The results of a request.

        `asked` has `text` or `texts`, or `vectors`, and maybe `top_k`, `by`, `filter`, `rerank`
        (false for the order in which texts were found) and `rerank_top`. The result has `results`,
        for each text a list of objects as `Index.search` has them, without the query.

        Raises ServerError or InputError: the request is not valid.
        """
        unknown = [name for name in asked if name not in _KEYS]
        if unknown:
            raise ServerError(f"Unknown key {unknown[0]!r}. Choose from {listed(_KEYS)}.")
        texts, vectors = asked.get("texts"), asked.get("vectors")
        if "text" in asked:
            if texts is not None:
                raise ServerError("Pass either 'text' or 'texts', not both.")
            texts = [asked["text"]]
        if texts is not None and not (
            isinstance(texts, list) and all(isinstance(text, str) for text in texts)
        ):
            raise ServerError("Pass 'text', a string, or 'texts', a list of strings.")
        count = len(texts if texts is not None else vectors if isinstance(vectors, list) else ())
        if not 0 < count <= max_batch:
            raise ServerError(f"Pass from 1 to {max_batch} texts. Received: {count}.")
        top_k, filter = asked.get("top_k", 10), asked.get("filter") or {}
        if not (isinstance(top_k, int) and 0 < top_k <= _MOST_RESULTS):
            raise ServerError(f"'top_k' must be from 1 to {_MOST_RESULTS}. Received: {top_k!r}.")
        rerank, rerank_top = self._reranking(asked, texts)
        if not isinstance(filter, dict):
            raise ServerError("'filter' must be an object of columns and their values.")
        by = asked.get("by")
        if by is None and vectors is None:
            by = next(iter(self.describe()["by"]), None)
        with self._lock:
            queries = self._index.search_each(
                texts,
                top_k=top_k,
                by=by,
                filter=filter,
                vectors=vectors,
                rerank=rerank,
                rerank_top=rerank_top,
            )
        return {"results": queries}

    def _reranking(self, asked, texts):
        """-> (the reranker of a request or None, how many results it orders)."""
        rerank = asked.get("rerank", self._reranker is not None and texts is not None)
        if not isinstance(rerank, bool):
            raise ServerError(f"'rerank' must be true or false. Received: {rerank!r}.")
        if rerank and self._reranker is None:
            raise ServerError("The server has no reranker. Start it with --rerank FOLDER.")
        top = asked.get("rerank_top", RERANKED)
        if "rerank_top" in asked and not rerank:
            raise ServerError("'rerank_top' is for a search with 'rerank'. Leave it out.")
        if type(top) is not int or not 0 < top <= _MOST_RESULTS:
            raise ServerError(f"'rerank_top' must be from 1 to {_MOST_RESULTS}. Received: {top!r}.")
        return (self._reranker if rerank else None), top
