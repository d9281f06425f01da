"""Where a new encoder starts: as BERT does, or with heads that look at a token's neighbours.

A [MASK] knows nothing of what stands beside it until attention has learned the arithmetic of
positions, and a masked LM stays at the entropy of word frequencies until then: thousands of steps
of BERT's own start, normal numbers with a standard deviation of 0.02. What it learns there can be
given (for vision: Trockman and Kolter 2023, "Mimetic initialization of self-attention layers").
Nothing is added to the model; it only starts elsewhere.

With sinusoidal positions (Vaswani et al. 2017, section 3.5) a shift by an offset is a rotation of
every pair of sine and cosine. A query kernel that rotates the pairs by the offset, and a key kernel
that does not, make a head that looks at position i + offset. Tokens leave the pairs alone at first,
so that it does so whatever stands there.
"""

import keras
import numpy as np

OFFSETS = (-1, 1, -2, 2)  # of the first heads of the first block
OFFSETS_BEFORE = (-1, -2, -3, -4)  # where no position sees what comes after it

_PEAK = 6.0  # what softmax gets for the neighbour; for far positions it gets about 0


def initialize_local_attention(encoder) -> None:
    """Gives a new `BertEncoder` weights whose first heads look at the tokens beside their own.

    D width, H head size, P = min(H, D/4) units of the state that hold positions:

    - Token embeddings have a standard deviation of 1/√D, so that the logits of the tied output have
      one of about 1, and are 0 in the first P units. Segments start at 0.
    - Position embeddings are sinusoids in those units and 0 elsewhere, and make half of a state's
      variance.
    - In the first block, head n looks OFFSETS[n] positions on (OFFSETS_BEFORE[n] in a causal
      encoder), as far as there are heads; value and output kernels have a standard deviation of
      1/√D, so that what is fetched is as large as what it is added to.

    All else stays as it is: larger kernels above the first block wipe out what it has fetched. The
    random numbers are Keras's. An encoder whose width or heads have no room for a pair of units
    (P < 2) is left as it is.
    """
    width = encoder.config.hidden_size
    embeddings, attention = encoder.embeddings, encoder.blocks[0].attention
    pairs = min(attention.head_size, width // 4) // 2
    if not pairs:
        return

    def normal(shape):  # a new initializer for each, as one of them repeats its numbers
        return keras.initializers.TruncatedNormal(stddev=width**-0.5)(shape)

    kernels = np.array(attention.query_key_value.kernel)  # (D, 3 D)
    query, key, value = np.split(kernels, 3, axis=1)  # each a view of its part
    value[:] = normal(value.shape)
    attention.projection.kernel.assign(normal(attention.projection.kernel.shape))

    frequencies = _frequencies(pairs)
    table = np.array(normal((encoder.config.vocab_size, width)))
    table[:, : 2 * pairs] = 0
    embeddings.token_embedding.embeddings.assign(table)
    length = np.sqrt(np.square(table).sum(axis=1).mean() / pairs)  # of a pair
    table = np.zeros(embeddings.position_embedding.embeddings.shape, np.float32)
    positions = np.arange(len(table)) - embeddings.position_offset
    table[:, : 2 * pairs] = length * _sinusoids(positions, frequencies)
    embeddings.position_embedding.embeddings.assign(table)
    segments = embeddings.segment_embedding.embeddings
    segments.assign(np.zeros(segments.shape, np.float32))

    # After LayerNorm the pairs' squares are D / 2 in sum. The score of the key d positions from
    # where a head looks is gain² (D / 2) mean(cos(frequency d)) / √H.
    gain = np.sqrt(_PEAK * np.sqrt(attention.head_size) / (width / 2))
    offsets = OFFSETS_BEFORE if encoder.config.is_decoder else OFFSETS
    for head, offset in enumerate(offsets[: attention.num_heads]):
        units = slice(head * attention.head_size, head * attention.head_size + 2 * pairs)
        query[: 2 * pairs, units] += gain * _rotations(frequencies * offset)
        key[: 2 * pairs, units] += gain * np.eye(2 * pairs)
    attention.query_key_value.kernel.assign(kernels)


def _frequencies(pairs):
    """Radians a position, (F,).

    Not Vaswani's powers, most of which hardly turn: between neighbours the mean of their cosines is
    0.6. Of these it is under a half for any two of 512 positions, with 16 pairs or more.
    """
    return 0.95 * np.pi * ((np.arange(pairs) + 0.5) / pairs) ** 1.5


def _sinusoids(positions, frequencies):
    """-> (positions, 2 F): for each frequency the cosine and the sine of its angle."""
    angles = positions[:, None] * frequencies
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(len(positions), -1)


def _rotations(angles):
    """-> (2 F, 2 F): the matrix that turns each pair of a row vector by its angle."""
    matrix = np.diag(np.repeat(np.cos(angles), 2))
    cosines, sines = np.arange(0, 2 * len(angles), 2), np.arange(1, 2 * len(angles), 2)
    matrix[cosines, sines] = np.sin(angles)
    matrix[sines, cosines] = -np.sin(angles)
    return matrix
