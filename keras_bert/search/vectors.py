"""Exact search: the vectors that are most similar to others, by blocks of memory-mapped arrays.

Pure functions over numpy arrays. Shapes: Q queries, N vectors, D numbers each, k results.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from keras_bert.tasks.text_embedding import COSINE, DOT
from keras_bert.tasks.text_embedding.metrics import RANKED, pair_similarities, similarities, unit

# Scores that are computed by one matrix product (8 MiB): most of them stay in the processor's cache
# while the best are chosen.
_SCORES_TOGETHER = 1 << 21
_QUERIES_TOGETHER = 256
# Numbers of vectors that are read, or converted to float32, together (16 MiB).
_NUMBERS_TOGETHER = 1 << 22
# Vectors per result that int8 codes choose, of which the vectors themselves find the best.
CANDIDATES = 4
# More candidates than results, since a matrix product rounds equal vectors differently, by up to
# this part of the largest score.
_MORE, _ROUNDING = 16, 4e-6
_PAIRED_TOGETHER = 2048


class Best(NamedTuple):
    """The best results of each query, the best first.

    Attributes:
        rows: int64 (Q, k), the numbers of vectors; -1 where there are fewer than k.
        scores: float32 (Q, k); -inf where there are fewer than k.
    """

    rows: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class Int8Vectors:
    """Vectors with a byte per number, which is `code * step + middle` of its column.

    Attributes:
        codes: int8 (N, D), from -128 to 127.
        step, middle: float32 (D,).
    """

    codes: np.ndarray
    step: np.ndarray
    middle: np.ndarray

    @classmethod
    def of(cls, vectors: Any, *, ranges: Any = None) -> "Int8Vectors":
        """The codes of vectors (N, D), rounded down, as those of sentence-transformers.

        `ranges` is the lowest and the highest number of each column, (2, D); None takes those of
        the vectors.
        """
        vectors = np.asarray(vectors, np.float32)
        if ranges is None:
            ranges = np.stack([vectors.min(axis=0), vectors.max(axis=0)])
        of_ranges = cls.with_ranges(None, ranges)
        codes = np.floor((vectors - np.asarray(ranges, np.float32)[0]) / of_ranges.step)
        return replace(of_ranges, codes=(np.clip(codes, 0, 255) - 128).astype(np.int8))

    @classmethod
    def with_ranges(cls, codes: Any, ranges: np.ndarray) -> "Int8Vectors":
        """Codes that were made with `ranges`, float32 (2, D)."""
        low, high = np.asarray(ranges, np.float32)
        step = (high - low) / 255
        step = np.where(step > 0, step, 1).astype(np.float32)
        return cls(codes, step, low + 128 * step)

    def __len__(self):
        return len(self.codes)

    def __getitem__(self, rows):
        """The vectors of some rows, float32."""
        return self.codes[rows] * self.step + self.middle


def most_similar(
    queries: np.ndarray,
    parts: Sequence[Any],
    *,
    top_k: int,
    by: str = DOT,
    allowed: Sequence[np.ndarray | None] | None = None,
    exact: Sequence[Any] | None = None,
    order: Callable[[np.ndarray], Any] | None = None,
) -> Best:
    """The vectors that are most similar to each query.

    The result is that of sorting all scores, and depends neither on how the vectors are divided nor
    on the other queries. Memory does not grow with N.

    Args:
        queries: float32 (Q, D).
        parts: arrays (n, D), float32 or float16, maybe memory-mapped, or `Int8Vectors`: together N
            vectors, numbered from the first to the last. By cosine, each has been divided by its
            Euclidean norm.
        top_k: k.
        by: the similarity (see `similarities`).
        allowed: for each part bool (n,), which vectors may be results; None is all.
        exact: the parts whose vectors give the scores. With others than `parts`, `CANDIDATES * k`
            are chosen by `parts`, so that a result may be missed.
        order: a function from numbers of vectors (M,) to M values, by which equal scores are
            ordered; None is by the numbers.
    """
    queries = np.ascontiguousarray(queries, np.float32)
    if by == COSINE:
        queries, by = unit(queries), DOT
    sizes = [len(part) for part in parts]
    allowed = [None] * len(parts) if allowed is None else allowed
    available = sum(
        size if mask is None else int(np.count_nonzero(mask))
        for size, mask in zip(sizes, allowed, strict=True)
    )
    begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    top_k = min(top_k, available)
    rows = np.full((len(queries), top_k), -1, np.int64)
    scores = np.full((len(queries), top_k), -np.inf, np.float32)
    left = np.arange(len(queries) if top_k else 0)
    count = top_k + _MORE if exact is None else top_k * CANDIDATES
    while len(left):
        count = min(count, available)
        together = max(1, min(_QUERIES_TOGETHER, _NUMBERS_TOGETHER // count))
        unsure = []
        for some in np.split(left, range(together, len(left), together)):
            best = _candidates(queries[some], parts, begins, count=count, by=by, allowed=allowed)
            found = _scored(queries[some], exact or parts, begins, best.rows, by=by, order=order)
            rows[some], scores[some] = found.rows[:, :top_k], found.scores[:, :top_k]
            if exact is None and count < available:
                # A vector that is no candidate may equal the last result but for rounding.
                size = np.abs(best.scores).max(axis=1)
                is_unsure = found.scores[:, top_k - 1] <= best.scores[:, -1] + _ROUNDING * size
                unsure.append(some[is_unsure])
        left, count = np.concatenate([[], *unsure]).astype(np.int64), 4 * count
    return Best(rows, scores)


def _candidates(queries, parts, begins, *, count, by, allowed):
    """The `Best` by matrix products, whose rounding depends on the place of a vector."""
    shape = len(queries), count
    best = Best(np.full(shape, -1, np.int64), np.full(shape, -np.inf, np.float32))
    size = max(1, min(_SCORES_TOGETHER // len(queries), _NUMBERS_TOGETHER // queries.shape[1]))
    for part, begin, mask in zip(parts, begins, allowed, strict=False):
        for start in range(0, len(part), size):
            is_allowed = None if mask is None else mask[start : start + size]
            if is_allowed is not None and not is_allowed.any():
                continue
            scores = _products(queries, _slice(part, start, start + size), by=by)
            if is_allowed is not None:
                scores = np.where(is_allowed, scores, np.float32(-np.inf))
            best = _with_block(best, scores, begin + start)
    return best


def _slice(part, start, stop):
    if isinstance(part, Int8Vectors):
        return replace(part, codes=part.codes[start:stop])
    return part[start:stop]


def _products(queries, vectors, *, by):
    """The similarity of queries (Q, D) to vectors (B, D), float32 (Q, B)."""
    if by != DOT:
        return similarities(queries, np.asarray(vectors[:], np.float32), by=by)
    if isinstance(vectors, Int8Vectors):
        products = (queries * vectors.step) @ vectors.codes.astype(np.float32).T
        return products + (queries @ vectors.middle)[:, None]
    vectors = np.asarray(vectors, np.float32)
    if len(queries) == 1:
        # Limited by memory, not by arithmetic: threads of a matrix product would wait for another
        # in each block, 0.08 processor seconds of 100,000 x 384 in place of 0.02.
        return np.einsum("nd,d->n", vectors, queries[0])[None]
    return queries @ vectors.T


def _with_block(best, scores, begin):
    """The best of earlier vectors and of a block: (Q, k), (Q, B) -> (Q, k)."""
    top_k = best.scores.shape[1]
    is_better = scores > best.scores[:, -1:]
    if top_k < scores.shape[1] and np.count_nonzero(is_better) > 4 * best.scores.size:
        # Among the best of the block alone, too.
        is_better &= scores >= np.partition(scores, -top_k, axis=1)[:, -top_k][:, None]
    query, row = np.nonzero(is_better)
    if not len(query):
        return best
    query = np.concatenate([np.repeat(np.arange(len(scores)), top_k), query])
    rows = np.concatenate([best.rows.ravel(), row + begin])
    scores = np.concatenate([best.scores.ravel(), scores[is_better]])
    order = np.lexsort((-scores, query))
    # Each query has k at least, the earlier ones.
    first = np.searchsorted(query[order], np.arange(len(best.scores)))
    chosen = order[first[:, None] + np.arange(top_k)]
    return Best(rows[chosen], scores[chosen])


def _scored(queries, parts, begins, candidates, *, by, order):
    """The `Best` of candidates (Q, C), each scored by itself, the same in any company."""
    scores = np.full(candidates.shape, -np.inf, np.float32)
    together = max(1, _NUMBERS_TOGETHER // queries.shape[1])
    query, place = np.nonzero(candidates >= 0)
    for first in range(0, len(query), together):
        some = slice(first, first + together)
        vectors = vectors_of(parts, begins, candidates[query[some], place[some]])
        scores[query[some], place[some]] = _pair_scores(queries[query[some]], vectors, by=by)
    ranks = np.lexsort((candidates, -scores))
    rows, scores = (np.take_along_axis(x, ranks, axis=1) for x in (candidates, scores))
    if order is not None:
        is_tied = (scores[:, 1:] == scores[:, :-1]) & (rows[:, 1:] >= 0)
        for number in np.flatnonzero(is_tied.any(axis=1)):
            held = int(np.count_nonzero(rows[number] >= 0))
            keys = np.asarray(order(rows[number, :held]))
            ranks = np.lexsort((keys, -scores[number, :held]))
            rows[number, :held] = rows[number, :held][ranks]
    return Best(rows, scores)


def _pair_scores(queries, vectors, *, by):
    """The similarity of rows one by one, (M, D), (M, D) -> float32 (M,)."""
    if by == DOT:
        return np.einsum("md,md->m", queries, vectors)
    return pair_similarities(queries, vectors, by=by)


def vectors_of(parts: Sequence[Any], begins: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The vectors with some numbers (M,), float32 (M, D); `begins` are the first of each part."""
    vectors = None
    of_part = np.searchsorted(begins, rows, side="right") - 1
    for part in np.unique(of_part):
        wanted = of_part == part
        some = np.asarray(parts[part][rows[wanted] - begins[part]], np.float32)
        if vectors is None:
            vectors = np.empty((len(rows), some.shape[1]), np.float32)
        vectors[wanted] = some
    return vectors


