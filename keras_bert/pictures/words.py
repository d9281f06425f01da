"""Pictures of words in context: one in many contexts, and the similarity of some."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.metrics.pairwise import cosine_similarity

from keras_bert.base.errors import InputError
from keras_bert.inference.embed import open_embedder
from keras_bert.pictures import (
    COLOURS,
    GREY,
    INK,
    colour_bar,
    save_picture,
)
from keras_bert.pictures.texts import draw_plane, project
from keras_bert.readers.texts import TextSource

_CHARACTERS_AROUND = 16


class WordInContext(NamedTuple):
    """One occurrence of a word: its vector float32 (D,), and a few words around it."""

    vector: np.ndarray
    label: str


def words_in_context(model, pairs, *, layers):
    """The `WordInContext` of each (text, word); the first occurrence, in capitals or not.

    Raises InputError if a text does not have its word, or see `Embedder`.
    """
    pairs = list(pairs)
    if len(pairs) < 2:
        raise InputError("A picture of words in context needs two texts or more.")
    embedder = open_embedder(model, layers=layers, tokens="words-mean")
    words = []
    texts = TextSource([text for text, _ in pairs], need_labels=False)
    for (_, word), one in zip(pairs, embedder(texts), strict=True):
        tokens = [token.casefold() for token in one.tokens]
        if word.casefold() not in tokens:
            raise texts.error(one.line, f'it has no word "{word}"; its words are {one.tokens}.')
        number = tokens.index(word.casefold())
        label = _around(one.text, int(one.starts[number]), int(one.ends[number]))
        words.append(WordInContext(one.vectors[number], label))
    return words


def _around(text, start, end):
    """A word with those before and after it, as many as fit."""
    before, after = text[:start], text[end:]
    if len(before) > _CHARACTERS_AROUND:
        before = "…" + before[-_CHARACTERS_AROUND - 1 :].partition(" ")[2]
    if len(after) > _CHARACTERS_AROUND:
        after = after[: _CHARACTERS_AROUND + 1].rpartition(" ")[0] + "…"
    return f"{before}{text[start:end].upper()}{after}"


def draw_contexts(
    *,
    model: object,
    word: str,
    texts: Sequence[str],
    output: str | PathLike[str],
    groups: Sequence[str] | None = None,
    layers: str = "last",
) -> Path:
    """Draws the vectors of a word in several texts, as points of a plane.

    The plane is the one that shows most of their differences (principal components: Pearson 1901).

    Args:
        model: a model folder, or a pair of an encoder and its tokenizer.
        word: the word, which is in every text.
        texts: the texts, two or more.
        output: the PNG file to write.
        groups: None, or the name of each text's group (its sense of the word), for a colour; up to
            six of them.
        layers: which layers make a vector (see `Embedder`).

    Returns the `Path` of the file.

    Raises:
        InputError: a text lacks the word, there are more groups than colours, or see
            `save_picture`.
    """
    texts = list(texts)
    groups = [""] * len(texts) if groups is None else list(groups)
    names = list(dict.fromkeys(groups))
    if len(groups) != len(texts) or len(names) > len(COLOURS):
        raise InputError(
            f"`groups` must have one name per text, and at most {len(COLOURS)} different ones. "
            f"Received: {len(texts)} texts and {len(groups)} groups of {len(names)} names."
        )
    words = words_in_context(model, [(text, word) for text in texts], layers=layers)
    points, fractions = project(np.stack([one.vector for one in words]))
    colours = [COLOURS[names.index(group)] for group in groups]

    def draw(figure):
        axis = figure.subplots()
        figure.subplots_adjust(left=0.05, right=0.97, bottom=0.07, top=0.88)
        draw_plane(axis, points, fractions, colours=colours, size=34)
        axis.margins(0.16, 0.07)
        figure.suptitle(f'"{word}" in {len(texts)} contexts', x=0.05, ha="left", fontsize=11)
        for number, name in enumerate(names):
            if name:
                axis.annotate(
                    f"● {name}",
                    (0.05 + 0.2 * number, 0.9),
                    xycoords="figure fraction",
                    color=COLOURS[number],
                )
        _write_labels(figure, axis, points, [one.label for one in words])

    return save_picture(draw, output, size=(9, 6))


def _write_labels(figure, axis, points, labels):
    """Writes each label where it overlaps least with the other labels and points."""
    figure.draw_without_rendering()  # sets the axes' limits, and so the offsets of the points
    renderer = figure.canvas.get_renderer()
    inside = axis.get_window_extent(renderer)
    pixels = axis.transData.transform(points)
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in pixels]
    for point, label in zip(points, labels, strict=True):
        text = axis.annotate(
            label, point, (0, 0), textcoords="offset points", fontsize=7.5, color=GREY
        )
        best = None
        for across, dx in (("left", 6), ("right", -6), ("center", 0)):
            for up, dy in (("center", 0), ("bottom", 5), ("top", -5)):
                if (dx, dy) == (0, 0):
                    continue
                text.set(ha=across, va=up, position=(dx, dy))
                box = text.get_window_extent(renderer).extents
                cost = sum(_overlap(box, other) for other in taken)
                cost += 4 * (_overlap(box, box) - _overlap(box, inside.extents))
                if best is None or cost < best[0] - 1:
                    best = (cost, across, up, (dx, dy), box)
        text.set(ha=best[1], va=best[2], position=best[3])
        taken.append(best[4])


def _overlap(a, b):
    """The area that two boxes (left, bottom, right, top) have in common."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0) * max(height, 0)


# With more words than this, the numbers in the cells would be too small to read.
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
        pairs: (text, word) for each row, two or more; the word is in the text.
        output: the PNG file to write.
        layers: which layers make a vector (see `Embedder`).

    Returns the `Path` of the file.

    Raises:
        InputError: a text lacks its word, or see `save_picture`.
    """
    words = words_in_context(model, pairs, layers=layers)
    similarities = cosine_similarity([one.vector.astype(np.float64) for one in words])
    labels = [one.label for one in words]

    def draw(figure):
        axis = figure.subplots()
        texts = np.vectorize("{:.2f}".format, otypes=[object])(similarities)
        image = _heat_map(
            axis,
            similarities,
            texts=texts if len(labels) <= _MOST_NUMBERS else None,
            size=7.5,
            lowest=min(0.0, float(similarities.min())),
        )
        axis.set_xticks(range(len(labels)), labels, rotation=45, ha="right", rotation_mode="anchor")
        axis.set_yticks(range(len(labels)), labels)
        axis.set_title("Cosine between words in context", loc="left", fontsize=11)
        colour_bar(axis, image, label="cosine")

    edge = 1 + 0.5 * len(labels)
    return save_picture(draw, output, size=(edge, edge))


def _heat_map(axis, numbers, *, texts, size, lowest):
    """Colours a matrix of `numbers` up to 1, and writes `texts`, of the same shape, into it."""
    image = axis.imshow(numbers, cmap="Blues", vmin=lowest, vmax=1)
    axis.spines[:].set_visible(False)
    for (row, column), text in np.ndenumerate(texts) if texts is not None else ():
        is_dark = numbers[row, column] > lowest + 0.6 * (1 - lowest)
        colour = "white" if is_dark else INK
        axis.text(column, row, text, color=colour, ha="center", va="center", fontsize=size)
    return image
