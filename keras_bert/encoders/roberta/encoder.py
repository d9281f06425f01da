"""The encoder of RoBERTa: BERT's, with positions from another row (Liu et al. 2019)."""

import keras

from keras_bert.encoders.bert import tensor_names as bert
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.encoders.roberta import RobertaConfig
from keras_bert.encoders.tensor_names import TensorNames, lm_head, task_classes


@keras.saving.register_keras_serializable(package="keras_bert")
class RobertaEncoder(BertEncoder):
    """A `BertEncoder` of a `RobertaConfig`."""

    CONFIG = RobertaConfig

    @classmethod
    def tensor_names(cls, config: RobertaConfig) -> TensorNames:
        return _tensor_names(config)


# The beginning of the names of the classes, by `model_type`.
_MODELS = {"roberta": "Roberta", "xlm-roberta": "XLMRoberta", "camembert": "Camembert"}
_CLASSES = {
    model: task_classes(
        model,
        lm_head=lm_head("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
        causal=f"{model}ForCausalLM",
        # The pooler and the linear layer over it are both in the head.
        labels="classifier.out_proj",
        transform="classifier.dense",
    )
    for model in _MODELS.values()
}


def _tensor_names(config):
    """The `TensorNames` of a `RobertaConfig`."""
    model = _MODELS[config.model_type]
    return bert.names_of(
        config,
        base_class=f"{model}Model",
        classes=_CLASSES[model],
        output="lm_head",
        prefix="roberta.",
    )
