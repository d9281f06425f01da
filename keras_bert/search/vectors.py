"""Exact search: the vectors that are most similar to others, by blocks of memory-mapped arrays.

Pure functions over numpy arrays. Shapes: Q queries, N vectors, D numbers each, k results.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from keras_bert.tasks.text_embedding import COSINE, DOT
from keras_bert.tasks.text_embedding.metrics import RANKED, pair_similarities, similarities, unit

# Scores of one matrix product (16 MiB): most of them stay in the processor's cache while the best
# are chosen.
_SCORES_TOGETHER = 1 << 22
_QUERIES_TOGETHER = 512
# Vectors whose highest score is compared first.
_GROUP = 32
# Numbers of vectors that are read, or converted to float32, together (16 MiB).
_NUMBERS_TOGETHER = 1 << 22
# Vectors per result that int8 codes choose, of which the vectors themselves find the best.
CANDIDATES = 4
# More candidates than results, since a matrix product rounds equal vectors differently, by up to
# this part of the largest score.
_MORE, _ROUNDING = 4, 4e-6
_PAIRED_TOGETHER = 2048


class Best(NamedTuple):
    """The best results of each query, the best first.

    Attributes:
        rows: int64 (Q, k), the numbers of vectors; -1 if there are fewer than k.
        scores: float32 (Q, k); -inf if there are fewer than k.
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
        without_codes = cls.with_ranges(None, ranges)
        codes = np.floor((vectors - np.asarray(ranges, np.float32)[0]) / without_codes.step)
        return replace(without_codes, codes=(np.clip(codes, 0, 255) - 128).astype(np.int8))

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
        queries_per_batch = max(1, min(_QUERIES_TOGETHER, _NUMBERS_TOGETHER // count))
        unsure = []
        for some in np.split(left, range(queries_per_batch, len(left), queries_per_batch)):
            best = _candidates(queries[some], parts, begins, count=count, by=by, allowed=allowed)
            found = _scored(queries[some], exact or parts, begins, best.rows, by=by, order=order)
            rows[some], scores[some] = found.rows[:, :top_k], found.scores[:, :top_k]
            if exact is None and count < available:
                # A vector that is no candidate may equal the last result but for rounding.
                size = np.abs(best.scores).max(axis=1)
                lowest = best.scores.min(axis=1)
                is_unsure = found.scores[:, top_k - 1] <= lowest + _ROUNDING * size
                unsure.append(some[is_unsure])
        left, count = np.concatenate([[], *unsure]).astype(np.int64), 4 * count
    return Best(rows, scores)


def _candidates(queries, parts, begins, *, count, by, allowed):
    """The `Best`, in no order, by matrix products, whose rounding depends on a vector's place."""
    shape = len(queries), count
    best = Best(np.full(shape, -1, np.int64), np.full(shape, -np.inf, np.float32))
    size = max(1, min(_SCORES_TOGETHER // len(queries), _NUMBERS_TOGETHER // queries.shape[1]))
    size = -(-size // _GROUP) * _GROUP
    scores = np.empty((size, len(queries)), np.float32)
    for part, begin, mask in zip(parts, begins, allowed, strict=False):
        for start in range(0, len(part), size):
            is_allowed = None if mask is None else mask[start : start + size]
            if is_allowed is not None and not is_allowed.any():
                continue
            vectors = _slice(part, start, start + size)
            _products(vectors, queries, by=by, out=scores[: len(vectors)])
            scores[len(vectors) :] = -np.inf
            if is_allowed is not None:
                scores[: len(vectors)][~is_allowed] = -np.inf
            best = _with_block(best, scores, begin + start)
    return best


def _slice(part, start, stop):
    if isinstance(part, Int8Vectors):
        return replace(part, codes=part.codes[start:stop])
    return part[start:stop]


def _products(vectors, queries, *, by, out=None):
    """The similarity of vectors (B, D) to queries (Q, D), float32 (B, Q); `out` is filled."""
    if out is None:
        out = np.empty((len(vectors), len(queries)), np.float32)
    if by != DOT:
        out[:] = similarities(_float32(vectors[:]), queries, by=by)
    elif isinstance(vectors, Int8Vectors):
        codes = vectors.codes.astype(np.float32)
        np.matmul(codes, (queries * vectors.step).T, out=out)
        out += vectors.middle @ queries.T
    elif len(queries) == 1:
        # Limited by memory, not by arithmetic: threads of a matrix product would wait for another
        # in each block, 0.08 processor seconds of 100,000 x 384 in place of 0.02.
        np.einsum("nd,d->n", _float32(vectors), queries[0], out=out[:, 0])
    else:
        np.matmul(_float32(vectors), queries.T, out=out)
    return out


def _float32(vectors):
    """Finite float16 in float32, as `astype`, which takes eight times as long."""
    if vectors.dtype != np.float16:
        return np.asarray(vectors, np.float32)
    # The sign goes to the sign; exponent and mantissa to their places, where the exponent is
    # smaller than that of float32 by 112.
    widened = vectors.view(np.int16).astype(np.int32)
    widened <<= 13
    widened &= np.int32(-0x70002000)
    scaled = widened.view(np.float32)
    scaled *= np.float32(2.0**112)
    return scaled


def _with_block(best, scores, begin):
    """The best of earlier vectors and of a block: (Q, k), (B, Q) -> (Q, k).

    Groups of vectors are compared by their highest score alone, so that most scores are read once.
    """
    lowest, (queries, top_k) = best.scores.min(axis=1), best.scores.shape
    groups = scores.reshape(-1, _GROUP, queries)
    highest = groups.max(axis=1)
    is_better = highest > lowest
    if top_k <= len(groups) and np.count_nonzero(is_better) > best.scores.size:
        # k groups have a score of at least this one.
        bound = np.partition(highest, -top_k, axis=0)[-top_k]
        lowest = np.maximum(lowest, np.nextafter(bound, -np.inf, dtype=np.float32))
        is_better = highest > lowest
    group, query = np.nonzero(is_better)
    if not len(group):
        return best
    values = groups[group, :, query]
    hit, place = np.nonzero(values > lowest[query][:, None])
    row, query, values = begin + group[hit] * _GROUP + place, query[hit], values[hit, place]
    # The new ones of each query in columns of their own, after the earlier ones.
    counts = np.bincount(query, minlength=queries)
    order = np.argsort(query, kind="stable")
    column = top_k + np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = queries, top_k + counts.max()
    both = Best(np.full(shape, -1, np.int64), np.full(shape, -np.inf, np.float32))
    both.rows[:, :top_k], both.scores[:, :top_k] = best
    both.rows[query[order], column] = row[order]
    both.scores[query[order], column] = values[order]
    chosen = np.argpartition(both.scores, -top_k, axis=1)[:, -top_k:]
    return Best(*(np.take_along_axis(each, chosen, axis=1) for each in both))


def _scored(queries, parts, begins, candidates, *, by, order):
    """The `Best` of candidates (Q, C), each scored by itself, the same in any company."""
    scores = np.full(candidates.shape, -np.inf, np.float32)
    pairs_per_batch = max(1, _NUMBERS_TOGETHER // queries.shape[1])
    query, place = np.nonzero(candidates >= 0)
    for first in range(0, len(query), pairs_per_batch):
        some = slice(first, first + pairs_per_batch)
        vectors = vectors_of(parts, begins, candidates[query[some], place[some]])
        scores[query[some], place[some]] = _pair_scores(queries[query[some]], vectors, by=by)
    ranks = np.lexsort((candidates, -scores))
    rows, scores = (np.take_along_axis(x, ranks, axis=1) for x in (candidates, scores))
    if order is not None:
        is_tied = (scores[:, 1:] == scores[:, :-1]) & (rows[:, 1:] >= 0)
        for number in np.flatnonzero(is_tied.any(axis=1)):
            found_count = int(np.count_nonzero(rows[number] >= 0))
            keys = np.asarray(order(rows[number, :found_count]))
            ranks = np.lexsort((keys, -scores[number, :found_count]))
            rows[number, :found_count] = rows[number, :found_count][ranks]
    return Best(rows, scores)


def _pair_scores(queries, vectors, *, by):
    """The similarity of rows one by one, (M, D), (M, D) -> float32 (M,)."""
    if by == DOT:
        return np.einsum("md,md->m", queries, vectors)
    return pair_similarities(queries, vectors, by=by)


def vectors_of(parts: Sequence[Any], begins: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The vectors with some numbers (M,), float32 (M, D); `begins` are the first of each part."""
    vectors = None
    part_of_row = np.searchsorted(begins, rows, side="right") - 1
    for part in np.unique(part_of_row):
        wanted = part_of_row == part
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
            scores = _products(others, vectors, by=by).T
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
