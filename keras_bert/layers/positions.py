"""How attention knows positions: rotated queries and keys, or biases for distances.

Shapes: B batch, N heads, Q queries, K keys, H head size. Axes of positions and of biases that are
the same for the whole batch have the size 1.
"""

import math

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.dense import initializer
from keras_bert.layers.elementwise import Dropout
from keras_bert.layers.embeddings import embedded, embedding_table
from keras_bert.layers.kernels.gathering import look_up


@keras.saving.register_keras_serializable(package="keras_bert")
class Positions(Layer):
    """The interface of positions to `SelfAttention`, for whole sequences and for one new token.

    This class is for encoders that add positions to their embeddings: it changes nothing.

    Class attributes:
        HAS_BIAS: whether there is a `bias`.
        BIAS_IS_SHARED: whether the bias depends on positions alone, so that layers with the same
            object compute it once per forward pass.

    Attributes:
        num_terms: how many products of vectors a score is the sum of: its scale is 1/√(n H).
    """

    HAS_BIAS = False
    BIAS_IS_SHARED = True
    num_terms = 1

    def build(self, x_shape=None):
        self.built = True

    def encode(self, x, positions):
        """Queries or keys with their positions in them.

        Shapes: x (…, H), positions int (…), which are broadcast -> (…, H).
        """
        return x

    def bias(self, query, key, query_positions, key_positions, *, project=None, training=None):
        """Returns what is added to the scores.

        Shapes: query (B, N, Q, H), key (B, N, K, H), positions int (B or 1, Q) and (B or 1, K)
        -> (B or 1, N, Q, K).

        Args:
            project: the attention's dense layer, from (…, D) to queries, keys and values (…, 3 D).
            training: whether there is dropout.
        """
        raise NotImplementedError


NO_POSITIONS = Positions()


@keras.saving.register_keras_serializable(package="keras_bert")
class RotaryPositions(Positions):
    """Each pair of units of queries and keys turns by an angle per position (Su et al. 2021).

    Unit i is paired with i + H/2, and turns by theta^(-2i/H) per position.

    Args:
        theta: base of the frequencies.
    """

    def __init__(self, *, theta, **kwargs):
        super().__init__(**kwargs)
        self.theta = theta

    def encode(self, x, positions):
        half = x.shape[-1] // 2
        frequencies = self.theta ** (-ops.arange(half, dtype="float32") / half)
        # (…, H/2); LiteRT has no `[..., None]` of several axes of any size.
        angles = ops.expand_dims(ops.cast(positions, "float32"), axis=-1) * frequencies
        cosines, sines = ops.cos(angles), ops.sin(angles)
        low, high = ops.split(ops.cast(x, "float32"), 2, axis=-1)
        turned = [low * cosines - high * sines, high * cosines + low * sines]
        return ops.cast(ops.concatenate(turned, axis=-1), x.dtype)


@keras.saving.register_keras_serializable(package="keras_bert")
class DistanceBias(Positions):
    """A learned bias of each head for the distance from query to key (Raffel et al. 2020, 2.1).

    Half of the buckets are for keys on either side. Half of those are for single distances, the
    others for ranges of distances that grow in size up to `farthest`.

    Args:
        num_buckets: number of buckets.
        num_heads: N.
        farthest: distances from here on share a bucket.
        initializer_range: standard deviation of new weights.
    """

    HAS_BIAS = True

    def __init__(self, *, num_buckets, num_heads, farthest, initializer_range, **kwargs):
        super().__init__(**kwargs)
        self.table = keras.layers.Embedding(
            num_buckets,
            num_heads,
            embeddings_initializer=initializer(initializer_range),
            name="table",
            dtype=self.dtype_policy,
        )

    def build(self, x_shape=None):
        self.table.build()
        self.built = True

    def bias(self, query, key, query_positions, key_positions, *, project=None, training=None):
        distances = query_positions[:, :, None] - key_positions[:, None]  # (B or 1, Q, K)
        bias = embedded(self.table, self.bucket(distances), dtype=self.compute_dtype)
        return ops.transpose(bias, (0, 3, 1, 2))  # (B or 1, N, Q, K)

    def bucket(self, distances):
        """The row of the table for each distance, a query's position less a key's: int, int32."""
        num_sided = self.settings["num_buckets"] // 2
        num_single = num_sided // 2
        distances = ops.cast(distances, "int32")
        sizes = ops.abs(distances)
        scale = (num_sided - num_single) / math.log(self.settings["farthest"] / num_single)
        logarithms = ops.log(ops.cast(ops.maximum(sizes, 1), "float32") / num_single) * scale
        ranges = ops.minimum(num_single + ops.cast(logarithms, "int32"), num_sided - 1)
        near_or_far = ops.where(sizes < num_single, sizes, ranges)
        return ops.where(distances < 0, num_sided, 0) + near_or_far


