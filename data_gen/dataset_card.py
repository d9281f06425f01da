"""The dataset card: what the rows of a folder are, how they were made, and what is in them."""

import dataclasses
import json
import os
import tempfile

import apache_beam as beam
import numpy as np

import keras_bert
from data_gen.shards import put
from keras_bert.errors import InputError
from keras_bert.records.folder import CARD, FORMAT_VERSION, SPLITS

_SETTINGS = (
    "mask_unit", "replacement", "replacement_counts", "masked_rate", "short_rate", "dupe_factor",
    "eval_fraction", "item_bytes",
)  # fmt: skip


class WriteCard(beam.DoFn):
    """Takes the `Statistics` of a whole job, writes the card into its output, yields it."""

    def __init__(self, settings, input):
        super().__init__()
        self._settings = settings
        self._input = input

    def process(self, statistics):
        card = make_card(statistics, settings=self._settings, input=self._input)
        if not card["splits"]["train"]["instances"]:
            raise InputError(
                f"there is no text in {' '.join(self._input)} to make a row of: nothing but white "
                "space, or sentences too short to have a second part"
            )
        with tempfile.TemporaryDirectory(prefix="keras_bert_") as folder:
            local = os.path.join(folder, CARD)
            with open(local, "w", encoding="utf-8") as file:
                file.write(json.dumps(card, ensure_ascii=False, indent=1) + "\n")
            put(local, f"{self._settings.output}/{CARD}")
        yield card


def make_card(statistics, *, settings, input):
    """The card as a dict of what JSON has. Counters of a split lie under its name."""
    vocabulary = settings.vocabulary
    lengths = statistics.lengths
    unigrams = statistics.unigrams
    if unigrams is None:
        unigrams = np.zeros(len(vocabulary), np.int64)
    if lengths is None:
        lengths = np.zeros(settings.max_length + 1, np.int64)
    splits = {split: {"shards": 0, "instances": 0, "tokens": 0} for split in SPLITS}
    for split in SPLITS:
        shards = sorted(item for item in statistics.shards.items() if item[0][0] == split)
        splits[split]["shard_instances"] = [rows for _, rows in shards]
    counters = {}
    for name, value in sorted(statistics.counters.items()):
        split, _, counter = name.rpartition("/")
        (splits[split] if split else counters)[counter] = int(value)
    return {
        "format_version": FORMAT_VERSION,
        "made_by": f"keras-bert-toolkit {keras_bert.__version__}",
        "input": list(input),
        "objective": settings.objective,
        "masking": settings.masking,
        "rows": "padded" if settings.pad else "compact",
        "compression": settings.compression,
        "max_length": settings.max_length,
        "max_predictions": settings.max_predictions,
        "seed": settings.seed,
        "lowercase": settings.lowercase,
        "vocabulary": {"sha256": vocabulary.sha256, "size": len(vocabulary)},
        "settings": {name: getattr(settings, name) for name in _SETTINGS}
        | {"reading": dataclasses.asdict(settings.reading)},
        "splits": splits,
        "counters": counters,
        "length_histogram": lengths.tolist(),
        "unigram_entropy": unigram_entropy(unigrams, vocabulary.special_ids),
        "unigram_counts": unigrams.tolist(),
    }


def unigram_entropy(counts, special_ids):
    """The entropy of the ordinary tokens in nats a token, from the counts (V,) of all pieces.

    A model that knows how frequent each piece is, and nothing of what stands around it, has this
    loss.
    """
    counts = np.array(counts, np.float64)
    counts[special_ids] = 0
    shares = counts[counts > 0] / max(counts.sum(), 1)
    return float(-(shares * np.log(shares)).sum())
