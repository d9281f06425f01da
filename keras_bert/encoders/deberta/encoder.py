"""The encoder of DeBERTa: BERT's, in which tokens and distances attend to each other (He 2021)."""

from typing import Any

import keras

from keras_bert.base.rename import Rename
from keras_bert.encoders.bert import tensor_names as bert
from keras_bert.encoders.deberta import DebertaConfig
from keras_bert.encoders.tensor_names import (
    KEPT,
    TensorNames,
    embeddings,
    layer_norm,
    lm_head,
    sizes_of,
    task_classes,
    transformer_layer,
)
from keras_bert.encoders.transformer import TransformerEncoder
from keras_bert.heads.pooling import Pooler
from keras_bert.layers.embeddings import Embeddings
from keras_bert.layers.positions import DisentangledPositions


@keras.saving.register_keras_serializable(package="keras_bert")
class DebertaEncoder(TransformerEncoder):
    """A Transformer encoder with vectors for distances, which all layers share.

    It takes `input_ids`, `input_mask` and, if the config has segments, `segment_ids`; a packed
    batch has `sequence_ids` instead of `input_mask`. See `Encoder` for its outputs. It is
    pre-trained as a masked LM: there is no replaced-token detection.

    Args:
        config: a `DebertaConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: those of `TransformerEncoder`.
    """

    CONFIG = DebertaConfig
    OBJECTIVES = ("mlm", "span")
    POOLER_ACTIVATION = "gelu"  # or as the config says

    def __init__(
        self,
        config: DebertaConfig,
        *,
        dtype: Any = None,
        name: str | None = "deberta_encoder",
        **kwargs: Any,
    ):
        super().__init__(config, dtype=dtype, name=name, **kwargs)

    def make_positions(self) -> keras.layers.Layer | None:
        config = self.config
        return DisentangledPositions(
            num_buckets=config.num_distances,
            farthest=config.farthest_distance,
            num_heads=config.num_attention_heads,
            attends=config.pos_att_type,
            has_buckets=config.position_buckets > 0,
            layer_norm=self.norm("layer_norm"),
            dropout=config.hidden_dropout_prob,
            name="positions",
            **self._common,
        )

    def make_embeddings(self) -> Embeddings:
        config = self.config
        has_positions = config.position_biased_input
        return super().make_embeddings(
            max_position_embeddings=config.max_position_embeddings if has_positions else 0,
            type_vocab_size=config.type_vocab_size,
        )

    def make_pooler(self) -> keras.layers.Layer:
        config = self.config
        return Pooler(
            activation=config.pooler_hidden_act,
            name="pooler",
            **{**self._common, "dtype": self.layer_policy},
        )

    @classmethod
    def tensor_names(cls, config: DebertaConfig) -> TensorNames:
        return _tensor_names(config)


_LAYER = "encoder.layer.{i}"
_LAYERS = transformer_layer(
    query_key_value=[f"{_LAYER}.attention.self.{part}_proj" for part in ("query", "key", "value")],
    projection=f"{_LAYER}.attention.output.dense",
    attention_norm=f"{_LAYER}.attention.output.LayerNorm",
    dense_in=f"{_LAYER}.intermediate.dense",
    dense_out=f"{_LAYER}.output.dense",
    feed_forward_norm=f"{_LAYER}.output.LayerNorm",
)
_POSITIONS = [
    Rename("positions.table.embeddings", "encoder.rel_embeddings.weight", "R D"),
    *layer_norm("positions.layer_norm", "encoder.LayerNorm"),
]
# The names of the masked-LM head's parts.
_LEGACY = ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm")
_LEGACY_BIAS, _OUTPUT = "cls.predictions.bias", "cls.predictions.decoder"
_HEAD = ("lm_predictions.lm_head.dense", "lm_predictions.lm_head.LayerNorm")
_HEAD_BIAS = "lm_predictions.lm_head.bias"


def _tensor_names(config):
    """The `TensorNames` of a `DebertaConfig`."""
    tables = dict(bert.EMBEDDINGS)
    if not config.position_biased_input:
        tables["positions"] = None
    if not config.type_vocab_size:
        tables["segments"] = None
    parts = (*_LEGACY, _LEGACY_BIAS) if config.legacy else (*_HEAD, _HEAD_BIAS)
    return TensorNames(
        base_class="DebertaV2Model",
        encoder=[*embeddings(**tables), *_LAYERS, *_POSITIONS],
        layers=config.num_hidden_layers,
        sizes={**sizes_of(config), "R": 2 * config.num_distances},
        prefix="deberta.",
        classes=task_classes("DebertaV2", lm_head=lm_head(*parts)),
        head_prefixes=(
            *("cls.", "lm_predictions.", "mask_predictions.", "classifier.", "qa_outputs.", KEPT),
        ),
        copies={f"{_OUTPUT}.weight": bert.TOKENS, f"{_OUTPUT}.bias": _LEGACY_BIAS},
        plain=bert.plain_name("deberta."),
    )
