"""Static vectors from their contexts: skip-gram and CBOW with negative sampling.

Mikolov et al. 2013, "Distributed representations of words and phrases and their compositionality".
`ContextWindows` decides in numpy which tokens are kept, their contexts and the negatives. All its
random numbers are functions of the tokens, the seed and the epoch, as those of masks are.

Legend of shapes: B examples, S length of an example, R chunks, C tokens of a chunk, W the largest
window, L = C + 2 W, M negatives of a chunk, V vocabulary.
"""

from typing import Any, NamedTuple, NoReturn

import keras
import numpy as np
from keras import ops

from keras_bert.base.errors import InputError, argument
from keras_bert.layers import Layer, Tensor
from keras_bert.layers.kernels.gathering import sparse_rows
from keras_bert.layers.kernels.private import custom_gradient
from keras_bert.records.folder import DatasetCard
from keras_bert.records.masking import NEGATIVE, SUBSAMPLING, WINDOW, example_keys, uniform
from keras_bert.tasks.pretraining import StaticVectorSettings
from keras_bert.tasks.pretraining.metrics import MeanNats
from keras_bert.tasks.pretraining.pretrainer import PretrainingTask
from keras_bert.text.vocabulary import Vocabulary

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
        context_mask = ops.cast(is_context, "float32")
        count = ops.sum(context_mask, axis=-1)  # (R, C)
        mean = context_mask / ops.maximum(count, 1.0)[..., None]  # rows sum to 1 or 0
        if self.cbow:
            vectors = ops.matmul(_from_band(mean), self._vectors(groups))  # (R, N, T, D)
            vectors = ops.reshape(vectors, (-1, tokens.shape[1], vectors.shape[-1]))  # (R, C, D)
            targets = self._output_vectors(tokens)  # (R, C, D)
            target_loss = _log_loss(-ops.sum(vectors * targets, axis=-1))  # (R, C)
        else:
            vectors = self._vectors(tokens)  # (R, C, D)
            grouped = ops.reshape(vectors, (-1, *_group_shape(tokens), vectors.shape[-1]))
            scores = _products(grouped, self._output_vectors(groups))  # (R, N, T, T + 2 W)
            target_loss = ops.sum(mean * _log_loss(-_band(scores)), axis=-1)  # (R, C)
        scores = _products(vectors, self._output_vectors(negatives))  # (R, C, M)
        negative_loss = self.negatives * ops.mean(_log_loss(scores), axis=-1)  # (R, C)
        return ops.where(count > 0, target_loss + negative_loss, 0.0)

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


@custom_gradient
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


# Of a chunk, whose tokens share its negatives: the more tokens, the fewer vectors are read, and the
# more the gradients vary (benchmarks/NOTES.md).
CHUNK_TOKENS = 128
CHUNK_NEGATIVES = 32
# The number of chunks is a multiple of this, so that XLA compiles few shapes.
_CHUNKS = 2
# The exponent of the unigram distribution (Mikolov et al. 2013, section 2.2).
_POWER = 0.75


class StaticVectorTask(PretrainingTask):
    """The base of `SkipGram` and `Cbow`.

    Takes chunks of tokens (see `Chunks`), int32: `input_ids` and `input_mask` (R, L),
    `contexts_before` and `contexts_after` (R, C) and `negatives` (R, M). It returns nats (R, C),
    the mean per prediction. Its labels are the tokens (R, C), which the inputs contain; its sample
    weights are the numbers of predictions. `dataset` makes all of them from a data folder.
    """

    HEAD_INPUTS = {
        "contexts_before": (CHUNK_TOKENS,),
        "contexts_after": (CHUNK_TOKENS,),
        "negatives": (CHUNK_NEGATIVES,),
    }
    TOKEN_OUTPUTS = MASKED_OUTPUTS = ()
    HEADS = ("contexts",)
    SETTINGS = StaticVectorSettings
    RUN_DEFAULTS = {"optimizer": "adagrad", "learning_rate": 0.1, "weight_decay": 0.0}
    DEFAULT_OPTIMIZER = {**RUN_DEFAULTS, "warmup": 0.0}

    def check_encoder(self) -> None:
        if self.TASK_TYPE not in self.encoder.OBJECTIVES:
            raise InputError.naming(
                "{} trains static vectors. Received: a {} encoder. Use a `StaticEncoder`.",
                argument(type(self).__name__),
                self.encoder.config.model_type,
            )

    def make_head(self) -> None:
        self.contexts = NegativeSampling(
            token_embedding=self.encoder.token_embedding,
            window=self.settings.window,
            negatives=self.settings.negatives,
            cbow=self.TASK_TYPE == "cbow",
            name="contexts",
        )

    def feature_inputs(self) -> dict[str, Tensor]:
        size = CHUNK_TOKENS + 2 * self.settings.window
        names = self.encoder.input_names
        return {name: keras.Input((size,), dtype="int32", name=name) for name in names}

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        names = ("input_ids", *self.HEAD_INPUTS)
        return {self.name_of_output: self.contexts(*(inputs[name] for name in names))}

    @property
    def name_of_output(self) -> str:
        return self.TASK_TYPE.replace("-", "_")

    def output_metrics(self, *, counts_finite: bool) -> Any:
        return MeanNats(self.output, counts_finite=counts_finite)

    def context_windows(self, card: DatasetCard, vocabulary: Vocabulary) -> Any:
        return ContextWindows(
            card.unigram_counts or [0] * len(vocabulary),
            vocabulary.special_ids,
            window=self.settings.window,
            subsample=self.settings.subsample,
        )

    def signatures(self, *, max_length: int | None = None, top_k: int = 5) -> NoReturn:
        """Raises `InputError`: what is learned is the encoder."""
        raise InputError.naming(
            "A model of the task {} is exported as its vectors. Pass {encoder=True}.",
            self.TASK_TYPE,
        )


