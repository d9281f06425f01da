"""The configs of OpenAI GPT and GPT-2 (Radford et al. 2018, 2019)."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.encoders.transformer_config import TransformerConfig


def _sizes(hidden_size, *, layers, heads, positions):
    return {
        "hidden_size": hidden_size,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "max_position_embeddings": positions,
    }


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class GptConfig(TransformerConfig):
    """The settings that OpenAI GPT and GPT-2 share; `KEYS` are Hugging Face's names.

    Attributes:
        vocab_size: rows of the token embedding.
        hidden_size: D; a multiple of `num_attention_heads`.
        num_hidden_layers: number of Transformer layers.
        num_attention_heads: N; each head has size `hidden_size / num_attention_heads`.
        max_position_embeddings: rows of the position embedding, the longest sequence.
        hidden_dropout_prob: dropout of each sub-layer's output.
        embedding_dropout: dropout of the embeddings.
        attention_probs_dropout_prob: dropout of the attention probabilities.
        layer_norm_eps: epsilon of every LayerNorm.
        initializer_range: standard deviation of new weights.
        pad_token_id: id of the padding token, or None.
        classifier_dropout: dropout before a task's classifier; None means `hidden_dropout_prob`.

    Raises:
        ValueError: an invalid value.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = ("openai-gpt", "gpt2")
    NORM_FIRST: ClassVar[bool]
    KEYS: ClassVar[Mapping[str, str]] = {
        "hidden_size": "n_embd",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "max_position_embeddings": "n_positions",
        "hidden_dropout_prob": "resid_pdrop",
        "embedding_dropout": "embd_pdrop",
        "attention_probs_dropout_prob": "attn_pdrop",
        "layer_norm_eps": "layer_norm_epsilon",
    }
    UNUSED_KEYS: ClassVar[frozenset[str]] = TransformerConfig.UNUSED_KEYS | {
        *("n_ctx", "n_special", "predict_special_tokens"),
    }
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = {
        "add_cross_attention": (False, None),
        "quantization_config": (None,),
        "tie_word_embeddings": (True, None),
    }

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    max_position_embeddings: int
    hidden_dropout_prob: float = 0.1
    embedding_dropout: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    layer_norm_eps: float = 1e-5
    initializer_range: float = 0.02
    pad_token_id: int | None = None
    classifier_dropout: float | None = None

    def _check_activation(self):
        if self.hidden_act not in ("gelu_new", "relu"):
            raise ValueError(
                f"The activation must be gelu_new or relu. Received: {self.hidden_act!r}."
            )

    @property
    def hidden_act(self) -> str:
        """The activation of the feed-forward layers, by `keras_bert.layers.dense`'s name."""
        raise NotImplementedError

    @property
    def intermediate_size(self) -> int:
        """Size of the feed-forward layers."""
        return 4 * self.hidden_size

    @property
    def is_causal(self) -> bool:
        return True


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
    def hidden_act(self) -> str:
        return {"gelu": "gelu_new"}.get(self.afn, self.afn)


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Gpt2Config(GptConfig):
    """GPT-2 (Radford et al. 2019): the norms come before the sub-layers, and one at the end.

    Attributes:
        activation_function: "gelu_new" or "relu".
        n_inner: size of the feed-forward layers; None is `4 * hidden_size`.
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
    def hidden_act(self) -> str:
        return self.activation_function

    @property
    def intermediate_size(self) -> int:
        return self.n_inner or super().intermediate_size
