"""Batches of about as many tokens each, of rows of about one length."""

import numpy as np

# A compiler meets at most so many shapes.
_WIDTHS = 8


def bucket_widths(max_length):
    """The widths that rows are padded to: rising, multiples of 8 but for the last, `max_length`."""
    step = 8 * -(-max_length // (8 * _WIDTHS))
    return [*range(step, max_length, step), max_length]


def token_batches(lengths, *, max_length, tokens, rng):
    """Parts rows into batches of at most `tokens` positions, all of a width of as many rows.

    What does not fill a batch goes into the next wider ones; of the widest, the last batch is
    filled up. Every row is in one batch, and the order of the batches is drawn.

    Shapes: lengths int (N,), in the order in which rows are taken -> (rows int32 (M,), of all
    batches one after another, -1 where a batch is filled up; sizes int32 (K,); widths int32 (K,)).

    Args:
        max_length: of a row; at most `tokens`.
        tokens: positions of a batch, padding counted in.
        rng: a numpy generator.
    """
    batches, waiting, narrower = [], np.empty(0, np.int32), 0
    for width in bucket_widths(max_length):
        own = np.flatnonzero((lengths > narrower) & (lengths <= width)).astype(np.int32)
        rows, size, narrower = np.concatenate([waiting, own]), tokens // width, width
        whole = len(rows) // size * size
        batches += [(batch, width) for batch in rows[:whole].reshape(-1, size)]
        waiting = rows[whole:]
    if len(waiting):
        filling = np.full(size - len(waiting), -1, np.int32)
        batches.append((np.concatenate([waiting, filling]), max_length))
    batches = [batches[number] for number in rng.permutation(len(batches))]
    rows = np.concatenate([np.empty(0, np.int32), *(batch for batch, _ in batches)])
    sizes = np.array([len(batch) for batch, _ in batches], np.int32)
    return rows, sizes, np.array([width for _, width in batches], np.int32)


def tokens_a_batch(histogram, *, tokens):
    """The tokens of a batch on average, padding not counted, or None where nothing is known.

    `histogram` (S + 1,) counts rows by their tokens.
    """
    counts = np.asarray(histogram)
    if not counts.sum():
        return None
    lengths = np.arange(len(counts))
    widths = np.array(bucket_widths(len(counts) - 1))
    of_length = widths[np.searchsorted(widths, lengths)]
    return float((counts * lengths).sum() / (counts / (tokens // of_length)).sum())
