"""Tasks that pre-train an encoder on a data folder; their settings, which a model folder stores."""

from keras_bert.base.settings import Settings, required, setting


class SpanSettings(Settings):
    """The arguments of a `SpanPretrainer` that a model folder stores."""

    max_span_length: int = setting(
        20, help="maximum tokens of a span to predict from its boundaries", at_least=1, stored=True
    )
    span_boundary_weight: float = setting(
        1.0,
        help="weight of the span-boundary loss relative to the masked-token loss",
        above=0,
        stored=True,
    )


class MaskedCausalSettings(Settings):
    """The argument of a `MaskedCausalLM` that a model folder stores."""

    causal_fraction: float = required(
        help="weight of the next-token loss; the masked-token loss has the rest",
        above=0,
        below=1,
        stored=True,
    )


class ReplacedTokenSettings(Settings):
    """The arguments of a `ReplacedTokenPretrainer` that a model folder stores."""

    generator_size: float = setting(
        0.25,
        help="hidden size of the generator, as a fraction of the discriminator's",
        above=0,
        at_most=1,
        stored=True,
    )
    discriminator_weight: float = setting(
        50.0,
        help="weight of the discriminator's loss relative to the generator's",
        above=0,
        stored=True,
    )
    temperature: float = setting(
        1.0,
        help="the generator's logits are divided by it before tokens are sampled",
        above=0,
        stored=True,
    )


class StaticVectorSettings(Settings):
    """The arguments of a `SkipGram` or `Cbow` that a model folder stores."""

    window: int = setting(
        5,
        help="contexts on either side of a token: up to this many",
        at_least=1,
        at_most=100,
        stored=True,
    )
    negatives: int = setting(5, help="random tokens for each prediction", at_least=1, stored=True)
    subsample: float = setting(
        1e-3,
        help="frequency above which tokens are left out at random; 0: none",
        at_least=0,
        stored=True,
    )
