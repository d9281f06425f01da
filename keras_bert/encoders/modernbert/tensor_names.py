"""What `transformers` calls the weights of ModernBERT."""

import dataclasses

from keras_bert.encoders.bert.tensor_names import sizes_of
from keras_bert.encoders.tensor_names import (
    KEPT,
    TensorNames,
    dense,
    embeddings,
    layer_norm,
    lm_head,
    task_classes,
    transformer_layer,
)

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


def of(config):
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
        output_embedding=("decoder.weight",),
        plain=lambda name: name.removeprefix("model."),
    )
