"""The two files that make a data folder one that `tfds.builder_from_directory` opens."""

import json

from keras_bert.records.folder import NAME

INFO, FEATURES = "dataset_info.json", "features.json"
_MODULE = "tensorflow_datasets.core.features"


def features(spec):
    """`features.json` for rows of a `FeatureSpec`."""
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
    """`dataset_info.json` for the folder of a dataset card. Splits without rows are left out."""
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
