"""Texts longer than a row: read in rows that overlap, each token where it has the most context."""

from typing import NamedTuple

import numpy as np

# The share of a row that it has in common with the next. A token on the border between two rows
# then sees at least an eighth of a row on either side.
_OVERLAP = 1 / 4


class Windows(NamedTuple):
    """Windows of tokens that cover some texts, int (W,) each; W is at least the number of texts.

    Window w is a row for the model: the tokens [first, last) of text `text`. The vectors of its
    tokens [keep_first, keep_last) come from it. What the windows of a text keep is all its tokens,
    each once.
    """

    text: np.ndarray
    first: np.ndarray
    last: np.ndarray
    keep_first: np.ndarray
    keep_last: np.ndarray


def windows_of(lengths, *, room):
    """The `Windows` of texts of so many tokens, when at most `room` tokens fit into a row.

    Shapes: lengths (N,) int. The windows are in the order of the texts, and inside a text from left
    to right. A text that fits is one window; an empty one is an empty window.
    """
    windows = []
    for text, length in enumerate(np.asarray(lengths).tolist()):
        starts = _starts(length, room)
        ends = [min(start + room, length) for start in starts]
        # Halfway through what two neighbours share, a token has as much on either side.
        middles = [(a + b) // 2 for a, b in zip(starts[1:], ends[:-1], strict=True)]
        windows += zip(
            [text] * len(starts), starts, ends, [0, *middles], [*middles, length], strict=True
        )
    return Windows(*np.array(windows, np.int64).reshape(-1, 5).T)


def _starts(length, room):
    if length <= room:
        return [0]
    overlap = min(int(room * _OVERLAP), room - 1)
    count = -(-(length - overlap) // (room - overlap))
    return np.linspace(0, length - room, count).astype(int).tolist()
