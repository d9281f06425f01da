"""The windows of skip-gram and CBOW: which tokens are kept, their contexts, and the negatives.

All random numbers are functions of the tokens, the seed and the epoch, as those of masks are. Numpy
only. Legend of shapes: B examples, S length of an example, R chunks, C tokens of a chunk, W the
largest window, L = C + 2 W, M negatives of a chunk, V vocabulary.
"""

from typing import NamedTuple

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.records.masking import NEGATIVE, SUBSAMPLING, WINDOW, example_keys, uniform

# Of a chunk: larger ones are larger matrix products, of which a larger part is no context.
CHUNK_TOKENS = 32
CHUNK_NEGATIVES = 32
# Batches differ in their kept tokens; few different numbers of chunks are few compilations of XLA.
_CHUNKS = 8
# The exponent of the unigram distribution (Mikolov et al. 2013, section 2.2).
_POWER = 0.75


class Chunks(NamedTuple):
    """The tokens of a batch in chunks: what `NegativeSampling` takes, and a weight per token."""

    input_ids: np.ndarray  # int32 (R, L)
    sequence_ids: np.ndarray  # int32 (R, L), from 1; 0 at padding
    windows: np.ndarray  # int32 (R, C), 0 at padding
    negatives: np.ndarray  # int32 (R, M)
    contexts: np.ndarray  # float32 (R, C), the number of contexts of each token


class ContextWindows:
    """Makes `Chunks` of batches of examples.

    As in word2vec, special tokens and dropped tokens are taken out before windows are counted, and
    a window's size is uniform from 1 to W for each token.

    Args:
        counts: (V,), how often each token occurs in the text.
        special_ids: the ids that are left out.
        window: W.
        subsample: t; a token with the frequency f is kept with the probability √(t / f) + t / f, as
            in the published program (the paper has √(t / f)); 0 keeps all.

    Raises InputError if no token is counted.
    """

    def __init__(self, counts, special_ids, *, window, subsample):
        counts = np.array(counts, np.float64)
        counts[special_ids] = 0
        if not counts.sum() > 0:
            raise InputError(
                "Static vectors need the number of times that each token occurs, which the data "
                "folder does not have. Run keras-bert pretraining-data again."
            )
        frequency = counts / counts.sum()
        self.window = window
        self.kept = np.ones(len(counts))  # (V,), the probability to be kept
        if subsample:
            ratio = subsample / np.maximum(frequency, 1e-300)
            self.kept = np.minimum(np.sqrt(ratio) + ratio, 1.0)
        self.kept[special_ids] = 0.0
        powers = counts**_POWER
        self.negative = powers / powers.sum()  # (V,), the distribution of the negatives
        self._limits = np.cumsum(self.negative)
        self._last = np.flatnonzero(counts)[-1]

    def __call__(self, ids, segments, lengths, *, seed, epochs):
        """int ids, segments (B, S), lengths, epochs (B,) -> `Chunks`.

        The tokens after `lengths` are padding. Tokens of different segments are no contexts.
        """
        keys = example_keys(ids, lengths, seed=seed, epoch=epochs)
        positions = np.arange(ids.shape[1])
        kept = positions < np.asarray(lengths)[:, None]
        kept &= uniform(keys[:, None], SUBSAMPLING, positions) < self.kept[ids]
        example, position = np.nonzero(kept)  # (N,)
        tokens = ids[kept]
        sequence = 2 * example + segments[kept]
        draw = uniform(keys[example], WINDOW, position)
        windows = 1 + (draw * self.window).astype(np.int32)
        contexts = np.minimum(windows, _before(sequence))
        contexts += np.minimum(windows, _before(sequence[::-1])[::-1])
        row = self._chunked(len(tokens))
        input_ids, sequence_ids = row(tokens, self.window), row(sequence + 1, self.window)
        own = row(tokens, 0)
        keys = example_keys(own, (row(sequence + 1, 0) > 0).sum(axis=1), seed=seed, epoch=epochs[0])
        draw = uniform(keys[:, None], NEGATIVE, np.arange(CHUNK_NEGATIVES))
        negatives = np.searchsorted(self._limits, draw, side="right").clip(max=self._last)
        return Chunks(
            input_ids,
            sequence_ids,
            row(windows, 0),
            negatives.astype(np.int32),
            row(contexts, 0).astype(np.float32),
        )

    def _chunked(self, count):
        """A function from values (N,) and a number of neighbours n to chunks, (R, C + 2 n)."""
        chunks = -(-max(count, 1) // (CHUNK_TOKENS * _CHUNKS)) * _CHUNKS

        def chunked(values, neighbours):
            padded = np.zeros(chunks * CHUNK_TOKENS + 2 * neighbours, np.int32)
            padded[neighbours : neighbours + count] = values
            width = CHUNK_TOKENS + 2 * neighbours
            rows = np.lib.stride_tricks.sliding_window_view(padded, width)[::CHUNK_TOKENS]
            return np.ascontiguousarray(rows)

        return chunked


def _before(sequence):
    """The number of tokens of the same sequence before each token: (N,) -> (N,)."""
    position = np.arange(len(sequence))
    is_first = np.ones(len(sequence), bool)
    is_first[1:] = sequence[1:] != sequence[:-1]
    return position - np.maximum.accumulate(np.where(is_first, position, 0))
