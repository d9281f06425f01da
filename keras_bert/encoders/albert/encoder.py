"""The encoder of ALBERT: one layer of BERT's, applied many times (Lan et al. 2020)."""

import keras

from keras_bert.encoders.albert import tensor_names
from keras_bert.encoders.albert.config import AlbertConfig
from keras_bert.encoders.transformer import TransformerEncoder


@keras.saving.register_keras_serializable(package="keras_bert")
class AlbertEncoder(TransformerEncoder):
    """A Transformer encoder with small embeddings and one layer, which is all of `blocks`.

    It takes `input_ids`, `input_mask` and, if the config has segments, `segment_ids`; a packed
    batch has `sequence_ids` instead of `input_mask`. See `Encoder` for its outputs.

    Args:
        config: an `AlbertConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: those of `TransformerEncoder`.
    """

    CONFIG = AlbertConfig
    OBJECTIVES = ("mlm-sop", "mlm", "span")
    POOLER_ACTIVATION = "tanh"

    def __init__(self, config, *, dtype=None, name="albert_encoder", **kwargs):
        super().__init__(config, dtype=dtype, name=name, **kwargs)

    def make_embeddings(self):
        return super().make_embeddings(
            embedding_size=self.config.embedding_size,
            type_vocab_size=self.config.type_vocab_size,
            has_projection=True,
        )

    def make_blocks(self):
        # The output of the feed-forward layer has no dropout in `transformers`.
        return [self.block(0, feed_forward={"dropout": 0.0})] * self.config.num_hidden_layers

    def lm_head(self, *, name="lm_head"):
        """As BERT's, from D to E."""
        return self._lm_head(name, transform=self.lm_transform())

    @classmethod
    def tensor_names(cls, config):
        return tensor_names.of(config)
