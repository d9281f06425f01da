"""The config of a bidirectional language model (ELMo, Peters et al. 2018)."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from keras_bert.base.formatting import counted
from keras_bert.encoders.config import EncoderConfig

# Of a token's characters: the bytes of UTF-8 (0 to 255), the marks of the begin and the end of a
# sequence and of a word, and padding, each + 1; 0 is the padding of sequences.
NUM_CHARACTERS = 262
ACTIVATIONS = ("relu", "tanh")

# (width, number) of the published model's filters.
_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


def _sizes(hidden_size, lstm_size, *, highways, filters=_FILTERS):
    return {
        "hidden_size": hidden_size,
        "lstm_size": lstm_size,
        "num_highway_layers": highways,
        "character_filters": filters,
    }


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class BilmConfig(EncoderConfig):
    """The sizes and settings of a bidirectional language model.

    Attributes:
        vocab_size: V, number of tokens in the vocabulary.
        hidden_size: D, an even number: the outputs of the two directions, D / 2 each.
        lstm_size: U, units of each LSTM, whose output is projected to D / 2.
        character_filters: [width, number] of each kind of filter of the character CNN; None looks
            up a token embedding instead.
        num_hidden_layers: LSTM layers of each direction.
        cell_clip, projection_clip: limits of the absolute values of the cells and of the projected
            outputs; None means no limit.
        use_residuals: whether each layer above the first adds its input to its output.
        num_highway_layers: highway layers over the filters.
        character_embedding_size: size of the embedding of a character.
        character_activation: "relu" or "tanh", of the filters.
        max_characters: characters of a token that are read, with the marks of its begin and end.
        hidden_dropout_prob: dropout of each layer's input, and before the softmax.
        classifier_dropout: dropout before a task's classifier (0.5 in most of the paper's tasks);
            None is `hidden_dropout_prob`.
        initializer_range: standard deviation of the truncated normal for a head's new weights.
        model_type: "bilm".
        extra_keys: unknown keys of a `config.json`, with their values. They are kept and saved.

    Raises:
        ValueError: an invalid value.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = ("bilm",)
    # "elmo", -medium and -small are the published sizes (AllenNLP has the smaller two).
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "elmo-tiny": _sizes(128, 256, highways=1, filters=((1, 16), (2, 32), (3, 64), (4, 128))),
        "elmo-mini": _sizes(256, 512, highways=1, filters=((1, 32), (2, 64), (3, 128), (4, 256))),
        "elmo-small": _sizes(256, 1024, highways=1),
        "elmo-medium": _sizes(512, 2048, highways=1),
        "elmo": _sizes(1024, 4096, highways=2),
    }

    vocab_size: int
    hidden_size: int
    lstm_size: int
    character_filters: Sequence | None
    num_hidden_layers: int = 2
    cell_clip: float | None = 3.0
    projection_clip: float | None = 3.0
    use_residuals: bool = True
    num_highway_layers: int = 2
    character_embedding_size: int = 16
    character_activation: str = "relu"
    max_characters: int = 50
    hidden_dropout_prob: float = 0.1
    classifier_dropout: float | None = None
    initializer_range: float = 0.02
    model_type: str = "bilm"

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = "vocab_size hidden_size lstm_size num_hidden_layers character_embedding_size"
        self._check(sizes, lambda size: size >= 1, "at least 1")
        self._check("num_highway_layers", lambda count: count >= 0, "at least 0")
        self._check("hidden_size", lambda size: size % 2 == 0, "even")
        self._check("max_characters", lambda length: length >= 3, "at least 3")
        clips = "cell_clip projection_clip"
        self._check(clips, lambda limit: limit is None or limit > 0, "above 0")
        dropout = "hidden_dropout_prob classifier_dropout"
        self._check(dropout, lambda rate: rate is None or 0 <= rate < 1, "in [0, 1)")
        self._check("initializer_range", lambda value: value > 0, "above 0")
        self._check(
            "character_activation", ACTIVATIONS.__contains__, f"one of {', '.join(ACTIVATIONS)}"
        )
        self._check(
            "character_filters",
            self._are_filters,
            f"a list of [width, number], the width at most {self.max_characters}, or null",
        )
        if self.character_filters is not None:  # hashable, and equal however it was given
            filters = tuple(map(tuple, self.character_filters))
            object.__setattr__(self, "character_filters", filters)

    def _are_filters(self, filters):
        def is_filter(one):
            return (
                isinstance(one, list | tuple)
                and len(one) == 2
                and all(type(number) is int and number >= 1 for number in one)
                and one[0] <= self.max_characters
            )

        if filters is None:
            return True
        return isinstance(filters, list | tuple) and filters != [] and all(map(is_filter, filters))

    def to_dict(self) -> dict[str, Any]:
        """The dictionary of a `config.json`: every field, then `extra_keys`."""
        fields = super().to_dict()
        if self.character_filters is not None:
            fields["character_filters"] = [list(one) for one in self.character_filters]
        return fields

    @property
    def direction_size(self) -> int:
        """P, the size of the token representation and of each direction's outputs."""
        return self.hidden_size // 2

    @property
    def num_filters(self) -> int:
        """The number of the character CNN's filters; 0 without it."""
        return sum(number for _, number in self.character_filters or ())

    @property
    def _described_layers(self):
        layers = counted(self.num_hidden_layers, "layer")
        return (
            f"{layers} of {self.lstm_size} units in each direction, hidden size {self.hidden_size}"
        )

    def parameter_count(self) -> int:
        size, units = self.direction_size, self.lstm_size
        lstm = 2 * size * 4 * units + 4 * units + units * size
        lstms = 2 * self.num_hidden_layers * lstm
        if self.character_filters is None:
            return self.vocab_size * size + lstms
        embedding, filters = self.character_embedding_size, self.num_filters
        convolutions = sum((width * embedding + 1) * n for width, n in self.character_filters)
        highways = self.num_highway_layers * 2 * filters * (filters + 1)
        projection = (filters + 1) * size
        return NUM_CHARACTERS * embedding + convolutions + highways + projection + lstms

    def forward_flops(self, length: Any) -> Any:
        """n L (32 P U + 4 U P) for L layers of two directions, units U and outputs P.

        The character CNN is not counted: a token's representation is the same wherever it occurs.
        """
        return length * self.num_hidden_layers * 36 * self.direction_size * self.lstm_size
