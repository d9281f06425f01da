"""What `transformers` calls the weights of MPNet."""

from keras_bert.base.rename import Rename
from keras_bert.encoders.bert import tensor_names as bert
from keras_bert.encoders.tensor_names import (
    KEPT,
    PLAIN_POOLER,
    TensorNames,
    embeddings,
    lm_head,
    task_classes,
    transformer_layer,
)

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


def of(config):
    """The `TensorNames` of an `MPNetConfig`."""
    return TensorNames(
        base_class="MPNetModel",
        encoder=_ENCODER,
        layers=config.num_hidden_layers,
        sizes={**bert.sizes_of(config), "R": config.relative_attention_num_buckets},
        transform=PLAIN_POOLER,
        prefix="mpnet.",
        classes=_CLASSES,
        head_prefixes=("lm_head.", "classifier.", "qa_outputs.", KEPT),
        copies={"lm_head.decoder.weight": bert.TOKENS, "lm_head.decoder.bias": "lm_head.bias"},
        output_embedding=("lm_head.decoder.weight",),
        plain=bert.plain_name("mpnet."),
    )
