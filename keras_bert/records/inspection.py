"""Rows as a person reads them: pieces, what was masked, spans, segments, labels."""

from typing import NamedTuple

from keras_bert.records.rows import read_rows


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
    pieces: tuple[Piece, ...]
    is_next: bool | None


def read_instances(folder, shards, *, count):
    """Yields the first `count` instances of some shards (paths) of a `DataFolder`."""
    vocabulary = folder.vocabulary()
    folder.check_vocabulary(vocabulary)
    special = {vocabulary.id(token) for token in folder.card.template.special_tokens}
    number = 0
    for shard in shards:
        for rows in read_rows(folder, shard):
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
    pieces = []
    for position, token in enumerate(ids):
        original = originals.get(position)
        text = vocabulary.piece_text(token)
        if original is not None:
            # What stands for the end of a word alone has to be seen here.
            text = text or vocabulary.piece_name(token)
            original = vocabulary.piece_text(original) or vocabulary.piece_name(original)
        pieces.append(
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
    return Instance(number, rows.shard, tuple(pieces), None if label is None else bool(label))
