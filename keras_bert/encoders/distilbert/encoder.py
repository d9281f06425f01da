"""The encoder of DistilBERT: BERT without segments, half as deep (Sanh et al. 2019)."""

from typing import Any

import keras

from keras_bert.encoders.distilbert import DistilBertConfig
from keras_bert.encoders.tensor_names import (
    KEPT,
    TensorNames,
    embeddings,
    lm_head,
    sizes_of,
    task_classes,
    transformer_layer,
)
from keras_bert.encoders.transformer import TransformerEncoder


@keras.saving.register_keras_serializable(package="keras_bert")
class DistilBertEncoder(TransformerEncoder):
    """A Transformer encoder without segments.

    It takes `input_ids` and `input_mask`; a packed batch has `sequence_ids` instead of
    `input_mask`. See `Encoder` for its outputs.

    Args:
        config: a `DistilBertConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: those of `TransformerEncoder`.
    """

    CONFIG = DistilBertConfig
    OBJECTIVES = ("mlm", "span")
    POOLER_ACTIVATION = "relu"

    def __init__(
        self,
        config: DistilBertConfig,
        *,
        dtype: Any = None,
        name: str | None = "distilbert_encoder",
        **kwargs: Any,
    ):
        super().__init__(config, dtype=dtype, name=name, **kwargs)

    @classmethod
    def tensor_names(cls, config: DistilBertConfig) -> TensorNames:
        return _tensor_names(config)


_TOKENS = "embeddings.word_embeddings.weight"
_LAYER = "transformer.layer.{i}"

_ENCODER = [
    *embeddings(
        _TOKENS,
        positions="embeddings.position_embeddings.weight",
        norm="embeddings.LayerNorm",
    ),
    *transformer_layer(
        query_key_value=[f"{_LAYER}.attention.{part}_lin" for part in "qkv"],
        projection=f"{_LAYER}.attention.out_lin",
        attention_norm=f"{_LAYER}.sa_layer_norm",
        dense_in=f"{_LAYER}.ffn.lin1",
        dense_out=f"{_LAYER}.ffn.lin2",
        feed_forward_norm=f"{_LAYER}.output_layer_norm",
    ),
]

_CLASSES = task_classes(
    "DistilBert",
    lm_head=lm_head("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
    transform="pre_classifier",
    choices_transform="pre_classifier",
)


def _tensor_names(config):
    """The `TensorNames` of a `DistilBertConfig`."""
    return TensorNames(
        base_class="DistilBertModel",
        encoder=_ENCODER,
        layers=config.num_hidden_layers,
        sizes=sizes_of(config),
        prefix="distilbert.",
        classes=_CLASSES,
        head_prefixes=("vocab_", "pre_classifier.", "classifier.", "qa_outputs.", KEPT),
        copies={"vocab_projector.weight": _TOKENS},
        plain=_plain_name,
    )


def _plain_name(name):
    """Without the prefix of a class with a head, and without numbers that are no weights."""
    name = name.removeprefix("distilbert.")
    return None if name == "embeddings.position_ids" else name