def similar_pairs(
    parts: Sequence[Any], *, above: float, by: str = DOT
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yields (numbers, numbers, scores), (M,) each, of the pairs of vectors that are similar.

    Each pair comes once, its lower number first. Memory does not grow with N.

    Args:
        parts, by: see `most_similar`.
        above: the lowest score of a pair.
    """
    by = DOT if by == COSINE else by
    begins = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    blocks = [
        (begin + start, _slice(part, start, start + _PAIRED_TOGETHER))
        for part, begin in zip(parts, begins, strict=False)
        for start in range(0, len(part), _PAIRED_TOGETHER)
    ]
    for number, (begin, vectors) in enumerate(blocks):
        vectors = np.asarray(vectors[:], np.float32)
        for other_begin, others in blocks[number:]:
            scores = _products(vectors, others, by=by)
            row, column = np.nonzero(scores >= above - _ROUNDING * abs(above))
            if other_begin == begin:
                row, column = row[column > row], column[column > row]
            found = _pair_scores(vectors[row], np.asarray(others[column], np.float32), by=by)
            is_above = found >= above
            if is_above.any():
                row, column = row[is_above] + begin, column[is_above] + other_begin
                yield row, column, found[is_above]


def ranked_documents(
    queries: np.ndarray,
    documents: np.ndarray,
    ids: Sequence[str],
    *,
    by: str = COSINE,
    depth: int = RANKED,
    left_out: Sequence[str | None] | None = None,
) -> list[list[str]]:
    """The ids of the most similar documents of each query, by similarity, then by id.

    Args:
        queries: vectors (Q, D).
        documents: vectors (N, D).
        ids: the N ids.
        by: see `similarities`.
        depth: how many of each query.
        left_out: for each query the id of a document that is not among them, or None.
    """
    if by == COSINE:
        documents = unit(documents)
    order = lambda rows: [ids[row] for row in rows]  # noqa: E731
    more = depth + (left_out is not None)
    best = most_similar(queries, [documents], top_k=more, by=by, order=order)
    ranked = []
    for number, rows in enumerate(best.rows):
        without = left_out[number] if left_out is not None else None
        ranked.append([ids[row] for row in rows if row >= 0 and ids[row] != without][:depth])
    return ranked
