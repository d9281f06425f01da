"""What `transformers` calls the weights of RoBERTa: the encoder's as BERT's, other heads."""

from keras_bert.encoders.bert import tensor_names as bert
from keras_bert.encoders.tensor_names import lm_head, task_classes

_CLASSES = task_classes(
    "Roberta",
    lm_head=lm_head("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    causal="RobertaForCausalLM",
    # The pooler and the linear layer over it are both in the head.
    labels="classifier.out_proj",
    transform="classifier.dense",
)


def of(config):
    """The `TensorNames` of a `RobertaConfig`."""
    return bert.of(config, base_class="RobertaModel", classes=_CLASSES, output="lm_head")
