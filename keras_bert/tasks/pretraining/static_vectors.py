"""Static vectors from their contexts: skip-gram and CBOW (Mikolov et al. 2013)."""

import dataclasses

import keras

from keras_bert.base.errors import InputError
from keras_bert.base.settings import Settings, setting
from keras_bert.heads.negative_sampling import NegativeSampling
from keras_bert.tasks.pretraining.context_windows import (
    CHUNK_NEGATIVES,
    CHUNK_TOKENS,
    ContextWindows,
)
from keras_bert.tasks.pretraining.metrics import MeanNats
from keras_bert.tasks.pretraining.pretrainer import PretrainingTask


@dataclasses.dataclass(frozen=True, kw_only=True)
class StaticVectorSettings(Settings):
    """The arguments of a `SkipGram` or `Cbow` that a model folder stores."""

    window: int = setting(
        5, help="contexts on either side of a token: up to this many", at_least=1, at_most=100
    )
    negatives: int = setting(5, help="random tokens for each prediction", at_least=1)
    subsample: float = setting(
        1e-3, help="frequency above which tokens are left out at random; 0: none", at_least=0
    )


class StaticVectorTask(PretrainingTask):
    """What `SkipGram` and `Cbow` share.

    Takes chunks of tokens (see `keras_bert.tasks.pretraining.context_windows`): `input_ids` and
    `sequence_ids` (R, L), `windows` (R, C) and `negatives` (R, M), int32, and returns nats (R, C),
    the mean per prediction. Its labels are the tokens (R, C), which the inputs contain; its sample
    weights are the numbers of predictions. `dataset` makes all of them from a data folder.
    """

    TOKEN_OUTPUTS = MASKED_OUTPUTS = ()
    HEADS = ("contexts",)
    OPTIONS = StaticVectorSettings
    RUN_DEFAULTS = {"optimizer": "adagrad", "learning_rate": 0.1, "weight_decay": 0.0}

    def __init__(
        self,
        encoder,
        tokenizer=None,
        *,
        window=StaticVectorSettings.window,
        negatives=StaticVectorSettings.negatives,
        subsample=StaticVectorSettings.subsample,
        name,
    ):
        if self.KIND not in encoder.OBJECTIVES:
            raise InputError(
                f"`{type(self).__name__}` trains static vectors. Received: a "
                f"{encoder.config.model_type} encoder. Use a `StaticEncoder`."
            )
        self.set_encoder(encoder)
        self.window, self.negatives, self.subsample = window, negatives, subsample
        self.contexts = NegativeSampling(
            token_embedding=encoder.token_embedding,
            window=window,
            negatives=negatives,
            cbow=self.KIND == "cbow",
            name="contexts",
        )
        super().__init__(tokenizer, name=name)

    def feature_inputs(self):
        size = CHUNK_TOKENS + 2 * self.window
        names = ("input_ids", "sequence_ids")
        return {name: keras.Input((size,), dtype="int32", name=name) for name in names}

    @staticmethod
    def head_inputs():
        sizes = {"windows": CHUNK_TOKENS, "negatives": CHUNK_NEGATIVES}
        return {n: keras.Input((size,), dtype="int32", name=n) for n, size in sizes.items()}

    def build_head(self, encoded, inputs):
        names = ("input_ids", "sequence_ids", "windows", "negatives")
        return {self.name_of_output: self.contexts(*(inputs[name] for name in names))}

    @property
    def name_of_output(self):
        return self.KIND.replace("-", "_")

    def compile_defaults(self, optimizer=None, *, steps=None, learning_rate=None, **options):
        """As `PretrainingTask.compile_defaults`; the default optimizer is that of `pretrain`.

        It is `Adagrad` with a learning rate of 0.1, which decays to 0 over `steps`, if given.
        """
        if optimizer is None:
            from keras_bert.training.optimizer import make_optimizer

            given = {} if learning_rate is None else {"learning_rate": learning_rate}
            given = {**self.RUN_DEFAULTS, **given}
            optimizer = make_optimizer(self, **given, warmup=0.0, steps=steps)
        super().compile_defaults(optimizer, **options)

    def output_metrics(self, *, counts_finite):
        return MeanNats(self.output, counts_finite=counts_finite)

    def context_windows(self, card, vocabulary):
        return ContextWindows(
            card.unigram_counts or [0] * len(vocabulary),
            vocabulary.special_ids,
            window=self.window,
            subsample=self.subsample,
        )

    def signatures(self, *, max_length=None, top_k=5):
        """Raises `InputError`: what is learned is the encoder."""
        raise InputError(
            f"A model of the task {self.KIND} is exported as its vectors. Pass `encoder=True`."
        )


@keras.saving.register_keras_serializable(package="keras_bert")
class SkipGram(StaticVectorTask):
    """Static vectors that predict the contexts of their token, with negative sampling.

    See `keras_bert.heads.negative_sampling.NegativeSampling` for the loss, and `StaticVectorTask`
    for inputs and outputs; the output is `skip_gram`. Frequent tokens are left out at random, as in
    Mikolov et al. 2013, and special tokens always.

    Args:
        encoder: a `StaticEncoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None.
        window: the largest number of contexts on either side of a token; the number is uniform from
            1 to this.
        negatives: random tokens for each prediction, k in the paper: 5 to 20 for small data, 2 to 5
            for large.
        subsample: the frequency above which tokens are left out at random, t in the paper; 0 is
            none.

    Raises:
        InputError: another encoder.
    """

    KIND = "skip-gram"
    SHOWN = {"skip_gram_loss": "skip-gram loss"}

    def __init__(self, encoder, tokenizer=None, *, name="skip_gram", **options):
        super().__init__(encoder, tokenizer, name=name, **options)


@keras.saving.register_keras_serializable(package="keras_bert")
class Cbow(StaticVectorTask):
    """Static vectors whose mean over its contexts predicts a token, with negative sampling.

    The output is `cbow`; all else as in `SkipGram`.

    Args:
        encoder, tokenizer, window, negatives, subsample: as of `SkipGram`.

    Raises:
        InputError: another encoder.
    """

    KIND = "cbow"
    SHOWN = {"cbow_loss": "CBOW loss"}

    def __init__(self, encoder, tokenizer=None, *, name="cbow", **options):
        super().__init__(encoder, tokenizer, name=name, **options)
