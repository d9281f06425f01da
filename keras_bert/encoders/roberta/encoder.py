"""The encoder of RoBERTa: BERT's, with positions from another row (Liu et al. 2019)."""

import keras

from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.encoders.roberta import tensor_names
from keras_bert.encoders.roberta.config import RobertaConfig


@keras.saving.register_keras_serializable(package="keras_bert")
class RobertaEncoder(BertEncoder):
    """A `BertEncoder` of a `RobertaConfig`."""

    CONFIG = RobertaConfig

    @classmethod
    def tensor_names(cls, config):
        return tensor_names.of(config)
