"""The encoder of BERT and SpanBERT (Devlin et al. 2018; Joshi et al. 2019)."""

from typing import Any

import keras

from keras_bert.encoders.bert import BertConfig, tensor_names
from keras_bert.encoders.initialization import initialize_local_attention
from keras_bert.encoders.tensor_names import TensorNames
from keras_bert.encoders.transformer import TransformerEncoder
from keras_bert.layers.embeddings import Embeddings


@keras.saving.register_keras_serializable(package="keras_bert")
class BertEncoder(TransformerEncoder):
    """A Transformer encoder (Devlin et al. 2018); `config.is_decoder` makes it causal.

    It takes `input_ids`, `input_mask` and, if the config has segments, `segment_ids`; a packed
    batch has `sequence_ids` instead of `input_mask`. See `Encoder` for its outputs.

    Args:
        config: a `BertConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: those of `TransformerEncoder`.
    """

    CONFIG = BertConfig
    OBJECTIVES = ("mlm-nsp", "mlm-sop", "mlm", "span", "causal-lm", "rtd")
    POOLER_ACTIVATION = "tanh"

    def __init__(
        self,
        config: BertConfig,
        *,
        dtype: Any = None,
        name: str | None = "bert_encoder",
        **kwargs: Any,
    ):
        super().__init__(config, dtype=dtype, name=name, **kwargs)

    def make_embeddings(self) -> Embeddings:
        return super().make_embeddings(
            position_offset=self.config.position_offset,
            type_vocab_size=self.config.type_vocab_size,
        )

    @classmethod
    def tensor_names(cls, config: BertConfig) -> TensorNames:
        return tensor_names.names_of(config)

    def initialize_local_attention(self) -> None:
        initialize_local_attention(self)
