"""The names of BERT's weights in `transformers`."""

import re

from keras_bert.encoders import tensor_names
from keras_bert.encoders.tensor_names import (
    KEPT,
    PLAIN_POOLER,
    ClassNames,
    TensorNames,
    dense,
    task_classes,
    transformer_layer,
)

TOKENS = "embeddings.word_embeddings.weight"
# The arguments of `tensor_names.embeddings`.
EMBEDDINGS = {
    "tokens": TOKENS,
    "positions": "embeddings.position_embeddings.weight",
    "segments": "embeddings.token_type_embeddings.weight",
    "norm": "embeddings.LayerNorm",
}
_LAYER = "encoder.layer.{i}"
LAYER = transformer_layer(
    query_key_value=[f"{_LAYER}.attention.self.{part}" for part in ("query", "key", "value")],
    projection=f"{_LAYER}.attention.output.dense",
    attention_norm=f"{_LAYER}.attention.output.LayerNorm",
    dense_in=f"{_LAYER}.intermediate.dense",
    dense_out=f"{_LAYER}.output.dense",
    feed_forward_norm=f"{_LAYER}.output.LayerNorm",
)

_LM_HEAD = tensor_names.lm_head(
    "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"
)
_NEXT_SENTENCE = dense("next_sentence_head.dense", "cls.seq_relationship", "D 2")
CLASSES = {
    "BertForPreTraining": ClassNames(
        task_types=("pretrainer", "sentence-order-pretrainer"),
        heads={"lm_head": _LM_HEAD, "next_sentence_head": _NEXT_SENTENCE},
        transform=PLAIN_POOLER,
    ),
    **task_classes("Bert", lm_head=_LM_HEAD, causal="BertLMHeadModel"),
}


def names_of(
    config, *, base_class="BertModel", classes=CLASSES, output="cls.predictions", prefix="bert."
):
    """The `TensorNames` of a `BertConfig`, or of a relative whose encoder has the same names.

    Args:
        base_class, classes: see `TensorNames`.
        output: the name of the masked-LM head, for the copies that some writers store.
        prefix: what the encoder's names begin with in a model with a head.
    """
    return TensorNames(
        base_class=base_class,
        encoder=[*tensor_names.embeddings(**EMBEDDINGS), *LAYER],
        layers=config.num_hidden_layers,
        sizes=tensor_names.sizes_of(config),
        transform=PLAIN_POOLER,
        prefix=prefix,
        classes=classes,
        head_prefixes=("cls.", "lm_head.", "classifier.", "qa_outputs.", KEPT),
        copies={
            f"{output}.decoder.weight": TOKENS,
            f"{output}.decoder.bias": f"{output}.bias",
        },
        plain=plain_name(prefix),
    )


def plain_name(prefix):
    """A function from a name in a file to the plain name, without the variants of its writers.

    They are the `prefix` of the encoder in a model with a head, `gamma` and `beta` for a
    LayerNorm's weight and bias (files converted from TensorFlow in 2018 and 2019), and the numbers
    0, 1, 2 … that older versions stored as if they were weights.
    """
    buffers = ("embeddings.position_ids", "embeddings.token_type_ids")

    def plain(name):
        name = name.removeprefix(prefix)
        name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
        name = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)
        return None if name in buffers else name

    return plain
