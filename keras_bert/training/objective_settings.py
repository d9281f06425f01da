"""The settings of `pretrain` on what is predicted."""

from keras_bert.base.errors import InputError
from keras_bert.base.settings import Settings, setting
from keras_bert.records import (
    BIDIRECTIONAL_LM,
    CAUSAL_LM,
    OBJECTIVES,
    REPLACED_TOKENS,
    STATIC_VECTORS,
)


def default_architecture(objective: str) -> str:
    """Returns the architecture of a run to which neither one nor a model is given.

    ModernBERT's layers learn more in the same time (docs/benchmarks.md, "Choices of
    pre-training"), but neither pairs of segments nor next tokens.
    """
    return "modern-tiny" if objective in ("mlm", "span", REPLACED_TOKENS) else "tiny"


class ObjectiveSettings(Settings):
    """The objective of a run, and the settings that only some objectives have."""

    objective: str | None = setting(
        None,
        help="the objective of the data folder; or on the sequences of any folder rtd, which tells "
        "the tokens that a small generator has replaced (ELECTRA), causal-lm, which predicts the "
        "next token, bidirectional-lm, which predicts the next and the previous token (ELMo), or "
        "skip-gram or cbow, which train static vectors",
        default_help="the data folder's own, or the first that the encoder supports",
        choices=(*OBJECTIVES, REPLACED_TOKENS, CAUSAL_LM, BIDIRECTIONAL_LM, *STATIC_VECTORS),
        common=True,
    )
    window: int | None = setting(
        None,
        help="skip-gram and cbow: contexts on either side of a token, up to this many",
        unit="TOKENS",
        default_help="5",
        at_least=1,
        at_most=100,
    )
    negatives: int | None = setting(
        None,
        help="skip-gram and cbow: random tokens for each prediction",
        unit="TOKENS",
        default_help="5",
        at_least=1,
    )
    subsample: float | None = setting(
        None,
        help="skip-gram and cbow: frequency above which tokens are left out at random; 0: none",
        unit="FREQUENCY",
        default_help="0.001",
        at_least=0,
    )
    generator_size: float | None = setting(
        None,
        help="rtd: hidden size of the generator, as a fraction of the discriminator's",
        unit="FRACTION",
        default_help="0.25, or that of the model",
        above=0,
        at_most=1,
    )
    discriminator_weight: float | None = setting(
        None,
        help="rtd: weight of the discriminator's loss relative to the generator's",
        unit="WEIGHT",
        default_help="50, or that of the model",
        above=0,
    )
    temperature: float | None = setting(
        None,
        help="rtd: the generator's logits are divided by it before tokens are sampled",
        default_help="1, or that of the model",
        above=0,
    )
    causal_fraction: float = setting(
        0.0,
        help="fraction of each batch trained as a causal LM, the rest as a masked LM, on data of "
        "the objective mlm (GPT-BERT)",
        unit="FRACTION",
        at_least=0,
        below=1,
    )
    span_boundary_weight: float | None = setting(
        None,
        help="weight of the span-boundary loss relative to the masked-token loss, for the "
        "objective span; 0 trains without the head",
        unit="WEIGHT",
        default_help="1",
        at_least=0,
    )
    max_span_length: int | None = setting(
        None,
        help="longest span that the span-boundary head predicts, in tokens; tokens further in are "
        "predicted by the masked LM alone",
        unit="TOKENS",
        default_help="20, or that of the model",
        at_least=1,
    )

    def check(self):
        super().check()
        if self.causal_fraction and self.objective == CAUSAL_LM:
            raise InputError.naming(
                "{causal_fraction} is for data of the objective mlm. Leave it out with "
                "{objective} causal-lm, which trains all sequences as a causal LM."
            )
        if self.causal_fraction and self.objective == REPLACED_TOKENS:
            raise InputError.naming("{causal_fraction} is not for {objective} rtd. Leave it out.")
