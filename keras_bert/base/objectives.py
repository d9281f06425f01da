"""The objectives of pre-training by name, apart from what needs numpy to make their rows."""

# Those that a data job makes rows for.
OBJECTIVES = ("mlm-nsp", "mlm-sop", "mlm", "span")
# Those whose rows have two segments and a label of what the second is to the first.
PAIRED = ("mlm-nsp", "mlm-sop")
MASKINGS = ("static", "dynamic")
# The one that trains on the texts of any rows.
CAUSAL_LM = "causal-lm"
