"""The config of BERT, SpanBERT and RoBERTa encoders."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from keras_bert.encoders.config import EncoderConfig, TransformerConfig

ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")


def _sizes(hidden_size, *, layers, heads):
    return {
        "hidden_size": hidden_size,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden_size,
    }


# The published models (Turc et al. 2019 for the small ones, Devlin et al. 2018 for base and large).
_PRESETS = {
    "tiny": _sizes(128, layers=2, heads=2),
    "mini": _sizes(256, layers=4, heads=4),
    "small": _sizes(512, layers=4, heads=8),
    "medium": _sizes(512, layers=8, heads=8),
    "base": _sizes(768, layers=12, heads=12),
    "large": _sizes(1024, layers=24, heads=16),
}

_UNUSED_KEYS = frozenset(
    """
    directionality do_lower_case pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers
    pooler_size_per_head pooler_type
    """.split()
)

# Keys that change the computation, with the only values that a BERT encoder supports. Most belong
# to relatives of BERT, some of which have the model type "bert", too.
_OFF = (False, None)
_SUPPORTED_VALUES = {
    "add_cross_attention": _OFF,
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
    "is_encoder_decoder": _OFF,
    "local_attention": (None,),
    "norm_type": ("layer_norm", None),
    "num_experts": (0, 1, None),
    "parallel_attn": _OFF,
    "position_embedding_type": ("absolute", None),
    "pre_norm": _OFF,
    "prenorm": _OFF,
    "pruned_heads": ({}, None),
    "quantization_config": (None,),
    "relative_attention": _OFF,
    "rope_parameters": (None,),
    "rope_scaling": (None,),
    "rope_theta": (None,),
    "rotary": _OFF,
    "rotary_emb_base": (None,),
    "rotary_emb_fraction": (0, None),
    "rotary_value": _OFF,
    "sliding_window": _OFF,
    "tie_word_embeddings": (True, False, None),  # see `PretrainedCheckpoint.check_copies`
    "use_parallel_residual": _OFF,
    "use_rms_norm": _OFF,
    "use_rope": _OFF,
    "use_sliding_window": _OFF,
}

_LARGEST_SIZE = 2**63 - 1  # of an axis of an array

# The task types whose class in `transformers` reads the pooler.
READ_THE_POOLER = (
    "pretrainer",
    "sentence-order-pretrainer",
    "classifier",
    "pair-classifier",
    "regression",
    "multiple-choice",
)


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class BertConfig(TransformerConfig):
    """The sizes and settings of a BERT, SpanBERT or RoBERTa encoder, under Hugging Face's names.

    Sizes have no default. The other defaults are those of `transformers` (BERT's published
    settings), so that a `config.json` means the same in both libraries.

    Attributes:
        vocab_size: number of rows of the token embedding.
        hidden_size: D; a multiple of `num_attention_heads`.
        num_hidden_layers: number of Transformer layers.
        num_attention_heads: N; each head has size `hidden_size / num_attention_heads`.
        intermediate_size: size of the feed-forward layer.
        hidden_act: "gelu" (by erf), "gelu_new" or "gelu_pytorch_tanh" (both the tanh form, which
            is what google-research/bert's own "gelu" computes), or "relu".
        hidden_dropout_prob: dropout after the embeddings and after each sub-layer.
        attention_probs_dropout_prob: dropout of the attention probabilities.
        max_position_embeddings: number of rows of the position embedding (RoBERTa does not use
            the first `position_offset` rows: see `max_length`).
        type_vocab_size: number of segments (2 in BERT, 1 in RoBERTa).
        initializer_range: standard deviation of the truncated normal for new weights.
        layer_norm_eps: epsilon of every LayerNorm (1e-12 in BERT, 1e-5 in RoBERTa).
        pad_token_id: id of the padding token. None is the model type's own: 0 in BERT, 1 in
            RoBERTa, as in `transformers`.
        model_type: "bert" or "roberta", which decides the position offset and the tensor names.
        is_decoder: whether the encoder is causal: each position sees itself and those before it.
        add_pooling_layer: whether there is a pooler (a dense layer with tanh over [CLS]).
        classifier_dropout: dropout before a task's classifier; None means `hidden_dropout_prob`.
        extra_keys: unknown keys of a `config.json`, with their values. They are kept and saved.

    Raises:
        ValueError: an invalid value.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = ("bert", "roberta")
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = _PRESETS
    UNUSED_KEYS: ClassVar[frozenset[str]] = EncoderConfig.UNUSED_KEYS | _UNUSED_KEYS
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = _SUPPORTED_VALUES

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = None
    model_type: str = "bert"
    is_decoder: bool = False
    add_pooling_layer: bool = True
    classifier_dropout: float | None = None

    def __post_init__(self):
        if self.pad_token_id is None:
            object.__setattr__(self, "pad_token_id", 1 if self.model_type == "roberta" else 0)
        super().__post_init__()
        sizes = (
            "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size "
            "max_position_embeddings type_vocab_size"
        )
        self._check(sizes, lambda size: size >= 1, "at least 1")
        self._check(sizes, lambda size: size <= _LARGEST_SIZE, f"at most {_LARGEST_SIZE}")
        dropout = "hidden_dropout_prob attention_probs_dropout_prob classifier_dropout"
        self._check(dropout, lambda rate: rate is None or 0 <= rate < 1, "in [0, 1)")
        self._check("layer_norm_eps initializer_range", lambda value: value > 0, "above 0")
        self._check("hidden_act", ACTIVATIONS.__contains__, f"one of {', '.join(ACTIVATIONS)}")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                "`hidden_size` must be a multiple of `num_attention_heads`. "
                f"Received: hidden_size={self.hidden_size}, "
                f"num_attention_heads={self.num_attention_heads}."
            )
        if not 0 <= self.pad_token_id < self.vocab_size:
            raise ValueError(
                "`pad_token_id` must be below `vocab_size` and not negative. "
                f"Received: pad_token_id={self.pad_token_id}, vocab_size={self.vocab_size}."
            )
        if self.max_length < 1:
            raise ValueError(
                "`max_position_embeddings` must be above the position offset. Received: "
                f"max_position_embeddings={self.max_position_embeddings}, "
                f"position offset {self.position_offset}."
            )

    @property
    def position_offset(self) -> int:
        """Row of the position embedding for the first token.

        RoBERTa counts positions from `pad_token_id + 1` (fairseq reserved a row for padding), BERT
        from 0.
        """
        return self.pad_token_id + 1 if self.model_type == "roberta" else 0

    @property
    def max_length(self) -> int:
        """The longest sequence, in tokens, that has positions."""
        return self.max_position_embeddings - self.position_offset

    @property
    def num_segments(self) -> int:
        """`type_vocab_size`, or 0 where that is 1: every token is in the same segment."""
        return self.type_vocab_size if self.type_vocab_size > 1 else 0

    @property
    def is_causal(self) -> bool:
        return self.is_decoder

    def for_pretraining(self, task_type: str, *, new: bool) -> Self:
        """Causal for "causal-lm"; with a pooler if the task trains one or the weights have one."""
        pooler = task_type in READ_THE_POOLER or (self.add_pooling_layer and not new)
        return dataclasses.replace(
            self, is_decoder=task_type == "causal-lm", add_pooling_layer=pooler
        )

    def parameter_count(self) -> int:
        size = self.hidden_size
        rows = self.vocab_size + self.max_position_embeddings + self.type_vocab_size
        pooler = size * (size + 1) if self.add_pooling_layer else 0
        return rows * size + 2 * size + self._layers_parameter_count() + pooler
