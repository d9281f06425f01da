"""Shows examples of a data folder in readable form, and verifies all of it."""

import html
from collections import Counter
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, percent
from keras_bert.records.folder import SPLITS, DataFolder
from keras_bert.records.masking import SPAN_WORDS
from keras_bert.records.shard_reader import find_damage, read_examples


class Token(NamedTuple):
    """A token of an instance.

    `text` is the model's input, `original` the token before masking if it was chosen for prediction
    (also if it was kept), else None; both without the vocabulary's marks of word boundaries, and
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

    `is_next` is whether the second segment follows the first in the text, and None if the
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
        name: column[index, :chosen].tolist() for name, column in examples.predictions.items()
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


# What the second segment is called, by objective: if it follows the first, and if not.
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
        model's input, the original if it is masked, its segment and its span.

    Raises:
        InputError: there is no such folder, or it is not finished.
    """
    if split not in SPLITS:
        raise InputError.naming("Invalid {split} {!r}. Choose from: {}.", split, ", ".join(SPLITS))
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


# How far a fraction may be from its expectation, in standard deviations: by chance once in 150,000
# folders.
_DEVIATIONS = 4.5


def verify(folder):
    """Reads all examples of a `DataFolder`; returns counts, split -> Counter.

    The counters are rows (examples), tokens, predictions, masked, kept and replaced (outcomes of
    the predicted tokens), random (second segments) or swapped (pairs of them). Raises `InputError`
    for the first violation: with file and record number for an example, with the split for a count.
    """
    vocabulary = folder.vocabulary()
    folder.check_vocabulary(vocabulary)
    return {split: _verify_split(folder, split, vocabulary) for split in SPLITS}


def _verify_split(folder, split, vocabulary):
    counts, lengths = Counter(), np.zeros(folder.card.max_length + 1, np.int64)
    paired = "swapped" if folder.card.objective == "mlm-sop" else "random"
    for shard in folder.shards(split):
        for examples in read_examples(folder, shard):
            _Checks(examples, folder.card, vocabulary).run()
            counts["rows"] += len(examples.lengths)
            counts["tokens"] += int(examples.lengths.sum())
            lengths += np.bincount(examples.lengths, minlength=len(lengths))
            if examples.next_sentence_labels is not None:
                counts[paired] += int(examples.next_sentence_labels.sum())
            _count_outcomes(counts, examples, vocabulary)
    card = folder.card.splits[split]
    if counts["rows"] != card.instances:
        error = find_damage(folder, split)  # names the shard
        if error is not None:
            raise error
    for name, noun, expected in (
        ("rows", "examples", card.instances),
        ("tokens", "tokens", card.tokens),
        ("predictions", "predictions", card.counters["predictions"]),
        (paired, f"{paired} pairs", card.counters[f"{paired}_pairs"]),
    ):
        if counts[name] != expected:
            raise InputError(
                f"The {split} split of {folder.path} has {counts[name]} {noun}, its dataset card "
                f"{expected}."
            )
    if split == "train" and tuple(lengths.tolist()) != folder.card.length_histogram:
        raise InputError(f"The lengths of the examples of {folder.path} are not those of its card.")
    _check_fractions(counts, folder, split, vocabulary)
    return counts


