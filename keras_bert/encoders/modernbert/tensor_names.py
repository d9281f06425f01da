"""What `transformers` calls the weights of ModernBERT."""

import dataclasses

from keras_bert.base.rename import Rename
from keras_bert.encoders.tensor_names import (
    KEPT,
    TensorNames,
    dense,
    embeddings,
    layer_norm,
    task_classes,
)

_TOKENS = "embeddings.tok_embeddings.weight"
_HEAD = "head"


def of(config):
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
            "V": config.vocab_size,
            "D": config.hidden_size,
            "E": 3 * config.hidden_size,
            "I": config.intermediate_size,
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
        output_embedding=("decoder.weight",),
        plain=lambda name: name.removeprefix("model."),
    )
