"""The data that jobs write and training reads: objectives, features of a row, folders of shards.

A name brings its module in when it is first used: command lines need no numpy.
"""

from keras_bert.base import lazy_names

# The objectives of pre-training that a data job makes examples for.
OBJECTIVES = ("mlm-nsp", "mlm-sop", "mlm", "span")
# Those whose examples have two segments, and a label for the relation of the second to the first.
PAIRED = ("mlm-nsp", "mlm-sop")
MASKINGS = ("static", "dynamic")
# The one that trains on the texts of any examples.
CAUSAL_LM = "causal-lm"
# The one that does so in both directions.
BIDIRECTIONAL_LM = "bidirectional-lm"
# The one that replaces tokens of any examples.
REPLACED_TOKENS = "rtd"
# Those that train static vectors on the same texts.
STATIC_VECTORS = ("skip-gram", "cbow")

_HOMES = {
    **dict.fromkeys(("DataFolder", "DatasetCard"), "keras_bert.records.folder"),
    **dict.fromkeys(("COMPACT", "FeatureSpec", "compact", "padded"), "keras_bert.records.specs"),
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
