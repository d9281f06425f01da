"""The config of MPNet (Song et al. 2020)."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.encoders.transformer_config import BidirectionalConfig, sizes


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class MPNetConfig(BidirectionalConfig):
    """The sizes and settings of an MPNet encoder, under Hugging Face's names.

    Attributes: those of `BidirectionalConfig` without segments, and
        max_position_embeddings: number of rows of the position embedding, of which the first two
            are not used.
        relative_attention_num_buckets: number of buckets of distances; always 32.

    Raises:
        ValueError: an invalid value.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = ("mpnet",)
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "mpnet": {**sizes(768, layers=12, heads=12), "max_position_embeddings": 514},
    }

    type_vocab_size: ClassVar[int] = 0
    relative_attention_num_buckets: int = 32
    pad_token_id: int | None = 1
    model_type: str = "mpnet"

    def __post_init__(self) -> None:
        super().__post_init__()
        # `transformers` computes 32, whatever the size of its table.
        self._check("relative_attention_num_buckets", lambda count: count == 32, "32")

    @property
    def position_offset(self) -> int:
        return 2
