"""The encoder of ELECTRA: BERT's, with embeddings of their own size (Clark et al. 2020)."""

from typing import Any

import keras

from keras_bert.encoders.bert import tensor_names as bert
from keras_bert.encoders.electra import ElectraConfig
from keras_bert.encoders.tensor_names import (
    KEPT,
    TensorNames,
    dense,
    embeddings,
    lm_head,
    sizes_of,
    task_classes,
)
from keras_bert.encoders.transformer import TransformerEncoder
from keras_bert.heads.lm_head import LMHead
from keras_bert.layers.embeddings import Embeddings


@keras.saving.register_keras_serializable(package="keras_bert")
class ElectraEncoder(TransformerEncoder):
    """A Transformer encoder with projected embeddings: of a discriminator or a generator.

    It takes `input_ids`, `input_mask` and, if the config has segments, `segment_ids`; a packed
    batch has `sequence_ids` instead of `input_mask`. See `Encoder` for its outputs. As a masked LM
    it is a generator. There is no task of the discriminator's own head, replaced tokens.

    Args:
        config: an `ElectraConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: those of `TransformerEncoder`.
    """

    CONFIG = ElectraConfig
    OBJECTIVES = ("mlm", "span")
    POOLER_ACTIVATION = "gelu"

    def __init__(
        self,
        config: ElectraConfig,
        *,
        dtype: Any = None,
        name: str | None = "electra_encoder",
        **kwargs: Any,
    ):
        super().__init__(config, dtype=dtype, name=name, **kwargs)

    def make_embeddings(self) -> Embeddings:
        return super().make_embeddings(
            embedding_size=self.config.embedding_size,
            type_vocab_size=self.config.type_vocab_size,
        )

    def lm_head(self, *, name: str = "lm_head") -> LMHead:
        """The generator's: as BERT's, from D to E, with gelu whatever the config's activation."""
        return self._lm_head(name, transform=self.lm_transform(hidden_act="gelu"))

    @classmethod
    def tensor_names(cls, config: ElectraConfig) -> TensorNames:
        return _tensor_names(config)


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


def _tensor_names(config):
    """The `TensorNames` of an `ElectraConfig`."""
    projection = []
    if config.embedding_size != config.hidden_size:
        projection = dense("embeddings.projection", "embeddings_project", "E D")
    return TensorNames(
        base_class="ElectraModel",
        encoder=[*embeddings(**bert.EMBEDDINGS, size="E"), *projection, *bert.LAYER],
        layers=config.num_hidden_layers,
        sizes={**sizes_of(config), "E": config.embedding_size},
        prefix="electra.",
        classes=_CLASSES,
        head_prefixes=(
            *("generator_predictions.", "generator_lm_head.", "discriminator_predictions."),
            *("sequence_summary.", "classifier.", "qa_outputs.", KEPT),
        ),
        copies={"generator_lm_head.weight": bert.TOKENS},
        plain=bert.plain_name("electra."),
    )
