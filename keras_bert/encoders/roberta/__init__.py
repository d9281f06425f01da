"""The config of RoBERTa (Liu et al. 2019), XLM-R (Conneau et al. 2020) and CamemBERT (2020)."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.encoders.bert import BertConfig


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class RobertaConfig(BertConfig):
    """The sizes and settings of a RoBERTa encoder, under Hugging Face's names.

    XLM-R and CamemBERT are RoBERTa with another vocabulary and `model_type`. The defaults are those
    of `transformers`, which for RoBERTa's config are BERT's: published
    models have one segment and an epsilon of 1e-5.

    Attributes, in addition to those of `BertConfig`:
        max_position_embeddings: number of rows of the position embedding, of which the first
            `pad_token_id + 1` are not used (fairseq reserved a row for padding).
        pad_token_id: id of the padding token.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = ("roberta", "xlm-roberta", "camembert")
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    REQUIRES_TOKENIZER: ClassVar[bool] = False

    pad_token_id: int | None = 1
    model_type: str = "roberta"

    @property
    def position_offset(self) -> int:
        return self.pad_token_id + 1
