"""Skip-gram and CBOW with negative sampling (Mikolov et al. 2013, "Distributed representations of
words and phrases and their compositionality").
"""

import keras
import numpy as np
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.kernels.gathering import sparse_rows

# T: larger groups are larger matrix products, of which a larger part is no context.
_GROUP_TOKENS = 32


@keras.saving.register_keras_serializable(package="keras_bert")
class NegativeSampling(Layer):
    """The loss of skip-gram or CBOW: each token against its context and against random tokens.

    With v_t the vector of a token t (the token embedding) and u_t its vector as an output (a second
    table, the only weights of this layer), σ the logistic function and P the distribution of the
    negatives, the nats of a token w with the contexts c are

        skip-gram   mean_c [ - log σ(u_c · v_w) ] - k E_{n ~ P} [ log σ(-u_n · v_w) ]
        CBOW        - log σ(u_w · h) - k E_{n ~ P} [ log σ(-u_n · h) ]      h = mean_c v_c

    so that skip-gram's sum over all tokens, each weighted by the number of its contexts, is
    equation 4 of the paper. The published program estimates the expectation with k tokens of their
    own for each prediction. Here the tokens of a chunk share M negatives, which count k / M each:
    the gradient has the same expectation, all scores are matrix products, and few vectors are read
    (Ji et al. 2016). A chunk is N groups of T tokens, each scored with its T + 2 W neighbours, so
    that it reads C + N (T + 2 W) + M vectors instead of some 2 W C (k + 1).

    Shapes: int32 input_ids (R, L), contexts_before, contexts_after (R, C), negatives (R, M)
    -> float32 (R, C): R chunks of C consecutive tokens, L = C + 2 W with the W tokens before and
    after the chunk, which are contexts only. The contexts of a token are so many tokens before and
    after it, at most W each. Without any, as at padding, its nats are 0.

    Args:
        token_embedding: the `keras.layers.Embedding` (V, D) with the vectors v.
        window: W.
        negatives: k.
        cbow: whether the contexts together predict a token, or the token its contexts.
    """

    def __init__(self, *, token_embedding, window, negatives, cbow, **kwargs):
        super().__init__(**kwargs)
        self.token_embedding = token_embedding
        self.window = window
        self.negatives = negatives
        self.cbow = cbow

    def build(self, *shapes, **more):
        self.output_vectors = self.add_weight(
            shape=self.token_embedding.embeddings.shape, initializer="zeros", name="output_vectors"
        )
        self.built = True

    def call(self, input_ids, contexts_before, contexts_after, negatives):
        tokens = input_ids[:, self.window : -self.window]  # (R, C)
        groups = _groups(input_ids, self.window)  # (R, N, T + 2 W)
        distance = np.arange(-self.window, self.window + 1)
        is_context = ops.logical_and(
            ops.logical_and(distance >= -contexts_before[..., None], distance != 0),
            distance <= contexts_after[..., None],
        )  # (R, C, 2 W + 1)
        of_context = ops.cast(is_context, "float32")
        count = ops.sum(of_context, axis=-1)  # (R, C)
        mean = of_context / ops.maximum(count, 1.0)[..., None]  # rows sum to 1 or 0
        if self.cbow:
            vectors = ops.matmul(_from_band(mean), self._vectors(groups))  # (R, N, T, D)
            vectors = ops.reshape(vectors, (-1, tokens.shape[1], vectors.shape[-1]))  # (R, C, D)
            targets = self._output_vectors(tokens)  # (R, C, D)
            of_target = _log_loss(-ops.sum(vectors * targets, axis=-1))  # (R, C)
        else:
            vectors = self._vectors(tokens)  # (R, C, D)
            of_groups = ops.reshape(vectors, (-1, *_group_shape(tokens), vectors.shape[-1]))
            scores = _products(of_groups, self._output_vectors(groups))  # (R, N, T, T + 2 W)
            of_target = ops.sum(mean * _log_loss(-_band(scores)), axis=-1)  # (R, C)
        scores = _products(vectors, self._output_vectors(negatives))  # (R, C, M)
        of_negatives = self.negatives * ops.mean(_log_loss(scores), axis=-1)  # (R, C)
        return ops.where(count > 0, of_target + of_negatives, 0.0)

    def _vectors(self, ids):
        return ops.cast(sparse_rows(self.token_embedding.embeddings, ids), "float32")

    def _output_vectors(self, ids):
        return ops.cast(sparse_rows(self.output_vectors, ids), "float32")

    def compute_output_shape(self, input_ids_shape, contexts_before_shape, *_):
        return tuple(contexts_before_shape)

    def compute_output_spec(self, input_ids, contexts_before, contexts_after, negatives):
        return keras.KerasTensor(contexts_before.shape, dtype="float32")


def _group_shape(tokens):
    """N and T of chunks of tokens (R, C). If T does not divide C, a chunk is one group."""
    count = tokens.shape[1]
    size = _GROUP_TOKENS if count % _GROUP_TOKENS == 0 else count
    return count // size, size


def _groups(ids, window):
    """Each group of tokens with the W on either side of it: (R, L) -> (R, N, T + 2 W)."""
    groups, size = _group_shape(ids[:, window:-window])
    starts = [size * group for group in range(groups)]
    return ops.stack([ids[:, start : start + size + 2 * window] for start in starts], axis=1)


@ops.custom_gradient
def _band(x):
    """The columns of each token's neighbours: (R, N, T, T + 2 W) -> (R, C, 2 W + 1).

    The neighbours of a token begin one column after those of the token before it. Read as rows with
    one number more, the same numbers have them all in the first columns.
    """
    groups, size, columns = x.shape[1:]
    flat = ops.reshape(x, (-1, groups, size * columns))
    flat = ops.pad(flat, ((0, 0), (0, 0), (0, size)))
    rows = ops.reshape(flat, (-1, groups * size, columns + 1))
    return rows[..., : columns - size + 1], lambda gradient: _from_band(gradient)


def _from_band(x):
    """The reverse of `_band`: (R, C, 2 W + 1) -> (R, N, T, T + 2 W), 0 in all other columns."""
    groups, size = _group_shape(x)
    columns = size + x.shape[2] - 1
    rows = ops.pad(x, ((0, 0), (0, 0), (0, size)))  # (R, C, T + 2 W + 1)
    flat = ops.reshape(rows, (-1, groups, size * (columns + 1)))[..., : size * columns]
    return ops.reshape(flat, (-1, groups, size, columns))


def _products(x, y):
    """(…, C, D), (…, L, D) -> (…, C, L)."""
    return ops.einsum("...cd,...ld->...cl", x, y)


def _log_loss(scores):
    """- log σ(-scores) of a score that should be low."""
    return ops.softplus(scores)
