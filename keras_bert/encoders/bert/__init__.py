"""The config of BERT and SpanBERT (Devlin et al. 2018; Joshi et al. 2019)."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from keras_bert.encoders.transformer_config import BidirectionalConfig, sizes

# The published models (Turc et al. 2019 for the small ones, Devlin et al. 2018 for base and large).
_PRESETS = {
    "tiny": sizes(128, layers=2, heads=2),
    "mini": sizes(256, layers=4, heads=4),
    "small": sizes(512, layers=4, heads=8),
    "medium": sizes(512, layers=8, heads=8),
    "base": sizes(768, layers=12, heads=12),
    "large": sizes(1024, layers=24, heads=16),
}

_UNUSED_KEYS = frozenset(
    """
    add_pooling_layer directionality do_lower_case pooler_fc_size pooler_num_attention_heads
    pooler_num_fc_layers pooler_size_per_head pooler_type
    """.split()
)

# Most of these keys belong to relatives of BERT, some of which have the model type "bert", too.
_OFF = (False, None)
_SUPPORTED_VALUES = {
    **BidirectionalConfig.SUPPORTED_VALUES,
    "alibi_starting_size": (None,),
    "attention_type": ("original_full", "full", None),
    "attention_window": (None,),
    "attn_logit_softcapping": (None,),
    "cross_attention_hidden_size": (None,),
    "embedding_size": (),
    "feed_forward_type": ("original", None),
    "final_logit_softcapping": (None,),
    "global_attn_every_n_layers": (None,),
    "inner_group_num": (1, None),
    "local_attention": (None,),
    "norm_type": ("layer_norm", None),
    "num_experts": (0, 1, None),
    "parallel_attn": _OFF,
    "position_embedding_type": ("absolute", None),
    "pre_norm": _OFF,
    "prenorm": _OFF,
    "relative_attention": _OFF,
    "rope_parameters": (None,),
    "rope_scaling": (None,),
    "rope_theta": (None,),
    "rotary": _OFF,
    "rotary_emb_base": (None,),
    "rotary_emb_fraction": (0, None),
    "rotary_value": _OFF,
    "sliding_window": _OFF,
    "use_parallel_residual": _OFF,
    "use_rms_norm": _OFF,
    "use_rope": _OFF,
    "use_sliding_window": _OFF,
}


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class BertConfig(BidirectionalConfig):
    """The sizes and settings of a BERT or SpanBERT encoder, under Hugging Face's names.

    Sizes have no default. The other defaults are those of `transformers` (BERT's published
    settings), so that a `config.json` means the same in both libraries.

    Attributes, in addition to those of `BidirectionalConfig`:
        is_decoder: whether the encoder is causal: each position sees itself and those before it.
        classifier_dropout: dropout before a task's classifier; None means `hidden_dropout_prob`.

    Raises:
        ValueError: an invalid value.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = ("bert",)
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = _PRESETS
    UNUSED_KEYS: ClassVar[frozenset[str]] = BidirectionalConfig.UNUSED_KEYS | _UNUSED_KEYS
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = _SUPPORTED_VALUES
    REQUIRES_TOKENIZER: ClassVar[bool] = True

    model_type: str = "bert"
    is_decoder: bool = False
    classifier_dropout: float | None = None

    @property
    def is_causal(self) -> bool:
        return self.is_decoder

    def identity(self) -> dict[str, Any]:
        identity = {}
        for key, value in super().identity().items():
            identity[key] = value
            if key == "is_decoder":
                identity["add_pooling_layer"] = True  # a field of earlier versions
        return identity

    def for_pretraining(self, task_type: str) -> Self:
        """Causal for "causal-lm"."""
        return dataclasses.replace(self, is_decoder=task_type == "causal-lm")
