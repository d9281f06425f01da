"""The config of ELECTRA (Clark et al. 2020), and of the generator of any discriminator."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.encoders.transformer_config import BidirectionalConfig, sizes

# Of the class for choices.
_SUMMARY = {
    "summary_type": ("first",),
    "summary_use_proj": (True,),
    "summary_activation": ("gelu",),
    "summary_first_dropout": (0, None),
    "summary_proj_to_labels": (False, None),
}


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class ElectraConfig(BidirectionalConfig):
    """The sizes and settings of an ELECTRA encoder, under Hugging Face's names.

    Attributes, in addition to those of `BidirectionalConfig`:
        embedding_size: E, the size of the embeddings, which a dense layer projects to D.
        classifier_dropout: dropout before a task's classifier; None means `hidden_dropout_prob`.
        summary_last_dropout: the same of multiple choice.

    Raises:
        ValueError: an invalid value.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = ("electra",)
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "electra-small": {**sizes(256, layers=12, heads=4), "embedding_size": 128},
        "electra-base": {**sizes(768, layers=12, heads=12), "embedding_size": 768},
    }
    UNUSED_KEYS: ClassVar[frozenset[str]] = BidirectionalConfig.UNUSED_KEYS - _SUMMARY.keys()
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = {
        **BidirectionalConfig.SUPPORTED_VALUES,
        **_SUMMARY,
        "is_decoder": (False, None),
        "position_embedding_type": ("absolute", None),
    }

    embedding_size: int = 128
    model_type: str = "electra"
    classifier_dropout: float | None = None
    summary_last_dropout: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("embedding_size", lambda size: size >= 1, "at least 1")

    def head_dropout(self, task_type: str) -> float:
        if task_type == "multiple-choice":
            return self.summary_last_dropout
        return super().head_dropout(task_type)


# If a quarter of the heads were one, or two, the generator would see too little at once.
_FEWEST_HEADS = 4


def generator_config(config: Any, *, fraction: float, embedding_size: int) -> ElectraConfig:
    """The config of a generator: as deep as the discriminator, and of a fraction of its size.

    Args:
        config: that of the discriminator, of any Transformer.
        fraction: of its hidden size.
        embedding_size: E, the size of the embeddings that the two share.
    """
    size, heads = config.hidden_size, config.num_attention_heads
    hidden_size = max(1, round(fraction * size))
    heads = max(hidden_size * heads // size, min(heads, _FEWEST_HEADS))  # heads of the same size
    while hidden_size % heads:
        heads -= 1
    return ElectraConfig(
        vocab_size=config.vocab_size,
        embedding_size=embedding_size,
        hidden_size=hidden_size,
        num_hidden_layers=config.num_hidden_layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden_size,
        hidden_dropout_prob=getattr(config, "hidden_dropout_prob", 0.1),
        attention_probs_dropout_prob=getattr(config, "attention_probs_dropout_prob", 0.1),
        max_position_embeddings=config.max_length,
        type_vocab_size=getattr(config, "type_vocab_size", 0) or 1,
        initializer_range=config.head_initializer_range,
        layer_norm_eps=config.head_layer_norm_eps,
        pad_token_id=config.pad_token_id,
    )
