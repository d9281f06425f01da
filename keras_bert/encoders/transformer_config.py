"""The configs of Transformer encoders: their common fields."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.base.formatting import counted
from keras_bert.encoders.config import EncoderConfig

ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")
HEAD_ACTIVATIONS = (*ACTIVATIONS, "silu", "tanh")

_LARGEST_SIZE = 2**63 - 1  # of an axis of an array


class TransformerConfig(EncoderConfig):
    """The config of a `TransformerEncoder`.

    It has the fields or properties `hidden_size` (D), `num_hidden_layers`, `num_attention_heads`,
    `intermediate_size`, `hidden_act`, `hidden_dropout_prob`, `attention_probs_dropout_prob`,
    `max_position_embeddings`, `initializer_range` and `layer_norm_eps`.
    """

    num_attention_heads: int
    max_position_embeddings: int

    def __post_init__(self) -> None:
        super().__post_init__()
        fields = self._own_fields()
        sizes = (
            "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size "
            "max_position_embeddings type_vocab_size"
        )
        sizes = " ".join(name for name in sizes.split() if name in fields)
        for name in sizes.split():
            least = 0 if fields[name].default == 0 else 1  # some families have models without
            self._check(name, lambda size, least=least: size >= least, f"at least {least}")
        self._check(sizes, lambda size: size <= _LARGEST_SIZE, f"at most {_LARGEST_SIZE}")
        rates = " ".join(name for name in fields if "dropout" in name)
        self._check(rates, lambda rate: rate is None or 0 <= rate < 1, "in [0, 1)")
        self._check("layer_norm_eps initializer_range", lambda value: value > 0, "above 0")
        self._check_activation()
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"{self._called('hidden_size')} must be a multiple of "
                f"{self._called('num_attention_heads')}. Received: hidden_size={self.hidden_size}, "
                f"num_attention_heads={self.num_attention_heads}."
            )

    def _check_activation(self):
        self._check("hidden_act", ACTIVATIONS.__contains__, f"one of {', '.join(ACTIVATIONS)}")

    @property
    def max_length(self) -> int:
        """The longest sequence, in tokens, that has positions."""
        return self.max_position_embeddings

    def parameter_count(self) -> int:
        return self._tensor_names().parameter_count()

    def forward_flops(self, length: Any) -> Any:
        """L (n 2 W + 4 n² D) for L layers of kernels with W weights in all, hidden size D.

        That is query, key, value and output, the feed-forward layer, and attention. A causal
        sequence is counted like any other, though half of its attention is masked.
        """
        weights = self._kernel_count()
        return 2 * length * weights + self.num_hidden_layers * 4 * self.hidden_size * length**2

    def _kernel_count(self):
        """Number of the weights of kernels that each token's vector is multiplied by."""
        return self._tensor_names().kernel_count()

    def _tensor_names(self):
        from keras_bert.encoders import encoder_class  # imports Keras

        return encoder_class(self.model_type).tensor_names(self)

    @property
    def _described_layers(self):
        layers = counted(self.num_hidden_layers, "layer")
        heads = counted(self.num_attention_heads, "head")
        return f"{layers}, hidden size {self.hidden_size}, {heads}"


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class BidirectionalConfig(TransformerConfig):
    """The fields that most bidirectional encoders have, by BERT's names.

    Sizes have no default. A subclass has other defaults and fields of its own, and `KEYS` if
    `transformers` has other names.

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
        max_position_embeddings: number of rows of the position embedding.
        type_vocab_size: number of segments.
        initializer_range: standard deviation of the truncated normal for new weights.
        layer_norm_eps: epsilon of every LayerNorm.
        pad_token_id: id of the padding token; None is the default of the model type.
        extra_keys: unknown keys of a `config.json`, with their values. They are kept and saved.

    Raises:
        ValueError: an invalid value.
    """

    # Keys that change the computation, with the only values that the encoders support.
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = {
        "add_cross_attention": (False, None),
        "is_encoder_decoder": (False, None),
        "pruned_heads": ({}, None),
        "quantization_config": (None,),
        "tie_word_embeddings": (True, False, None),  # see `PretrainedCheckpoint.check_copies`
    }

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
    pad_token_id: int | None = 0

    def __post_init__(self) -> None:
        if self.pad_token_id is None:
            object.__setattr__(self, "pad_token_id", type(self).pad_token_id)
        super().__post_init__()
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
        """Row of the position embedding for the first token."""
        return 0

    @property
    def max_length(self) -> int:
        """The longest sequence, in tokens, that has positions."""
        return self.max_position_embeddings - self.position_offset

    @property
    def num_segments(self) -> int:
        """`type_vocab_size`, or 0 if that is 1: every token is in the same segment."""
        return self.type_vocab_size if self.type_vocab_size > 1 else 0


def sizes(hidden_size: int, *, layers: int, heads: int) -> dict[str, int]:
    """The sizes of a preset, with feed-forward layers of 4 D."""
    return {
        "hidden_size": hidden_size,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden_size,
    }
