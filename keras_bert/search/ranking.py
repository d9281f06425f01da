"""The search of an index as it is at one moment: filters, ranks, and rows of results."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow
import pyarrow.compute as pc

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import listed
from keras_bert.search.segments import Segment, open_segments
from keras_bert.search.vectors import Best, most_similar, similar_pairs
from keras_bert.search.words import Bm25

# Reciprocal rank fusion (Cormack et al. 2009) of the first so many of each list.
FUSION, FUSED = 60, 100
# The texts of a segment that `compact` writes.
COMPACTED = 1 << 16


class Hit(NamedTuple):
    """A text that was found: its score, its number, and that of its best passage.

    Numbers are counted over all segments.
    """

    score: float
    text: int
    passage: int


class Snapshot:
    """The segments of an index as they were when it was opened.

    Attributes:
        about: what segments.json says, with the settings of the index.
        segments: a list of `Segment`.
        count: the number of texts, without deleted ones.
        columns: the names of the columns of all texts.
        result_columns: the names of the columns of `results`.
    """

    def __init__(self, info: dict[str, Any], segments: list[Segment]):
        self.about = info
        self.segments = segments
        self._alive = [segment.alive for segment in segments]
        self.counts = [
            segment.count if mask is None else int(mask.sum())
            for segment, mask in zip(segments, self._alive, strict=True)
        ]
        self.count = sum(self.counts)
        self.columns = [*dict.fromkeys(chain.from_iterable(s.names for s in segments))]
        passage = ["passage", "start", "end"] if info["passages"] else []
        self.result_columns = ["rank", "score", *self.columns, *passage]
        self._first_texts = _begins([segment.count for segment in segments])
        self._first_passages = _begins([len(segment.vectors) for segment in segments])
        self._bm25 = None

    @classmethod
    def open(cls, folder: Any) -> Self:
        """Raises InputError: see `open_segments`."""
        return cls(*open_segments(folder))

    # Ids.

    def alive_ids(self, segment: Segment) -> pyarrow.Array:
        """The ids of a segment without deleted ones."""
        mask = self._alive[self.segments.index(segment)]
        return segment.ids if mask is None else segment.ids.filter(pyarrow.array(mask))

    def ids(self) -> list[str]:
        """The ids of all texts."""
        return [id for segment in self.segments for id in self.alive_ids(segment).to_pylist()]

    def places(self, ids: Any) -> dict[str, list[str]]:
        """{name of a segment: those of some ids that it has}."""
        wanted, places = pyarrow.array(ids, pyarrow.string()), {}
        for segment in self.segments:
            there = self.alive_ids(segment)
            if found := there.filter(pc.is_in(there, value_set=wanted)).to_pylist():
                places[segment.folder.name] = found
        return places

    def groups(self) -> list[list[tuple[Segment, Any]]]:
        """The pairs of a segment and its `alive` that `compact` makes one of; [] of none."""
        groups: list[Any] = []
        size = COMPACTED
        for segment, mask, count in zip(self.segments, self._alive, self.counts, strict=True):
            if count and size + count > COMPACTED:
                groups.append([])
                size = 0
            if count:
                groups[-1].append((segment, mask))
                size += count
        return groups

    def needs_compacting(self) -> bool:
        """Whether there are deleted texts, or segments that fit into one."""
        is_whole = all(mask is None for mask in self._alive)
        return not is_whole or len(self.groups()) < len(self.segments)

    # Ranks.

    def ranked(
        self,
        vectors: Any,
        words: Sequence[Sequence[str]] | None,
        *,
        top_k: int,
        filter: Mapping[str, Any] | None = None,
    ) -> list[list[Hit]]:
        """The `Hit`s of each query, the best first.

        Args:
            vectors: of the queries, float32 (Q, D); None for words alone.
            words: of the queries; None for vectors alone.
            top_k: how many of each query.
            filter: {column: value or list of values}.
        """
        allowed = self._allowed(filter)
        both = vectors is not None and words is not None
        depth = max(top_k, FUSED) if both else top_k
        lists = []
        if vectors is not None:
            lists.append(self._texts(lambda k: self._by_vectors(vectors, k, allowed), depth))
        if words is not None:
            lists.append(self._texts(lambda k: self._by_words(words, k, allowed), depth))
        if not both:
            return lists[0]
        return [self._merged(*pair)[:top_k] for pair in zip(*lists, strict=True)]

    def _by_vectors(self, vectors, count, allowed):
        codes = [segment.codes for segment in self.segments]
        large = [segment.vectors for segment in self.segments]
        is_coded = bool(codes) and codes[0] is not None
        return most_similar(
            vectors,
            codes if is_coded else large,
            top_k=count,
            by=self.about["similarity"],
            allowed=allowed,
            exact=large if is_coded else None,
            order=self._ids_of,
        )

    def _by_words(self, words, count, allowed):
        if self._bm25 is None:
            about = self.about["words"]
            alive = [self._passages_of(*pair) for pair in zip(self.segments, self._alive)]  # noqa: B905
            self._bm25 = Bm25(self.segments, alive, k1=about["k1"], b=about["b"])
        options = {"top_k": count, "allowed": allowed, "order": self._ids_of}
        every = [self._bm25.best(query_words, **options) for query_words in words]
        width = max((best.rows.shape[1] for best in every), default=0)
        rows = np.full((len(words), width), -1, np.int64)
        scores = np.full((len(words), width), -np.inf, np.float32)
        for number, best in enumerate(every):
            found = best.rows.shape[1]
            rows[number, :found], scores[number, :found] = best.rows[0], best.scores[0]
        return Best(rows, scores)

    def _texts(self, best_of: Callable[[int], Best], top_k: int) -> list[list[Hit]]:
        """The best texts, from a function of a number to the best passages of each query."""
        count, every = top_k, int(self._first_passages[-1])
        has_passages = self.about["passages"]
        while True:
            best = best_of(min(count, every))
            hits = [self._hits(rows, scores) for rows, scores in zip(*best, strict=True)]
            is_full = best.rows[:, -1:] >= 0  # there may be more passages
            few = [len(query_words) < top_k for query_words in hits]
            if not has_passages or count >= every or not (np.array(few) & is_full.any(1)).any():
                return [query_words[:top_k] for query_words in hits]
            count *= 2

    def _hits(self, rows, scores):
        """The `Hit`s of passages, the best of each text."""
        hits: dict[int, Hit] = {}
        rows, scores = rows[rows >= 0], scores[rows >= 0]
        for text, passage, score in zip(
            self._text_numbers(rows).tolist(), rows.tolist(), scores.tolist(), strict=True
        ):
            hits.setdefault(text, Hit(score, text, passage))
        return [*hits.values()]

    def _merged(self, first, second):
        """The hits of two lists, by the sum of their reciprocal ranks, then by id."""
        merged: dict[int, Hit] = {}
        for hits in (first, second):
            for rank, hit in enumerate(hits, start=1):
                known = merged.get(hit.text)
                score = 1 / (FUSION + rank) + (known.score if known else 0)
                merged[hit.text] = (known or hit)._replace(score=score)
        hits = [*merged.values()]
        ids = dict(zip(merged, self.id_of_texts(merged), strict=True))
        return sorted(hits, key=lambda hit: (-hit.score, ids[hit.text]))

    def pairs(self, above: float) -> list[dict[str, Any]]:
        """The pairs of texts that are similar; see `Index.pairs`."""
        vectors = [segment.vectors for segment in self.segments]
        masks = [self._passages_of(*pair) for pair in zip(self.segments, self._alive)]  # noqa: B905
        gone = [] if all(mask is None for mask in masks) else [
            np.zeros(len(part), bool) if mask is None else ~mask
            for part, mask in zip(vectors, masks, strict=True)
        ]  # fmt: skip
        is_gone = np.concatenate(gone) if gone else None
        best: dict[tuple[int, int], float] = {}
        for first, second, scores in similar_pairs(
            vectors, above=above, by=self.about["similarity"]
        ):
            if is_gone is not None:
                kept = ~(is_gone[first] | is_gone[second])
                first, second, scores = first[kept], second[kept], scores[kept]
            texts = self._text_numbers(first).tolist(), self._text_numbers(second).tolist()
            for one, other, score in zip(*texts, scores.tolist(), strict=True):
                pair = (one, other) if one < other else (other, one)
                if one != other and score > best.get(pair, -np.inf):
                    best[pair] = score
        numbers = sorted({number for pair in best for number in pair})
        ids = dict(zip(numbers, self.id_of_texts(numbers), strict=True))
        found = [(*sorted((ids[one], ids[other])), score) for (one, other), score in best.items()]
        found.sort(key=lambda pair: (-pair[2], pair[0], pair[1]))
        return [{"id_a": one, "id_b": other, "score": score} for one, other, score in found]

    # Filters.

    def _allowed(self, filter):
        """For each segment bool (P,), the passages of texts that pass; None for all."""
        conditions = {
            name: value if isinstance(value, list | tuple | set) else [value]
            for name, value in (filter or {}).items()
        }
        for name in conditions:
            if name not in self.columns:
                raise InputError.naming(
                    "{filter}: the index has no column {!r}. Choose from: {}.",
                    name,
                    listed(self.columns, quote='"'),
                )
        masks = []
        for segment, alive in zip(self.segments, self._alive, strict=True):
            mask = alive
            for name, values in conditions.items():
                passes = _passes(segment, name, values)
                mask = passes if mask is None else mask & passes
            masks.append(self._passages_of(segment, mask))
        return masks

    @staticmethod
    def _passages_of(segment, mask):
        """bool (n,) of texts -> bool (P,) of their passages; None stays."""
        if mask is None or segment.passages is None:
            return mask
        return mask[segment.passages[:, 0]]

    # Rows.

    def _text_numbers(self, passages):
        """The numbers of the texts of passages, int64 (M,), over all segments."""
        numbers = np.empty(len(passages), np.int64)
        segment_of_passage = np.searchsorted(self._first_passages, passages, side="right") - 1
        for place in np.unique(segment_of_passage):
            some = segment_of_passage == place
            local = passages[some] - self._first_passages[place]
            numbers[some] = self.segments[place].texts_of(local) + self._first_texts[place]
        return numbers

    def _ids_of(self, passages):
        """The ids of the texts of passages, by which equal scores are ordered."""
        return np.array(self.id_of_texts(self._text_numbers(passages)), dtype=np.str_)

    def id_of_texts(self, texts: Any) -> list[str]:
        """The ids of texts by their numbers over all segments."""
        places = map(self._place, texts)
        return [self.segments[segment].ids[number].as_py() for segment, number in places]

    def _place(self, text):
        """(the place of a segment, the number of a text in it) of a text."""
        segment = int(np.searchsorted(self._first_texts, text, side="right")) - 1
        return segment, int(text - self._first_texts[segment])

    def results(self, hits: list[Hit]) -> list[dict[str, Any]]:
        """The rows of the results of one query; see `Index.search`."""
        return [
            {"rank": rank, "score": hit.score, **self._row(hit)}
            for rank, hit in enumerate(hits, start=1)
        ]

    def _row(self, hit):
        place, number = self._place(hit.text)
        segment = self.segments[place]
        row = dict.fromkeys(self.columns) | segment.row(number)
        if segment.passages is not None:
            local = hit.passage - int(self._first_passages[place])
            start, end = segment.passages[local, 1:].tolist()
            row |= {"passage": row["text"][start:end], "start": start, "end": end}
        return row


def _begins(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _passes(segment, name, values):
    """bool (n,), the texts of a segment that have one of some values in a column."""
    if name not in segment.names:
        return np.zeros(segment.count, bool)
    column, wanted = segment.column(name), []
    for value in values:
        try:
            wanted.append(pyarrow.scalar(value).cast(column.type))
        except (pyarrow.ArrowException, ValueError, TypeError):
            raise InputError.naming(
                "{filter}: the column {!r} has values of the type {}, and {!r} is of another one.",
                name,
                column.type,
                value,
            ) from None
    wanted = pyarrow.array([value.as_py() for value in wanted], column.type)
    return pc.is_in(column, value_set=wanted).to_numpy(zero_copy_only=False)
