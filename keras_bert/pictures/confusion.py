"""Which labels were taken for which."""

import numpy as np

from keras_bert.pictures.canvas import INK, save_picture

_TITLE = "Expected and predicted labels"
# Fields of more labels than this have no numbers in them: they would be too small to read.
_MOST_NUMBERS = 30
# Of more tables than this, one a label, those of the most frequent labels are drawn.
_MOST_TABLES = 30
_TABLES_A_ROW = 5


def draw_confusion(counts, names, path):
    """One table of all labels; returns the file's path.

    Args:
        counts: int (L, L): rows are the expected labels, columns the predicted ones.
        names: those of the L labels.
        path: the file.
    """

    def draw(canvas):
        axis = canvas.subplots()
        _table(axis, counts, size=_text_size(len(names)))
        few = len(names) <= _MOST_NUMBERS
        font, angle = (9, 45) if few else (6, 90)
        turned = {"rotation": angle, "ha": "right", "va": "top" if few else "center"}
        axis.set_xticks(range(len(names)), names, fontsize=font, rotation_mode="anchor", **turned)
        axis.set_yticks(range(len(names)), names, fontsize=font)
        axis.set_xlabel("predicted")
        axis.set_ylabel("expected")
        axis.set_title(_TITLE, loc="left", fontsize=11)

    edge = 2 + len(names) * _cell(len(names))
    return save_picture(draw, path, size=(edge, edge))


def draw_tables(counts, names, path):
    """A table of no and yes for each label, where a text may have several; returns the path.

    Args:
        counts: int (L, 2, 2): rows are no and yes as expected, columns as predicted.
        names: those of the L labels.
        path: the file.
    """
    often = np.argsort(-counts[:, 1].sum(axis=1), kind="stable")
    shown = np.sort(often[:_MOST_TABLES])
    columns = min(len(shown), _TABLES_A_ROW)
    rows = -(-len(shown) // columns)
    left_out = len(names) - len(shown)

    def draw(canvas):
        axes = canvas.subplots(rows, columns, squeeze=False)
        for place, axis in enumerate(axes.flat):
            if place >= len(shown):
                axis.set_visible(False)
                continue
            _table(axis, counts[shown[place]], size=9)
            axis.set_title(names[shown[place]], loc="left", fontsize=8)
            on_the_left, at_the_end = place % columns == 0, place + columns >= len(shown)
            axis.set_yticks((0, 1), ("no", "yes") if on_the_left else ("", ""))
            axis.set_xticks((0, 1), ("no", "yes") if at_the_end else ("", ""))
            axis.set_ylabel("expected" if on_the_left else "")
            axis.set_xlabel("predicted" if at_the_end else "")
        rarer = f"; {left_out:,} rarer ones are left out" if left_out else ""
        canvas.suptitle(_TITLE + rarer, x=0.02, ha="left", fontsize=11)
        canvas.tight_layout()

    return save_picture(draw, path, size=(0.6 + 1.5 * columns, 0.8 + 1.5 * rows))


def _table(axis, counts, *, size):
    """Counts coloured by their share of the row; without numbers where the text has no size."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for side in axis.spines.values():
        side.set_visible(False)
    for (row, column), count in np.ndenumerate(counts) if size else ():
        colour = "white" if shares[row, column] > 0.6 else INK if count else "#c4c8cf"
        shown = {"ha": "center", "va": "center", "fontsize": size}
        axis.text(column, row, f"{count:,}", color=colour, **shown)


def _text_size(labels):
    if labels > _MOST_NUMBERS:
        return None
    return 10 if labels <= 5 else 7.5


def _cell(labels):
    """The inches of a cell."""
    if labels > _MOST_NUMBERS:
        return 0.13
    return 0.8 if labels <= 5 else 0.42
