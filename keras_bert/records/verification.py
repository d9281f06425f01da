"""Checks every row of a data folder against the laws that rows obey."""

from collections import Counter

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import percent
from keras_bert.records.damage import find_damage
from keras_bert.records.dataset_card import SPLITS
from keras_bert.records.masking import SPAN_WORDS
from keras_bert.records.rows import read_examples, reject_examples

# How far a share may be from the law's, in standard deviations: by chance once in 150,000 folders.
_DEVIATIONS = 4.5


def verify(folder):
    """Reads all rows of a `DataFolder`; returns what it counted, split -> Counter.

    The counters are rows, tokens, predictions, masked, kept and replaced (what became of the
    predicted tokens), random (second segments) or swapped (pairs of them). Raises `InputError` at
    the first offence: with file and record number where it is one row's, and with the split where
    it is a count's.
    """
    vocabulary = folder.vocabulary()
    folder.check_vocabulary(vocabulary)
    return {split: _verify_split(folder, split, vocabulary) for split in SPLITS}


def _verify_split(folder, split, vocabulary):
    counts, lengths = Counter(), np.zeros(folder.card.max_length + 1, np.int64)
    paired = "swapped" if folder.card.objective == "mlm-sop" else "random"
    for shard in folder.shards(split):
        for rows in read_examples(folder, shard):
            _Checked(rows, folder.card, vocabulary).all()
            counts["rows"] += len(rows.lengths)
            counts["tokens"] += int(rows.lengths.sum())
            lengths += np.bincount(rows.lengths, minlength=len(lengths))
            if rows.next_sentence_labels is not None:
                counts[paired] += int(rows.next_sentence_labels.sum())
            _count_outcomes(counts, rows, vocabulary)
    said = folder.card.splits[split]
    if counts["rows"] != said.instances:
        error = find_damage(folder, split)  # which of all the shards it is
        if error is not None:
            raise error
    for name, number in (
        ("rows", said.instances),
        ("tokens", said.tokens),
        ("predictions", said.counters["predictions"]),
        (paired, said.counters[f"{paired}_pairs"]),
    ):
        if counts[name] != number:
            raise InputError(
                f"the {split} split of {folder.path} has {counts[name]} {name}, and its card "
                f"says {number}"
            )
    if split == "train" and tuple(lengths.tolist()) != folder.card.length_histogram:
        raise InputError(f"the row lengths of {folder.path} are not those that its card counts")
    _check_fractions(counts, folder, split, vocabulary)
    return counts


