"""Learning merges from word counts: the core that WordPiece and byte-pair encoding share.

Again and again the most frequent pair of neighbouring symbols becomes one symbol (Sennrich et al.
2016, algorithm 1). Counting all pairs anew for each merge would take hours; here a merge touches
only the places where its pair stands: an index keeps the places of each pair, a heap the order of
the pairs, and both are put right lazily, when a stale entry comes up.
"""

from array import array
from collections import defaultdict
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from keras_bert.text.vocabulary import MAX_PIECE_BYTES

_EDGE = -1  # between two words
_INSIDE = -2  # not the first place of a symbol


@dataclass(frozen=True)
class Merges:
    """What was learned.

    symbols: every symbol, the given ones first; merges: (left, right) as indices into `symbols`,
    in the order of learning; counts: for each symbol how often it stands in the words when all
    merges are done.
    """

    symbols: tuple[str, ...]
    merges: tuple[tuple[int, int], ...]
    counts: np.ndarray  # int64, one a symbol


def learn_merges(words, counts, *, symbols, join, tie_key, new_symbols, min_count):
    """Learns merges, the most frequent pair first.

    Args:
        words: a sequence of words, each a sequence of indices into `symbols`.
        counts: how often each word stands in the text, positive integers.
        symbols: strings, the symbols to begin with.
        join: function of two strings, the symbol that their merge makes.
        tie_key: function of a symbol. Among pairs of equal count the one with the smallest
            (tie_key(right), tie_key(left)) goes first.
        new_symbols: stop when this many symbols have been made (a pair that makes a symbol which
            exists already is merged, but makes none).
        min_count: stop when no pair is as frequent as this.

    Returns `Merges`. The result does not depend on the order of the words.
    """
    symbols = list(symbols)
    index = {symbol: i for i, symbol in enumerate(symbols)}
    width = [1] * len(symbols)  # places that a symbol takes up
    keys = [tie_key(symbol) for symbol in symbols]
    at, first, weight = _lay_out(words, counts)
    pair_counts, places = _index_pairs(at, weight)
    # A pair is one integer: left << 32 | right.
    heap = [
        (-count, keys[pair & 0xFFFFFFFF], keys[pair >> 32], pair)
        for pair, count in pair_counts.items()
    ]
    heapify(heap)
    merges = []
    wanted = len(symbols) + new_symbols
    while heap and len(symbols) < wanted:
        negative, right_key, left_key, pair = heappop(heap)
        count = pair_counts.get(pair, 0)
        if count < min_count:
            if -negative < min_count:
                break  # the others are rarer still
            continue
        if count != -negative:
            heappush(heap, (-count, right_key, left_key, pair))
            continue

        left, right = pair >> 32, pair & 0xFFFFFFFF
        joined = join(symbols[left], symbols[right])
        if len(joined.encode("utf-8")) > MAX_PIECE_BYTES:
            continue  # no tokenizer could look for it
        merges.append((left, right))
        made = index.setdefault(joined, len(symbols))
        if made == len(symbols):
            symbols.append(joined)
            width.append(width[left] + width[right])
            keys.append(tie_key(joined))
        where = places.pop(pair)
        if left == right:
            where = sorted(where)  # in "aaa" the first two are merged
        del pair_counts[pair]
        grown = _merge_at(where, left, right, made, at, first, weight, width, pair_counts, places)
        for other in grown:
            heappush(
                heap, (-pair_counts[other], keys[other & 0xFFFFFFFF], keys[other >> 32], other)
            )
    return Merges(tuple(symbols), tuple(merges), _count_symbols(at, weight, len(symbols)))


def _merge_at(where, left, right, made, at, first, weight, width, pair_counts, places):
    """Merges one pair at its places; returns the pairs that have become more frequent."""
    left_width = width[left]
    made_width = left_width + width[right]
    # neighbour -> where the pair that it makes with the new symbol begins
    befores, afters = defaultdict(list), defaultdict(list)
    for place in where:
        right_place = place + left_width
        if at[place] != left or at[right_place] != right:
            continue  # merged into something else meanwhile
        at[right_place] = _INSIDE
        at[place] = made
        after = place + made_width
        first[after - 1] = place
        before = first[place - 1]
        neighbour = at[before]
        if neighbour >= 0:
            befores[neighbour].append(before)
        neighbour = at[after]
        if neighbour >= 0:
            afters[neighbour].append(place)
    # What a pair with the new symbol gains is what the pair with the old one loses. All gains come
    # first: where the pair stood twice in a row, "abab", one of the new pairs is lost again.
    grown, losses = [], []
    for neighbour, found in befores.items():
        grown.append(neighbour << 32 | made)
        losses.append(
            (neighbour << 32 | left, _gain(grown[-1], found, weight, pair_counts, places))
        )
    for neighbour, found in afters.items():
        grown.append(made << 32 | neighbour)
        losses.append(
            (right << 32 | neighbour, _gain(grown[-1], found, weight, pair_counts, places))
        )
    for pair, count in losses:
        if pair in pair_counts:  # not where it is the pair that is merged
            pair_counts[pair] -= count
    return grown


def _gain(pair, found, weight, pair_counts, places):
    """Gives a pair further places; returns how often they stand in the text."""
    count = sum(map(weight.__getitem__, found))
    if pair in pair_counts:
        pair_counts[pair] += count
        places[pair].extend(found)
    else:
        pair_counts[pair] = count
        places[pair] = array("q", found)
    return count


def _lay_out(words, counts):
    """All words in one row of places, with an edge before, between and after them.

    Returns (at, first, weight): the symbol that begins at a place (or _EDGE or _INSIDE); the first
    place of the symbol whose last place this is; the count of the word that the place is in.
    """
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
    ends = np.cumsum(lengths + 1)
    at = np.full(int(ends[-1]) + 1 if len(words) else 1, _EDGE, dtype=np.int64)
    inside = np.ones(len(at), dtype=np.bool_)
    inside[0] = False
    inside[ends] = False
    at[inside] = np.fromiter((s for word in words for s in word), dtype=np.int64)
    weight = np.zeros(len(at), dtype=np.int64)
    weight[inside] = np.repeat(np.asarray(counts, dtype=np.int64), lengths)
    first = np.arange(len(at), dtype=np.int64)
    return tuple(array("q", column.tobytes()) for column in (at, first, weight))


def _index_pairs(at, weight):
    """pair -> count, and pair -> its places in rising order."""
    at, weight = (np.frombuffer(column, dtype=np.int64) for column in (at, weight))
    places = np.flatnonzero((at[:-1] >= 0) & (at[1:] >= 0))
    pairs = at[places] << 32 | at[places + 1]
    order = np.argsort(pairs, kind="stable")
    unique, starts = np.unique(pairs[order], return_index=True)
    totals = np.add.reduceat(weight[places[order]], starts) if len(unique) else unique
    groups = np.split(places[order], starts[1:])
    return (
        dict(zip(unique.tolist(), totals.tolist(), strict=True)),
        {p: array("q", g.tobytes()) for p, g in zip(unique.tolist(), groups, strict=False)},
    )


def _count_symbols(at, weight, size):
    at, weight = (np.frombuffer(column, dtype=np.int64) for column in (at, weight))
    counts = np.zeros(size, dtype=np.int64)
    np.add.at(counts, at[at >= 0], weight[at >= 0])
    return counts
