"""What `transformers` calls the weights of ELECTRA: the layers as BERT's."""

from keras_bert.encoders.bert import tensor_names as bert
from keras_bert.encoders.tensor_names import (
    KEPT,
    TensorNames,
    dense,
    embeddings,
    lm_head,
    task_classes,
)

_CLASSES = task_classes(
    "Electra",
    lm_head=lm_head(
        "generator_predictions.dense",
        "generator_predictions.LayerNorm",
        "generator_lm_head.bias",
        size="E",
    ),
    # The layer with gelu and the linear layer over it are both in the head.
    labels="classifier.out_proj",
    transform="classifier.dense",
    choices_transform="sequence_summary.summary",
)


def of(config):
    """The `TensorNames` of an `ElectraConfig`."""
    projection = []
    if config.embedding_size != config.hidden_size:
        projection = dense("embeddings.projection", "embeddings_project", "E D")
    return TensorNames(
        base_class="ElectraModel",
        encoder=[*embeddings(**bert.EMBEDDINGS, size="E"), *projection, *bert.LAYER],
        layers=config.num_hidden_layers,
        sizes={**bert.sizes_of(config), "E": config.embedding_size},
        prefix="electra.",
        classes=_CLASSES,
        head_prefixes=(
            *("generator_predictions.", "generator_lm_head.", "discriminator_predictions."),
            *("sequence_summary.", "classifier.", "qa_outputs.", KEPT),
        ),
        copies={"generator_lm_head.weight": bert.TOKENS},
        output_embedding=("generator_lm_head.weight",),
        plain=bert.plain_name("electra."),
    )
