"""A map of many texts: their vectors as points of a plane, coloured by a label."""

from collections import Counter
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, percent
from keras_bert.pictures import COLOURS, hide_box, save_picture

# Points of one picture; of more texts it is a random part, since others would hide them.
_MOST_POINTS = 20_000
_LONGEST_LABEL = 24  # characters
_OTHERS = "#9aa1ad"


def draw_texts(
    vectors: np.ndarray,
    output: str | PathLike[str],
    *,
    labels: Sequence[object] | None = None,
    title: str | None = None,
) -> Path:
    """Draws the vectors of texts as points of a plane.

    The plane is the one that shows most of their differences (principal components: Pearson 1901).

    Args:
        vectors: (N, D), N at least 2, such as those of `TextEmbedder.encode`.
        output: the PNG file to write.
        labels: for each text its label or None, for a colour. The six labels of most texts have
            one, and others are grey.
        title: the first line; None is the number of texts.

    Returns the `Path` of the file.

    Raises:
        InputError: there are fewer than two vectors, all are equal, some are not finite, or see
            `save_picture`.
    """
    vectors = np.asarray(vectors)
    if vectors.ndim != 2 or len(vectors) < 2:
        raise InputError(
            "A map needs the vectors of two texts or more, (N, D). Received: an array of the shape "
            f"{vectors.shape}."
        )
    labels = [None] * len(vectors) if labels is None else list(labels)
    if len(labels) != len(vectors):
        raise InputError.naming(
            "{labels} must have one for each of the {} vectors. Received: {}.",
            len(vectors),
            len(labels),
        )
    if not np.isfinite(vectors).all():
        raise InputError("The vectors have NaN or infinite numbers.")
    title = counted(len(vectors), "text") if title is None else title
    if len(vectors) > _MOST_POINTS:
        kept = np.sort(np.random.default_rng(0).choice(len(vectors), _MOST_POINTS, replace=False))
        vectors, labels = vectors[kept], [labels[number] for number in kept]
        title += f", of which {_MOST_POINTS:,} are shown"
    points, fractions = project(vectors)
    legend, colours = _coloured(labels)
    # Those of rare labels on top: in the order of the file one label would hide the others.
    order = np.argsort([-count for count in _counts(labels)], kind="stable")

    def draw(figure):
        axis = figure.subplots()
        figure.subplots_adjust(left=0.05, right=0.78 if legend else 0.97, bottom=0.07, top=0.92)
        draw_plane(
            axis,
            points[order],
            fractions,
            colours=[colours[number] for number in order],
            size=float(np.clip(9000 / len(points), 4, 34)),
        )
        figure.suptitle(title, x=0.05, ha="left", fontsize=11)
        for number, (name, colour) in enumerate(legend):
            place = (0.8, 0.88 - 0.045 * number)
            axis.annotate(f"● {name}", place, xycoords="figure fraction", color=colour, fontsize=9)

    return save_picture(draw, output, size=(9, 6))


def project(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first two principal components of vectors.

    Shapes: vectors (N, D), N at least 2 -> points (N, 2), fractions of the variance (2,). The point
    farthest out on each axis is on its positive side, which fixes the signs.

    Raises InputError if all vectors are equal.
    """
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    left, scales, _ = np.linalg.svd(centred, full_matrices=False)
    if scales[0] == 0:
        raise InputError("All vectors are the same. There is nothing to draw.")
    points = np.zeros((len(vectors), 2))
    points[:, : min(2, len(scales))] = left[:, :2] * scales[:2]
    farthest = points[np.abs(points).argmax(axis=0), np.arange(2)]
    fractions = np.zeros(2)
    fractions[: min(2, len(scales))] = scales[:2] ** 2 / (scales**2).sum()
    return points * np.where(farthest < 0, -1, 1), fractions


def draw_plane(axis, points, fractions, *, colours, size):
    """Draws points (N, 2) of `project`, and writes on each axis its fraction of the variance."""
    axis.scatter(*points.T, c=colours, s=size, zorder=3, linewidths=0)
    across, up = (f"{percent(x, decimals=0)} of the variance" for x in fractions)
    axis.set_xlabel(across, fontsize=8)
    axis.set_ylabel(up, fontsize=8)
    axis.set_xticks([])
    axis.set_yticks([])
    hide_box(axis)


def _counts(labels):
    """For each text how many have its label; most for those without a colour."""
    counts = Counter(labels)
    named = {label for label, _ in _most_common(labels)}
    return [counts[label] if label in named else len(labels) + 1 for label in labels]


def _most_common(labels):
    """[(label, number of texts)] of those that have a colour, the first those of most texts."""
    counts = Counter(label for label in labels if label is not None)
    return sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))[: len(COLOURS)]


def _coloured(labels):
    """-> ([(name, colour)] of a legend, the colour of each text)."""
    named = _most_common(labels)
    colour_of = {label: colour for (label, _), colour in zip(named, COLOURS, strict=False)}
    legend = [(f"{_short(label)} ({count:,})", colour_of[label]) for label, count in named]
    others = Counter(label for label in labels if label is not None and label not in colour_of)
    if others:
        count = counted(len(others), "other label")
        legend.append((f"{count} ({sum(others.values()):,})", _OTHERS))
    missing = sum(label is None for label in labels)
    if missing and legend:
        legend.append((f"no label ({missing:,})", _OTHERS))
    plain = COLOURS[0] if not legend else _OTHERS
    return legend, [colour_of.get(label, plain) for label in labels]


def _short(label):
    name = " ".join(str(label).split())
    return name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…"
