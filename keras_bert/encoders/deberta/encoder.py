"""The encoder of DeBERTa: BERT's, in which tokens and distances attend to each other (He 2021)."""

import keras

from keras_bert.encoders.deberta import tensor_names
from keras_bert.encoders.deberta.config import DebertaConfig
from keras_bert.encoders.transformer import TransformerEncoder
from keras_bert.heads.pooling import Pooler
from keras_bert.layers.positions import DisentangledPositions


@keras.saving.register_keras_serializable(package="keras_bert")
class DebertaEncoder(TransformerEncoder):
    """A Transformer encoder with vectors for distances, which all layers share.

    It takes `input_ids`, `input_mask` and, if the config has segments, `segment_ids`; a packed
    batch has `sequence_ids` instead of `input_mask`. See `Encoder` for its outputs. It is
    pre-trained as a masked LM: there is no replaced-token detection.

    Args:
        config: a `DebertaConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: those of `TransformerEncoder`.
    """

    CONFIG = DebertaConfig
    OBJECTIVES = ("mlm", "span")
    POOLER_ACTIVATION = "gelu"  # or as the config says

    def __init__(self, config, *, dtype=None, name="deberta_encoder", **kwargs):
        super().__init__(config, dtype=dtype, name=name, **kwargs)

    def make_positions(self):
        config = self.config
        return DisentangledPositions(
            num_buckets=config.num_distances,
            farthest=config.farthest_distance,
            num_heads=config.num_attention_heads,
            attends=config.pos_att_type,
            has_buckets=config.position_buckets > 0,
            layer_norm=self.norm("layer_norm"),
            dropout=config.hidden_dropout_prob,
            name="positions",
            **self._common,
        )

    def make_embeddings(self):
        config = self.config
        has_positions = config.position_biased_input
        return super().make_embeddings(
            max_position_embeddings=config.max_position_embeddings if has_positions else 0,
            type_vocab_size=config.type_vocab_size,
        )

    def make_pooler(self):
        config = self.config
        return Pooler(
            activation=config.pooler_hidden_act,
            name="pooler",
            **{**self._common, "dtype": self.layer_policy},
        )

    def lm_head(self, *, name="lm_head"):
        """As BERT's."""
        return self._lm_head(name, transform=self.lm_transform())

    @classmethod
    def tensor_names(cls, config):
        return tensor_names.of(config)
