"""What `transformers` calls the weights of RoBERTa: the encoder's as BERT's, other heads.

XLM-R's and CamemBERT's classes have other names, and the same tensors.
"""

from keras_bert.encoders.bert import tensor_names as bert
from keras_bert.encoders.tensor_names import lm_head, task_classes

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


def of(config):
    """The `TensorNames` of a `RobertaConfig`."""
    model = _MODELS[config.model_type]
    return bert.of(
        config,
        base_class=f"{model}Model",
        classes=_CLASSES[model],
        output="lm_head",
        prefix="roberta.",
    )
