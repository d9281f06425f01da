"""What the data jobs write and training reads: the features of a row, and the folder of shards."""

from keras_bert.records.dataset_card import DatasetCard
from keras_bert.records.folder import DataFolder
from keras_bert.records.specs import COMPACT, FeatureSpec, compact, padded

__all__ = ["COMPACT", "DataFolder", "DatasetCard", "FeatureSpec", "compact", "padded"]
