"""The objectives of pre-training by name, in a module that loads without numpy."""

# Those that a data job makes examples for.
OBJECTIVES = ("mlm-nsp", "mlm-sop", "mlm", "span")
# Those whose examples have two segments, and a label for the relation of the second to the first.
PAIRED = ("mlm-nsp", "mlm-sop")
MASKINGS = ("static", "dynamic")
# The one that trains on the texts of any examples.
CAUSAL_LM = "causal-lm"
# The one that does so in both directions.
BIDIRECTIONAL_LM = "bidirectional-lm"
# Those that train static vectors on the same texts.
STATIC_VECTORS = ("skip-gram", "cbow")
