"""The config of ModernBERT (Warner et al. 2024), of both generations, and of Ettin's."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.encoders.transformer_config import HEAD_ACTIVATIONS, BidirectionalConfig, sizes

GLOBAL, LOCAL = "full_attention", "sliding_attention"
# The field of each type of layer's base of the rotary frequencies.
_THETAS = {GLOBAL: "global_rope_theta", LOCAL: "local_rope_theta"}
_UNUSED_KEYS = frozenset(
    """
    deterministic_flash_attn initializer_cutoff_factor layer_norm_eps reference_compile
    repad_logits_with_grad sparse_pred_ignore_index sparse_prediction
    """.split()
)
# Vocabularies that are learned here begin with padding.
_PAD = {"pad_token_id": 0}


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class ModernBertConfig(BidirectionalConfig):
    """The sizes and settings of a ModernBERT encoder; `KEYS` are Hugging Face's names.

    A file of the first generation has `global_attn_every_n_layers` and two thetas, one of the
    second `layer_types` and `rope_parameters`. Both are read, and what is written has the keys of
    both, as far as the first has keys for it.

    Attributes, in addition to those of `BidirectionalConfig` without segments:
        hidden_dropout_prob: dropout of the inner vectors of the feed-forward layers.
        embedding_dropout: dropout of the embeddings.
        classifier_dropout: dropout before a task's last layer.
        classifier_pooling: what a head over a whole text reads: "cls" or "mean".
        classifier_activation: the activation of the heads' own dense layer.
        layer_types: "full_attention" or "sliding_attention" for each layer; None is as
            `global_attn_every_n_layers` says.
        global_attn_every_n_layers: one layer of so many, from the first on, is global; None is 3.
        local_attention: twice the distance up to which a token is seen in a local layer.
        global_rope_theta, local_rope_theta: bases of the frequencies of the rotary positions.
        attention_bias, mlp_bias, norm_bias: whether the layers have biases.
        classifier_bias, decoder_bias: whether the heads' dense layer and the output of a masked LM
            have biases.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = ("modernbert",)
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        # As many parameters in the layers as BERT's tiny and mini have.
        "modern-tiny": {**sizes(128, layers=3, heads=2), "intermediate_size": 192, **_PAD},
        "modern-mini": {**sizes(256, layers=6, heads=4), "intermediate_size": 384, **_PAD},
        "modernbert-base": {**sizes(768, layers=22, heads=12), "intermediate_size": 1152, **_PAD},
        "modernbert-large": {**sizes(1024, layers=28, heads=16), "intermediate_size": 2624, **_PAD},
    }
    KEYS: ClassVar[Mapping[str, str]] = {
        "hidden_act": "hidden_activation",
        "layer_norm_eps": "norm_eps",
        "hidden_dropout_prob": "mlp_dropout",
        "attention_probs_dropout_prob": "attention_dropout",
    }
    UNUSED_KEYS: ClassVar[frozenset[str]] = BidirectionalConfig.UNUSED_KEYS | _UNUSED_KEYS
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = {
        **BidirectionalConfig.SUPPORTED_VALUES,
        "position_embedding_type": ("absolute", None),  # written by older programs, and not used
        "rope_scaling": (None,),
    }

    type_vocab_size: ClassVar[int] = 0
    max_position_embeddings: int = 8192
    layer_norm_eps: float = 1e-5
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    embedding_dropout: float = 0.0
    classifier_dropout: float = 0.0
    classifier_pooling: str = "cls"
    classifier_activation: str = "gelu"
    layer_types: tuple[str, ...] | None = None
    global_attn_every_n_layers: int | None = None
    local_attention: int = 128
    global_rope_theta: float = 160_000.0
    local_rope_theta: float = 10_000.0
    attention_bias: bool = False
    mlp_bias: bool = False
    norm_bias: bool = False
    classifier_bias: bool = False
    decoder_bias: bool = True
    pad_token_id: int | None = 50283
    model_type: str = "modernbert"

    def __post_init__(self) -> None:
        super().__post_init__()
        names = f"one of {', '.join(HEAD_ACTIVATIONS)}"
        self._check("classifier_activation", HEAD_ACTIVATIONS.__contains__, names)
        self._check("classifier_pooling", ("cls", "mean").__contains__, "'cls' or 'mean'")
        self._check("global_rope_theta local_rope_theta", lambda theta: theta > 0, "above 0")
        self._check("local_attention", lambda size: size >= 0, "0 or more")
        every = 3 if self.global_attn_every_n_layers is None else self.global_attn_every_n_layers
        self._check("global_attn_every_n_layers", lambda _: every >= 1, "at least 1")
        numbers, types = range(self.num_hidden_layers), self.layer_types
        if types is None:
            types = [LOCAL if number % every else GLOBAL for number in numbers]
        is_list = isinstance(types, list | tuple) and len(types) == len(numbers)
        if not is_list or any(name not in (GLOBAL, LOCAL) for name in types):
            raise ValueError(
                f"`layer_types` must have {GLOBAL!r} or {LOCAL!r} for each of "
                f"{self.num_hidden_layers} layers. Received: {types!r}."
            )
        object.__setattr__(self, "layer_types", tuple(types))
        if self.hidden_size // self.num_attention_heads % 2:
            raise ValueError(
                "Rotary positions need heads of an even size. Received: "
                f"hidden_size={self.hidden_size}, num_attention_heads={self.num_attention_heads}."
            )

    @classmethod
    def translated(cls, values: dict[str, Any], *, source: str) -> dict[str, Any]:
        values = dict(values)
        thetas = values.pop("rope_parameters", None)
        thetas = {} if thetas is None else thetas
        if not isinstance(thetas, dict) or thetas.keys() - _THETAS.keys():
            raise InputError(
                f"{source} has rope_parameters = {thetas!r}. Expected an object for each of "
                f"{' and '.join(_THETAS)}, since these layers have different frequencies."
            )
        for kind, field in _THETAS.items():
            given = {} if thetas.get(kind) is None else thetas[kind]
            if not isinstance(given, dict) or given.get("rope_type", "default") != "default":
                raise InputError(
                    f"{source} has rope_parameters = {thetas!r}, which this encoder cannot "
                    "compute. Supported: the rope_type 'default' for each type of layer."
                )
            if "rope_theta" in given:
                values[field] = given["rope_theta"]
        return values

    def to_dict(self) -> dict[str, Any]:
        written = super().to_dict()
        if self.global_attn_every_n_layers is None:
            del written["global_attn_every_n_layers"]
        written["layer_types"] = list(self.layer_types)
        written["rope_parameters"] = {
            kind: {"rope_theta": getattr(self, field), "rope_type": "default"}
            for kind, field in _THETAS.items()
        }
        return written

    def forward_flops(self, length: Any) -> Any:
        """Counts as for whole rows, without the keys that the windows of local layers leave out."""
        seen = np.minimum(length, 2 * (self.local_attention // 2) + 1)
        left_out = 4 * self.hidden_size * length * (length - seen)
        return super().forward_flops(length) - self.layer_types.count(LOCAL) * left_out

    def head_dropout(self, task_type: str) -> float:
        return self.classifier_dropout
