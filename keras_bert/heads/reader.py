"""The layer between encoder and head: layers, their mix, static vectors and a BiLSTM."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.heads import CONCAT, LAST, MEAN, MIX, layer_numbers
from keras_bert.heads.classification import FlattenChoices, GroupChoices
from keras_bert.heads.lm_head import NextTokenLoss
from keras_bert.layers import Layer, Tensor
from keras_bert.layers.kernels.private import set_mask
from keras_bert.layers.kernels.program import use_cudnn


@keras.saving.register_keras_serializable(package="keras_bert")
class TokenReader(Layer):
    """The vectors of tokens that a head reads, from an encoder's outputs.

    They are the vectors of one layer, or of several: side by side, summed, or in a learned mix
    (`ScalarMix`). Static vectors of the same tokens may be concatenated with them, and a `BiLstm`
    may read the result. All weights belong to the head.

    Shapes: the result of `select`, and a dictionary of the `input_names`, int32 (B, S) ->
    `sequence_output` (B, S, U) and `first_output` (B, U), by name. Without `head_layers` it need
    not be called.

    Args:
        num_layers: L, the layers of the encoder, whose hidden states are numbered from 0, the
            embeddings.
        hidden_size: D, the size of the encoder's vectors.
        layers: a name of `keras_bert.heads`. None is "last", or "mix-all" if there
            is a `mix`.
        mix: the arguments `layer_norm_eps` and `l2` of a learned mix; None is None and 0.
        static_vectors: a layer from `input_ids` and `input_mask` to `sequence_output` (B, S, E), by
            name, which tells its `config.hidden_size`, E; or None.
        bilstm: the units of the `BiLstm`, or None.

    Attributes: `layers`, `numbers` (of the hidden states that are read), `mix`, and the layers
    `scalar_mix`, `static_vectors` and `bilstm`, each of which may be None.

    Raises:
        InputError: the encoder has too few layers.
        ValueError: `mix` is given for `layers` without a learned mix.
    """

    def __init__(
        self,
        *,
        num_layers: int,
        hidden_size: int,
        layers: str | None = None,
        mix: dict[str, Any] | None = None,
        static_vectors: keras.layers.Layer | None = None,
        bilstm: int | None = None,
        dtype=None,
        **kwargs,
    ):
        super().__init__(dtype=dtype, autocast=False, **kwargs)
        self.layers = layers or (LAST if mix is None else "mix-all")
        self.numbers, self._combination = layer_numbers(self.layers, layers=num_layers)
        if mix is not None and self._combination != MIX:
            raise ValueError(
                "`layer_mix` is for a learned mix, `layers` mix-last-4 or mix-all. "
                f"Received: layers={layers!r}."
            )
        size = hidden_size * (len(self.numbers) if self._combination == CONCAT else 1)
        self.mix = self.scalar_mix = self.static_vectors = self.bilstm = None
        # Built here, and not in `build`, so that the paths of the weights begin with their layers.
        if self._combination == MIX:
            self.mix = {"layer_norm_eps": None, "l2": 0.0} | (mix or {})
            self.scalar_mix = ScalarMix(
                num_layers=len(self.numbers), **self.mix, dtype=dtype, name="scalar_mix"
            )
            self.scalar_mix.build([(None, None, size)] * len(self.numbers))
        if static_vectors is not None:
            self.static_vectors = static_vectors
            size += static_vectors.config.hidden_size
        if bilstm is not None:
            self.bilstm = BiLstm(units=bilstm, dtype=dtype, name="bilstm")
            self.bilstm.build((None, None, size))
            size = 2 * bilstm
        self.size = size
        self.built = True

    @property
    def combines_layers(self) -> bool:
        """Whether it sums or mixes the vectors of several layers."""
        return self._combination == MIX or (len(self.numbers) > 1 and self._combination != CONCAT)

    @property
    def keeps_size(self) -> bool:
        """Whether its vectors are of the encoder's size, one for each of the encoder's."""
        return not (self.reads_vectors or self._combination == CONCAT)

    @property
    def reads_vectors(self) -> bool:
        """Whether a layer of it reads the vectors of all tokens of a sequence."""
        return self.static_vectors is not None or self.bilstm is not None

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the task's inputs that it reads beside the encoder's outputs."""
        if self.static_vectors is not None:
            return ("input_ids", "input_mask")
        return ("input_mask",) if self.bilstm is not None else ()

    @property
    def head_layers(self) -> dict[str, keras.layers.Layer]:
        """Its layers with weights, by name, in their order."""
        names = ("scalar_mix", "static_vectors", "bilstm")
        layers = {name: getattr(self, name) for name in names}
        return {name: layer for name, layer in layers.items() if layer is not None}

    def requested(self, outputs: tuple[str, ...]) -> tuple[str, ...]:
        """The encoder's outputs to compute for a head that reads `outputs`."""
        if self.layers != LAST:
            return ("hidden_states",)
        return ("sequence_output",) if self.reads_vectors else outputs

    def groups_read(self, groups: list) -> list:
        """The groups of an encoder's layers without those above the layers that are read."""
        highest = max(self.numbers)
        if self.layers == LAST or highest == self.settings["num_layers"]:
            return groups
        return groups[: highest + 1]

    def select(self, encoded: dict) -> dict:
        """The encoder's `requested` outputs, with those of the chosen layers in place of all.

        They are a list `hidden_states` for a learned mix, and otherwise `sequence_output` and
        `first_output`. Nothing here has weights.
        """
        if self.layers == LAST:
            return encoded
        states = encoded["hidden_states"]
        if self.scalar_mix is not None:
            return {"hidden_states": [states[number] for number in self.numbers]}
        hidden = choose_layers(states, self.layers)  # (B, S, D or 4 D)
        return {"sequence_output": hidden, "first_output": hidden[:, 0]}

    def call(self, selected, inputs):
        if self.scalar_mix is not None:
            hidden = self.scalar_mix(selected["hidden_states"])  # (B, S, D)
        else:
            hidden = selected["sequence_output"]
        if self.static_vectors is not None:
            vectors = self.static_vectors(inputs)["sequence_output"]  # (B, S, E)
            hidden = ops.concatenate([hidden, ops.cast(vectors, hidden.dtype)], axis=-1)
        if self.bilstm is not None:
            hidden = self.bilstm(hidden, inputs["input_mask"])  # (B, S, 2 U)
        return {"sequence_output": hidden, "first_output": hidden[:, 0]}

    def compute_output_spec(self, selected, inputs):
        # Otherwise Keras would trace an LSTM for it.
        (x, *_) = selected.get("hidden_states") or [selected["sequence_output"]]
        batch, length, _ = x.shape
        return {
            "sequence_output": keras.KerasTensor((batch, length, self.size), x.dtype),
            "first_output": keras.KerasTensor((batch, self.size), x.dtype),
        }


