"""Masking for masked language models: one law, for the data jobs and for training.

The jobs mask rows once, as they write them (static); training masks whole batches afresh in each
epoch (dynamic), through `tf.numpy_function`. Both call `Masker.mask`. All random numbers are a
function of an example's key, which `example_keys` makes from the example itself, the seed and the
epoch: an example gets the same masks in every batch and in every process.

Legend of shapes: R rows, S length of a row, W words of a row, N predictions of all rows together.
Numpy alone.
"""

import dataclasses

import numpy as np

from keras_bert.base.errors import InputError

UNITS = ("token", "whole-word", "span")

# Of the chosen tokens 80 % become [MASK], 10 % stay, 10 % become another (Devlin et al. 2019, 3.1).
_MASKED, _KEPT = 0.8, 0.9

# SpanBERT (Joshi et al. 2019, 3.1): span lengths are geometric with p = 0.2, at most 10 words. Cut
# off at 10 and scaled up to 1 again, their mean is the 3.8 words of the paper.
SPAN_P, SPAN_WORDS = 0.2, 10
_SPAN_FRACTIONS = SPAN_P * (1 - SPAN_P) ** np.arange(SPAN_WORDS)
_SPAN_LIMITS = np.cumsum(_SPAN_FRACTIONS / _SPAN_FRACTIONS.sum())[:-1]

# What a random number is for: draws for different purposes are independent.
_CHOICE, _LENGTH, _OUTCOME, _REPLACEMENT = range(4)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_POSITION_BITS = np.uint64(20)  # rows are shorter than 2**20 tokens


@dataclasses.dataclass(frozen=True)
class Masked:
    """Masked rows. A pair (values (N,), lengths (R,)) holds the rows' values one after another.

    `input_ids` (R, S) is what the model sees, `positions` and `ids` are pairs: where tokens were
    chosen, in rising order, and what stood there. `span_left`, `span_right` and `span_offset` are
    pairs for the unit "span" and None for others: the positions of the tokens just outside the
    span of each chosen token (never masked themselves), and its place in the span, from 1.
    """

    input_ids: np.ndarray
    positions: tuple
    ids: tuple
    span_left: tuple | None = None
    span_right: tuple | None = None
    span_offset: tuple | None = None


