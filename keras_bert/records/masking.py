"""Masking for masked language models: one function, for the data jobs and for training.

The jobs mask examples once, as they write them (static); training masks whole batches afresh in
each epoch (dynamic), through `tf.numpy_function`. All random numbers are a function of an example's
key, which `example_keys` derives from its tokens, the seed and the epoch: an example gets the same
masks in every batch and in every process.

Legend of shapes: R examples, S length of an example, W words of an example, N predictions of all
examples together. Numpy only.
"""

import dataclasses

import numpy as np

from keras_bert.base.errors import InputError

UNITS = ("token", "whole-word", "span")

# 80 % of the chosen tokens become [MASK], 10 % are kept, 10 % replaced (Devlin et al. 2019, 3.1).
_MASKED, _KEPT = 0.8, 0.9

# SpanBERT (Joshi et al. 2019, 3.1): span lengths are geometric with p = 0.2, at most 10 words. With
# the probabilities up to 10 scaled to sum to 1, their mean is the 3.8 words of the paper.
SPAN_P, SPAN_WORDS = 0.2, 10
_SPAN_FRACTIONS = SPAN_P * (1 - SPAN_P) ** np.arange(SPAN_WORDS)
_SPAN_LIMITS = np.cumsum(_SPAN_FRACTIONS / _SPAN_FRACTIONS.sum())[:-1]

# The purposes of random numbers: draws for different purposes are independent. The last three are
# of static vectors (`keras_bert.tasks.pretraining.static_vectors`).
_CHOICE, _LENGTH, _OUTCOME, _REPLACEMENT, SUBSAMPLING, WINDOW, NEGATIVE = range(7)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_POSITION_BITS = np.uint64(20)  # examples are shorter than 2**20 tokens


@dataclasses.dataclass(frozen=True)
class Masked:
    """Masked examples. A pair (values (N,), counts (R,)) has all values, one example after another.

    `input_ids` (R, S) is the model's input. `positions` and `ids` are pairs: the positions of the
    chosen tokens in ascending order, and the original tokens. `span_left`, `span_right` and
    `span_offset` are pairs for the unit "span", else None: the positions of the tokens just outside
    the span of each chosen token (never masked themselves), and its offset in the span, from 1.
    """

    input_ids: np.ndarray
    positions: tuple
    ids: tuple
    span_left: tuple | None = None
    span_right: tuple | None = None
    span_offset: tuple | None = None