class _Checked:
    """The checks of some rows; each raises for the first row that offends."""

    def __init__(self, rows, card, vocabulary):
        self._rows, self._card, self._vocabulary = rows, card, vocabulary
        self._special = np.zeros(len(vocabulary), bool)
        self._special[vocabulary.special_ids] = True
        width = rows.input_ids.shape[1]
        self._inside = np.arange(width) < rows.lengths[:, None]

    def all(self):
        self._frame()
        if "masked_lm_ids" in self._rows.predictions:
            self._predictions()
            self._whole_words()
        if "span_left" in self._rows.predictions:
            self._spans()

    def _offend(self, bad, what):
        reject_examples(self._rows, bad, what)

    def _frame(self):
        rows, vocabulary = self._rows, self._vocabulary
        ids, segments = rows.input_ids, rows.segment_lengths
        template, texts = self._card.template, segments.shape[1]
        sizes = segments - template.belonging(texts)  # of the texts alone
        text, row, position = np.array(self._inside), np.arange(len(ids)), np.zeros(len(ids), int)
        for number, (what, _) in enumerate(template.parts(texts)):
            if isinstance(what, str):
                where = "a segment does not end in" if number else "it does not begin with"
                self._offend(ids[row, position] != vocabulary.id(what), f"{where} {what}")
                text[row, position] = False
                position += 1
            else:
                position += sizes[:, what]
        framing = [vocabulary.id(token) for token in template.special_tokens]
        framing.append(vocabulary.pad_id)
        self._offend(text & np.isin(ids, framing), "a special token stands inside its text")
        self._offend(~self._inside & (ids != 0), "there is something in its padding")
        self._text = text

    def _predictions(self):
        rows, special = self._rows, self._special
        positions, originals = (
            rows.predictions[name] for name in ("masked_lm_positions", "masked_lm_ids")
        )
        counts, row = rows.prediction_counts, np.arange(len(positions))[:, None]
        held = np.arange(positions.shape[1]) < counts[:, None]
        budget = np.rint(rows.lengths * self._card.settings.masked_rate).clip(1)
        self._offend(counts > budget, "it has more predictions than the rate of masking allows")
        rising = np.diff(positions, axis=1) > 0
        self._offend(held[:, 1:] & ~rising, "its masked positions do not rise")
        self._offend(held & ~self._text[row, positions * held], "a special token is masked")
        self._offend(held & special[originals * held], "a masked token is a special one")
        seen = rows.input_ids[row, positions * held]
        bad = special[seen] & (seen != self._vocabulary.mask_id)
        self._offend(held & bad, "a special token replaces a masked one")
        chosen = np.zeros_like(self._inside)
        chosen[np.nonzero(held)[0], positions[held]] = True
        is_mask = self._inside & (rows.input_ids == self._vocabulary.mask_id)
        self._offend(is_mask & ~chosen, "[MASK] stands where nothing is to be predicted")
        self._held, self._chosen = held, chosen
        self._original = np.array(rows.input_ids)
        self._original[np.nonzero(held)[0], positions[held]] = originals[held]
        ordinary = self._text & ~special[self._original]
        if self._card.settings.mask_unit == "token":
            due = np.minimum(budget.clip(max=self._card.max_predictions), ordinary.sum(axis=1))
            self._offend(counts < due, "it has fewer predictions than the rate of masking asks for")

    def _whole_words(self):
        """Words (and so spans, which are runs of them) are masked whole, but token by token."""
        if self._card.settings.mask_unit == "token":
            return
        self._starts = self._vocabulary.word_starts(self._original)
        inner = ~self._starts[:, 1:] & self._inside[:, 1:]
        torn = self._chosen[:, 1:] != self._chosen[:, :-1]
        self._offend(inner & torn, "a word is masked in part")

    def _spans(self):
        rows, held = self._rows, self._held
        row = np.arange(len(held))[:, None]
        position = rows.predictions["masked_lm_positions"]
        left, right, offset = (
            rows.predictions[f"span_{name}"] for name in ("left", "right", "offset")
        )
        self._offend(held & (position - left != offset), "an offset is not the place in its span")
        beside = self._chosen[row, left * held] | self._chosen[row, right * held]
        self._offend(held & beside, "a token beside a span is masked")
        # All tokens of a span are there: masked ones between its ends are as many as its tokens.
        before = np.cumsum(self._chosen, axis=1)
        inside = before[row, (right - 1) * held] - before[row, left * held]
        self._offend(held & (inside != right - left - 1), "a token inside a span is not masked")
        words = np.cumsum(self._starts, axis=1)
        words = words[row, (right - 1) * held] - words[row, left * held]
        self._offend(held & (words > SPAN_WORDS), f"a span has more than {SPAN_WORDS} words")
        masks = np.cumsum(rows.input_ids == self._vocabulary.mask_id, axis=1)
        masks = masks[row, (right - 1) * held] - masks[row, left * held]
        mixed = (masks > 0) & (masks < right - left - 1)
        self._offend(held & mixed, "a part of a span is [MASK], and a part is not")


def _count_outcomes(counts, rows, vocabulary):
    """Counts what became of the tokens to be predicted."""
    if "masked_lm_ids" not in rows.predictions:
        return
    row, column = np.nonzero(
        np.arange(rows.predictions["masked_lm_ids"].shape[1]) < rows.prediction_counts[:, None]
    )
    positions, originals = (
        rows.predictions[name][row, column] for name in ("masked_lm_positions", "masked_lm_ids")
    )
    seen = rows.input_ids[row, positions]
    masked, kept = seen == vocabulary.mask_id, seen == originals
    counts["predictions"] += len(row)
    counts["masked"] += int(masked.sum())
    counts["kept"] += int(kept.sum())
    counts["replaced"] += int((~masked & ~kept).sum())
    # What was drawn once: a token, or a whole span.
    offsets = rows.predictions.get("span_offset")
    counts["draws"] += len(row) if offsets is None else int((offsets[row, column] == 1).sum())


def _check_fractions(counts, folder, split, vocabulary):
    if not counts["predictions"]:
        return
    # Words and spans hold several tokens of one fate: fewer draws, wider bounds.
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
                f"of the predicted tokens of the {split} split of {folder.path}, "
                f"{percent(fraction, decimals=2)} are {name}: {percent(low, decimals=0)} are due"
            )
