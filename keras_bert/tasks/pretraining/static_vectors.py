"""Static vectors from their contexts: skip-gram and CBOW (Mikolov et al. 2013).

`ContextWindows` decides in numpy which tokens are kept, their contexts and the negatives. All its
random numbers are functions of the tokens, the seed and the epoch, as those of masks are.

Legend of shapes: B examples, S length of an example, R chunks, C tokens of a chunk, W the largest
window, L = C + 2 W, M negatives of a chunk, V vocabulary.
"""

from typing import NamedTuple

import keras
import numpy as np

from keras_bert.base.errors import InputError, argument
from keras_bert.heads.negative_sampling import NegativeSampling
from keras_bert.records.masking import NEGATIVE, SUBSAMPLING, WINDOW, example_keys, uniform
from keras_bert.tasks.pretraining import StaticVectorSettings
from keras_bert.tasks.pretraining.metrics import MeanNats
from keras_bert.tasks.pretraining.pretrainer import PretrainingTask

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

    def check_encoder(self):
        if self.TASK_TYPE not in self.encoder.OBJECTIVES:
            raise InputError.naming(
                "{} trains static vectors. Received: a {} encoder. Use a `StaticEncoder`.",
                argument(type(self).__name__),
                self.encoder.config.model_type,
            )

    def make_head(self):
        self.contexts = NegativeSampling(
            token_embedding=self.encoder.token_embedding,
            window=self.settings.window,
            negatives=self.settings.negatives,
            cbow=self.TASK_TYPE == "cbow",
            name="contexts",
        )

    def feature_inputs(self):
        size = CHUNK_TOKENS + 2 * self.settings.window
        names = self.encoder.input_names
        return {name: keras.Input((size,), dtype="int32", name=name) for name in names}

    def build_head(self, encoded, inputs):
        names = ("input_ids", *self.HEAD_INPUTS)
        return {self.name_of_output: self.contexts(*(inputs[name] for name in names))}

    @property
    def name_of_output(self):
        return self.TASK_TYPE.replace("-", "_")

    def output_metrics(self, *, counts_finite):
        return MeanNats(self.output, counts_finite=counts_finite)

    def context_windows(self, card, vocabulary):
        return ContextWindows(
            card.unigram_counts or [0] * len(vocabulary),
            vocabulary.special_ids,
            window=self.settings.window,
            subsample=self.settings.subsample,
        )

    def signatures(self, *, max_length=None, top_k=5):
        """Raises `InputError`: what is learned is the encoder."""
        raise InputError.naming(
            "A model of the task {} is exported as its vectors. Pass {encoder=True}.",
            self.TASK_TYPE,
        )


@keras.saving.register_keras_serializable(package="keras_bert")
class SkipGram(StaticVectorTask):
    """Static vectors that predict the contexts of their token, with negative sampling.

    See `keras_bert.heads.negative_sampling.NegativeSampling` for the loss, and `StaticVectorTask`
    for inputs and outputs; the output is `skip_gram`. Frequent tokens are left out at random, as in
    Mikolov et al. 2013, and special tokens always.

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