class Masker:
    """Chooses tokens and masks them, 80/10/10, in batches of examples.

    Args:
        vocabulary: has `mask_id`, `special_ids` (never chosen, never drawn as a replacement) and,
            for whole words, `word_starts` (ids (R, S) -> bool (R, S)).
        unit: "token" draws single tokens; "whole-word" draws words, and skips those that exceed the
            number of predictions, as google-research/bert does; "span" draws runs of whole words as
            SpanBERT does, with one 80/10/10 draw per span, at least one word apart. A word with a
            token that cannot be chosen (an unknown character is [UNK]) is never chosen.
        rate: of `n` tokens of an example, special ones included, `round(n * rate)` are chosen: at
            least one, at most `max_predictions`. With whole words there may be fewer.
        max_predictions: the maximum number of chosen tokens per example.
        unigram_counts: (V,), replacements are drawn in proportion to them; None draws uniformly.
    """

    def __init__(self, *, vocabulary, unit, rate, max_predictions, unigram_counts=None):
        if unit not in UNITS:
            raise ValueError(f"`unit` must be one of {UNITS}. Received: {unit!r}.")
        if not 0 < rate <= 1:
            raise ValueError(f"`rate` must be above 0 and at most 1. Received: {rate}.")
        if max_predictions < 1:
            raise ValueError(f"`max_predictions` must be positive. Received: {max_predictions}.")
        self.unit = unit
        self.rate = rate
        self.max_predictions = max_predictions
        self._mask_id = vocabulary.mask_id
        if self._mask_id is None:
            raise InputError(
                "The tokenizer has no mask token. Masked language modeling needs a vocabulary with "
                "one, such as [MASK]."
            )
        self._word_starts = vocabulary.word_starts
        self._special = np.zeros(len(vocabulary), bool)
        self._special[vocabulary.special_ids] = True
        self._ordinary = np.flatnonzero(~self._special).astype(np.int32)
        if not len(self._ordinary):
            raise ValueError("The vocabulary must have a token that is not special.")
        self._limits = None
        if unigram_counts is not None:
            fractions = np.asarray(unigram_counts, np.float64)[self._ordinary]
            if not fractions.sum() > 0:
                raise ValueError("`unigram_counts` must count an ordinary token.")
            self._limits = np.cumsum(fractions / fractions.sum())[:-1]

    def mask(self, input_ids, lengths, keys):
        """Masks a batch.

        Shapes: int `input_ids` (R, S), of which the first `lengths` (R,) tokens per example are
        text and special tokens and the rest padding; uint64 `keys` (R,) from `example_keys`.
        Returns `Masked`; the input is not changed.
        """
        inside = np.arange(input_ids.shape[1]) < np.asarray(lengths)[:, None]
        candidates = inside & ~self._special[input_ids]  # (R, S)
        budgets = most_predictions(lengths, rate=self.rate, max_predictions=self.max_predictions)
        starts = ends = None
        if self.unit == "token":
            examples, positions = np.nonzero(_choose_tokens(candidates, budgets, keys))
        else:
            first = self._word_starts(input_ids)
            words = _Words(_whole(candidates, first), first)
            if self.unit == "whole-word":
                examples, positions = np.nonzero(_choose_words(words, budgets, keys))
            else:
                examples, positions, starts, ends = _choose_spans(words, budgets, keys)
        # examples and positions (N,), positions in ascending order within an example
        counts = np.bincount(examples, minlength=len(input_ids))
        originals = input_ids[examples, positions]
        # All tokens of a span have the outcome that is drawn for its start.
        decisive = positions if starts is None else starts
        masked = np.array(input_ids)
        masked[examples, positions] = self._hide(originals, keys[examples], positions, decisive)
        result = Masked(input_ids=masked, positions=(positions, counts), ids=(originals, counts))
        if starts is None:
            return result
        return dataclasses.replace(
            result,
            span_left=(starts - 1, counts),
            span_right=(ends, counts),
            span_offset=(positions - starts + 1, counts),
        )

    def _hide(self, ids, keys, positions, decisive):
        """The model's input in place of `ids` (N,)."""
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
    """The number of tokens to mask; with whole words the maximum.

    Shapes: int (…), tokens of examples, special ones included -> int64 (…).
    """
    return np.rint(np.asarray(lengths) * rate).astype(np.int64).clip(1, max_predictions)


def example_keys(input_ids, lengths, *, seed, epoch):
    """Keys of examples, uint64 (R,): a hash of the tokens of each, the seed and the epoch.

    `input_ids` (R, S) and `lengths` (R,) as `Masker.mask` takes them, before masking. `epoch` is
    the number of the epoch, or in a job the number of the copy: one for all examples, or (R,).
    """
    inside = np.arange(input_ids.shape[1]) < np.asarray(lengths)[:, None]
    position = np.arange(input_ids.shape[1], dtype=np.uint64) << np.uint64(32)
    content = np.where(inside, _mix(input_ids.astype(np.uint64) + position), np.uint64(0))
    with np.errstate(over="ignore"):
        moment = _mix(
            np.asarray(epoch).astype(np.uint64) + _mix(np.array([seed]).astype(np.uint64))
        )
        return _mix(content.sum(axis=1, dtype=np.uint64) + moment)


def uniform(keys, purpose, positions):
    """Random numbers in [0, 1), float64: a function of key, purpose and position, broadcast."""
    return _uniform(_bits(keys, purpose, positions))


def _whole(candidates, first):
    """The candidates (R, S) in words all of whose tokens are candidates; `first` starts words."""
    torn = ~first[:, 1:] & (candidates[:, 1:] != candidates[:, :-1])
    examples = np.flatnonzero(torn.any(axis=1))
    if not len(examples):  # always so with WordPiece, where an unknown word is one [UNK]
        return candidates
    starts = np.flatnonzero(first[examples])
    tokens = candidates[examples].ravel()
    whole = np.repeat(np.logical_and.reduceat(tokens, starts), np.diff(starts, append=len(tokens)))
    result = np.array(candidates)
    result[examples] = whole.reshape(len(examples), -1)
    return result


