"""The config of ELECTRA (Clark et al. 2020)."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.encoders.transformer_config import BidirectionalConfig, sizes

# Of the class for choices.
_SUMMARY = {
    "summary_type": ("first",),
    "summary_use_proj": (True,),
    "summary_activation": ("gelu",),
    "summary_first_dropout": (0, None),
    "summary_proj_to_labels": (False, None),
}


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class ElectraConfig(BidirectionalConfig):
    """The sizes and settings of an ELECTRA encoder, under Hugging Face's names.

    Attributes, in addition to those of `BidirectionalConfig`:
        embedding_size: E, the size of the embeddings, which a dense layer projects to D.
        classifier_dropout: dropout before a task's classifier; None means `hidden_dropout_prob`.
        summary_last_dropout: the same of multiple choice.

    Raises:
        ValueError: an invalid value.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = ("electra",)
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "electra-small": {**sizes(256, layers=12, heads=4), "embedding_size": 128},
        "electra-base": {**sizes(768, layers=12, heads=12), "embedding_size": 768},
    }
    UNUSED_KEYS: ClassVar[frozenset[str]] = BidirectionalConfig.UNUSED_KEYS - _SUMMARY.keys()
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = {
        **BidirectionalConfig.SUPPORTED_VALUES,
        **_SUMMARY,
        "is_decoder": (False, None),
        "position_embedding_type": ("absolute", None),
    }

    embedding_size: int = 128
    model_type: str = "electra"
    classifier_dropout: float | None = None
    summary_last_dropout: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("embedding_size", lambda size: size >= 1, "at least 1")

    def head_dropout(self, task_type: str) -> float:
        if task_type == "multiple-choice":
            return self.summary_last_dropout
        return super().head_dropout(task_type)
