"""Peers of our sizes that benchmarks measure us beside.

A benchmark that has TensorFlow and `transformers` in one process imports this first: Triton, which
PyPI's torch brings, crashes if TensorFlow was loaded before it.
"""

try:
    import triton  # noqa: F401
except ImportError:  # there is no torch, or it is a CPU build
    pass


def keras_nlp_backbone(config, *, dtype):
    """keras-nlp's encoder of a `BertConfig`, with random weights; `dtype` is a policy's name."""
    from keras_nlp.models import BertBackbone

    return BertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        dropout=config.hidden_dropout_prob,
        max_sequence_length=config.max_position_embeddings,
        dtype=dtype,
    )
