"""The encoder of DistilBERT: BERT without segments, half as deep (Sanh et al. 2019)."""

import keras

from keras_bert.encoders.distilbert import tensor_names
from keras_bert.encoders.distilbert.config import DistilBertConfig
from keras_bert.encoders.transformer import TransformerEncoder


@keras.saving.register_keras_serializable(package="keras_bert")
class DistilBertEncoder(TransformerEncoder):
    """A Transformer encoder without segments.

    It takes `input_ids` and `input_mask`; a packed batch has `sequence_ids` instead of
    `input_mask`. See `Encoder` for its outputs.

    Args:
        config: a `DistilBertConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: those of `TransformerEncoder`.
    """

    CONFIG = DistilBertConfig
    OBJECTIVES = ("mlm", "span")
    POOLER_ACTIVATION = "relu"

    def __init__(self, config, *, dtype=None, name="distilbert_encoder", **kwargs):
        super().__init__(config, dtype=dtype, name=name, **kwargs)

    def lm_head(self, *, name="lm_head"):
        """As BERT's."""
        return self._lm_head(name, transform=self.lm_transform())

    @classmethod
    def tensor_names(cls, config):
        return tensor_names.of(config)
