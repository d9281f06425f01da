"""The config of AWD-LSTM encoders (Merity et al. 2017)."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.base.formatting import counted
from keras_bert.encoders.config import EncoderConfig

# The rates of Howard and Ruder 2018, section 4.1; a small model, which fits its text less closely,
# takes a fraction of each.
_DROPOUTS = {
    "embedding_dropout": 0.05,
    "input_dropout": 0.4,
    "hidden_dropout": 0.3,
    "output_dropout": 0.4,
    "weight_dropout": 0.5,
}


def _sizes(hidden_size, *, lstm_size, layers, dropout=1.0):
    return {
        "hidden_size": hidden_size,
        "lstm_size": lstm_size,
        "num_hidden_layers": layers,
        **{name: dropout * rate for name, rate in _DROPOUTS.items()},
    }


_PRESETS = {
    "awd-lstm-tiny": _sizes(128, lstm_size=256, layers=2, dropout=0.25),
    "awd-lstm-mini": _sizes(256, lstm_size=512, layers=3, dropout=0.25),
    "awd-lstm": _sizes(400, lstm_size=1150, layers=3),
}


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class AwdLstmConfig(EncoderConfig):
    """The sizes and dropout rates of an AWD-LSTM encoder; the defaults are ULMFiT's rates.

    Attributes:
        vocab_size: number of rows of the token embedding.
        hidden_size: D, of the token embedding and of the last layer, whose output predicts the
            next token by the same embedding (400 in the paper).
        lstm_size: units of the other layers (1150 in the paper).
        num_hidden_layers: number of LSTM layers (3 in the paper).
        embedding_dropout: rate at which all occurrences of a token in a batch are set to zero.
        input_dropout: dropout of the embedded tokens, with one mask for all positions of a
            sequence, as those of the next two.
        hidden_dropout: dropout between the layers.
        output_dropout: dropout after the last layer.
        weight_dropout: DropConnect of the recurrent kernels, with one mask for a batch.
        classifier_dropout: dropout before a task's last linear layer.
        extra_keys: unknown keys of a `config.json`, with their values. They are kept and saved.

    Raises:
        ValueError: an invalid value.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = ("awd-lstm",)
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = _PRESETS
    # Layers in both directions would see the token that they predict.
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = {
        "bidirectional": (False, None),
        "tie_word_embeddings": (True, None),
    }

    vocab_size: int
    hidden_size: int
    lstm_size: int
    num_hidden_layers: int
    embedding_dropout: float = _DROPOUTS["embedding_dropout"]
    input_dropout: float = _DROPOUTS["input_dropout"]
    hidden_dropout: float = _DROPOUTS["hidden_dropout"]
    output_dropout: float = _DROPOUTS["output_dropout"]
    weight_dropout: float = _DROPOUTS["weight_dropout"]
    classifier_dropout: float = 0.1
    model_type: str = "awd-lstm"

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = "vocab_size hidden_size lstm_size num_hidden_layers"
        self._check(sizes, lambda size: 1 <= size < 2**63, "from 1 to 2**63 - 1")
        rates = " ".join([*_DROPOUTS, "classifier_dropout"])
        self._check(rates, lambda rate: 0 <= rate < 1, "in [0, 1)")

    @property
    def layer_sizes(self) -> list[int]:
        """The units of each LSTM layer, from the input upward."""
        return [self.lstm_size] * (self.num_hidden_layers - 1) + [self.hidden_size]

    @property
    def is_causal(self) -> bool:
        return True

    def parameter_count(self) -> int:
        biases = sum(4 * size for size in self.layer_sizes)
        return self.vocab_size * self.hidden_size + self._kernel_count() + biases

    def forward_flops(self, length: Any) -> Any:
        """2 n Σ 4 H (I + H) for layers of H units over I inputs."""
        return 2 * length * self._kernel_count()

    def _kernel_count(self):
        inputs = [self.hidden_size, *self.layer_sizes]
        return sum(
            4 * size * (given + size) for given, size in zip(inputs, self.layer_sizes, strict=False)
        )

    @property
    def _described_layers(self):
        layers = counted(self.num_hidden_layers, "layer")
        return f"{layers} of {self.lstm_size} units, the last of {self.hidden_size}"
