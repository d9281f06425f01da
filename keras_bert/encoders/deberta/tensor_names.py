"""What `transformers` calls the weights of DeBERTa."""

from keras_bert.base.rename import Rename
from keras_bert.encoders.bert import tensor_names as bert
from keras_bert.encoders.tensor_names import (
    KEPT,
    TensorNames,
    embeddings,
    layer_norm,
    lm_head,
    task_classes,
    transformer_layer,
)

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


def of(config):
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
        sizes={**bert.sizes_of(config), "R": 2 * config.num_distances},
        prefix="deberta.",
        classes=task_classes("DebertaV2", lm_head=lm_head(*parts)),
        head_prefixes=(
            *("cls.", "lm_predictions.", "mask_predictions.", "classifier.", "qa_outputs.", KEPT),
        ),
        copies={f"{_OUTPUT}.weight": bert.TOKENS, f"{_OUTPUT}.bias": _LEGACY_BIAS},
        output_embedding=(f"{_OUTPUT}.weight",),
        plain=bert.plain_name("deberta."),
    )
