"""The folder of pre-training examples that a job makes, with tfds's description of it."""

import json
import re

from data_gen.output_folder import OutputFolder
from keras_bert.base.errors import InputError
from keras_bert.records.folder import (
    CARD,
    NAME,
    SETTING_OF_KEY,
    SPLITS,
    DatasetCard,
    shard_name,
)
from keras_bert.text.vocabulary import TOKENIZER_FILES
from keras_bert.text.vocabulary_files import VOCABULARY_FILES, parse_vocabulary

PICTURE = "dataset_card.png"
INFO, FEATURES = "dataset_info.json", "features.json"
_MODULE = "tensorflow_datasets.core.features"


def features(spec):
    """`features.json` for examples of a `FeatureSpec`."""
    tensors = {
        name: {
            "pythonClassName": f"{_MODULE}.tensor_feature.Tensor",
            "tensor": {
                "dtype": "float32" if name in spec.floats else "int64",
                "encoding": "none",
                "shape": {"dimensions": ["-1" if length is None else str(length)]},
            },
        }
        for name, length in spec.lengths.items()
    }
    content = {
        "pythonClassName": f"{_MODULE}.features_dict.FeaturesDict",
        "featuresDict": {"features": tensors},
    }
    return json.dumps(content, indent=1) + "\n"


def info(card):
    """`dataset_info.json` for the folder of a dataset card. Empty splits are left out."""
    splits = [
        {
            "name": split,
            "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
            "numBytes": str(counts.counters["bytes"]),
            "shardLengths": [str(number) for number in counts.shard_instances],
        }
        for split, counts in card.splits.items()
        if counts.instances
    ]
    content = {
        "name": NAME,
        "version": "1.0.0",
        "fileFormat": "tfrecord",
        "description": f"Rows for pre-training ({card.objective}), by {card.made_by}.",
        "splits": splits,
    }
    return json.dumps(content, indent=1) + "\n"


class NewDataFolder(OutputFolder):
    """The `OutputFolder` of pre-training examples.

    Args:
        card: a `DatasetCard` of the job's settings and input; its counts do not matter.
    """

    SHARD = re.compile(
        rf"{NAME}-(?P<split>train|eval)\.tfrecord-\d{{5,}}-of-(?P<total>\d{{5,}})(?:\.gz)?"
    )
    FIRST_SPLIT = "train"
    OURS = re.compile(
        "|".join(
            (
                SHARD.pattern,
                *map(re.escape, (CARD, PICTURE, *sorted(TOKENIZER_FILES), INFO, FEATURES)),
            )
        )
    )

    def __init__(self, path, *, force, card=None, inputs=""):
        self._card = card
        super().__init__(path, force=force, inputs=inputs)

    def card(self):
        """The `DatasetCard` in the folder."""
        return DatasetCard.parse(self.read(CARD), self.file(CARD))

    def difference(self, names):
        if CARD not in names:
            return f" without its {CARD}"
        if self._card is None:
            return ""
        setting = self.card().difference(self._card)
        if setting is None and not self.has_the_same_inputs():
            setting = "content of the input"
        if setting is None:
            return None
        return f" that was made with another {SETTING_OF_KEY.get(setting, setting)}"

    def find_damage(self, names):
        """From the sizes of the shards, and not from their content."""
        card = self.card()
        for split in SPLITS:
            counts = card.splits[split]
            shards = [
                shard_name(split, index, counts.shards, card.compression)
                for index in range(counts.shards)
            ]
            missing = [name for name in shards if name not in names]
            if missing:
                return f"{missing[0]} is missing"
            size, written = self.size(shards), counts.counters["bytes"]
            if written not in (0, size):  # 0: unknown, from an earlier version
                return f"the shards of the {split} split have {size} bytes of {written}"
        contents = {name: self.bytes(name) for name in VOCABULARY_FILES if name in names}
        try:
            vocabulary = parse_vocabulary(
                contents, folder=self.path, special_tokens=card.special_tokens
            )
            whole = vocabulary.sha256 == card.vocabulary.sha256
        except InputError:
            whole = False
        return None if whole else "its vocabulary is not the one that made it"
