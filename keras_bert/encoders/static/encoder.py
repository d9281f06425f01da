"""The encoder of static vectors."""

from collections.abc import Collection
from typing import Any

import keras
from keras import ops

from keras_bert.base.rename import Rename
from keras_bert.encoders.encoder import Encoder
from keras_bert.encoders.static import StaticConfig
from keras_bert.encoders.tensor_names import TensorNames
from keras_bert.layers import Tensor
from keras_bert.layers.dense import or_zeros
from keras_bert.layers.embeddings import embedded

_NO_CONTEXT = "Static vectors do not depend on the context of a token"


@keras.saving.register_keras_serializable(package="keras_bert")
class StaticEncoder(Encoder):
    """One vector per token, the same in every context (Mikolov et al. 2013).

    It takes `input_ids` and `input_mask`; a packed batch has `sequence_ids` instead of
    `input_mask`. It may have any length. See `Encoder` for its outputs.

    Args:
        config: a `StaticConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: `embedding`, a `keras.layers.Embedding` (V, D) with the vectors. New ones are
    uniform in ±1 / 2D, as in word2vec.
    """

    CONFIG = StaticConfig
    INPUTS = ("input_ids", "input_mask", "sequence_ids")
    OBJECTIVES = ("skip-gram", "cbow")
    LIMITS = {
        "attention-probabilities": "Static vectors have no attention to show.",
        "layer-mix": "Static vectors are a single layer, of which there is nothing to mix.",
        "fill-mask": f"{_NO_CONTEXT}, so they cannot fill [MASK]. Use a model that was pre-trained "
        "with masked tokens.",
        "generate": f"{_NO_CONTEXT}, so they cannot generate text. Use a causal language model.",
        "single-token-pooling": f"{_NO_CONTEXT}, so its first and last token are the same for "
        "every text. Choose the pooling mean or max, or put a BiLSTM over the vectors ({bilstm}).",
    }

    def __init__(
        self,
        config: StaticConfig,
        *,
        dtype: Any = None,
        name: str | None = "static_encoder",
        **kwargs: Any,
    ):
        super().__init__(config, dtype=dtype, name=name, **kwargs)
        limit = 0.5 / config.hidden_size
        self.embedding = keras.layers.Embedding(
            config.vocab_size,
            config.hidden_size,
            embeddings_initializer=or_zeros(keras.initializers.RandomUniform(-limit, limit)),
            name="embedding",
            dtype=self.dtype_policy,
        )
        self.embedding.build()
        self.built = True

    def call(
        self,
        inputs: dict[str, Tensor],
        outputs: Collection[str] = ("sequence_output",),
        causal: bool | None = None,
        training: bool | None = None,
    ) -> dict[str, Tensor]:
        inputs, outputs = self.checked_inputs(inputs), self.checked_outputs(outputs)
        x = embedded(self.embedding, inputs["input_ids"], dtype=self.compute_dtype)  # (B, S, D)
        if self.config.normalize:
            x = normalized(x)
        results = {"sequence_output": x, "first_output": x[:, 0], "hidden_states": (x,)}
        return {name: results[name] for name in outputs}

    @property
    def layer_groups(self) -> list[list[keras.layers.Layer]]:
        return [[self.embedding]]

    def lm_head(self, *, name: str = "lm_head") -> Any:
        """Raises InputError: static vectors predict no token."""
        self.require("fill-mask")

    @property
    def token_embedding(self) -> keras.layers.Embedding | None:
        return self.embedding

    @classmethod
    def tensor_names(cls, config: StaticConfig) -> TensorNames:
        line = Rename("embedding.embeddings", "embedding.weight", "V D")
        return TensorNames(
            base_class=cls.__name__,
            encoder=[line],
            sizes={"V": config.vocab_size, "D": config.hidden_size},
            is_static_embedding=not config.normalize,
        )


def normalized(vectors):
    """Vectors (…, D) divided by their Euclidean norms; a vector of zeros stays one."""
    wide = ops.cast(vectors, "float32")
    largest = ops.max(ops.abs(wide), axis=-1, keepdims=True)
    # The squares of others vanish or overflow.
    is_usual = ops.logical_and(largest > 1e-12, largest < 1e12)
    wide = wide / ops.where(ops.logical_or(is_usual, largest == 0), 1.0, largest)
    norms = ops.sqrt(ops.sum(ops.square(wide), axis=-1, keepdims=True))
    return ops.cast(wide / ops.maximum(norms, 1e-12), vectors.dtype)
