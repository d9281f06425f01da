"""The precisions that a model is exported in; their names need no Keras."""

PRECISIONS = ("float32", "bfloat16", "float16", "int8")