class _Checks:
    """The checks of some examples; each raises for the first example that violates it."""

    def __init__(self, examples, card, vocabulary):
        self._examples, self._card, self._vocabulary = examples, card, vocabulary
        self._special = np.zeros(len(vocabulary), bool)
        self._special[vocabulary.special_ids] = True
        self._inside = np.arange(examples.input_ids.shape[1]) < examples.lengths[:, None]

    def run(self):
        self._check_template()
        if "masked_lm_ids" in self._examples.predictions:
            self._check_predictions()
            if self._card.settings.mask_unit != "token":
                self._check_words()
        if "span_left" in self._examples.predictions:
            self._check_spans()

    def _check_template(self):
        examples, vocabulary, reject = self._examples, self._vocabulary, self._examples.reject
        ids, segments = examples.input_ids, examples.segment_lengths
        template, texts = self._card.template, segments.shape[1]
        sizes = segments - template.belonging(texts)  # of the texts alone
        text, row, position = np.array(self._inside), np.arange(len(ids)), np.zeros(len(ids), int)
        for number, (part, _) in enumerate(template.parts(texts)):
            if isinstance(part, str):
                where = "a segment does not end with" if number else "it does not begin with"
                reject(ids[row, position] != vocabulary.id(part), f"{where} {part}")
                text[row, position] = False
                position += 1
            else:
                position += sizes[:, part]
        framing = [vocabulary.id(token) for token in template.special_tokens]
        framing.append(vocabulary.pad_id)
        reject(text & np.isin(ids, framing), "a special token is inside its text")
        reject(~self._inside & (ids != 0), "its padding is not 0")
        self._text = text

    def _check_predictions(self):
        examples, special, reject = self._examples, self._special, self._examples.reject
        positions = examples.predictions["masked_lm_positions"]
        originals = examples.predictions["masked_lm_ids"]
        counts, row = examples.prediction_counts, np.arange(len(positions))[:, None]
        is_prediction = np.arange(positions.shape[1]) < counts[:, None]
        budget = np.rint(examples.lengths * self._card.settings.masked_rate).clip(1)
        reject(counts > budget, "it has more predictions than the masking rate allows")
        ascending = np.diff(positions, axis=1) > 0
        reject(is_prediction[:, 1:] & ~ascending, "its masked positions are not in ascending order")
        reject(
            is_prediction & ~self._text[row, positions * is_prediction], "a special token is masked"
        )
        reject(
            is_prediction & special[originals * is_prediction], "a masked token is a special one"
        )
        seen = examples.input_ids[row, positions * is_prediction]
        bad = special[seen] & (seen != self._vocabulary.mask_id)
        reject(is_prediction & bad, "a special token replaces a masked one")
        chosen = np.zeros_like(self._inside)
        chosen[np.nonzero(is_prediction)[0], positions[is_prediction]] = True
        is_mask = self._inside & (examples.input_ids == self._vocabulary.mask_id)
        reject(is_mask & ~chosen, "it has a [MASK] that is not to be predicted")
        self._is_prediction, self._chosen = is_prediction, chosen
        self._original = np.array(examples.input_ids)
        self._original[np.nonzero(is_prediction)[0], positions[is_prediction]] = originals[
            is_prediction
        ]
        ordinary = self._text & ~special[self._original]
        if self._card.settings.mask_unit == "token":
            due = np.minimum(budget.clip(max=self._card.max_predictions), ordinary.sum(axis=1))
            reject(counts < due, "it has fewer predictions than the masking rate asks for")

    def _check_words(self):
        """Words (and so spans, which are runs of words) are masked whole."""
        self._starts = self._vocabulary.word_starts(self._original)
        inner = ~self._starts[:, 1:] & self._inside[:, 1:]
        torn = self._chosen[:, 1:] != self._chosen[:, :-1]
        self._examples.reject(inner & torn, "a word is masked in part")

    def _check_spans(self):
        examples, is_prediction, reject = self._examples, self._is_prediction, self._examples.reject
        row = np.arange(len(is_prediction))[:, None]
        position = examples.predictions["masked_lm_positions"]
        left, right, offset = (
            examples.predictions[f"span_{name}"] for name in ("left", "right", "offset")
        )

        def inside_spans(marked):
            """How many of the marked tokens (R, S) are in each token's span, (R, P)."""
            counts = np.cumsum(marked, axis=1)
            return counts[row, (right - 1) * is_prediction] - counts[row, left * is_prediction]

        reject(
            is_prediction & (position - left != offset), "an offset is not the offset in its span"
        )
        boundary = (
            self._chosen[row, left * is_prediction] | self._chosen[row, right * is_prediction]
        )
        reject(is_prediction & boundary, "a boundary of a span is masked")
        sizes = right - left - 1
        missing = inside_spans(self._chosen) != sizes
        reject(is_prediction & missing, "a token inside a span is not masked")
        long = inside_spans(self._starts) > SPAN_WORDS
        reject(is_prediction & long, f"a span has more than {SPAN_WORDS} words")
        masks = inside_spans(examples.input_ids == self._vocabulary.mask_id)
        reject(is_prediction & (masks > 0) & (masks < sizes), "only a part of a span is [MASK]")


def _count_outcomes(counts, examples, vocabulary):
    """Counts the masking outcomes of the predicted tokens."""
    predictions = examples.predictions
    if "masked_lm_ids" not in predictions:
        return
    originals = predictions["masked_lm_ids"]
    is_prediction = np.arange(originals.shape[1]) < examples.prediction_counts[:, None]
    row, originals = np.nonzero(is_prediction)[0], originals[is_prediction]
    seen = examples.input_ids[row, predictions["masked_lm_positions"][is_prediction]]
    masked, unchanged = seen == vocabulary.mask_id, seen == originals
    counts["predictions"] += len(row)
    counts["masked"] += int(masked.sum())
    counts["kept"] += int(unchanged.sum())
    counts["replaced"] += int((~masked & ~unchanged).sum())
    # A token, or a whole span, has one random outcome.
    spans = predictions.get("span_offset")
    counts["draws"] += len(row) if spans is None else int((spans[is_prediction] == 1).sum())


def _check_fractions(counts, folder, split, vocabulary):
    if not counts["predictions"]:
        return
    # The tokens of a span have one outcome: fewer draws, wider bounds.
    draws = counts["draws"] / (1 if folder.card.objective != "span" else 2)
    # A random replacement may be the token itself.
    again = 0.1 / (len(vocabulary) - len(vocabulary.special_ids))
    if folder.card.settings.replacement == "unigram":
        again = 0.1
    for name, low, high in (
        ("masked", 0.8, 0.8),
        ("kept", 0.1, 0.1 + again),
        ("replaced", 0.1 - again, 0.1),
    ):
        fraction = counts[name] / counts["predictions"]
        bound = _DEVIATIONS * np.sqrt(high * (1 - high) / draws) + 1 / counts["predictions"]
        if not low - bound <= fraction <= high + bound:
            raise InputError(
                f"Of the predicted tokens of the {split} split of {folder.path}, "
                f"{percent(fraction, decimals=2)} are {name}. "
                f"Expected {percent(low, decimals=0)}."
            )
