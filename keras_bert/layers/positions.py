"""How attention knows positions: rotated queries and keys, or biases for distances.

Shapes: B batch, N heads, Q queries, K keys, H head size. Axes of positions and of biases that are
the same for the whole batch have the size 1.
"""

import math

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.dense import initializer
from keras_bert.layers.embeddings import embedded


@keras.saving.register_keras_serializable(package="keras_bert")
class Positions(Layer):
    """What `SelfAttention` asks about positions, for whole sequences and for one new token alike.

    This class is for encoders that add positions to their embeddings: it changes nothing.

    Class attributes:
        HAS_BIAS: whether there is a `bias`.
        BIAS_IS_SHARED: whether the bias depends on positions alone, so that layers with the same
            object compute it once per forward pass.
    """

    HAS_BIAS = False
    BIAS_IS_SHARED = True

    def build(self, x_shape=None):
        self.built = True

    def encode(self, x, positions):
        """Queries or keys with their positions in them.

        Shapes: x (…, H), positions int (…), which are broadcast -> (…, H).
        """
        return x

    def bias(self, query, key, query_positions, key_positions):
        """What is added to the scores.

        Shapes: query (B, N, Q, H), key (B, N, K, H), positions int (B or 1, Q) and (B or 1, K)
        -> (B or 1, N, Q, K).
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
        angles = ops.cast(positions, "float32")[..., None] * frequencies  # (…, H/2)
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

    def bias(self, query, key, query_positions, key_positions):
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
