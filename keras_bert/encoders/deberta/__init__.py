"""The config of DeBERTa-v3, and of DeBERTa-v2 if it is the same (He et al. 2021)."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.encoders.transformer_config import BidirectionalConfig, sizes

_ATTENDS = ("c2p", "p2c")
# What the published models of version 3 share.
_V3 = {
    "relative_attention": True,
    "position_biased_input": False,
    "share_att_key": True,
    "pos_att_type": ("p2c", "c2p"),
    "norm_rel_ebd": "layer_norm",
    "position_buckets": 256,
}


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class DebertaConfig(BidirectionalConfig):
    """The sizes and settings of a DeBERTa encoder of version 3, under Hugging Face's names.

    Version 2 has the same `model_type`, and is read if it is the same: without a convolution,
    with shared projections. The defaults are those of `transformers`, of which some are for models
    that this encoder does not compute: published files have all keys.

    Attributes, in addition to those of `BidirectionalConfig`:
        relative_attention, share_att_key: always True.
        norm_rel_ebd: always "layer_norm".
        pos_att_type: "c2p" and "p2c", or one of them: what attends to distances; a tuple.
        position_buckets: buckets of distances on either side; below 1 every distance has its own.
        max_relative_positions: the farthest distance; below 1 it is `max_position_embeddings`.
        position_biased_input: whether positions are added to the embeddings, too.
        pooler_hidden_act: the activation of the dense layer of heads over [CLS].
        classifier_dropout: dropout before the last layer over a whole text; None means
            `hidden_dropout_prob`.
        legacy: whether the head of a masked LM has the names of older programs.

    Raises:
        ValueError: an invalid value.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = ("deberta-v2",)
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "deberta-v3-xsmall": {**sizes(384, layers=12, heads=6), **_V3},
        "deberta-v3-small": {**sizes(768, layers=6, heads=12), **_V3},
        "deberta-v3-base": {**sizes(768, layers=12, heads=12), **_V3},
        "deberta-v3-large": {**sizes(1024, layers=24, heads=16), **_V3},
    }
    KEYS: ClassVar[Mapping[str, str]] = {"classifier_dropout": "cls_dropout"}
    UNUSED_KEYS: ClassVar[frozenset[str]] = BidirectionalConfig.UNUSED_KEYS | {
        *("conv_act", "conv_groups", "z_steps"),
    }
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = {
        **BidirectionalConfig.SUPPORTED_VALUES,
        "conv_kernel_size": (0, None),
        "pooler_dropout": (0, None),
    }

    type_vocab_size: int = 0
    layer_norm_eps: float = 1e-7
    relative_attention: bool = False
    share_att_key: bool = False
    norm_rel_ebd: str = "none"
    pos_att_type: tuple[str, ...] | None = None
    position_buckets: int = -1
    max_relative_positions: int = -1
    position_biased_input: bool = True
    pooler_hidden_act: str = "gelu"
    pooler_hidden_size: int | None = None
    embedding_size: int | None = None
    attention_head_size: int | None = None
    classifier_dropout: float | None = None
    legacy: bool = True
    model_type: str = "deberta-v2"

    def __post_init__(self) -> None:
        attends = self.pos_att_type
        if isinstance(attends, str):
            attends = attends.lower().split("|")
        if isinstance(attends, list | tuple):
            attends = tuple(name.strip() if isinstance(name, str) else name for name in attends)
            object.__setattr__(self, "pos_att_type", attends)
        if self.pooler_hidden_size is None:
            object.__setattr__(self, "pooler_hidden_size", self.hidden_size)
        super().__post_init__()
        self._check("relative_attention share_att_key", bool, "true")
        self._check("norm_rel_ebd", lambda norm: norm == "layer_norm", "'layer_norm'")
        self._check(
            "pos_att_type",
            lambda names: names and set(names) <= {*_ATTENDS} and len(set(names)) == len(names),
            "'c2p' or 'p2c' or both",
        )
        hidden = (None, self.hidden_size)
        self._check("pooler_hidden_size embedding_size", hidden.__contains__, "the hidden size")
        head = (None, self.hidden_size // self.num_attention_heads)
        self._check("attention_head_size", head.__contains__, "the hidden size over the heads")

    @property
    def farthest_distance(self) -> int:
        """Distances from here on are the same."""
        farthest = self.max_relative_positions
        return self.max_position_embeddings if farthest < 1 else farthest

    @property
    def num_distances(self) -> int:
        """Rows of the table of distances on either side."""
        return self.farthest_distance if self.position_buckets < 1 else self.position_buckets

    def to_dict(self) -> dict[str, Any]:
        written = super().to_dict()
        written["pos_att_type"] = list(self.pos_att_type)
        optional = ("embedding_size", "attention_head_size", "cls_dropout")
        return {key: x for key, x in written.items() if x is not None or key not in optional}

    def head_dropout(self, task_type: str) -> float:
        reads_tokens = task_type in ("tagger", "semantic-roles")
        return self.hidden_dropout_prob if reads_tokens else super().head_dropout(task_type)
