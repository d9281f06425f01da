"""Makes the dataset card of a job from what was counted, and writes it."""

import dataclasses
from collections import Counter

import apache_beam as beam
import numpy as np

import keras_bert
from data_gen.new_file import new_file
from data_gen.reading import dropped_documents
from data_gen.text_files import skipped_lines
from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.records.dataset_card import (
    SPLITS,
    CardSettings,
    CardSplit,
    CardVocabulary,
    DatasetCard,
)
from keras_bert.records.folder import CARD


class WriteCard(beam.DoFn):
    """Takes the `Statistics` of a whole job, writes the card into its output, yields it."""

    def __init__(self, settings, input):
        super().__init__()
        self._settings = settings
        self._input = input

    def process(self, statistics):
        card = make_card(statistics, settings=self._settings, input=self._input)
        if not card.splits["train"].instances:
            raise InputError(
                f"there is no text in {' '.join(self._input)} to make a row of: "
                f"{_why_nothing_is_left(card.counters)}"
            )
        with new_file(f"{self._settings.output}/{CARD}") as file:
            file.write_text(card.to_json(), encoding="utf-8")
        yield card


def _why_nothing_is_left(counters):
    """What became of a text of which there are no rows."""
    left_out = [
        f"{counted(number, what)} ({reason})"
        for what, found in (
            ("line", skipped_lines(counters)),
            ("document", dropped_documents(counters)),
        )
        for reason, number in found.items()
    ]
    if left_out:
        return f"left out were {', '.join(left_out)}"
    return "nothing but white space, or sentences too short to have a second part"


def make_card(statistics, *, settings, input):
    """The `DatasetCard` of a job. Counters of a split lie under its name."""
    vocabulary = settings.vocabulary
    lengths = statistics.lengths
    unigrams = statistics.unigrams
    if unigrams is None:
        unigrams = np.zeros(len(vocabulary), np.int64)
    if lengths is None:
        lengths = np.zeros(settings.max_length + 1, np.int64)
    counters, counters_of = {}, {split: Counter() for split in SPLITS}
    for name, value in sorted(statistics.counters.items()):
        split, _, counter = name.rpartition("/")
        (counters_of[split] if split else counters)[counter] = int(value)
    return DatasetCard(
        made_by=f"keras-bert-toolkit {keras_bert.__version__}",
        input=tuple(input),
        objective=settings.objective,
        masking=settings.masking,
        rows="padded" if settings.pad else "compact",
        compression=settings.compression,
        max_length=settings.max_length,
        max_predictions=settings.max_predictions,
        seed=settings.seed,
        lowercase=settings.lowercase,
        vocabulary=CardVocabulary(sha256=vocabulary.sha256, size=len(vocabulary)),
        special_tokens=vocabulary.special_tokens,
        template=settings.template,
        settings=_settings(settings),
        splits={split: _split(split, counters_of[split], statistics.shards) for split in SPLITS},
        counters=counters,
        length_histogram=tuple(lengths.tolist()),
        unigram_entropy=unigram_entropy(unigrams, vocabulary.special_ids),
        unigram_counts=tuple(unigrams.tolist()),
    )


def _settings(settings):
    names = {field.name for field in dataclasses.fields(CardSettings)} - {"reading"}
    return CardSettings(
        **{name: getattr(settings, name) for name in names},
        reading=dataclasses.asdict(settings.reading),
    )


def _split(split, counters, shards):
    """A split of its counters and of the rows of every (split, index) of a shard."""
    rows = tuple(rows for (of, _), rows in sorted(shards.items()) if of == split)
    return CardSplit.from_counts({**counters, "shard_instances": rows})


def unigram_entropy(counts, special_ids):
    """The entropy of the ordinary tokens in nats a token, from the counts (V,) of all pieces.

    A model that knows how frequent each piece is, and nothing of what stands around it, has this
    loss.
    """
    counts = np.array(counts, np.float64)
    counts[special_ids] = 0
    shares = counts[counts > 0] / max(counts.sum(), 1)
    return float((shares * -np.log(shares)).sum())
