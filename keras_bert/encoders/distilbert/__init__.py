"""The config of DistilBERT (Sanh et al. 2019)."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.encoders.transformer_config import BidirectionalConfig, sizes


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class DistilBertConfig(BidirectionalConfig):
    """The sizes and settings of a DistilBERT encoder; `KEYS` are Hugging Face's names.

    Attributes: those of `BidirectionalConfig` without segments and with a fixed epsilon, and
        classifier_dropout: dropout before the classifier of a whole text.
        qa_dropout: dropout before the last layer of question answering.

    Raises:
        ValueError: an invalid value.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = ("distilbert",)
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "distilbert": sizes(768, layers=6, heads=12),
    }
    KEYS: ClassVar[Mapping[str, str]] = {
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
        "hidden_act": "activation",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
        "classifier_dropout": "seq_classif_dropout",
    }
    UNUSED_KEYS: ClassVar[frozenset[str]] = BidirectionalConfig.UNUSED_KEYS | {"tie_weights_"}
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = {
        **BidirectionalConfig.SUPPORTED_VALUES,
        "sinusoidal_pos_embds": (False, None),
    }

    type_vocab_size: ClassVar[int] = 0
    layer_norm_eps: ClassVar[float] = 1e-12
    classifier_dropout: float = 0.2
    qa_dropout: float = 0.1
    model_type: str = "distilbert"

    def head_dropout(self, task_type: str) -> float:
        if task_type == "question-answering":
            return self.qa_dropout
        reads_tokens = task_type in ("tagger", "semantic-roles")
        return self.hidden_dropout_prob if reads_tokens else self.classifier_dropout
