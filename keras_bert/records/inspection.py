"""Rows as a person reads them: pieces, what was masked, spans, segments, labels."""

import html
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.records.dataset_card import SPLITS
from keras_bert.records.folder import DataFolder
from keras_bert.records.rows import read_examples


class Piece(NamedTuple):
    """A token of an instance.

    `text` is what the model sees, `original` what stood there if the token was chosen for
    prediction (also where it was left as it is), else None; both without the marks of where in a
    word a piece is, and `text` may be empty (byte-pair encoding has a piece for the end of a word).
    `word_start` is True where a word of the original begins. `segment` is 0 or 1, and None for a
    special token that the text does not hold. `span` numbers the span of a masked token from 1 (0:
    in no span); `boundary` is True for the tokens just outside of spans.
    """

    text: str
    original: str | None
    word_start: bool
    segment: int | None
    span: int
    boundary: bool


class Instance(NamedTuple):
    """A row: `is_next` tells whether the second segment stands in the text after the first.

    It is None where the objective has no second segment.
    """

    number: int
    shard: str
    tokens: tuple[Piece, ...]
    is_next: bool | None


def read_instances(folder, shards, *, count):
    """Yields the first `count` instances of some shards (paths) of a `DataFolder`."""
    vocabulary = folder.vocabulary()
    folder.check_vocabulary(vocabulary)
    special = {vocabulary.id(token) for token in folder.card.template.special_tokens}
    number = 0
    for shard in shards:
        for rows in read_examples(folder, shard):
            for row in range(len(rows.lengths)):
                if number == count:
                    return
                yield _instance(rows, row, number, vocabulary, special)
                number += 1


def _instance(rows, row, number, vocabulary, special):
    ids = rows.input_ids[row, : rows.lengths[row]].tolist()
    chosen = rows.prediction_counts[row]
    predictions = {name: values[row, :chosen].tolist() for name, values in rows.predictions.items()}
    positions = predictions.get("masked_lm_positions", [])
    originals = dict(zip(positions, predictions.get("masked_lm_ids", []), strict=True))
    spans, boundaries = {}, set()
    lefts = predictions.get("span_left", [])
    for position, left in zip(positions if lefts else [], lefts, strict=True):
        if left not in boundaries:
            boundaries.add(left)
        spans[position] = sum(1 for start in set(lefts) if start <= left)
    boundaries |= set(predictions.get("span_right", []))
    first = int(rows.segment_lengths[row, 0])
    word_starts = vocabulary.word_starts([originals.get(at, token) for at, token in enumerate(ids)])
    tokens = []
    for position, token in enumerate(ids):
        original = originals.get(position)
        text = vocabulary.token_text(token)
        if original is not None:
            # What stands for the end of a word alone has to be seen here.
            text = text or vocabulary.token_name(token)
            original = vocabulary.token_text(original) or vocabulary.token_name(original)
        tokens.append(
            Piece(
                text=text,
                original=original,
                word_start=bool(word_starts[position]),
                segment=None if token in special else int(position >= first),
                span=spans.get(position, 0),
                boundary=position in boundaries,
            )
        )
    label = None if rows.next_sentence_labels is None else rows.next_sentence_labels[row] == 0
    return Instance(number, rows.shard, tuple(tokens), None if label is None else bool(label))


# What a word for the second segment is, by objective: where it follows, and where it does not.
SEGMENT_LABELS = {"mlm-nsp": ("is next", "random"), "mlm-sop": ("in order", "swapped")}

_HIDDEN = "background:#ffe3a3;color:#1f2430;border-radius:3px;padding:0 3px"
_BOUNDARY = "border-bottom:2px solid #0072b2"
_SPAN = "outline:1px solid #b98900;border-radius:3px"


class ShownExamples(list):
    """A list of `Instance`s, which a notebook shows as text.

    What was chosen for prediction stands on a ground of its own: what the model sees, and behind it
    what stood there. Spans have a frame, and their boundaries a line below.
    """

    def __init__(self, instances, *, labels):
        super().__init__(instances)
        self._labels = labels

    def __repr__(self):
        texts = [" ".join(_plain(token) for token in one.tokens) for one in self]
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
    return ShownExamples(instances, labels=SEGMENT_LABELS.get(folder.card.objective))


def _plain(token):
    return token.text if token.original is None else f"{token.text}{{{token.original}}}"


def _paragraph(instance, labels):
    said = ""
    if instance.is_next is not None:
        said = f" <i>{labels[0] if instance.is_next else labels[1]}</i>"
    parts, span = [], 0
    for token in instance.tokens:
        if span and token.span != span:
            parts.append("</span>")
        parts.append(" " if token.word_start or token.segment is None else "")
        if token.span and token.span != span:
            parts.append(f'<span style="{_SPAN}">')
        span = token.span
        parts.append(_shown(token))
    return f"<p><b>{instance.number}</b>{said} {''.join(parts)}</p>"


def _shown(token):
    text = html.escape(token.text)
    if token.original is not None:
        return f'<span style="{_HIDDEN}">{text}<sub> {html.escape(token.original)}</sub></span>'
    style = _BOUNDARY if token.boundary else "opacity:0.55" if token.segment is None else ""
    return f'<span style="{style}">{text}</span>' if style else text
