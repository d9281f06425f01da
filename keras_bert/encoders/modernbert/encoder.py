"""The encoder of ModernBERT: norms first, gates, rotary positions, local layers (Warner 2024)."""

import dataclasses
from typing import Any

import keras

from keras_bert.encoders.modernbert import LOCAL, ModernBertConfig
from keras_bert.encoders.tensor_names import (
    KEPT,
    TensorNames,
    dense,
    embeddings,
    layer_norm,
    lm_head,
    sizes_of,
    task_classes,
    transformer_layer,
)
from keras_bert.encoders.transformer import TransformerEncoder
from keras_bert.heads.lm_head import LMHead, LMTransform
from keras_bert.layers.elementwise import LayerNorm
from keras_bert.layers.embeddings import Embeddings
from keras_bert.layers.positions import RotaryPositions
from keras_bert.layers.transformer_block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_bert")
class ModernBertEncoder(TransformerEncoder):
    """A Transformer encoder of which most layers see only the neighbourhood of each token.

    It is made of a `ModernBertConfig`, and called as a `BertEncoder` without segments.
    """

    CONFIG = ModernBertConfig
    OBJECTIVES = ("mlm", "span")
    POOLER_ACTIVATION = "gelu"  # or as the config says

    def __init__(
        self,
        config: ModernBertConfig,
        *,
        dtype: Any = None,
        name: str | None = "modernbert_encoder",
        **kwargs: Any,
    ):
        super().__init__(config, dtype=dtype, name=name, **kwargs)
        self.scale_residual_outputs()

    def make_embeddings(self) -> Embeddings:
        dropout = self.config.embedding_dropout
        return super().make_embeddings(max_position_embeddings=0, dropout=dropout)

    def block(self, number: int) -> TransformerBlock:
        config = self.config
        is_local = config.layer_types[number] == LOCAL
        theta = config.local_rope_theta if is_local else config.global_rope_theta
        first = {} if number else {"attention_norm": None}  # the embeddings have a norm already
        return super().block(
            number,
            attention={
                "positions": RotaryPositions(theta=theta, dtype=self.dtype_policy),
                "window": config.local_attention // 2 if is_local else None,
                "use_bias": config.attention_bias,
                "output_dropout": config.attention_probs_dropout_prob,
            },
            feed_forward={
                "has_gate": True,
                "use_bias": config.mlp_bias,
                "dropout": 0.0,
                "inner_dropout": config.hidden_dropout_prob,
            },
            norm_first=True,
            **first,
        )

    def norm(self, name: str) -> LayerNorm:
        return super().norm(name, use_bias=self.config.norm_bias)

    def make_last_norm(self) -> LayerNorm | None:
        return self.norm("last_norm")

    @property
    def usual_pooling(self) -> str:
        return self.config.classifier_pooling

    def lm_transform(self, **options: Any) -> LMTransform:
        """The layer of all heads: a dense layer, an activation and a norm."""
        return super().lm_transform(
            hidden_act=self.config.classifier_activation,
            use_bias=self.config.classifier_bias,
            norm_has_bias=self.config.norm_bias,
            **options,
        )

    def make_pooler(self) -> keras.layers.Layer:
        return self.lm_transform(name="pooler")

    def lm_head(self, *, name: str = "lm_head") -> LMHead:
        """Makes BERT's head."""
        return self._lm_head(name, transform=self.lm_transform(), use_bias=self.config.decoder_bias)

    @classmethod
    def tensor_names(cls, config: ModernBertConfig) -> TensorNames:
        return _tensor_names(config)


_TOKENS = "embeddings.tok_embeddings.weight"
_LAYER = transformer_layer(
    query_key_value="layers.{i}.attn.Wqkv",
    projection="layers.{i}.attn.Wo",
    attention_norm="layers.{i}.attn_norm",
    dense_in="layers.{i}.mlp.Wi",
    dense_out="layers.{i}.mlp.Wo",
    feed_forward_norm="layers.{i}.mlp_norm",
    inner="J",
)
_ENCODER = [
    *embeddings(_TOKENS, norm="embeddings.norm"),
    *(dataclasses.replace(x, not_in=(0,) * (".attention_norm." in x.ours)) for x in _LAYER),
    *layer_norm("last_norm", "final_norm"),
]


def _has(config, weight):
    """Whether there is a weight of that name, which may be a bias."""
    flags = {
        "norm": config.norm_bias,
        "lm_head.bias": config.decoder_bias,
        "attention": config.attention_bias,
        "feed_forward": config.mlp_bias,
        "dense": config.classifier_bias,
    }
    is_bias = weight.endswith((".bias", ".beta"))
    return not is_bias or next(flag for part, flag in flags.items() if part in weight)


def _tensor_names(config):
    """The `TensorNames` of a `ModernBertConfig`."""

    def present(lines):
        return [line for line in lines if _has(config, line.ours)]

    return TensorNames(
        base_class="ModernBertModel",
        encoder=present(_ENCODER),
        layers=config.num_hidden_layers,
        sizes=sizes_of(config),
        pooler=present([*dense("dense", ".dense", "D D"), *layer_norm("layer_norm", ".norm")]),
        prefix="model.",
        classes=task_classes(
            "ModernBert",
            lm_head=present(lm_head("head.dense", "head.norm", "decoder.bias")),
            answers="classifier",
            transform="head",
            choices_transform="head",
            tokens_transform="head",
            pooling=config.classifier_pooling,
        ),
        head_prefixes=("head.", "decoder.", "classifier.", KEPT),
        copies={"decoder.weight": _TOKENS},
        plain=lambda name: name.removeprefix("model."),
    )
