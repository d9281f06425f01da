"""Token, position and segment embeddings (Devlin et al. 2018, section 3)."""

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.dense import dense, initializer
from keras_bert.layers.elementwise import Dropout
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

    What a model lacks is left out: positions, segments, the LayerNorm. If the embeddings do not
    have the hidden size, a dense layer projects them (Lan et al. 2020, section 3.1).

    Shapes: input_ids (B, S), segment_ids (B, S) or None, positions (B, S) or None -> (B, S, D).
    Without `segment_ids` every token is in segment 0. `positions` counts from 0 inside each
    sequence; None means one sequence per row.

    Args:
        vocab_size: V, rows of the token embedding.
        hidden_size: D.
        embedding_size: E, the size of the embeddings; None is D.
        max_position_embeddings: rows of the position embedding; 0 for a model without one.
        position_offset: row of the first token's position (2 in RoBERTa, 0 in BERT).
        type_vocab_size: number of segments; 0 for a model without segment embeddings.
        dropout: fraction of the sums set to zero in training.
        layer_norm: the norm of the sums, or None.
        initializer_range: standard deviation of new weights.
        has_projection: whether there is that layer if they have the hidden size, too.

    Raises:
        ValueError: the sequence is longer than there are positions.
    """

    def __init__(
        self,
        *,
        vocab_size,
        hidden_size,
        embedding_size=None,
        max_position_embeddings,
        position_offset=0,
        type_vocab_size=0,
        dropout,
        layer_norm,
        initializer_range,
        has_projection=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.embedding_size = embedding_size or hidden_size
        self.max_length = max_position_embeddings - position_offset
        self.position_offset = position_offset

        def table(rows, name):
            if not rows:
                return None
            return keras.layers.Embedding(
                rows,
                self.embedding_size,
                embeddings_initializer=initializer(initializer_range),
                name=name,
                dtype=self.dtype_policy,
            )

        self.token_embedding = table(vocab_size, "token_embedding")
        self.position_embedding = table(max_position_embeddings, "position_embedding")
        self.segment_embedding = table(type_vocab_size, "segment_embedding")
        self.layer_norm = layer_norm
        self.dropout = Dropout(rate=dropout, name="dropout", dtype=self.dtype_policy)
        self.projection = None
        if has_projection or self.embedding_size != hidden_size:
            self.projection = dense(
                hidden_size,
                initializer_range=initializer_range,
                name="projection",
                dtype=self.dtype_policy,
            )

    def build(self, input_ids_shape=None, segment_ids_shape=None, positions_shape=None):
        tables = (self.token_embedding, self.position_embedding, self.segment_embedding)
        for layer in (*tables, self.layer_norm, self.projection):
            if layer is not None and not layer.built:  # Keras builds a norm that it loads
                layer.build((None, None, self.embedding_size))
        self.built = True

    def call(self, input_ids, segment_ids=None, positions=None, training=None):
        dtype = self.compute_dtype
        x = embedded(self.token_embedding, input_ids, dtype=dtype)  # (B, S, E)
        # Rows in order are sliced: the gradient of a slice is one sum, that of a lookup a scatter.
        if self.segment_embedding is not None and segment_ids is None:
            x = x + embedding_table(self.segment_embedding, dtype=dtype)[:1]  # (1, E) to each
        elif self.segment_embedding is not None:
            x = x + embedded(self.segment_embedding, segment_ids, dtype=dtype)
        if self.position_embedding is not None:
            x = x + self._positions(input_ids, positions)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        x = self.dropout(x, training=training)
        return x if self.projection is None else self.projection(x)  # (B, S, D)

    def _positions(self, input_ids, positions):
        """The embeddings of positions: (B, S, E), or (S, E) if they are in order."""
        length = input_ids.shape[1]
        if length is not None and length > self.max_length:
            raise ValueError(
                "The sequence is longer than the model has positions. "
                f"Received: length={length}, positions={self.max_length}."
            )
        dtype, first = self.compute_dtype, self.position_offset
        if positions is not None:
            return embedded(self.position_embedding, positions + first, dtype=dtype)
        table = embedding_table(self.position_embedding, dtype=dtype)
        return table[first : first + ops.shape(input_ids)[1]]

    def compute_output_shape(self, input_ids_shape, *_):
        return (*input_ids_shape, self.settings["hidden_size"])
