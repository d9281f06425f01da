"""The config of static vectors, one per token (Mikolov et al. 2013; Pennington et al. 2014)."""

import dataclasses
from typing import Any, ClassVar

from keras_bert.encoders.config import EncoderConfig

_SIZES = (50, 100, 200, 300)  # those of the published vectors of GloVe


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class StaticConfig(EncoderConfig):
    """The sizes of a `StaticEncoder`.

    Args:
        vocab_size: V, the number of vectors.
        hidden_size: D, the size of a vector.
        normalize: whether every vector is divided by its Euclidean norm.

    Raises:
        ValueError: a size is not positive.
    """

    MODEL_TYPES: ClassVar = ("static",)
    PRESETS: ClassVar = {
        "static": {"hidden_size": 300},
        **{f"static-{size}": {"hidden_size": size} for size in _SIZES[:-1]},
    }

    vocab_size: int
    hidden_size: int
    normalize: bool = False
    model_type: str = "static"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("vocab_size hidden_size", lambda size: size > 0, "positive")

    @property
    def num_hidden_states(self) -> int:
        return 1

    def parameter_count(self) -> int:
        return self.vocab_size * self.hidden_size

    def forward_flops(self, length: Any) -> Any:
        return 0 * length  # a look-up