class Masker:
    """Chooses tokens and hides them, 80/10/10, in batches of rows.

    - `vocabulary` gives `mask_id`, `special_ids` (never chosen and never drawn as a replacement)
      and `word_starts` (ids (R, S) -> bool (R, S), where words are masked whole).
    - `unit`: "token" draws single tokens; "whole-word" draws words, skipping those that no longer
      fit into the number of predictions, as google-research/bert does; "span" draws runs of whole
      words as SpanBERT does, with one 80/10/10 draw a span, at least one word apart. A word of
      which a token cannot be chosen (an unknown character is [UNK]) is not chosen at all.
    - `rate`: of `n` tokens of a row, special ones counted in, `round(n * rate)` are chosen: at
      least one, at most `max_predictions` (`most_predictions`). Where only whole words can be
      chosen it may be fewer.
    - `unigram_counts` (V,): replacements are drawn in proportion to them; None draws uniformly.
    """

    def __init__(self, *, vocabulary, unit, rate, max_predictions, unigram_counts=None):
        if unit not in UNITS:
            raise ValueError(f"`unit` must be one of {UNITS}. Received: {unit!r}")
        if not 0 < rate <= 1:
            raise ValueError(f"`rate` must be above 0 and at most 1. Received: {rate}")
        if max_predictions < 1:
            raise ValueError(f"`max_predictions` must be positive. Received: {max_predictions}")
        self.unit = unit
        self.rate = rate
        self.max_predictions = max_predictions
        self._mask_id = vocabulary.mask_id
        if self._mask_id is None:
            raise InputError(
                "Masked tokens need a mask token, which the tokenizer does not have; give a "
                "vocabulary with one, such as [MASK]."
            )
        self._word_starts = vocabulary.word_starts
        self._special = np.zeros(len(vocabulary), bool)
        self._special[vocabulary.special_ids] = True
        self._ordinary = np.flatnonzero(~self._special).astype(np.int32)
        if not len(self._ordinary):
            raise ValueError("The vocabulary must hold a piece that is not special.")
        self._limits = None
        if unigram_counts is not None:
            fractions = np.asarray(unigram_counts, np.float64)[self._ordinary]
            if not fractions.sum() > 0:
                raise ValueError("`unigram_counts` must count an ordinary piece.")
            self._limits = np.cumsum(fractions / fractions.sum())[:-1]

    def mask(self, input_ids, lengths, keys):
        """Masks a batch.

        Shapes: int `input_ids` (R, S), of which the first `lengths` (R,) tokens of each row are
        text and special tokens and the rest padding; uint64 `keys` (R,) from `example_keys`.
        Returns `Masked`; the input is left as it is.
        """
        inside = np.arange(input_ids.shape[1]) < np.asarray(lengths)[:, None]
        candidates = inside & ~self._special[input_ids]  # (R, S)
        budgets = most_predictions(lengths, rate=self.rate, max_predictions=self.max_predictions)
        starts = ends = None
        if self.unit == "token":
            rows, positions = np.nonzero(_choose_tokens(candidates, budgets, keys))
        else:
            first = self._word_starts(input_ids)
            words = _Words(_whole(candidates, first), first)
            if self.unit == "whole-word":
                rows, positions = np.nonzero(_choose_words(words, budgets, keys))
            else:
                rows, positions, starts, ends = _choose_spans(words, budgets, keys)
        # Rows and positions (N,); positions rise within a row.
        counts = np.bincount(rows, minlength=len(input_ids))
        # The place of the draw that decides: of the token itself, or of the start of its span.
        decisive = positions if starts is None else starts
        masked = np.array(input_ids)
        masked[rows, positions] = self._hide(
            input_ids[rows, positions], keys[rows], positions, decisive
        )
        result = Masked(
            input_ids=masked,
            positions=(positions, counts),
            ids=(input_ids[rows, positions], counts),
        )
        if starts is None:
            return result
        return dataclasses.replace(
            result,
            span_left=(starts - 1, counts),
            span_right=(ends, counts),
            span_offset=(positions - starts + 1, counts),
        )

    def _hide(self, ids, keys, positions, decisive):
        """What the model sees in place of `ids` (N,)."""
        outcome = _uniform(_bits(keys, _OUTCOME, decisive))
        draw = _uniform(_bits(keys, _REPLACEMENT, positions))
        if self._limits is None:
            drawn = (draw * len(self._ordinary)).astype(np.int64)
        else:
            drawn = np.searchsorted(self._limits, draw, side="right")
        return np.where(
            outcome < _MASKED, self._mask_id, np.where(outcome < _KEPT, ids, self._ordinary[drawn])
        )


def most_predictions(lengths, *, rate, max_predictions):
    """How many tokens of a row are masked, or where words are masked whole, at most.

    Shapes: int (…), tokens of rows, special ones counted in -> int64 (…).
    """
    return np.rint(np.asarray(lengths) * rate).astype(np.int64).clip(1, max_predictions)


def example_keys(input_ids, lengths, *, seed, epoch):
    """Keys of rows, uint64 (R,): a hash of each row's tokens, the seed and the epoch.

    `input_ids` (R, S) as `Masker.mask` takes them, before masking; padding does not count. `epoch`
    is the number of the epoch, or in a job that writes several copies the number of the copy: one
    for all rows, or (R,).
    """
    inside = np.arange(input_ids.shape[1]) < np.asarray(lengths)[:, None]
    position = np.arange(input_ids.shape[1], dtype=np.uint64) << np.uint64(32)
    content = np.where(inside, _mix(input_ids.astype(np.uint64) + position), np.uint64(0))
    with np.errstate(over="ignore"):
        moment = _mix(
            np.asarray(epoch).astype(np.uint64) + _mix(np.array([seed]).astype(np.uint64))
        )
        return _mix(content.sum(axis=1, dtype=np.uint64) + moment)