class _Words:
    """The words of a batch of examples: runs of candidates, each a whole word.

    `word_of_token` (R, S) is the number of each token's word in its example, from 0 (-1: not a
    candidate). `starts` and `ends` (R, W) are the first position of a word and the one after its
    last; `runs` (R, W) numbers the stretches without a special token; `counts` (R,) are the numbers
    of words.
    """

    def __init__(self, candidates, first):
        before = np.zeros_like(candidates)
        before[:, 1:] = candidates[:, :-1]
        first = candidates & first
        after = np.ones_like(candidates)
        after[:, :-1] = (first | ~candidates)[:, 1:]
        self.word_of_token = np.where(candidates, np.cumsum(first, axis=1) - 1, -1)
        self.counts = first.sum(axis=1)
        shape = (len(candidates), max(1, int(self.counts.max(initial=0))))
        self.starts = np.zeros(shape, np.int64)
        self.ends = np.zeros(shape, np.int64)
        self.runs = np.full(shape, -1)
        at = examples, positions = np.nonzero(first)
        numbers = self.word_of_token[at]
        self.starts[examples, numbers] = positions
        self.runs[examples, numbers] = np.cumsum(candidates & ~before, axis=1)[at]
        at = examples, positions = np.nonzero(candidates & after)
        self.ends[examples, self.word_of_token[at]] = positions + 1


def _choose_tokens(candidates, budgets, keys):
    """Marks `budgets` (R,) random candidates per example."""
    noise = _noise(keys, candidates)  # (R, S)
    ranked = np.sort(noise, axis=1)
    wanted = np.minimum(budgets, candidates.sum(axis=1))
    limits = ranked[np.arange(len(ranked)), np.maximum(wanted, 1) - 1]
    return (noise <= limits[:, None]) & candidates


def _choose_words(words, budgets, keys):
    """Marks words in random order, each if it still fits into the budget of its example."""
    count, most = words.starts.shape
    order = np.argsort(_noise(keys, np.arange(most) < words.counts[:, None]), axis=1)
    sizes = np.take_along_axis(words.ends - words.starts, order, axis=1)  # (R, W)
    chosen = np.zeros((count, most + 1), bool)  # the last column is for tokens outside words
    left = np.array(budgets)
    active = np.flatnonzero(words.counts)
    for rank in range(most):
        size = sizes[active, rank]
        fits = size <= left[active]
        taking = active[fits]
        chosen[taking, order[taking, rank]] = True
        left[taking] -= size[fits]
        # Most examples have spent their budget after the first twenty words.
        active = active[(left[active] > 0) & (rank + 1 < words.counts[active])]
        if not len(active):
            break
    return np.take_along_axis(chosen, words.word_of_token, axis=1)


def _choose_spans(words, budgets, keys):
    """Chooses spans of whole words until the budget of each example is spent.

    In each round every example with a budget left draws a length and a first word. A span ends
    early at a special token, one word before another span, or where the budget ends (with a whole
    word); one that cannot start is skipped. Returns for each token of the spans its example, its
    position, the first position of its span and the one after its last, (N,) each, by example and
    position.
    """
    count, most = words.starts.shape
    closed = np.zeros((count, most + SPAN_WORDS), bool)  # in a span or next to one
    closed[:, :most] = np.arange(most) >= words.counts[:, None]
    closed[:, most:] = True
    runs = np.pad(words.runs, ((0, 0), (0, SPAN_WORDS)), constant_values=-1)
    word_ends = np.pad(words.ends, ((0, 0), (0, SPAN_WORDS)))
    left = np.array(budgets)
    steps, columns = np.arange(SPAN_WORDS), np.arange(most)
    active = np.flatnonzero(words.counts)
    drawn = [np.zeros((3, 0), np.int64)]  # examples, first positions and ends of spans
    # 20 predictions need about 5 spans; an example whose rest fits no word ends here.
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
        example, first, size, begin = active[starts], first[starts], size[starts], begin[starts]
        end = words.ends[example, first + size - 1]
        near = (columns >= first[:, None] - 1) & (columns <= (first + size)[:, None])
        closed[example, :most] |= near
        left[example] -= end - begin
        drawn.append(np.stack([example, begin, end]))
        active = active[left[active] > 0]
    spans = np.concatenate(drawn, axis=1)
    example, begin, end = spans[:, np.lexsort((spans[1], spans[0]))]
    sizes = end - begin
    token = np.repeat(np.arange(len(sizes)), sizes)
    positions = np.arange(len(token)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + begin[token]
    return example[token], positions, begin[token], end[token]


def _noise(keys, allowed):
    """Different random numbers (R, n) where `allowed` (R, n), and the highest where not."""
    positions = np.arange(allowed.shape[1], dtype=np.uint64)
    noise = _bits(keys[:, None], _CHOICE, positions)
    noise = (noise >> _POSITION_BITS << _POSITION_BITS) | positions  # no ties
    return np.where(allowed, noise, np.uint64(2**64 - 1))


def _bits(keys, purpose, positions):
    """64 random bits for each key and position."""
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
