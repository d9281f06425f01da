"""What the data jobs write and training reads: the features of a row, and the folder of shards.

A name brings its module in when it is first used: command lines need no numpy.
"""

from keras_bert.base.lazy import lazy_names

_HOMES = {
    **dict.fromkeys(("DataFolder", "DatasetCard"), "keras_bert.records.folder"),
    **dict.fromkeys(("COMPACT", "FeatureSpec", "compact", "padded"), "keras_bert.records.specs"),
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