def unmask(input_ids, positions, ids):
    """The original of masked rows: (R, S) from the fields of `Masked`."""
    values, counts = positions
    original = np.array(input_ids)
    original[np.repeat(np.arange(len(input_ids)), counts), values] = ids[0]
    return original


def _whole(candidates, first):
    """Leaves those candidates (R, S) of whose word every token is one; `first` (R, S) starts it."""
    torn = ~first[:, 1:] & (candidates[:, 1:] != candidates[:, :-1])
    rows = np.flatnonzero(torn.any(axis=1))
    if not len(rows):  # always so with WordPiece, where an unknown word is one [UNK]
        return candidates
    starts = np.flatnonzero(first[rows])
    tokens = candidates[rows].ravel()
    whole = np.repeat(np.logical_and.reduceat(tokens, starts), np.diff(starts, append=len(tokens)))
    result = np.array(candidates)
    result[rows] = whole.reshape(len(rows), -1)
    return result


class _Words:
    """The words of a batch of rows: runs of candidates that are one word each.

    `candidates` (R, S) has every token of a word or none, `first` (R, S) starts words. `of_token`
    (R, S) numbers the words of a row from 0 (-1: not a candidate), `starts` and `ends` (R, W) are
    their first position and the one after their last, `runs` (R, W) number the stretches without a
    special token, `counts` (R,) tells how many there are.
    """

    def __init__(self, candidates, first):
        before = np.zeros_like(candidates)
        before[:, 1:] = candidates[:, :-1]
        first = candidates & first
        after = np.ones_like(candidates)
        after[:, :-1] = (first | ~candidates)[:, 1:]
        self.of_token = np.where(candidates, np.cumsum(first, axis=1) - 1, -1)
        self.counts = first.sum(axis=1)
        shape = (len(candidates), max(1, int(self.counts.max(initial=0))))
        self.starts = np.zeros(shape, np.int64)
        self.ends = np.zeros(shape, np.int64)
        self.runs = np.full(shape, -1)
        rows, positions = np.nonzero(first)
        numbers = self.of_token[rows, positions]
        self.starts[rows, numbers] = positions
        self.runs[rows, numbers] = np.cumsum(candidates & ~before, axis=1)[rows, positions]
        rows, positions = np.nonzero(candidates & after)
        self.ends[rows, self.of_token[rows, positions]] = positions + 1


def _choose_tokens(candidates, budgets, keys):
    """Marks `budgets` (R,) candidates of each row, all sets being equally likely."""
    noise = _noise(keys, candidates)  # (R, S)
    ranked = np.sort(noise, axis=1)
    wanted = np.minimum(budgets, candidates.sum(axis=1))
    limits = ranked[np.arange(len(ranked)), np.maximum(wanted, 1) - 1]
    return (noise <= limits[:, None]) & candidates


def _choose_words(words, budgets, keys):
    """Marks words in random order, each if it still fits into its row's budget."""
    rows, width = words.starts.shape
    order = np.argsort(_noise(keys, np.arange(width) < words.counts[:, None]), axis=1)
    sizes = np.take_along_axis(words.ends - words.starts, order, axis=1)  # (R, W)
    chosen = np.zeros((rows, width + 1), bool)  # the last column is for tokens of no word
    left = np.array(budgets)
    active = np.flatnonzero(words.counts)
    for rank in range(width):
        size = sizes[active, rank]
        fits = size <= left[active]
        taking = active[fits]
        chosen[taking, order[taking, rank]] = True
        left[taking] -= size[fits]
        # Most rows have spent their budget after the first twenty words.
        active = active[(left[active] > 0) & (rank + 1 < words.counts[active])]
        if not len(active):
            break
    return np.take_along_axis(chosen, words.of_token, axis=1)


