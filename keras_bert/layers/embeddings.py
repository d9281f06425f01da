"""Token, position and segment embeddings (Devlin et al. 2018, section 3)."""

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.dense import initializer
from keras_bert.layers.elementwise import Dropout, LayerNorm
from keras_bert.layers.kernels.gathering import look_up


def embedding_table(embedding, *, dtype):
    """All rows of a `keras.layers.Embedding`, (N, D).

    Of a quantized table every id is looked up by the layer, which applies the scales
    (`Embedding.embeddings` are integers).
    """
    if embedding.quantization_mode:
        return ops.cast(embedding(ops.arange(embedding.input_dim)), dtype)
    return ops.cast(embedding.embeddings, dtype)


def embedded(embedding, ids, *, dtype):
    """The embeddings of ids: int (…) -> (…, D), whether the table is quantized or not."""
    if embedding.quantization_mode:
        return ops.cast(embedding(ids), dtype)
    return ops.cast(look_up(embedding.embeddings, ids), dtype)


@keras.saving.register_keras_serializable(package="keras_bert")
class Embeddings(Layer):
    """The sum of token, position and segment embeddings, with LayerNorm and dropout.

    Shapes: input_ids (B, S), segment_ids (B, S) or None, positions (B, S) or None -> (B, S, D).
    Without `segment_ids` every token is in segment 0. `positions` counts from 0 inside each
    sequence; None means one sequence per row.

    Args:
        vocab_size: V, rows of the token embedding.
        hidden_size: D.
        max_position_embeddings: rows of the position embedding.
        position_offset: row of the first token's position (2 in RoBERTa, 0 in BERT).
        type_vocab_size: number of segments.
        dropout: fraction of the sums set to zero in training.
        layer_norm_eps: epsilon of the LayerNorm.
        initializer_range: standard deviation of new weights.

    Raises:
        ValueError: the sequence is longer than there are positions.
    """

    def __init__(
        self,
        *,
        vocab_size,
        hidden_size,
        max_position_embeddings,
        position_offset,
        type_vocab_size,
        dropout,
        layer_norm_eps,
        initializer_range,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.max_length = max_position_embeddings - position_offset
        self.position_offset = position_offset

        def table(rows, name):
            return keras.layers.Embedding(
                rows,
                hidden_size,
                embeddings_initializer=initializer(initializer_range),
                name=name,
                dtype=self.dtype_policy,
            )

        self.token_embedding = table(vocab_size, "token_embedding")
        self.position_embedding = table(max_position_embeddings, "position_embedding")
        self.segment_embedding = table(type_vocab_size, "segment_embedding")
        self.layer_norm = LayerNorm(
            epsilon=layer_norm_eps, name="layer_norm", dtype=self.dtype_policy
        )
        self.dropout = Dropout(rate=dropout, name="dropout", dtype=self.dtype_policy)

    def build(self, input_ids_shape=None, segment_ids_shape=None, positions_shape=None):
        for embedding in (self.token_embedding, self.position_embedding, self.segment_embedding):
            embedding.build()
        self.layer_norm.build((None, None, self.settings["hidden_size"]))
        self.built = True

    def call(self, input_ids, segment_ids=None, positions=None, training=None):
        length = input_ids.shape[1]
        if length is not None and length > self.max_length:
            raise ValueError(
                "The sequence is longer than the model has positions. "
                f"Received: length={length}, positions={self.max_length}."
            )
        dtype = self.compute_dtype
        x = embedded(self.token_embedding, input_ids, dtype=dtype)  # (B, S, D)
        # Rows in order are sliced: the gradient of a slice is one sum, that of a lookup a scatter.
        if segment_ids is None:
            x = x + embedding_table(self.segment_embedding, dtype=dtype)[:1]  # (1, D) to each
        else:
            x = x + embedded(self.segment_embedding, segment_ids, dtype=dtype)
        first = self.position_offset
        if positions is None:
            table = embedding_table(self.position_embedding, dtype=dtype)
            x = x + table[first : first + ops.shape(input_ids)[1]]  # (S, D) to each
        else:
            x = x + embedded(self.position_embedding, positions + first, dtype=dtype)
        return self.dropout(self.layer_norm(x), training=training)

    def compute_output_shape(self, input_ids_shape, *_):
        return (*input_ids_shape, self.settings["hidden_size"])
