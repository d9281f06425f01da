"""An embedding's rows as numbers, however they are stored."""

from keras import ops

from keras_bert.layers.kernels.rows import look_up


def embedding_table(embedding, *, dtype):
    """All rows of a `keras.layers.Embedding`, (N, D).

    A quantized table is stored in whole numbers with scales: there every id is looked up, since
    the layer knows how it is stored (`Embedding.embeddings` are the bare whole numbers).
    """
    if embedding.quantization_mode:
        return ops.cast(embedding(ops.arange(embedding.input_dim)), dtype)
    return ops.cast(embedding.embeddings, dtype)


def embedded(embedding, ids, *, dtype):
    """The rows of ids: int (…) -> (…, D), whether the table is quantized or not."""
    if embedding.quantization_mode:
        return ops.cast(embedding(ids), dtype)
    return ops.cast(look_up(embedding.embeddings, ids), dtype)
