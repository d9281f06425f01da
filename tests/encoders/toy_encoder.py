"""An encoder in one file, an embedding and one GRU: everything that a new one has to define."""

import dataclasses
from typing import ClassVar

import keras

from keras_bert.encoders import Home
from keras_bert.encoders.config import EncoderConfig
from keras_bert.encoders.encoder import Encoder

HOME = Home("tests.encoders.toy_encoder:ToyConfig", "tests.encoders.toy_encoder:ToyEncoder")


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class ToyConfig(EncoderConfig):
    MODEL_TYPES: ClassVar = ("toy",)
    PRESETS: ClassVar = {"toy": {"hidden_size": 24}}

    vocab_size: int
    hidden_size: int
    model_type: str = "toy"

    @property
    def is_causal(self):
        return True

    @property
    def num_hidden_states(self):
        return 2

    def parameter_count(self):
        size = self.hidden_size
        return self.vocab_size * size + 3 * size * (2 * size + 2)

    def forward_flops(self, length):
        return 2 * length * 6 * self.hidden_size**2


@keras.saving.register_keras_serializable(package="tests")
class ToyEncoder(Encoder):
    """Causal, without segments, without positions, and without attention."""

    CONFIG = ToyConfig
    OBJECTIVES = ("causal-lm",)
    LIMITS = {"attention-probabilities": "A toy encoder has no attention to show."}

    def __init__(self, config, *, dtype=None, name="toy_encoder", **kwargs):
        super().__init__(config, dtype=dtype, name=name, **kwargs)
        size, dtype = config.hidden_size, self.dtype_policy
        self.embedding = keras.layers.Embedding(
            config.vocab_size, size, name="embedding", dtype=dtype
        )
        self.gru = keras.layers.GRU(
            size,
            return_sequences=True,
            recurrent_initializer="glorot_uniform",  # Keras's own knows no bfloat16
            name="gru",
            dtype=dtype,
        )
        self.embedding.build()
        self.gru.build((None, None, size))
        self.built = True

    def call(self, inputs, outputs=("sequence_output",), causal=None, training=None):
        inputs, outputs = self.checked_inputs(inputs), self.checked_outputs(outputs)
        x = self.embedding(inputs["input_ids"])  # (B, S, D)
        mask = keras.ops.cast(inputs["input_mask"], "bool")
        y = keras.ops.copy(self.gru(x, mask=mask, training=training))  # (B, S, D)
        states = {"sequence_output": y, "first_output": y[:, 0], "hidden_states": (x, y)}
        return {name: states[name] for name in outputs}

    @property
    def layer_groups(self):
        return [[self.embedding], [self.gru]]

    @property
    def token_embedding(self):
        return self.embedding
