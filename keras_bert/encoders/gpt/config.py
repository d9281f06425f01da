"""The configs of OpenAI GPT and GPT-2."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.encoders.config import TransformerConfig


def _sizes(hidden_size, *, layers, heads, positions):
    return {"n_embd": hidden_size, "n_layer": layers, "n_head": heads, "n_positions": positions}


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class GptConfig(TransformerConfig):
    """What OpenAI GPT and GPT-2 share; field names are Hugging Face's.

    Attributes:
        vocab_size: rows of the token embedding.
        n_embd: D, the hidden size; a multiple of `n_head`.
        n_layer: number of Transformer layers.
        n_head: N; each head has size `n_embd / n_head`.
        n_positions: rows of the position embedding, the longest sequence.
        resid_pdrop, embd_pdrop, attn_pdrop: dropout of each sub-layer's output, of the embeddings,
            and of the attention probabilities.
        layer_norm_epsilon: epsilon of every LayerNorm.
        initializer_range: standard deviation of new weights.
        pad_token_id: id of the padding token, or None.
        classifier_dropout: dropout before a task's classifier; None means `resid_pdrop`.

    Raises:
        ValueError: an invalid value.
    """

    NORM_FIRST: ClassVar[bool]
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = {
        "add_cross_attention": (False, None),
        "quantization_config": (None,),
        "tie_word_embeddings": (True, None),
    }

    vocab_size: int
    n_embd: int
    n_layer: int
    n_head: int
    n_positions: int
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    initializer_range: float = 0.02
    pad_token_id: int | None = None
    classifier_dropout: float | None = None

    def __post_init__(self):
        super().__post_init__()
        self._check(
            "vocab_size n_embd n_layer n_head n_positions", lambda size: size >= 1, "at least 1"
        )
        dropout = "resid_pdrop embd_pdrop attn_pdrop classifier_dropout"
        self._check(dropout, lambda rate: rate is None or 0 <= rate < 1, "in [0, 1)")
        self._check("layer_norm_epsilon initializer_range", lambda value: value > 0, "above 0")
        if self.n_embd % self.n_head:
            raise ValueError(
                "`n_embd` must be a multiple of `n_head`. "
                f"Received: n_embd={self.n_embd}, n_head={self.n_head}."
            )
        if self.activation not in ("gelu_new", "relu"):
            raise ValueError(
                f"The activation must be gelu_new or relu. Received: {self.activation!r}."
            )

    @property
    def activation(self) -> str:
        """The activation of the feed-forward layers, by `keras_bert.layers.dense`'s name."""
        raise NotImplementedError

    @property
    def intermediate_size(self) -> int:
        """Size of the feed-forward layers."""
        return 4 * self.n_embd

    @property
    def hidden_size(self) -> int:
        """`n_embd`, by the name that every encoder has."""
        return self.n_embd

    @property
    def num_hidden_layers(self) -> int:
        """`n_layer`, by the name that every encoder has."""
        return self.n_layer

    @property
    def num_attention_heads(self) -> int:
        """`n_head`, by the name that every encoder has."""
        return self.n_head

    @property
    def max_length(self) -> int:
        return self.n_positions

    @property
    def is_causal(self) -> bool:
        return True

    @property
    def head_dropout(self) -> float:
        return self.resid_pdrop if self.classifier_dropout is None else self.classifier_dropout

    @property
    def head_activation(self) -> str:
        return self.activation

    @property
    def head_layer_norm_eps(self) -> float:
        return self.layer_norm_epsilon

    def parameter_count(self) -> int:
        embeddings = (self.vocab_size + self.n_positions) * self.n_embd
        last_norm = 2 * self.n_embd if self.NORM_FIRST else 0
        return embeddings + self._layers_parameter_count() + last_norm


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class OpenAIGptConfig(GptConfig):
    """OpenAI GPT (Radford et al. 2018): the norms come after the sub-layers.

    Attributes:
        afn: the activation; "gelu" is the tanh form, which `transformers` calls `gelu_new`
            everywhere else.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = ("openai-gpt",)
    NORM_FIRST: ClassVar[bool] = False
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "gpt-tiny": _sizes(128, layers=2, heads=4, positions=512),
        "gpt-mini": _sizes(256, layers=4, heads=4, positions=512),
        "gpt-small": _sizes(512, layers=4, heads=8, positions=512),
        "gpt": _sizes(768, layers=12, heads=12, positions=512),
    }

    afn: str = "gelu"
    model_type: str = "openai-gpt"

    @property
    def activation(self) -> str:
        return {"gelu": "gelu_new"}.get(self.afn, self.afn)


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Gpt2Config(GptConfig):
    """GPT-2 (Radford et al. 2019): the norms come before the sub-layers, and one at the end.

    Attributes:
        activation_function: "gelu_new" or "relu".
        n_inner: size of the feed-forward layers; None is `4 * n_embd`.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = ("gpt2",)
    NORM_FIRST: ClassVar[bool] = True
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "gpt2-tiny": _sizes(128, layers=2, heads=4, positions=512),
        "gpt2-mini": _sizes(256, layers=4, heads=4, positions=512),
        "gpt2-small": _sizes(512, layers=4, heads=8, positions=512),
        "gpt2": _sizes(768, layers=12, heads=12, positions=1024),
    }
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = {
        **GptConfig.SUPPORTED_VALUES,
        "scale_attn_weights": (True, None),
        "scale_attn_by_inverse_layer_idx": (False, None),
        "reorder_and_upcast_attn": (False, True, None),  # the same function in other precision
    }

    activation_function: str = "gelu_new"
    n_inner: int | None = None
    model_type: str = "gpt2"

    @property
    def activation(self) -> str:
        return self.activation_function

    @property
    def intermediate_size(self) -> int:
        return self.n_inner or super().intermediate_size