class WithoutMasks(keras.Operation):
    """An encoder's outputs by name without Keras's masks, the same tensors.

    A head reads `input_mask` if it needs it. With a mask on its outputs Keras would weight the
    losses by it, too.
    """

    def call(self, encoded):
        for x in keras.tree.flatten(encoded):
            set_mask(x, None)
        return encoded

    def compute_output_spec(self, encoded):
        return keras.tree.map_structure(lambda x: keras.KerasTensor(x.shape, x.dtype), encoded)


class ReadingModel(keras.Model):
    """A model whose head reads an encoder, of which it trains no weights that are not read.

    The layers above those of the reader may be unread; they get no gradients. They stay trainable
    in the encoder, which another model may read.

    Attributes, set before the constructor is called: `encoder`, `reader` (a `TokenReader`), and
    `transform` (the layer over the first token's vector, or None). `Task` describes the class
    attributes.
    """

    ENCODER_OUTPUTS: tuple[str, ...] = ("sequence_output",)
    HEAD_READS: tuple[str, ...] = ()
    HEAD_INPUTS: dict[str, tuple[int | None, ...]] = {}
    SEQUENCE_AXES: tuple[int | None, ...] = ()
    HEADS: tuple[str, ...] = ()

    encoder: Any = None
    reader: Any = None
    transform: Any = None
    next_token_loss: NextTokenLoss | None = None

    def feature_inputs(self) -> dict[str, Tensor]:
        """The encoder's inputs as symbolic int32 tensors (B, S), or (B, n, S), by name."""
        return symbolic_inputs(dict.fromkeys(self.encoder.input_names, (*self.SEQUENCE_AXES, None)))

    def to_sequences(self, x: Tensor) -> Tensor:
        """A feature of the task (B, …, S) -> (R, S), of the encoder's sequences."""
        return FlattenChoices()(x) if self.SEQUENCE_AXES else x

    def to_examples(self, x: Tensor, features: dict[str, Tensor]) -> Tensor:
        """Vectors of the encoder's sequences (R, S, D) -> of the task's `features` (B, …, S, D)."""
        return GroupChoices()(x, features["input_ids"]) if self.SEQUENCE_AXES else x

    def make_next_token_loss(self, weight: float) -> NextTokenLoss:
        """Returns the `NextTokenLoss` of the encoder; InputError if it cannot be trained."""
        encoder = self.encoder
        if not encoder.config.is_causal:
            raise InputError.naming(
                "{lm_loss_weight} needs a causal encoder, in which each token sees only the "
                "tokens before it. Leave it out."
            )
        if max(self.reader.numbers) < encoder.config.num_hidden_states - 1:
            raise InputError.naming(
                "{lm_loss_weight} trains the last layer, which is not among the {layers} {}. "
                "Leave one of the two out.",
                self.reader.layers,
            )
        return NextTokenLoss(
            lm_head=encoder.lm_head(), weight=weight, dtype=encoder.layer_policy, name="lm_loss"
        )

    def with_next_token_loss(
        self, encoded: dict[str, Any], inputs: dict[str, Tensor]
    ) -> dict[str, Any]:
        """The encoder's outputs, of which the last layer's passes through `next_token_loss`."""
        if self.next_token_loss is None:
            return encoded
        mask = inputs["input_mask"]
        if "hidden_states" in encoded:
            *states, last = encoded["hidden_states"]
            last = self.next_token_loss(last, inputs["input_ids"], mask)
            return {**encoded, "hidden_states": (*states, last)}
        hidden = self.next_token_loss(encoded["sequence_output"], inputs["input_ids"], mask)
        return {**encoded, "sequence_output": hidden}

    @property
    def encoder_outputs(self) -> tuple[str, ...]:
        """The outputs requested of the encoder, for the head or for the reader before it."""
        return self.reader.requested(self.ENCODER_OUTPUTS)

    @property
    def inputs_of_head(self) -> tuple[str, ...]:
        """Names of the task's inputs that the head and the reader before it read."""
        names = (*self.HEAD_READS, *self.reader.input_names, *self.HEAD_INPUTS)
        return tuple(dict.fromkeys(names))

    def head(self, selected: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """The result of the reader's `select`, and `inputs_of_head`, by name -> the outputs."""
        return self.build_head(self.read_vectors(selected, inputs), inputs)

    def encoded(
        self, inputs: dict[str, Tensor], training: bool | None = None, causal: bool | None = None
    ) -> dict[str, Any]:
        """The inputs of `build_head`, from the encoder's inputs by name."""
        outputs = self.encoder_outputs
        encoded = self.encoder(inputs, outputs=outputs, causal=causal, training=training)
        encoded = WithoutMasks()(encoded)
        return self.read_vectors(self.reader.select(encoded), inputs)

    def read_vectors(self, selected: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Any]:
        """The first argument of `build_head`: what the reader makes of its `select`."""
        if not self.reader.head_layers:
            return selected
        names = self.reader.input_names
        return self.reader(selected, {name: self.to_sequences(inputs[name]) for name in names})

    @property
    def heads(self) -> dict[str, keras.layers.Layer]:
        """The layers with weights of the head by name: those of the reader, and HEADS."""
        heads = dict(self.reader.head_layers)
        if self.transform is not None:
            heads["transform"] = self.transform
        return {**heads, **{name: getattr(self, name) for name in self.HEADS}}

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """The head: ENCODER_OUTPUTS and the task's inputs -> outputs, symbolic, all by name.

        Of the encoder's inputs only HEAD_READS are guaranteed: a frozen encoder's outputs come
        from a file.
        """
        raise NotImplementedError

    @property
    def read_groups(self) -> list:
        """The encoder's `layer_groups` that the head reads."""
        return self.reader.groups_read(self.encoder.layer_groups)

    @property
    def trainable_variables(self) -> list:
        return self._without_unread(super().trainable_variables)

    @property
    def trainable_weights(self) -> list:
        return self._without_unread(super().trainable_weights)

    @property
    def non_trainable_variables(self) -> list:
        trained = {id(variable) for variable in self.trainable_variables}
        return [variable for variable in self.variables if id(variable) not in trained]

    @property
    def non_trainable_weights(self) -> list:
        trained = {id(variable) for variable in self.trainable_weights}
        return [variable for variable in self.weights if id(variable) not in trained]

    def _without_unread(self, variables):
        if self.encoder is None:  # not constructed yet
            return variables
        layers = [layer for group in self.read_groups for layer in group]
        read = {id(variable) for layer in layers for variable in layer.variables}
        unread = {id(v) for v in self.encoder.variables if id(v) not in read}
        return [variable for variable in variables if id(variable) not in unread]


def symbolic_inputs(shapes):
    """int32 tensors by name, from their shapes without the batch."""
    return {name: keras.Input(shape, dtype="int32", name=name) for name, shape in shapes.items()}


@keras.saving.register_keras_serializable(package="keras_bert")
class ScalarMix(Layer):
    """γ Σ s_k h_k over K layers' outputs h_k, with s = softmax(w): one weight per layer, one scale.

    That is ELMo's mix (Peters et al. 2018, section 3.2, equation 1).

    Shapes: a list or tuple of K tensors (B, S, D) -> (B, S, D).

    w is initialized to zero, so that the mix begins as the average, and γ to one. If
    `layer_norm_eps` is a number, each h_k is first normalised over its last axis (Ba et al. 2016,
    without scale and offset); the published code took mean and variance over all tokens of a batch,
    which makes a text's result depend on the other examples in the batch.

    Args:
        num_layers: K.
        layer_norm_eps: epsilon of the LayerNorm before mixing; None mixes the outputs as they are.
        l2: λ of the penalty λ Σ w_k² on the loss, which pulls the mix toward the average (the paper
            used 0.001 to 1); 0 means none.

    Raises:
        ValueError: λ is negative, or (on a call) there are not K tensors, or their shapes differ.
    """

    def __init__(self, *, num_layers: int, layer_norm_eps: float | None, l2: float, **kwargs: Any):
        super().__init__(**kwargs)
        if num_layers < 1 or l2 < 0:
            raise ValueError(
                "`num_layers` must be at least 1 and `l2` at least 0. "
                f"Received: num_layers={num_layers}, l2={l2}."
            )
        self.num_layers = num_layers
        self.l2 = l2
        self.layer_norm = None
        if layer_norm_eps is not None:
            self.layer_norm = keras.layers.LayerNormalization(
                epsilon=layer_norm_eps,
                center=False,
                scale=False,
                name="layer_norm",
                dtype=self.dtype_policy,
            )

    def build(self, hidden_shapes: Sequence[Any]) -> None:
        self._check(hidden_shapes)
        if self.layer_norm is not None:
            self.layer_norm.build(hidden_shapes[0])
        # Not cast to half precision: the weights of a dozen layers should sum to one.
        self.scores = self.add_weight(
            shape=(self.num_layers,),
            initializer="zeros",
            regularizer=keras.regularizers.L2(self.l2) if self.l2 else None,
            autocast=False,
            name="scores",
        )
        self.gamma = self.add_weight(shape=(), initializer="ones", autocast=False, name="gamma")
        self.built = True

    def call(self, hidden_states: Sequence[Tensor]) -> Tensor:
        self._check([hidden.shape for hidden in hidden_states])
        # γ is part of the factors, which saves a pass over the mix.
        factors = self.gamma * ops.softmax(self.scores)  # (K,)
        mix = 0.0
        for k, hidden in enumerate(hidden_states):
            if self.layer_norm is not None:
                hidden = self.layer_norm(hidden)
            mix = mix + ops.cast(factors[k], hidden.dtype) * hidden  # (B, S, D)
        return mix

    @property
    def layer_weights(self) -> np.ndarray:
        """s, a float32 array (K,) that sums to one: the weight of each layer in the mix."""
        return np.asarray(ops.convert_to_numpy(ops.softmax(self.scores)))

    def compute_output_shape(self, hidden_shapes: Sequence[Any]) -> tuple:
        return tuple(hidden_shapes[0])

    def _check(self, shapes):
        if len(shapes) != self.num_layers or len({tuple(shape) for shape in shapes}) != 1:
            raise ValueError(
                f"A mix of {self.num_layers} layers takes as many tensors of one shape. "
                f"Received: {[tuple(shape) for shape in shapes]}."
            )


@keras.saving.register_keras_serializable(package="keras_bert")
class BiLstm(Layer):
    """Two bidirectional layers: the feature-based tagger of Devlin et al. 2018, section 5.3.

    Shapes: hidden (B, S, D), input_mask int32 (B, S) -> (B, S, 2 U): B batch, S sequence, U units.
    Padding, which is at the end of a sequence, is skipped.

    Args:
        units: U, 768 in the paper.
        layers: the number of stacked layers.
    """

    def __init__(self, *, units, layers=2, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.layers = [
            keras.layers.Bidirectional(
                keras.layers.LSTM(
                    units, return_sequences=True, dtype=self.dtype_policy, name="lstm"
                ),
                name=f"layer_{number}",
                dtype=self.dtype_policy,
            )
            for number in range(layers)
        ]

    def build(self, hidden_shape, input_mask_shape=None):
        shape = tuple(hidden_shape)
        for layer in self.layers:
            layer.build(shape)
            shape = (*shape[:2], 2 * self.units)
        self.built = True

    def call(self, hidden, input_mask):
        mask = ops.cast(input_mask, "bool")
        for layer in self.layers:
            for lstm in (layer.forward_layer, layer.backward_layer):
                lstm.use_cudnn = use_cudnn()
            hidden = layer(hidden, mask=mask)
        # A copy drops the mask that Keras attaches to a tensor, which losses would apply again.
        return ops.copy(hidden)

    def compute_output_shape(self, hidden_shape, input_mask_shape=None):
        return (*hidden_shape[:2], 2 * self.units)


def choose_layers(states, choice):
    """The vectors of a choice of layers without weights, from an encoder's hidden states.

    * `last`, `second-to-last`, `layer-K`: the output of that layer
    * `sum-last-4`, `mean-last-4`, `concat-last-4` (the last layer's first): of four layers
    * `sum-all`: the sum of all layers' outputs without the embeddings (the paper's "all 12")
    * `first`: the embeddings, which do not depend on the context (the paper's "Embeddings")

    Shapes: `states` are L + 1 tensors (B, S, D), the embeddings first -> (B, S, D), or (B, S, 4 D)
    for `concat-last-4`.

    Raises `InputError` if there are too few layers.
    """
    numbers, how = layer_numbers(choice, layers=len(states) - 1)
    layers = [states[number] for number in numbers]
    if how == CONCAT:
        return ops.concatenate(layers, axis=-1)
    total = sum(layers[1:], layers[0])
    return total / len(layers) if how == MEAN else total
