"""Examples as a person reads them: tokens, what was masked, spans, segments, labels."""

import html
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.records.examples import read_examples
from keras_bert.records.folder import SPLITS, DataFolder


class Token(NamedTuple):
    """A token of an instance.

    `text` is the model's input, `original` the token before masking if it was chosen for prediction
    (also where it was kept), else None; both without the vocabulary's marks of word boundaries, and
    `text` may be empty (byte-pair encoding has a token for the end of a word). `word_start` is True
    where a word of the original begins. `segment` is 0 or 1, and None for a special token of the
    template. `span` numbers the span of a masked token from 1 (0: not in a span); `boundary` is
    True for the tokens just outside spans.
    """

    text: str
    original: str | None
    word_start: bool
    segment: int | None
    span: int
    boundary: bool


class Instance(NamedTuple):
    """An example of a shard.

    `is_next` is whether the second segment follows the first in the text, and None where the
    objective has one segment.
    """

    number: int
    shard: str
    tokens: tuple[Token, ...]
    is_next: bool | None


def read_instances(folder, shards, *, count):
    """Yields the first `count` instances of some shards (paths) of a `DataFolder`."""
    vocabulary = folder.vocabulary()
    folder.check_vocabulary(vocabulary)
    special = {vocabulary.id(token) for token in folder.card.template.special_tokens}
    number = 0
    for shard in shards:
        for examples in read_examples(folder, shard):
            for index in range(len(examples.lengths)):
                if number == count:
                    return
                yield _instance(examples, index, number, vocabulary, special)
                number += 1


def _instance(examples, index, number, vocabulary, special):
    ids = examples.input_ids[index, : examples.lengths[index]].tolist()
    chosen = examples.prediction_counts[index]
    predictions = {
        name: values[index, :chosen].tolist() for name, values in examples.predictions.items()
    }
    positions = predictions.get("masked_lm_positions", [])
    originals = dict(zip(positions, predictions.get("masked_lm_ids", []), strict=True))
    lefts = predictions.get("span_left", [])
    numbers = {left: rank for rank, left in enumerate(sorted(set(lefts)), 1)}
    spans = {
        position: numbers[left]
        for position, left in zip(positions if lefts else [], lefts, strict=True)
    }
    boundaries = {*lefts, *predictions.get("span_right", [])}
    first = int(examples.segment_lengths[index, 0])
    word_starts = vocabulary.word_starts([originals.get(at, token) for at, token in enumerate(ids)])
    tokens = []
    for position, token in enumerate(ids):
        original = originals.get(position)
        text = vocabulary.token_text(token)
        if original is not None:
            # A token that is only the end of a word has no text, and must be visible here.
            text = text or vocabulary.token_name(token)
            original = vocabulary.token_text(original) or vocabulary.token_name(original)
        tokens.append(
            Token(
                text=text,
                original=original,
                word_start=bool(word_starts[position]),
                segment=None if token in special else int(position >= first),
                span=spans.get(position, 0),
                boundary=position in boundaries,
            )
        )
    labels = examples.next_sentence_labels
    is_next = None if labels is None else bool(labels[index] == 0)
    return Instance(number, examples.shard, tuple(tokens), is_next)


# What the second segment is called, by objective: where it follows the first, and where not.
SEGMENT_LABELS = {"mlm-nsp": ("is next", "random"), "mlm-sop": ("in order", "swapped")}

_HIDDEN = "background:#ffe3a3;color:#1f2430;border-radius:3px;padding:0 3px"
_BOUNDARY = "border-bottom:2px solid #0072b2"
_SPAN = "outline:1px solid #b98900;border-radius:3px"


class ShownExamples(list):
    """A list of `Instance`s, which a notebook shows as text.

    Tokens that were chosen for prediction are highlighted: the model's input, followed by the
    original. Spans are outlined, and their boundaries underlined.
    """

    def __init__(self, instances, *, labels):
        super().__init__(instances)
        self._labels = labels

    def __repr__(self):
        texts = [" ".join(_plain(token) for token in one.tokens) for one in self]
        return "\n".join([f"ShownExamples({counted(len(self), 'example')})", *texts])

    def _repr_html_(self):
        return "\n".join(_paragraph(one, self._labels) for one in self)


def inspect(path: str | PathLike[str], *, split: str = "train", count: int = 5) -> list[Instance]:
    """The first examples of a folder of pre-training data, in readable form.

        kb.inspect("data", count=2)  # shown as text, with the masked tokens marked

    Args:
        path: a folder that a data job made, or a shard in one.
        split: "train" or "eval".
        count: the number of examples.

    Returns:
        A list of `keras_bert.records.inspection.Instance`: the tokens of an example, each with the
        model's input, the original where it is masked, its segment and its span.

    Raises:
        InputError: there is no such folder, or it is not finished.
    """
    if split not in SPLITS:
        raise InputError(f"Invalid `split` {split!r}. Choose from: {', '.join(SPLITS)}.")
    path = Path(path)
    folder = DataFolder.open(path.parent if path.is_file() else path)
    shards = [str(path)] if path.is_file() else folder.shards(split)
    instances = read_instances(folder, shards, count=count)
    return ShownExamples(instances, labels=SEGMENT_LABELS.get(folder.card.objective))


def _plain(token):
    return token.text if token.original is None else f"{token.text}{{{token.original}}}"


def _paragraph(instance, labels):
    label = ""
    if instance.is_next is not None:
        label = f" <i>{labels[0] if instance.is_next else labels[1]}</i>"
    parts, span = [], 0
    for token in instance.tokens:
        if span and token.span != span:
            parts.append("</span>")
        parts.append(" " if token.word_start or token.segment is None else "")
        if token.span and token.span != span:
            parts.append(f'<span style="{_SPAN}">')
        span = token.span
        parts.append(_shown(token))
    return f"<p><b>{instance.number}</b>{label} {''.join(parts)}</p>"


def _shown(token):
    text = html.escape(token.text)
    if token.original is not None:
        return f'<span style="{_HIDDEN}">{text}<sub> {html.escape(token.original)}</sub></span>'
    style = _BOUNDARY if token.boundary else "opacity:0.55" if token.segment is None else ""
    return f'<span style="{style}">{text}</span>' if style else text
