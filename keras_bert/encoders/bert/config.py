"""The config of BERT, SpanBERT and RoBERTa encoders."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from keras_bert.base.formatting import counted
from keras_bert.encoders.config import EncoderConfig

ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")

# Hidden size, layers and heads of the published models (Turc et al. 2019 for the small ones, Devlin
# et al. 2018 for base and large). The feed-forward layer is four times as large.


def _sizes(hidden_size, *, layers, heads):
    return {
        "hidden_size": hidden_size,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden_size,
    }


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

# Keys that change the computation, with the only values that a BERT encoder computes. Most belong
# to relatives of BERT, some of which call themselves "bert" all the same. Where such a key changes
# the names or shapes of the weights as well, these would be refused anyhow.
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
    "tie_word_embeddings": (
        True,
        False,
        None,
    ),  # of a head: see `PretrainedCheckpoint.settle_decoder`
    "use_parallel_residual": _OFF,
    "use_rms_norm": _OFF,
    "use_rope": _OFF,
    "use_sliding_window": _OFF,
}

_LARGEST_SIZE = 2**63 - 1

# The kinds of task whose class in `transformers` reads the pooler.
READ_THE_POOLER = (
    "pretrainer",
    "sentence-order-pretrainer",
    "classifier",
    "pair-classifier",
    "regression",
    "multiple-choice",
)


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class BertConfig(EncoderConfig):
    """What BERT, SpanBERT and RoBERTa encoders differ in; field names are Hugging Face's.

    Sizes have no default. The other defaults are those that `transformers` takes for a key that
    a `config.json` leaves out (they are BERT's published settings), so that a file means the same
    here and there.

    Attributes:
        vocab_size: rows of the token embedding.
        hidden_size: D; a multiple of `num_attention_heads`.
        num_hidden_layers: number of Transformer layers.
        num_attention_heads: N; each head has size `hidden_size / num_attention_heads`.
        intermediate_size: size of the feed-forward layer.
        hidden_act: "gelu" (by erf), "gelu_new" or "gelu_pytorch_tanh" (both the tanh form, which
            is what google-research/bert's own "gelu" computes), or "relu".
        hidden_dropout_prob: dropout after the embeddings and after each sub-layer.
        attention_probs_dropout_prob: dropout of the attention probabilities.
        max_position_embeddings: rows of the position embedding (RoBERTa's first
            `position_offset` rows are never used: see `max_length`).
        type_vocab_size: number of segments (2 in BERT, 1 in RoBERTa).
        initializer_range: standard deviation of the truncated normal for new weights.
        layer_norm_eps: epsilon of every LayerNorm (1e-12 in BERT, 1e-5 in RoBERTa).
        pad_token_id: id of the padding token. Left out, it is the model type's own: 0 in BERT, 1
            in RoBERTa, as in `transformers`.
        model_type: "bert" or "roberta". It settles the position offset and the tensor names.
        is_decoder: causal mode, each position sees itself and what came before (Hugging Face's
            name for it).
        add_pooling_layer: whether there is a pooler (a dense layer with tanh over [CLS]).
        classifier_dropout: dropout before a task's classifier; None means `hidden_dropout_prob`.
        extra_keys: keys of a `config.json` that are not known here, with their values. They are
            kept and saved again.

    Raises:
        ValueError: a value that no such encoder can have. `Received: …` shows it.
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
        for name in (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "max_position_embeddings",
            "type_vocab_size",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1. Received: {getattr(self, name)}")
            if getattr(self, name) > _LARGEST_SIZE:
                raise ValueError(f"`{name}` must be at most {_LARGEST_SIZE}, as shapes can be.")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise ValueError(f"`{name}` must be in [0, 1). Received: {value}")
        for name in ("layer_norm_eps", "initializer_range"):
            if not getattr(self, name) > 0:
                raise ValueError(f"`{name}` must be above 0. Received: {getattr(self, name)}")
        if self.hidden_act not in ACTIVATIONS:
            raise ValueError(
                "`hidden_act` must be one of " + ", ".join(ACTIVATIONS) + ". "
                f"Received: hidden_act={self.hidden_act!r}"
            )
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                "`hidden_size` must be a multiple of `num_attention_heads`. "
                f"Received: hidden_size={self.hidden_size}, "
                f"num_attention_heads={self.num_attention_heads}"
            )
        if not 0 <= self.pad_token_id < self.vocab_size:
            raise ValueError(
                "`pad_token_id` must be a row of the vocabulary. "
                f"Received: pad_token_id={self.pad_token_id}, vocab_size={self.vocab_size}"
            )
        if self.max_length < 1:
            raise ValueError(
                "`max_position_embeddings` must be above the position offset. Received: "
                f"max_position_embeddings={self.max_position_embeddings}, "
                f"position offset {self.position_offset}"
            )

    @property
    def described(self) -> str:
        """The sizes in a line, as a person reads them."""
        return (
            f"{self.model_type}, {counted(self.num_hidden_layers, 'layer')}, hidden size "
            f"{self.hidden_size}, {counted(self.num_attention_heads, 'head')}, "
            f"{self.vocab_size:,} tokens in the vocabulary, sequences of up to {self.max_length} "
            f"tokens, {self.parameter_count():,} parameters"
        )

    @property
    def position_offset(self) -> int:
        """Row of the position embedding that the first token takes.

        RoBERTa counts positions from `pad_token_id + 1` (fairseq kept a row for padding), BERT
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

    @property
    def num_hidden_states(self) -> int:
        return self.num_hidden_layers + 1

    @property
    def head_dropout(self) -> float:
        given = self.classifier_dropout
        return self.hidden_dropout_prob if given is None else given

    @property
    def head_initializer_range(self) -> float:
        return self.initializer_range

    @property
    def head_activation(self) -> str:
        return self.hidden_act

    @property
    def head_layer_norm_eps(self) -> float:
        return self.layer_norm_eps

    def for_pretraining(self, kind: str, *, new: bool) -> Self:
        """Causal for "causal-lm"; with a pooler where the kind trains one.

        A pooler that came with the weights stays.
        """
        pooler = kind in READ_THE_POOLER or (self.add_pooling_layer and not new)
        return dataclasses.replace(self, is_decoder=kind == "causal-lm", add_pooling_layer=pooler)

    def parameter_count(self) -> int:
        size, inner = self.hidden_size, self.intermediate_size
        rows = self.vocab_size + self.max_position_embeddings + self.type_vocab_size
        dense = size * (size + 1)  # a kernel and its bias
        layer = 4 * dense + size * inner + inner + inner * size + size + 4 * size
        pooler = dense if self.add_pooling_layer else 0
        return rows * size + 2 * size + self.num_hidden_layers * layer + pooler

    def forward_flops(self, length: Any) -> Any:
        """L (n (8 D² + 4 D F) + 4 n² D) for L layers, hidden size D, feed-forward size F.

        That is query, key, value and output, the feed-forward layer, and attention. A causal
        sequence is counted like any other, though half of its attention is masked.
        """
        size, inner = self.hidden_size, self.intermediate_size
        dense = length * (8 * size**2 + 4 * size * inner)
        return self.num_hidden_layers * (dense + 4 * size * length**2)
