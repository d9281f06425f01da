"""The config of ALBERT (Lan et al. 2020)."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.encoders.transformer_config import BidirectionalConfig, sizes


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class AlbertConfig(BidirectionalConfig):
    """The sizes and settings of an ALBERT encoder, under Hugging Face's names.

    Attributes, in addition to those of `BidirectionalConfig`:
        embedding_size: E, the size of the embeddings, which a dense layer projects to D.
        num_hidden_layers: how often the one layer is applied.
        num_hidden_groups, inner_group_num: always 1: there is one layer.
        classifier_dropout: dropout before a task's classifier.

    Raises:
        ValueError: an invalid value.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = ("albert",)
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "albert-base": sizes(768, layers=12, heads=12),
        "albert-large": sizes(1024, layers=24, heads=16),
        "albert-xlarge": sizes(2048, layers=24, heads=16),
        "albert-xxlarge": sizes(4096, layers=12, heads=64),
    }
    KEYS: ClassVar[Mapping[str, str]] = {"classifier_dropout": "classifier_dropout_prob"}
    UNUSED_KEYS: ClassVar[frozenset[str]] = BidirectionalConfig.UNUSED_KEYS | {
        *("down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks"),
    }
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = {
        **BidirectionalConfig.SUPPORTED_VALUES,
        "position_embedding_type": ("absolute", None),
    }

    embedding_size: int = 128
    num_hidden_groups: int = 1
    inner_group_num: int = 1
    hidden_act: str = "gelu_new"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    classifier_dropout: float = 0.1
    model_type: str = "albert"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("embedding_size", lambda size: size >= 1, "at least 1")
        self._check("num_hidden_groups inner_group_num", lambda count: count == 1, "1")

    def _kernel_count(self):
        projection = self.embedding_size * self.hidden_size
        return projection + self.num_hidden_layers * (super()._kernel_count() - projection)
