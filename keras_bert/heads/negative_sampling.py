"""Skip-gram and CBOW with negative sampling (Mikolov et al. 2013, "Distributed representations of
words and phrases and their compositionality").
"""

import keras
import numpy as np
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.kernels.gathering import sparse_rows


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
    the gradient has the same expectation, all scores are matrix products, and a chunk reads
    C + L + M vectors instead of some 2 W C (k + 1) (Ji et al. 2016).

    Shapes: input_ids, sequence_ids int32 (R, L), windows int32 (R, C), negatives int32 (R, M)
    -> float32 (R, C): R chunks of C consecutive tokens, L = C + 2 W with the W tokens before and
    after the chunk, which are contexts only.
    `sequence_ids` numbers the sequences, which are no contexts of one another. `windows` is the
    number of contexts on either side of each token, at most W; 0 at padding, whose nats are 0.

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

    def call(self, input_ids, sequence_ids, windows, negatives):
        window = self.window
        tokens = input_ids[:, window:-window]  # (R, C)
        is_context = self.is_context(sequence_ids, windows)  # (R, C, L)
        of_context = ops.cast(is_context, "float32")
        count = ops.sum(of_context, axis=-1)  # (R, C)
        mean = of_context / ops.maximum(count, 1.0)[..., None]  # (R, C, L), rows sum to 1 or 0
        if self.cbow:
            vectors = ops.matmul(mean, self._vectors(input_ids))  # (R, C, D)
            targets = self._output_vectors(tokens)  # (R, C, D)
            of_target = _log_loss(-ops.sum(vectors * targets, axis=-1))  # (R, C)
        else:
            vectors = self._vectors(tokens)  # (R, C, D)
            scores = _products(vectors, self._output_vectors(input_ids))  # (R, C, L)
            of_target = ops.sum(mean * _log_loss(-scores), axis=-1)  # (R, C)
        scores = _products(vectors, self._output_vectors(negatives))  # (R, C, M)
        of_negatives = self.negatives * ops.mean(_log_loss(scores), axis=-1)  # (R, C)
        return ops.where(count > 0, of_target + of_negatives, 0.0)

    def is_context(self, sequence_ids, windows):
        """Whether a position is a context of a token of the chunk: bool (R, C, L)."""
        size = sequence_ids.shape[1] - 2 * self.window
        distance = np.abs(np.arange(-self.window, size + self.window) - np.arange(size)[:, None])
        near = ops.logical_and(distance > 0, distance <= windows[..., None])
        own = sequence_ids[:, self.window : -self.window]
        return ops.logical_and(near, ops.equal(own[..., None], sequence_ids[:, None]))

    def _vectors(self, ids):
        return ops.cast(sparse_rows(self.token_embedding.embeddings, ids), "float32")

    def _output_vectors(self, ids):
        return ops.cast(sparse_rows(self.output_vectors, ids), "float32")

    def compute_output_shape(self, input_ids_shape, sequence_ids_shape, windows_shape, *_):
        return tuple(windows_shape)

    def compute_output_spec(self, input_ids, sequence_ids, windows, negatives):
        return keras.KerasTensor(windows.shape, dtype="float32")


def _products(x, y):
    """(R, C, D), (R, L, D) -> (R, C, L)."""
    return ops.einsum("rcd,rld->rcl", x, y)


def _log_loss(scores):
    """- log σ(-scores) of a score that should be low."""
    return ops.softplus(scores)