@keras.saving.register_keras_serializable(package="keras_bert")
class SkipGram(StaticVectorTask):
    """Static vectors that predict the contexts of their token, with negative sampling.

    See `NegativeSampling` for the loss, and `StaticVectorTask` for inputs and outputs; the output
    is `skip_gram`. Frequent tokens are left out at random, as in Mikolov et al. 2013, and special
    tokens always.

    Args:
        encoder, tokenizer: see `Task`; a `StaticEncoder`.
        **settings: see `StaticVectorSettings`. `negatives` is k in the paper (5 to 20 for small
            data, 2 to 5 for large), `subsample` is t.

    Raises:
        InputError: another encoder.
    """

    TASK_TYPE = "skip-gram"
    SHOWN = {"skip_gram_loss": "skip-gram loss"}


@keras.saving.register_keras_serializable(package="keras_bert")
class Cbow(StaticVectorTask):
    """Static vectors whose mean over its contexts predicts a token, with negative sampling.

    The output is `cbow`; all else as in `SkipGram`.

    Args:
        encoder, tokenizer, **settings: as of `SkipGram`.

    Raises:
        InputError: another encoder.
    """

    TASK_TYPE = "cbow"
    SHOWN = {"cbow_loss": "CBOW loss"}


class Chunks(NamedTuple):
    """The tokens of a batch in chunks, one after another, int32."""

    input_ids: np.ndarray  # (R, L), with the neighbours of the first and the last token
    input_mask: np.ndarray  # (R, L), 0 at padding
    contexts_before: np.ndarray  # (R, C), the number of contexts before each token
    contexts_after: np.ndarray  # (R, C)
    negatives: np.ndarray  # (R, M)


class ContextWindows:
    """Makes `Chunks` of batches of examples.

    As in word2vec, special tokens and dropped tokens are taken out before windows are counted, and
    a window's size is uniform from 1 to W for each token.

    Args:
        counts: (V,), how often each token occurs in the text.
        special_ids: the ids that are left out.
        window: W.
        subsample: t; a token with the frequency f is kept with the probability √(t / f) + t / f, as
            in the published program (the paper has √(t / f)); 0 keeps all.

    Raises InputError if no token is counted.
    """

    def __init__(self, counts, special_ids, *, window, subsample):
        counts = np.array(counts, np.float64)
        counts[special_ids] = 0
        if not counts.sum() > 0:
            raise InputError(
                "Static vectors need the number of times that each token occurs, which the data "
                "folder does not have. Run keras-bert pretraining-data again."
            )
        frequency = counts / counts.sum()
        self.window = window
        self.keep_probability = np.ones(len(counts))  # (V,)
        if subsample:
            ratio = subsample / np.maximum(frequency, 1e-300)
            self.keep_probability = np.minimum(np.sqrt(ratio) + ratio, 1.0)
        self.keep_probability[special_ids] = 0.0
        powers = counts**_POWER
        self.negative = powers / powers.sum()  # (V,), the distribution of the negatives
        self._limits = np.cumsum(self.negative)
        self._last = np.flatnonzero(counts)[-1]

    def __call__(self, ids, segments, lengths, *, seed, epochs):
        """int ids, segments (B, S), lengths, epochs (B,) -> `Chunks`.

        The tokens after `lengths` are padding. Tokens of different segments are no contexts.
        """
        keys = example_keys(ids, lengths, seed=seed, epoch=epochs)
        positions = np.arange(ids.shape[1])
        is_kept = positions < np.asarray(lengths)[:, None]
        is_kept &= uniform(keys[:, None], SUBSAMPLING, positions) < self.keep_probability[ids]
        example, position = np.nonzero(is_kept)  # (N,)
        tokens = ids[is_kept]
        sequence = 2 * example + segments[is_kept]
        draw = uniform(keys[example], WINDOW, position)
        windows = 1 + (draw * self.window).astype(np.int32)
        before = np.minimum(windows, _before(sequence))
        after = np.minimum(windows, _before(sequence[::-1])[::-1])
        row = self._chunked(len(tokens))
        centers = row(tokens, 0)
        lengths = (len(tokens) - CHUNK_TOKENS * np.arange(len(centers))).clip(0, CHUNK_TOKENS)
        keys = example_keys(centers, lengths, seed=seed, epoch=epochs[0])
        draw = uniform(keys[:, None], NEGATIVE, np.arange(CHUNK_NEGATIVES))
        negatives = np.searchsorted(self._limits, draw, side="right").clip(max=self._last)
        return Chunks(
            row(tokens, self.window),
            row(np.ones_like(tokens), self.window),
            row(before, 0),
            row(after, 0),
            negatives.astype(np.int32),
        )

    def _chunked(self, count):
        """A function from values (N,) and a number of neighbours n to chunks, (R, C + 2 n)."""
        chunks = -(-max(count, 1) // (CHUNK_TOKENS * _CHUNKS)) * _CHUNKS

        def chunked(numbers, neighbours):
            padded = np.zeros(chunks * CHUNK_TOKENS + 2 * neighbours, np.int32)
            padded[neighbours : neighbours + count] = numbers
            width = CHUNK_TOKENS + 2 * neighbours
            rows = np.lib.stride_tricks.sliding_window_view(padded, width)[::CHUNK_TOKENS]
            return np.ascontiguousarray(rows)

        return chunked


def _before(sequence):
    """The number of tokens of the same sequence before each token: (N,) -> (N,)."""
    position = np.arange(len(sequence))
    is_first = np.ones(len(sequence), bool)
    is_first[1:] = sequence[1:] != sequence[:-1]
    return position - np.maximum.accumulate(np.where(is_first, position, 0))
