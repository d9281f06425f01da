"""The encoder of ModernBERT: norms first, gates, rotary positions, local layers (Warner 2024)."""

import dataclasses

import keras

from keras_bert.base.rename import Rename
from keras_bert.encoders.modernbert import ModernBertConfig
from keras_bert.encoders.tensor_names import (
    KEPT,
    TensorNames,
    dense,
    embeddings,
    layer_norm,
    sizes_of,
    task_classes,
)
from keras_bert.encoders.transformer import TransformerEncoder
from keras_bert.layers.elementwise import LayerNorm
from keras_bert.layers.positions import RotaryPositions


@keras.saving.register_keras_serializable(package="keras_bert")
class ModernBertEncoder(TransformerEncoder):
    """A Transformer encoder of which most layers see only the neighbourhood of each token.

    It takes `input_ids` and `input_mask`; a packed batch has `sequence_ids` instead of
    `input_mask`. See `Encoder` for its outputs.

    Args:
        config: a `ModernBertConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: those of `TransformerEncoder`.
    """

    CONFIG = ModernBertConfig
    OBJECTIVES = ("mlm", "span")
    POOLER_ACTIVATION = "gelu"  # or as the config says

    def __init__(self, config, *, dtype=None, name="modernbert_encoder", **kwargs):
        super().__init__(config, dtype=dtype, name=name, **kwargs)
        self.scale_residual_outputs()

    def make_embeddings(self):
        return super().make_embeddings(
            max_position_embeddings=0, dropout=self.config.embedding_dropout
        )

    def block(self, number):
        config = self.config
        is_local = config.is_local(number)
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

    def norm(self, name):
        config = self.config
        return LayerNorm(
            epsilon=config.layer_norm_eps,
            use_bias=config.norm_bias,
            name=name,
            dtype=self.dtype_policy,
        )

    def make_last_norm(self):
        return self.norm("last_norm")

    @property
    def usual_pooling(self):
        return self.config.classifier_pooling

    def lm_transform(self, **options):
        """The layer of all heads: a dense layer, an activation and a norm."""
        config = self.config
        return super().lm_transform(
            hidden_act=config.classifier_activation,
            use_bias=config.classifier_bias,
            norm_has_bias=config.norm_bias,
            **options,
        )

    def make_pooler(self):
        return self.lm_transform(name="pooler")

    def lm_head(self, *, name="lm_head"):
        """As BERT's."""
        return self._lm_head(name, transform=self.lm_transform(), use_bias=self.config.decoder_bias)

    @classmethod
    def tensor_names(cls, config):
        return _tensor_names(config)


_TOKENS = "embeddings.tok_embeddings.weight"
_HEAD = "head"


def _tensor_names(config):
    """The `TensorNames` of a `ModernBertConfig`."""

    def biased(lines, has_bias):
        """The lines of a layer, or those without a bias."""
        return [x for x in lines if has_bias or not x.ours.endswith((".bias", ".beta"))]

    def norm(ours, theirs, **options):
        return biased(layer_norm(ours, theirs, **options), config.norm_bias)

    def linear(ours, theirs, shape, has_bias):
        return biased(dense(ours, theirs, shape), has_bias)

    ours, theirs = "blocks.{i}", "layers.{i}"
    attention_norm = norm(f"{ours}.attention_norm", f"{theirs}.attn_norm")
    encoder = [
        *embeddings(_TOKENS, norm="embeddings.norm", layer_norm=norm),
        *(dataclasses.replace(line, not_in=(0,)) for line in attention_norm),
        *linear(
            f"{ours}.attention.query_key_value",
            f"{theirs}.attn.Wqkv",
            "D E",
            config.attention_bias,
        ),
        *linear(f"{ours}.attention.projection", f"{theirs}.attn.Wo", "D D", config.attention_bias),
        *norm(f"{ours}.feed_forward_norm", f"{theirs}.mlp_norm"),
        *linear(f"{ours}.feed_forward.dense_in", f"{theirs}.mlp.Wi", "D J", config.mlp_bias),
        *linear(f"{ours}.feed_forward.dense_out", f"{theirs}.mlp.Wo", "I D", config.mlp_bias),
        *norm("last_norm", "final_norm"),
    ]

    def head(ours, theirs):
        """The lines of the layer that all heads have."""
        return [
            *linear(f"{ours}dense", f"{theirs}.dense", "D D", config.classifier_bias),
            *norm(f"{ours}layer_norm", f"{theirs}.norm"),
        ]

    output_bias = [Rename("lm_head.bias", "decoder.bias", "V")] if config.decoder_bias else []
    return TensorNames(
        base_class="ModernBertModel",
        encoder=encoder,
        layers=config.num_hidden_layers,
        sizes={
            **sizes_of(config),
            "E": 3 * config.hidden_size,
            "J": 2 * config.intermediate_size,
        },
        pooler=head("", ""),
        prefix="model.",
        classes=task_classes(
            "ModernBert",
            lm_head=[*head("lm_head.transform.", _HEAD), *output_bias],
            answers="classifier",
            transform=_HEAD,
            choices_transform=_HEAD,
            tokens_transform=_HEAD,
            pooling=config.classifier_pooling,
        ),
        head_prefixes=(f"{_HEAD}.", "decoder.", "classifier.", KEPT),
        copies={"decoder.weight": _TOKENS},
        plain=lambda name: name.removeprefix("model."),
    )
