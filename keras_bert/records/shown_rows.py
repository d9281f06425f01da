"""Rows of pre-training data as a notebook shows them."""

import html
from os import PathLike
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.records.dataset_card import SPLITS
from keras_bert.records.folder import DataFolder
from keras_bert.records.inspection import Instance, read_instances

# What a word for the second segment is, by objective: where it follows, and where it does not.
SEGMENT_LABELS = {"mlm-nsp": ("is next", "random"), "mlm-sop": ("in order", "swapped")}

_HIDDEN = "background:#ffe3a3;color:#1f2430;border-radius:3px;padding:0 3px"
_BOUNDARY = "border-bottom:2px solid #0072b2"
_SPAN = "outline:1px solid #b98900;border-radius:3px"


class ShownRows(list):
    """A list of `Instance`s, which a notebook shows as text.

    What was chosen for prediction stands on a ground of its own: what the model sees, and behind it
    what stood there. Spans have a frame, and their boundaries a line below.
    """

    def __init__(self, instances, *, labels):
        super().__init__(instances)
        self._labels = labels

    def __repr__(self):
        texts = [" ".join(_plain(piece) for piece in one.pieces) for one in self]
        return "\n".join([f"ShownRows({counted(len(self), 'row')})", *texts])

    def _repr_html_(self):
        return "\n".join(_paragraph(one, self._labels) for one in self)


def inspect(path: str | PathLike[str], *, split: str = "train", count: int = 5) -> list[Instance]:
    """The first rows of a folder of pre-training rows, as a person reads them.

        kb.inspect("data", count=2)  # shown as text, what is masked marked

    Args:
        path: a folder that a data job made, or a shard in one.
        split: "train" or "eval".
        count: how many rows.

    Returns:
        A list of `keras_bert.records.inspection.Instance`: a row's pieces, each with what the model
        sees, what stood there where it was chosen, its segment, span and whether it is a boundary.

    Raises:
        InputError: there is no such folder, or it is not finished.
    """
    if split not in SPLITS:
        raise InputError(f"`split` is {split!r}; it should be {' or '.join(SPLITS)}.")
    path = Path(path)
    folder = DataFolder.open(path.parent if path.is_file() else path)
    shards = [str(path)] if path.is_file() else folder.shards(split)
    instances = read_instances(folder, shards, count=count)
    return ShownRows(instances, labels=SEGMENT_LABELS.get(folder.card.objective))


def _plain(piece):
    return piece.text if piece.original is None else f"{piece.text}{{{piece.original}}}"


def _paragraph(instance, labels):
    said = ""
    if instance.is_next is not None:
        said = f" <i>{labels[0] if instance.is_next else labels[1]}</i>"
    parts, span = [], 0
    for piece in instance.pieces:
        if span and piece.span != span:
            parts.append("</span>")
        parts.append(" " if piece.word_start or piece.segment is None else "")
        if piece.span and piece.span != span:
            parts.append(f'<span style="{_SPAN}">')
        span = piece.span
        parts.append(_shown(piece))
    return f"<p><b>{instance.number}</b>{said} {''.join(parts)}</p>"


def _shown(piece):
    text = html.escape(piece.text)
    if piece.original is not None:
        return f'<span style="{_HIDDEN}">{text}<sub> {html.escape(piece.original)}</sub></span>'
    style = _BOUNDARY if piece.boundary else "opacity:0.55" if piece.segment is None else ""
    return f'<span style="{style}">{text}</span>' if style else text
