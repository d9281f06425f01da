"""The encoder of ALBERT: one layer of BERT's, applied many times (Lan et al. 2020)."""

import re
from typing import Any

import keras

from keras_bert.encoders.albert import AlbertConfig
from keras_bert.encoders.bert import tensor_names as bert
from keras_bert.encoders.tensor_names import (
    KEPT,
    PLAIN_POOLER,
    ClassNames,
    TensorNames,
    dense,
    embeddings,
    lm_head,
    sizes_of,
    task_classes,
    transformer_layer,
)
from keras_bert.encoders.transformer import TransformerEncoder
from keras_bert.layers.embeddings import Embeddings
from keras_bert.layers.transformer_block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_bert")
class AlbertEncoder(TransformerEncoder):
    """A Transformer encoder with small embeddings and one layer, which is all of `blocks`.

    It takes `input_ids`, `input_mask` and, if the config has segments, `segment_ids`; a packed
    batch has `sequence_ids` instead of `input_mask`. See `Encoder` for its outputs.

    Args:
        config: an `AlbertConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: those of `TransformerEncoder`.
    """

    CONFIG = AlbertConfig
    OBJECTIVES = ("mlm-sop", "mlm", "span")
    POOLER_ACTIVATION = "tanh"

    def __init__(
        self,
        config: AlbertConfig,
        *,
        dtype: Any = None,
        name: str | None = "albert_encoder",
        **kwargs: Any,
    ):
        super().__init__(config, dtype=dtype, name=name, **kwargs)

    def make_embeddings(self) -> Embeddings:
        return super().make_embeddings(
            embedding_size=self.config.embedding_size,
            type_vocab_size=self.config.type_vocab_size,
            has_projection=True,
        )

    def make_blocks(self) -> list[TransformerBlock]:
        # The output of the feed-forward layer has no dropout in `transformers`.
        return [self.block(0, feed_forward={"dropout": 0.0})] * self.config.num_hidden_layers

    @classmethod
    def tensor_names(cls, config: AlbertConfig) -> TensorNames:
        return _tensor_names(config)


_LAYER = "encoder.albert_layer_groups.0.albert_layers.0"
_POOLER, _OUTPUT = "pooler", "predictions.decoder"

_ENCODER = [
    *embeddings(**bert.EMBEDDINGS, size="E"),
    *dense("embeddings.projection", "encoder.embedding_hidden_mapping_in", "E D"),
    *transformer_layer(
        query_key_value=[f"{_LAYER}.attention.{part}" for part in ("query", "key", "value")],
        projection=f"{_LAYER}.attention.dense",
        attention_norm=f"{_LAYER}.attention.LayerNorm",
        dense_in=f"{_LAYER}.ffn",
        dense_out=f"{_LAYER}.ffn_output",
        feed_forward_norm=f"{_LAYER}.full_layer_layer_norm",
    ),
]
_LM_HEAD = lm_head("predictions.dense", "predictions.LayerNorm", "predictions.bias", size="E")
_SENTENCE_ORDER = dense("next_sentence_head.dense", "sop_classifier.classifier", "D 2")
_CLASSES = {
    "AlbertForPreTraining": ClassNames(
        task_types=("sentence-order-pretrainer",),
        heads={"lm_head": _LM_HEAD, "next_sentence_head": _SENTENCE_ORDER},
        transform=PLAIN_POOLER,
    ),
    **task_classes("Albert", lm_head=_LM_HEAD),
}


def _tensor_names(config):
    """The `TensorNames` of an `AlbertConfig`."""
    return TensorNames(
        base_class="AlbertModel",
        encoder=_ENCODER,
        sizes={**sizes_of(config), "E": config.embedding_size},
        transform=PLAIN_POOLER,
        base_pooler=_POOLER,
        prefix="albert.",
        classes=_CLASSES,
        head_prefixes=("predictions.", "sop_classifier.", "classifier.", "qa_outputs.", KEPT),
        copies={f"{_OUTPUT}.weight": bert.TOKENS, f"{_OUTPUT}.bias": "predictions.bias"},
        plain=_plain_name,
    )


def _plain_name(name):
    """Names tensors as BERT's, with the pooler under its plain name."""
    name = bert.plain_name("albert.")(name)
    return name and re.sub(rf"^{_POOLER}\.(weight|bias)$", rf"{PLAIN_POOLER}.\1", name)
