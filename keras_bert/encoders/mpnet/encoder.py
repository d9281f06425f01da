"""The encoder of MPNet: BERT's, with biases for distances (Song et al. 2020)."""

from typing import Any

import keras

from keras_bert.base.rename import Rename
from keras_bert.encoders.bert import tensor_names as bert
from keras_bert.encoders.mpnet import MPNetConfig
from keras_bert.encoders.tensor_names import (
    KEPT,
    PLAIN_POOLER,
    TensorNames,
    embeddings,
    lm_head,
    sizes_of,
    task_classes,
    transformer_layer,
)
from keras_bert.encoders.transformer import TransformerEncoder
from keras_bert.heads.lm_head import LMHead
from keras_bert.layers.embeddings import Embeddings
from keras_bert.layers.positions import DistanceBias

_FARTHEST = 128  # of `transformers`


@keras.saving.register_keras_serializable(package="keras_bert")
class MPNetEncoder(TransformerEncoder):
    """A Transformer encoder whose layers share a bias for each head and distance.

    It takes `input_ids` and `input_mask`; a packed batch has `sequence_ids` instead of
    `input_mask`. See `Encoder` for its outputs. It is pre-trained as a masked LM: there is no
    permuted language modelling.

    Args:
        config: an `MPNetConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: those of `TransformerEncoder`.
    """

    CONFIG = MPNetConfig
    OBJECTIVES = ("mlm", "span")
    POOLER_ACTIVATION = "tanh"

    def __init__(
        self,
        config: MPNetConfig,
        *,
        dtype: Any = None,
        name: str | None = "mpnet_encoder",
        **kwargs: Any,
    ):
        super().__init__(config, dtype=dtype, name=name, **kwargs)

    def make_positions(self) -> keras.layers.Layer | None:
        return DistanceBias(
            num_buckets=self.config.relative_attention_num_buckets,
            num_heads=self.config.num_attention_heads,
            farthest=_FARTHEST,
            initializer_range=self.config.initializer_range,
            name="positions",
            dtype=self.dtype_policy,
        )

    def make_embeddings(self) -> Embeddings:
        return super().make_embeddings(position_offset=self.config.position_offset)

    def lm_head(self, *, name: str = "lm_head") -> LMHead:
        """Makes BERT's head, with gelu whatever the config's activation."""
        return self._lm_head(name, transform=self.lm_transform(hidden_act="gelu"))

    @classmethod
    def tensor_names(cls, config: MPNetConfig) -> TensorNames:
        return _tensor_names(config)


_LAYER = "encoder.layer.{i}"

_ENCODER = [
    *embeddings(**{**bert.EMBEDDINGS, "segments": None}),
    Rename("positions.table.embeddings", "encoder.relative_attention_bias.weight", "R N"),
    *transformer_layer(
        query_key_value=[f"{_LAYER}.attention.attn.{part}" for part in "qkv"],
        projection=f"{_LAYER}.attention.attn.o",
        attention_norm=f"{_LAYER}.attention.LayerNorm",
        dense_in=f"{_LAYER}.intermediate.dense",
        dense_out=f"{_LAYER}.output.dense",
        feed_forward_norm=f"{_LAYER}.output.LayerNorm",
    ),
]

_CLASSES = task_classes(
    "MPNet",
    lm_head=lm_head("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    # The layer with tanh and the linear layer over it are both in the head.
    labels="classifier.out_proj",
    transform="classifier.dense",
)


def _tensor_names(config):
    """The `TensorNames` of an `MPNetConfig`."""
    return TensorNames(
        base_class="MPNetModel",
        encoder=_ENCODER,
        layers=config.num_hidden_layers,
        sizes={**sizes_of(config), "R": config.relative_attention_num_buckets},
        transform=PLAIN_POOLER,
        prefix="mpnet.",
        classes=_CLASSES,
        head_prefixes=("lm_head.", "classifier.", "qa_outputs.", KEPT),
        copies={"lm_head.decoder.weight": bert.TOKENS, "lm_head.decoder.bias": "lm_head.bias"},
        plain=bert.plain_name("mpnet."),
    )