@keras.saving.register_keras_serializable(package="keras_bert")
class DisentangledPositions(Positions):
    """Tokens attend to distances, and distances to tokens (He et al. 2021, section 3.1).

    Each bucket of distances has a vector, which a layer's attention projects as it does tokens. The
    query's product with the key of its distance is added to a score, and the product of the key
    with the query of that distance. Distances below half of the buckets of a side have one each,
    those above share them by their logarithm.

    Args:
        num_buckets: K, buckets on either side; a table has 2 K rows.
        farthest: distances from here on share a bucket.
        num_heads: N.
        hidden_size: D.
        attends: which of "c2p" (tokens to distances) and "p2c" (distances to tokens) are added.
        has_buckets: whether far distances share buckets; otherwise K is the farthest distance.
        layer_norm: the norm of the vectors.
        dropout: fraction of the vectors' units set to zero in training.
        initializer_range: standard deviation of new weights.
    """

    HAS_BIAS = True
    BIAS_IS_SHARED = False

    def __init__(
        self,
        *,
        num_buckets,
        farthest,
        num_heads,
        hidden_size,
        attends,
        has_buckets,
        layer_norm,
        dropout,
        initializer_range,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_buckets, self.num_heads, self.attends = num_buckets, num_heads, tuple(attends)
        self.num_terms = 1 + len(self.attends)
        self.table = keras.layers.Embedding(
            2 * num_buckets,
            hidden_size,
            embeddings_initializer=initializer(initializer_range),
            name="table",
            dtype=self.dtype_policy,
        )
        self.layer_norm = layer_norm
        self.dropout = Dropout(rate=dropout, name="dropout", dtype=self.dtype_policy)

    def build(self, x_shape=None):
        self.table.build()
        if not self.layer_norm.built:
            self.layer_norm.build((None, self.settings["hidden_size"]))
        self.built = True

    def bias(self, query, key, query_positions, key_positions, *, project=None, training=None):
        vectors = self.layer_norm(embedding_table(self.table, dtype=self.compute_dtype))  # (2 K, D)
        vectors = project(self.dropout(vectors, training=training))  # (2 K, 3 D)
        scale = 1 / math.sqrt(self.num_terms * query.shape[-1])
        terms_of = self._terms_of_one_query if query.shape[2] == 1 else self._terms_of_all_queries
        terms = terms_of(query * scale, key * scale, vectors, query_positions, key_positions)
        return sum(terms[1:], terms[0])

    def _terms_of_one_query(self, query, key, vectors, query_positions, key_positions):
        """The terms (B, N, 1, K) of a single query."""
        rows = self.bucket(query_positions - key_positions)  # (B or 1, K)
        queries, keys = self._heads(vectors, rows)  # (B or 1, N, K, H)
        terms = []
        if "c2p" in self.attends:
            terms.append(ops.matmul(query, ops.swapaxes(keys, -1, -2)))
        if "p2c" in self.attends:
            terms.append(ops.sum(key * queries, axis=-1)[:, :, None])
        return terms

    def _terms_of_all_queries(self, query, key, vectors, query_positions, key_positions):
        """The terms (B, N, S, S) of whole sequences.

        Tokens of a sequence are adjacent, so that the distance is that of places in the row.
        Products with the vectors of all distances, in their order, are moved to the keys by
        reading them in rows that are one shorter: a gather would take longer than the products.
        """
        length = ops.shape(query)[2]
        rows = self.bucket(ops.arange(1 - length, length, dtype="int32"))[None]  # (1, 2 S - 1)
        terms = []
        queries, keys = self._heads(vectors, rows)  # (1, N, 2 S - 1, H)
        if "c2p" in self.attends:  # the first key has the greatest distance
            keys = ops.flip(keys, axis=2)
            terms.append(_shifted(ops.matmul(query, ops.swapaxes(keys, -1, -2)), length))
        if "p2c" in self.attends:
            moved = _shifted(ops.matmul(key, ops.swapaxes(queries, -1, -2)), length)
            terms.append(ops.swapaxes(moved, -1, -2))
        return terms

    def _heads(self, vectors, rows):
        """Queries and keys of rows of the vectors: int (B or 1, R) -> (B or 1, N, R, H) each."""
        size = self.settings["hidden_size"]
        chosen = look_up(vectors[:, : 2 * size], rows)  # (B or 1, R, 2 D)
        batch, count = ops.shape(rows)
        split = ops.reshape(chosen, (batch, count, 2, self.num_heads, size // self.num_heads))
        return ops.unstack(ops.transpose(split, (2, 0, 3, 1, 4)), 2, axis=0)

    def bucket(self, distances):
        """The row of the table for each distance, a query's position less a key's: int, int32."""
        distances, count = ops.cast(distances, "int32"), self.num_buckets
        if self.settings["has_buckets"]:
            middle = count // 2
            sizes = ops.abs(distances)
            far = ops.cast(ops.maximum(sizes, middle), "float32") / middle
            growth = math.log((self.settings["farthest"] - 1) / middle)
            ranges = ops.ceil(ops.log(far) / growth * (middle - 1)) + middle
            shared = ops.cast(ranges, "int32") * ops.sign(distances)
            distances = ops.where(sizes <= middle, distances, shared)
        return ops.clip(distances + count, 0, 2 * count - 1)


def _shifted(x, length):
    """(…, S, 2 S - 1) -> (…, S, S): row i from its element S - 1 - i on."""
    batch, heads = ops.shape(x)[:2]
    flat = ops.reshape(x, (batch, heads, length * (2 * length - 1)))
    flat = flat[:, :, length - 1 : length - 1 + length * (2 * length - 2)]
    return ops.reshape(flat, (batch, heads, length, 2 * length - 2))[..., :length]
