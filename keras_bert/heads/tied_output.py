"""The output layer that shares the encoder's token embedding (Press and Wolf 2017)."""

from keras import ops

from keras_bert.layers.embedding_table import embedding_table


def tied_logits(x, *, token_embedding, bias, dtype):
    """Logits over the vocabulary: (N, D), an embedding (V, D) and bias (V,) or None -> (N, V).

    They are computed in `dtype`, from the table as it is stored.
    """
    table = embedding_table(token_embedding, dtype=dtype)  # (V, D)
    logits = ops.matmul(ops.cast(x, dtype), ops.transpose(table))
    return logits if bias is None else logits + bias
