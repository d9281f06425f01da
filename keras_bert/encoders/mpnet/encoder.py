"""The encoder of MPNet: BERT's, with biases for distances (Song et al. 2020)."""

import keras

from keras_bert.encoders.mpnet import tensor_names
from keras_bert.encoders.mpnet.config import MPNetConfig
from keras_bert.encoders.transformer import TransformerEncoder
from keras_bert.layers.positions import DistanceBias

_FARTHEST = 128  # of `transformers`


@keras.saving.register_keras_serializable(package="keras_bert")
class MPNetEncoder(TransformerEncoder):
    """A Transformer encoder whose layers share a bias for each head and distance.

    It takes `input_ids` and `input_mask`; a packed batch has `sequence_ids` instead of
    `input_mask`. See `Encoder` for its outputs. It is pre-trained as a masked LM: there is no
    permuted language modelling.

    Args:
        config: an `MPNetConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: those of `TransformerEncoder`.
    """

    CONFIG = MPNetConfig
    OBJECTIVES = ("mlm", "span")
    POOLER_ACTIVATION = "tanh"

    def __init__(self, config, *, dtype=None, name="mpnet_encoder", **kwargs):
        super().__init__(config, dtype=dtype, name=name, **kwargs)

    def make_positions(self):
        return DistanceBias(
            num_buckets=self.config.relative_attention_num_buckets,
            num_heads=self.config.num_attention_heads,
            farthest=_FARTHEST,
            initializer_range=self.config.initializer_range,
            name="positions",
            dtype=self.dtype_policy,
        )

    def make_embeddings(self):
        return super().make_embeddings(position_offset=self.config.position_offset)

    def lm_head(self, *, name="lm_head"):
        """As BERT's, with gelu whatever the config's activation."""
        return self._lm_head(name, transform=self.lm_transform(hidden_act="gelu"))

    @classmethod
    def tensor_names(cls, config):
        return tensor_names.of(config)
