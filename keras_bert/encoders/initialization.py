"""Initialization of attention heads that look at a token's neighbours.

A masked LM stays at the unigram baseline until attention has learned to address positions: with
BERT's initialization, a truncated normal with a standard deviation of 0.02, this takes thousands of
steps. Heads that look at the neighbours from the start save them (for vision: Trockman and Kolter
2023, "Mimetic initialization of self-attention layers"). The model itself is unchanged.

With sinusoidal positions (Vaswani et al. 2017, section 3.5) a shift by an offset is a rotation of
every pair of sine and cosine. A query kernel that rotates the pairs by the offset, and a key kernel
that does not, make a head that looks at position i + offset. Token embeddings are 0 in the pairs at
first, so that it does so for any token.
"""

import keras
import numpy as np

OFFSETS = (-1, 1, -2, 2)  # of the first heads of the first layer
OFFSETS_BEFORE = (-1, -2, -3, -4)  # in a causal encoder

_PEAK = 6.0  # attention score of the neighbour; that of far positions is about 0


def initialize_local_attention(encoder, *, tables_of=None) -> None:
    """Initializes the first heads of a new encoder to look at the neighbouring tokens.

    D hidden size, E embedding size, H head size, P = min(H, D/4, E/4) units of the state for
    positions:

    - Token embeddings have a standard deviation of 1/√E, so that the logits of the tied output have
      one of about 1, and are 0 in the first P units. Segment embeddings are 0.
    - Position embeddings are sinusoids in those units and 0 elsewhere, and contribute half of a
      state's variance.
    - A projection of the embeddings copies these units, and so scales both parts that each
      contributes half of the variance of what it computes. A narrow encoder with the tables of a
      wider one, `tables_of`, copies P of its own: every second pair, every third, …
    - In the first layer, head n looks at the position at OFFSETS[n] (OFFSETS_BEFORE[n] in a causal
      encoder), as far as there are heads; value and output kernels have a standard deviation of
      1/√D, so that the output of attention is as large as the state that it is added to.

    Other weights are unchanged: larger kernels above the first layer would drown its output. The
    random numbers are Keras's. An encoder that is too small for a pair of units (P < 2) is left
    unchanged.
    """
    size = encoder.config.hidden_size
    embeddings, attention = encoder.embeddings, encoder.blocks[0].attention
    table_pairs = _pairs(tables_of or encoder)
    pairs = min(_pairs(encoder), table_pairs)
    if not pairs:
        return

    def normal(shape, variance=1 / size):
        # An initializer repeats its numbers, hence a new one each time.
        return keras.initializers.TruncatedNormal(stddev=variance**0.5)(shape)

    kernels = np.array(attention.query_key_value.kernel)  # (D, 3 D)
    query, key, value = np.split(kernels, 3, axis=1)  # each a view of its part
    value[:] = normal(value.shape)
    attention.projection.kernel.assign(normal(attention.projection.kernel.shape))

    frequencies = _frequencies(table_pairs)
    width = embeddings.embedding_size
    table = np.array(normal((encoder.config.vocab_size, width), 1 / width))
    table[:, : 2 * table_pairs] = 0
    embeddings.token_embedding.embeddings.assign(table)
    length = np.sqrt(np.square(table).sum(axis=1).mean() / table_pairs)  # of a pair
    table = np.zeros(embeddings.position_embedding.embeddings.shape, np.float32)
    positions = np.arange(len(table)) - embeddings.position_offset
    table[:, : 2 * table_pairs] = length * _sinusoids(positions, frequencies)
    embeddings.position_embedding.embeddings.assign(table)
    segments = embeddings.segment_embedding.embeddings
    segments.assign(np.zeros(segments.shape, np.float32))
    if embeddings.projection is not None:
        copied = (np.arange(pairs) + 1) * table_pairs // pairs - 1  # the pairs of the tables
        frequencies = frequencies[copied]
        # After LayerNorm the squares of the pairs, and those of the other units, sum to E / 2.
        variance = size / (width * (size - 2 * pairs))
        kernel = np.array(normal((width, size), variance))
        kernel[: 2 * table_pairs], kernel[:, : 2 * pairs] = 0, 0
        scale = np.sqrt(size * table_pairs / (width * pairs))
        for unit in range(2):
            kernel[2 * copied + unit, 2 * np.arange(pairs) + unit] = scale
        embeddings.projection.kernel.assign(kernel)

    # After LayerNorm, or the projection, the squares of the pairs sum to D / 2. The score of the
    # key d positions from the one at the offset is gain² (D / 2) mean(cos(frequency d)) / √H.
    gain = np.sqrt(_PEAK * np.sqrt(attention.head_size) / (size / 2))
    offsets = OFFSETS_BEFORE if encoder.config.is_causal else OFFSETS
    for head, offset in enumerate(offsets[: attention.num_heads]):
        units = slice(head * attention.head_size, head * attention.head_size + 2 * pairs)
        query[: 2 * pairs, units] += gain * _rotations(frequencies * offset)
        key[: 2 * pairs, units] += gain * np.eye(2 * pairs)
    attention.query_key_value.kernel.assign(kernels)


def _pairs(encoder):
    """Pairs of units for positions in an encoder's state."""
    config, embeddings = encoder.config, encoder.embeddings
    head_size = config.hidden_size // config.num_attention_heads
    return min(head_size, config.hidden_size // 4, embeddings.embedding_size // 4) // 2


def _frequencies(pairs):
    """Radians per position, (F,).

    Most of Vaswani's powers are too low: the mean of their cosines is 0.6 between neighbours. With
    these it is under 0.5 for any two of 512 positions, given 16 pairs or more.
    """
    return 0.95 * np.pi * ((np.arange(pairs) + 0.5) / pairs) ** 1.5


def _sinusoids(positions, frequencies):
    """-> (positions, 2 F): the cosine and the sine of each frequency's angle."""
    angles = positions[:, None] * frequencies
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(len(positions), -1)


def _rotations(angles):
    """-> (2 F, 2 F): the matrix that rotates each pair of a row vector by its angle."""
    matrix = np.diag(np.repeat(np.cos(angles), 2))
    cosines, sines = np.arange(0, 2 * len(angles), 2), np.arange(1, 2 * len(angles), 2)
    matrix[cosines, sines] = np.sin(angles)
    matrix[sines, cosines] = -np.sin(angles)
    return matrix
