"""The AWD-LSTM: LSTMs that are regularized by dropout of everything (Merity et al. 2017)."""

from collections.abc import Collection
from typing import Any

import keras
from keras import ops

from keras_bert.base.rename import Rename, transposed
from keras_bert.encoders.encoder import Encoder
from keras_bert.encoders.lstm import AwdLstmConfig
from keras_bert.encoders.tensor_names import TensorNames
from keras_bert.layers import Tensor
from keras_bert.layers.dense import or_zeros
from keras_bert.layers.elementwise import Dropout, VariationalDropout
from keras_bert.layers.embeddings import embedded
from keras_bert.layers.lstm import Lstm


@keras.saving.register_keras_serializable(package="keras_bert")
class AwdLstmEncoder(Encoder):
    """LSTM layers from left to right, the encoder of ULMFiT (Howard and Ruder 2018).

    It takes `input_ids` and `input_mask`. See `Encoder` for its outputs; its layers have
    `lstm_size` units and the last one `hidden_size`, which are the sizes of `hidden_states`. In
    training

    - the embeddings of some tokens of the vocabulary are zero in the whole batch,
    - the embedded tokens and the outputs of each layer have variational dropout: one mask for all
      positions of a sequence,
    - some recurrent weights of each layer are zero in the whole batch (DropConnect).

    New embeddings are uniform from -0.1 to 0.1, as in the paper, and new kernels those of `Lstm`,
    of nearly the paper's range. States are zero where a sequence begins. The paper carries them
    from one batch to the next, and it penalizes activations (AR, TAR) and averages weights
    (NT-ASGD), which is not done here.

    Args:
        config: an `AwdLstmConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: `token_embedding`, `lstms` (the layers).
    """

    CONFIG = AwdLstmConfig
    OBJECTIVES = ("causal-lm",)
    LIMITS = {
        "attention-probabilities": "An awd-lstm encoder has no attention to show.",
        "layer-mix": "The layers of an awd-lstm encoder cannot be mixed: they differ in size. Use "
        "the last one.",
    }

    def __init__(
        self,
        config: AwdLstmConfig,
        *,
        dtype: Any = None,
        name: str | None = "awd_lstm_encoder",
        **kwargs: Any,
    ):
        super().__init__(config, dtype=dtype, name=name, **kwargs)
        policy = self.dtype_policy

        def dropout(kind, rate, name):
            return kind(rate=rate, name=name, dtype=policy)

        self._token_embedding = keras.layers.Embedding(
            config.vocab_size,
            config.hidden_size,
            embeddings_initializer=or_zeros(keras.initializers.RandomUniform(-0.1, 0.1)),
            name="token_embedding",
            dtype=policy,
        )
        self._token_embedding.build()
        self.embedding_dropout = dropout(Dropout, config.embedding_dropout, "embedding_dropout")
        self.input_dropout = dropout(VariationalDropout, config.input_dropout, "input_dropout")
        self.lstms, self.weight_dropouts, self.output_dropouts = [], [], []
        last, inputs = config.num_hidden_layers - 1, config.hidden_size
        for i, units in enumerate(config.layer_sizes):
            rate = config.output_dropout if i == last else config.hidden_dropout
            lstm = Lstm(
                units=units,
                projection_size=None,
                cell_clip=None,
                projection_clip=None,
                backward=False,
                name=f"lstm_{i}",
                dtype=policy,
            )
            lstm.build((None, None, inputs))
            inputs = units
            self.lstms.append(lstm)
            self.weight_dropouts.append(
                dropout(Dropout, config.weight_dropout, f"weight_dropout_{i}")
            )
            self.output_dropouts.append(dropout(VariationalDropout, rate, f"output_dropout_{i}"))
        self.built = True

    def call(
        self,
        inputs: dict[str, Tensor],
        outputs: Collection[str] = ("sequence_output",),
        causal: bool | None = None,
        training: bool | None = None,
    ) -> dict[str, Tensor]:
        inputs, outputs = self.checked_inputs(inputs), self.checked_outputs(outputs)
        if causal is False:
            raise ValueError("An awd-lstm encoder is causal. Received: causal=False.")
        # Padding is at the end of a sequence, where no token sees it.
        x = self._embed(inputs["input_ids"], training=training)
        x = self.input_dropout(x, training=training)  # (B, S, D)
        states = [x]
        for lstm, drop_weights, drop_outputs in self._layers_and_dropouts():
            kernel = ops.cast(lstm.recurrent_kernel, self.compute_dtype)
            kernel = drop_weights(kernel, training=training)
            x = lstm(x, recurrent_kernel=kernel, training=training)
            x = drop_outputs(x, training=training)  # (B, S, H)
            states.append(x)
        results = {"sequence_output": x, "first_output": x[:, 0], "hidden_states": tuple(states)}
        return {name: results[name] for name in outputs}

    def _layers_and_dropouts(self):
        return zip(self.lstms, self.weight_dropouts, self.output_dropouts, strict=True)

    def _embed(self, ids, training=None):
        """Ids (…) -> (…, D); in training 0 for the dropped tokens, and the others scaled."""
        x = embedded(self._token_embedding, ids, dtype=self.compute_dtype)
        if not training:
            return x
        scales = ops.ones((self.config.vocab_size, 1), dtype=self.compute_dtype)
        return x * ops.take(self.embedding_dropout(scales, training=True), ids, axis=0)

    def compute_output_spec(
        self,
        inputs: dict[str, Tensor],
        outputs: Collection[str] = ("sequence_output",),
        causal: bool | None = None,
        training: bool | None = None,
    ) -> dict[str, Any]:
        specs = super().compute_output_spec(inputs, outputs, causal, training)
        if "hidden_states" in specs:
            sizes = (self.config.hidden_size, *self.config.layer_sizes)
            specs["hidden_states"] = tuple(
                keras.KerasTensor((*state.shape[:2], size), dtype=state.dtype)
                for state, size in zip(specs["hidden_states"], sizes, strict=True)
            )
        return specs

    # One token at a time.

    def initial_cache(self, batch_size: int, max_length: int) -> Any:
        """The state of each layer, its output and its cell (B, H): zeros, for any `max_length`."""
        zeros = [ops.zeros((batch_size, lstm.units), self.compute_dtype) for lstm in self.lstms]
        return tuple((state, state) for state in zeros)

    def step(self, ids: Tensor, cache: Any, index: Tensor) -> tuple[Tensor, Any]:
        """See `Encoder.step`; an LSTM does not depend on `index`."""
        x, states = self._embed(ids[:, None]), []  # (B, 1, D)
        for lstm, state in zip(self.lstms, cache, strict=True):
            x, state = lstm(x, state=state, return_state=True)
            states.append(tuple(state))
        return x[:, 0], tuple(states)

    # The contract.

    @property
    def layer_groups(self) -> list[list[keras.layers.Layer]]:
        return [[self._token_embedding], *([lstm] for lstm in self.lstms)]

    @property
    def token_embedding(self) -> keras.layers.Embedding | None:
        return self._token_embedding

    @property
    def usual_pooling(self) -> str:
        """Howard and Ruder 2018, section 3.3."""
        return "last+max+mean"

    @classmethod
    def tensor_names(cls, config: AwdLstmConfig) -> TensorNames:
        """Names tensors as the authors' PyTorch modules do.

        The kernels are those of `torch.nn.LSTM`: the gates i, f, g, o below one another. Of its two
        biases, whose sum is what counts, the second is zero and not stored.
        """
        encoder, given = [Rename("token_embedding.embeddings", "encoder.weight", "V D")], "D"
        for i in range(config.num_hidden_layers):
            size, gates = ("D", "E") if i == config.num_hidden_layers - 1 else ("H", "G")
            ours, theirs = f"lstms.{i}", f"rnns.{i}"
            encoder += [
                transposed(f"{ours}.kernel", f"{theirs}.weight_ih_l0", f"{given} {gates}"),
                transposed(f"{ours}.recurrent_kernel", f"{theirs}.weight_hh_l0", f"{size} {gates}"),
                Rename(f"{ours}.bias", f"{theirs}.bias_ih_l0", gates),
            ]
            given = size
        sizes = {"V": config.vocab_size, "D": config.hidden_size, "H": config.lstm_size}
        sizes |= {"E": 4 * config.hidden_size, "G": 4 * config.lstm_size}
        return TensorNames(base_class=cls.__name__, encoder=encoder, sizes=sizes)
