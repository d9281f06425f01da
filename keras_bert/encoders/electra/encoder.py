"""The encoder of ELECTRA: BERT's, with embeddings of their own size (Clark et al. 2020)."""

import keras

from keras_bert.encoders.electra import tensor_names
from keras_bert.encoders.electra.config import ElectraConfig
from keras_bert.encoders.transformer import TransformerEncoder


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

    def __init__(self, config, *, dtype=None, name="electra_encoder", **kwargs):
        super().__init__(config, dtype=dtype, name=name, **kwargs)

    def make_embeddings(self):
        return super().make_embeddings(
            embedding_size=self.config.embedding_size,
            type_vocab_size=self.config.type_vocab_size,
        )

    def lm_head(self, *, name="lm_head"):
        """The generator's: as BERT's, from D to E, with gelu whatever the config's activation."""
        return self._lm_head(name, transform=self.lm_transform(hidden_act="gelu"))

    @classmethod
    def tensor_names(cls, config):
        return tensor_names.of(config)
