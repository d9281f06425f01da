"""A picture of how alike words are where they stand."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from keras_bert.pictures.canvas import INK, colour_bar, save_picture
from keras_bert.pictures.words import words_in_context

# With more words than this the numbers in the fields would be too small to read.
_MOST_NUMBERS = 16


def draw_similarity(
    *,
    model: object,
    pairs: Sequence[tuple[str, str]],
    output: str | PathLike[str],
    layers: str = "last",
) -> Path:
    """Draws the cosines between the vectors of words in their contexts, as a table.

    Args:
        model: a model folder, or a pair of an encoder and its tokenizer.
        pairs: (text, word) for each row, two or more; the word stands in the text.
        output: the PNG file to write.
        layers: which layers make a vector (see `Embedder`).

    Returns the `Path` of the file.

    Raises:
        InputError: a text lacks its word, or see `save_picture`.
    """
    found = words_in_context(model, pairs, layers=layers)
    values = cosines(np.stack([one.vector for one in found]))
    labels = [one.label for one in found]

    def draw(figure):
        axis = figure.subplots()
        lowest = min(0.0, float(values.min()))
        image = axis.imshow(values, cmap="Blues", vmin=lowest, vmax=1)
        places = range(len(labels))
        axis.set_xticks(places, labels, rotation=45, ha="right", rotation_mode="anchor")
        axis.set_yticks(places, labels)
        for side in axis.spines.values():
            side.set_visible(False)
        if len(labels) <= _MOST_NUMBERS:
            for (row, column), value in np.ndenumerate(values):
                colour = "white" if value > lowest + 0.6 * (1 - lowest) else INK
                axis.text(
                    column,
                    row,
                    f"{value:.2f}",
                    ha="center",
                    va="center",
                    color=colour,
                    fontsize=7.5,
                )
        axis.set_title("Cosine between words in context", loc="left", fontsize=11)
        colour_bar(axis, image, label="cosine")

    edge = 1 + 0.5 * len(labels)
    return save_picture(draw, output, size=(edge, edge))


def cosines(vectors):
    """The cosine of every pair: vectors (N, D) -> (N, N), float64."""
    vectors = vectors.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors @ vectors.T