def _choose_spans(words, budgets, keys):
    """Chooses spans of whole words until each row's budget is spent.

    In each round every row that is not done draws a length and a word to start at. A span ends
    early at a special token, a word before another span, or where the budget ends (with a whole
    word); one that cannot start is given up. Returns for each token of the spans its row, its
    position, the first position of its span and the one after its last, (N,) each, by row and
    position.
    """
    rows, width = words.starts.shape
    closed = np.zeros((rows, width + SPAN_WORDS), bool)  # in a span or beside one
    closed[:, :width] = np.arange(width) >= words.counts[:, None]
    closed[:, width:] = True
    runs = np.pad(words.runs, ((0, 0), (0, SPAN_WORDS)), constant_values=-1)
    word_ends = np.pad(words.ends, ((0, 0), (0, SPAN_WORDS)))
    left = np.array(budgets)
    steps, columns = np.arange(SPAN_WORDS), np.arange(width)
    active = np.flatnonzero(words.counts)
    found = [np.zeros((3, 0), np.int64)]  # rows, first positions and ends of spans
    # A row of 20 predictions needs about 5 spans; a row whose rest no word fits gives up here.
    for attempt in range(4 * int(budgets.max(initial=0)) + 8):
        if not len(active):
            break
        position = np.full(len(active), attempt)
        draw = _uniform(_bits(keys[active], _CHOICE, position))
        first = (draw * words.counts[active]).astype(np.int64)
        length = 1 + np.searchsorted(
            _SPAN_LIMITS, _uniform(_bits(keys[active], _LENGTH, position)), side="right"
        )
        at = active[:, None], first[:, None] + steps  # (A, 10)
        begin = words.starts[active, first]
        fits = word_ends[at] - begin[:, None] <= left[active][:, None]
        fits &= ~closed[at] & (runs[at] == runs[active, first][:, None])
        fits &= steps < length[:, None]
        size = np.logical_and.accumulate(fits, axis=1).sum(axis=1)  # words of the span
        starts = size > 0
        row, first, size, begin = active[starts], first[starts], size[starts], begin[starts]
        end = words.ends[row, first + size - 1]
        beside = (columns >= first[:, None] - 1) & (columns <= (first + size)[:, None])
        closed[row, :width] |= beside
        left[row] -= end - begin
        found.append(np.stack([row, begin, end]))
        active = active[left[active] > 0]
    row, begin, end = np.concatenate(found, axis=1)
    order = np.lexsort((begin, row))
    row, begin, end = row[order], begin[order], end[order]
    sizes = end - begin
    token = np.repeat(np.arange(len(row)), sizes)
    positions = np.arange(len(token)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + begin[token]
    return row[token], positions, begin[token], end[token]


def _noise(keys, allowed):
    """Different random numbers (R, n) where `allowed` (R, n), and the highest where not."""
    positions = np.arange(allowed.shape[1], dtype=np.uint64)
    noise = _bits(keys[:, None], _CHOICE, positions)
    noise = (noise >> _POSITION_BITS << _POSITION_BITS) | positions  # no two alike in a row
    return np.where(allowed, noise, np.uint64(2**64 - 1))


def _bits(keys, purpose, positions):
    """64 random bits for each key and place."""
    with np.errstate(over="ignore"):
        counter = (np.asarray(positions).astype(np.uint64) << np.uint64(8)) + np.uint64(purpose + 1)
        return _mix(keys + counter * _GOLDEN)


def _mix(x):
    """The finalizer of SplitMix64 (Steele, Lea & Flood 2014): every bit depends on every bit."""
    with np.errstate(over="ignore"):
        x = x + _GOLDEN
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def _uniform(bits):
    """Numbers in [0, 1) from the upper 53 bits."""
    return (bits >> np.uint64(11)) * 2.0**-53
