"""The encoder of ELECTRA: BERT's, with embeddings of their own size (Clark et al. 2020)."""

from typing import Any, Self

import keras

from keras_bert.encoders.bert import tensor_names as bert
from keras_bert.encoders.electra import ElectraConfig, generator_config
from keras_bert.encoders.encoder import Encoder
from keras_bert.encoders.initialization import initialize_local_attention
from keras_bert.encoders.tensor_names import (
    KEPT,
    ClassNames,
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
    it is a generator.

    Args:
        config: an `ElectraConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.
        tables_of: the encoder whose embedding tables it shares, as far as both have them; None for
            tables of its own.

    Attributes: those of `TransformerEncoder`.
    """

    CONFIG = ElectraConfig
    OBJECTIVES = ("mlm", "span", "rtd")
    POOLER_ACTIVATION = "gelu"

    def __init__(
        self,
        config: ElectraConfig,
        *,
        dtype: Any = None,
        name: str | None = "electra_encoder",
        tables_of: Encoder | None = None,
        **kwargs: Any,
    ):
        # Not an attribute of Keras, which would count that encoder among the layers of this one.
        object.__setattr__(self, "_tables_of", tables_of)
        super().__init__(config, dtype=dtype, name=name, **kwargs)

    @classmethod
    def generator_of(cls, encoder: Any, *, fraction: float) -> Self:
        """The encoder of a generator that learns with a discriminator: see `new_generator`."""
        config = generator_config(
            encoder.config, fraction=fraction, embedding_size=encoder.token_embedding.output_dim
        )
        # Of both encoders, weights of the same layers would have the same paths.
        with keras.name_scope("generator"):
            return cls(config, dtype=encoder.layer_policy, name="generator", tables_of=encoder)

    def make_embeddings(self) -> Embeddings:
        shared = {} if self._tables_of is None else self._tables_of.shared_tables
        return super().make_embeddings(
            embedding_size=self.config.embedding_size,
            type_vocab_size=self.config.type_vocab_size,
            shared=shared,
        )

    def initialize_local_attention(self) -> None:
        initialize_local_attention(self, tables_of=self._tables_of)

    def lm_head(self, *, name: str = "lm_head") -> LMHead:
        """The generator's: as BERT's, from D to E, with gelu whatever the config's activation."""
        return self._lm_head(name, transform=self.lm_transform(hidden_act="gelu"))

    @classmethod
    def tensor_names(cls, config: ElectraConfig) -> TensorNames:
        return _tensor_names(config)


_DISCRIMINATOR = [
    *dense("discriminator.dense", "discriminator_predictions.dense", "D D"),
    *dense("discriminator.output_layer", "discriminator_predictions.dense_prediction", "D 1"),
]
_CLASSES = {
    "ElectraForPreTraining": ClassNames(
        task_types=("replaced-token-pretrainer",), heads={"discriminator": _DISCRIMINATOR}
    ),
    **task_classes(
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
    ),
}


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
