"""What comes out for one text."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class TextEmbedding:
    """The vectors of one text (T its tokens: words, or pieces where these were asked for; D width).

    Attributes:
        line: where the text stands in its file or sequence, from 1.
        text: the text.
        starts, ends: int32 (T,), the place of each token: `text[start:end]`, in characters.
        vectors: float32 (T, D), the vector of each token.
        cls: float32 (D,), the vector of [CLS].
        mean: float32 (D,), the mean over all pieces of the text, [CLS] and [SEP] counted in, as
            sentence-transformers has it.
    """

    line: int
    text: str
    starts: np.ndarray
    ends: np.ndarray
    vectors: np.ndarray
    cls: np.ndarray
    mean: np.ndarray

    @property
    def tokens(self) -> list[str]:
        """The tokens as they stand in the text, a list of T strings."""
        places = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [self.text[start:end] for start, end in places]
