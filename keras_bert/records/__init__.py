"""What the data jobs write and training reads: the features of a row, and the folder of shards."""

from keras_bert.records.folder import DataFolder
from keras_bert.records.specs import COMPACT, FeatureSpec, compact, pad, padded, spec_of

__all__ = ["COMPACT", "DataFolder", "FeatureSpec", "compact", "pad", "padded", "spec_of"]
