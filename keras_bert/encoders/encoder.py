"""The contract of an encoder: all that tasks, training, checkpoints and exports use of one."""

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any, Self

import keras
import numpy as np
from keras import ops

from keras_bert.base.errors import InputError, argument
from keras_bert.base.rename import weights_by_path
from keras_bert.encoders import encoder_class
from keras_bert.encoders.config import LORA_ALPHA, EncoderConfig
from keras_bert.encoders.lora import Lora, enable_lora
from keras_bert.encoders.tensor_names import TensorNames
from keras_bert.heads.lm_head import LMHead
from keras_bert.heads.pooling import Pooler
from keras_bert.layers import Tensor
from keras_bert.layers.dense import with_quantized_parts
from keras_bert.layers.kernels.fused_attention import reads_lengths
from keras_bert.layers.kernels.private import set_mask
from keras_bert.text.vocabulary import Vocabulary

OUTPUTS = ("sequence_output", "hidden_states", "first_output", "attention_probabilities")


class Encoder(keras.Model):
    """From token ids to a vector for every token.

    Tasks, training, checkpoints, exports and commands use an encoder only through this class. A new
    one is a config (`EncoderConfig`) and a subclass in a folder of `keras_bert/encoders`, and one
    line in `keras_bert.encoders.ENCODERS`. A subclass makes and builds its layers in the
    constructor and defines `call` and `layer_groups`; the rest has defaults.

    Shapes: B batch, S sequence, D hidden size, N heads, V vocabulary.

    Class attributes:
        CONFIG: the config class.
        INPUTS: the supported inputs, int32 (B, S) each, of

            - `input_ids`: token ids,
            - `input_mask`: 1 at tokens, 0 at padding,
            - `segment_ids`: the segment of each token, if the config has segments,
            - `sequence_ids`: instead of `input_mask`, the number of each token's sequence in a
              packed batch, from 1, and 0 at padding.

        OBJECTIVES: the supported pre-training objectives, by the names of `pretrain`.
        LIMITS: unsupported capabilities: capability -> the message of `require`.
        WITHOUT_BIAS: task types whose last linear layer has no bias in `transformers`.
        POOLER_ACTIVATION: the activation of a `pooler`; None if no class of `transformers` for the
            encoder has such a layer.
        CAN_RECOMPUTE: whether `recomputes` has an effect.

    Attributes:
        config: the config.
        pooler: the layer that came with the weights, or that the last `new_head_transform` made;
            or None. It is a part of a head, and not of this model.
        came_with_pooler: False for weights of a folder without a pooler, as a masked LM leaves it.
        lora: the `Lora` after `enable_lora`, or None.
        recomputes: whether the backward pass computes each layer's activations again, in place of
            storing them; may be set if CAN_RECOMPUTE.
        came_with_pooling: the pooling that the folder of the weights gives for vectors of whole
            texts (see `keras_bert.heads.pooling`); None if it gives none.

    Args:
        config: a `CONFIG`.
        dtype: a dtype or policy for all layers, such as "mixed_bfloat16"; None is Keras's own
            setting.

    Raises:
        ValueError: `config` is not a `CONFIG`.
    """

    CONFIG: type[EncoderConfig] = EncoderConfig
    INPUTS: tuple[str, ...] = ("input_ids", "input_mask")
    OBJECTIVES: tuple[str, ...] = ()
    LIMITS: dict[str, str] = {}
    WITHOUT_BIAS: tuple[str, ...] = ()
    POOLER_ACTIVATION: str | None = None
    CAN_RECOMPUTE = False

    pooler: keras.layers.Layer | None = None
    came_with_pooler = True
    came_with_pooling: str | None = None
    _pooler_is_owned = False

    # Whether the weights were trained before: those of a folder, or after `fit`.
    is_pretrained = False
    lora: Lora | None = None
    recomputes = False

    config: Any  # a CONFIG

    def __init__(
        self, config: EncoderConfig, *, dtype: Any = None, name: str | None = None, **kwargs: Any
    ):
        # A relative's config may derive from this one's.
        is_own = isinstance(config, self.CONFIG) and config.model_type in self.CONFIG.MODEL_TYPES
        if not is_own:
            expected = self.CONFIG.__name__
            raise ValueError(
                f"`config` must be a `{expected}` (see `{expected}.from_dict`). "
                f"Received: a {type(config).__name__}."
            )
        super().__init__(dtype=dtype, name=name, **kwargs)
        self.config = config

    def call(
        self,
        inputs: dict[str, Tensor],
        outputs: Collection[str] = ("sequence_output",),
        causal: bool | None = None,
        training: bool | None = None,
    ) -> dict[str, Tensor]:
        """Computes the requested outputs, and nothing else.

        Args:
            inputs: a dictionary of the inputs by name (see `INPUTS` and `input_names`).
            outputs: the names of the outputs, of

                - `sequence_output` (B, S, D); values at padding positions are undefined,
                - `hidden_states`: a tuple of (B, S, D), the embeddings first, then the output of
                  each layer applied,
                - `first_output` (B, D): the vector of each sequence's first token, for which the
                  last layer may skip the other tokens,
                - `attention_probabilities`: a tuple of (B, N, S, S), one per layer, before dropout.

            causal: whether each token sees only itself and the tokens before it; None is the
                config's value.

        Returns:
            A dictionary of the outputs by name.

        Raises:
            ValueError: an input is missing or unknown, their shapes differ, an output is unknown,
                or the sequences are longer than the encoder's positions.
        """
        raise NotImplementedError

    def __call__(self, inputs: dict[str, Tensor], *more: Any, **options: Any) -> dict[str, Any]:
        """Calls the encoder; the outputs of tokens carry Keras's mask, which is 1 at tokens.

        So a layer of Keras over them, such as `GlobalAveragePooling1D`, ignores padding.
        """
        outputs = super().__call__(inputs, *more, **options)
        mask = inputs.get("input_mask", inputs.get("sequence_ids"))
        is_token = ops.not_equal(mask, 0)
        for name in ("sequence_output", "hidden_states"):
            for x in keras.tree.flatten(outputs.get(name, ())):
                set_mask(x, is_token)
        return outputs

    @property
    def layer_groups(self) -> list[list[keras.layers.Layer]]:
        """Lists of layers, from the input upward, with every weight.

        Layer-wise learning rates, freezing and unfreezing use these groups. They are disjoint:
        layers that share weights are in one group.
        """
        raise NotImplementedError

    # What has a default.

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs that a task takes for the encoder: no `sequence_ids` or unused segments."""
        left_out = {"sequence_ids"} | (set() if self.config.num_segments else {"segment_ids"})
        return tuple(name for name in self.INPUTS if name not in left_out)

    def symbolic_inputs(self) -> dict[str, Tensor]:
        """The inputs as `keras.Input` tensors (B, S) by name."""
        return {name: keras.Input((None,), dtype="int32", name=name) for name in self.input_names}

    @property
    def layer_policy(self) -> Any:
        """The `dtype=` of heads over the encoder: its policy, or the map of quantized layers."""
        pooler = () if self.pooler is None else (self.pooler,)
        return with_quantized_parts(self.dtype_policy, self, *pooler)

    @property
    def default_pooling(self) -> str:
        """The default pooling of a head over a whole text: see `keras_bert.heads.pooling`.

        It is `came_with_pooling`, or else the `usual_pooling` of the architecture.
        """
        return self.came_with_pooling or self.usual_pooling

    @property
    def usual_pooling(self) -> str:
        """The default pooling of an encoder whose folder gives none.

        It is [CLS], unless the weights came without a pooler: a masked LM trains neither.
        """
        if self.config.is_causal:
            return "last"
        is_trained = self.came_with_pooler or self.pooler is not None
        return "cls" if is_trained and self.POOLER_ACTIVATION is not None else "mean"

    def default_max_length(self, usual: int) -> int:
        """The default length of a sequence: `usual`, or the positions if they are fewer."""
        longest = self.config.max_length
        return usual if longest is None else min(usual, longest)

    def new_head_transform(self, task_type: str) -> keras.layers.Layer | None:
        """The layer between what a task type reads and its last linear layer.

        It is that of the class of `transformers` for the task, such as BERT's pooler, from (…, D)
        to (…, D), and belongs to the task: it is trained and saved with the head, over a frozen
        encoder too. It begins with the weights of `pooler` if there are any.

        Returns:
            A layer, which is `pooler` from now on; None if that class has no such layer.
        """
        if not self.has_head_transform(task_type):
            return None
        if self.pooler is None or self._pooler_is_owned:
            earlier, layer = self.pooler, self.new_pooler()
            if earlier is not None:
                layer.set_weights(earlier.get_weights())
        self._hold_pooler(self.pooler, is_owned=True)
        return self.pooler

    def has_head_transform(self, task_type: str) -> bool:
        """Whether the class of `transformers` for a task type has such a layer."""
        return self.tensor_names(self.config).names_for(task_type).transform is not None

    def new_pooler(self) -> keras.layers.Layer:
        """Makes `pooler` of random weights, which a file replaces; returns it."""
        layer = self.make_pooler()
        layer.build()
        self._hold_pooler(layer, is_owned=False)
        return layer

    def make_pooler(self) -> keras.layers.Layer:
        """The layer that `new_head_transform` returns, with random weights."""
        return Pooler(
            hidden_size=self.config.hidden_size,
            activation=self.POOLER_ACTIVATION,
            initializer_range=self.config.head_initializer_range,
            dtype=self.layer_policy,
            name="pooler",
        )

    def _hold_pooler(self, layer, *, is_owned):
        # Keras does not count it among the layers of this model.
        object.__setattr__(self, "pooler", layer)
        object.__setattr__(self, "_pooler_is_owned", is_owned)

    def lm_head(self, *, name: str = "lm_head") -> LMHead:
        """A new language-model head: from hidden states and positions to logits over the tokens."""
        return self._lm_head(name)

    def new_generator(self, fraction: float) -> "Encoder":
        """A new encoder for masked tokens, of which this one tells those that it has replaced.

        It is an ELECTRA's, whatever this one is (Clark et al. 2020): as deep, of a `fraction` of
        the hidden size, and with the embedding tables of this one (see `shared_tables`).
        """
        return encoder_class("electra").generator_of(self, fraction=fraction)

    @property
    def shared_tables(self) -> dict[str, Any]:
        """The embedding tables that a generator shares, by the attribute of `Embeddings`."""
        return {"token_embedding": self.token_embedding}

    def _lm_head(self, name, **options):
        """An `LMHead` without a transform and with a bias; `options` are other arguments."""
        usual = {"token_embedding": self.token_embedding, "transform": None, "use_bias": True}
        return LMHead(**{**usual, **options}, dtype=self.layer_policy, name=name)

    @property
    def token_embedding(self) -> keras.layers.Embedding | None:
        """The `keras.layers.Embedding` (V, D) whose weights `lm_head` shares, or None."""
        return None

    @classmethod
    def tensor_names(cls, config: Any) -> TensorNames:
        """The `TensorNames` of a config: the names of the weights in a model folder."""
        return TensorNames.from_variables(cls, config)

    def set_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Tells the encoder the tokens of its ids, such as for reading their characters.

        A task with a tokenizer calls it, and a folder that is loaded. Does nothing by default.

        Args:
            vocabulary: the `Vocabulary`.
        """

    def initialize_local_attention(self) -> None:
        """Initializes some attention heads of a new encoder to look at the neighbouring tokens.

        Does nothing by default.
        """

    def rebuilt(
        self, *, config: EncoderConfig | None = None, dtype: Any = None, **config_changes: Any
    ) -> Self:
        """A copy with these weights.

        Args:
            config: another config; None is this one.
            dtype: another dtype or policy; None is the same.
            **config_changes: fields of the config that differ. Weights that this encoder lacks are
                random, such as those of new tokens with a larger `vocab_size`.
        """
        config = dataclasses.replace(config or self.config, **config_changes)
        copy = type(self)(config, dtype=dtype or self.layer_policy, name=self.name)
        copy_weights(self, copy)
        copy.copy_origin_of(self)
        if self.pooler is not None:
            copy.new_pooler().set_weights(self.pooler.get_weights())
        copy.is_pretrained = self.is_pretrained
        return copy

    # LoRA and recomputing, for training.

    def enable_lora(
        self, rank: int, *, alpha: float = LORA_ALPHA, layers: Sequence[str] | None = None
    ) -> None:
        """Freezes all weights, and trains low-rank updates of dense layers (Hu et al. 2021).

        A layer x W + b computes x W + b + (alpha / rank) (x A) B from now on, with B = 0 at first.
        What is saved, copied or exported has W + (alpha / rank) A B in place of W.

        Args:
            rank: the number of columns of A and of rows of B.
            alpha: the factor of the updates, times the rank.
            layers: the layers by the names of their modules in a model folder, or the ends of
                these, as in `target_modules` of `peft`: "query", "attention.output.dense". None is
                `default_lora_layers`.

        Raises:
            InputError: the encoder has LoRA already, or no dense layer of that name, or the rank
                is larger than the layers.
        """
        if self.lora is not None:
            raise InputError(f"The encoder has LoRA of rank {self.lora.rank} already.")
        self.lora = enable_lora(self, rank, alpha=alpha, layers=layers)

    @property
    def default_lora_layers(self) -> tuple[str, ...]:
        """The layers that have LoRA by default: those of queries and values, if there are some."""
        return ()

    def copy_origin_of(self, other: "Encoder") -> None:
        """Notes that these weights came with what those of another encoder came with."""
        self.came_with_pooler = other.came_with_pooler
        self.came_with_pooling = other.came_with_pooling

    # One token at a time, for causal encoders.

    def initial_cache(self, batch_size: int, max_length: int) -> Any:
        """Returns what `step` takes for the first token of sequences of up to `max_length` tokens.

        A nested structure of tensors whose first axis is B, such as the keys and values of each
        layer, or the states of an LSTM.
        """
        raise NotImplementedError

    def step(self, ids: Tensor, cache: Any, index: Tensor) -> tuple[Tensor, Any]:
        """The next token of each sequence.

        Args:
            ids: int (B,), the tokens.
            cache: as `initial_cache`, `prefill` or the last step gave it.
            index: int (B,), the tokens' positions: each the first that the cache lacks.

        Returns:
            `sequence_output` (B, D) at these tokens, and the cache with them in it.
        """
        raise NotImplementedError

    def prefill(self, inputs: dict[str, Tensor], max_length: int) -> tuple[Tensor, Any]:
        """The cache after whole sequences, by default by a `step` for each position.

        Args:
            inputs: a dictionary of the inputs by name, with padding at the end of sequences.
            max_length: the most tokens that the cache has room for.

        Returns:
            `sequence_output` (B, S, D), and the cache.
        """
        ids = ops.cast(inputs["input_ids"], "int32")
        is_token = ops.cast(inputs["input_mask"], "bool")
        batch, length = ops.shape(ids)

        def next_token(number, states, cache):
            column = ops.take(ids, number, axis=1)  # (B,)
            x, new = self.step(column, cache, ops.zeros_like(column) + number)
            reads = ops.take(is_token, number, axis=1)  # (B,)

            def where_read(new, old):
                axes = (batch, *[1] * (len(new.shape) - 1))
                return ops.where(ops.reshape(reads, axes), new, old)

            states = ops.slice_update(states, (number, 0, 0), x[None])
            return number + 1, states, keras.tree.map_structure(where_read, new, cache)

        size = self.config.hidden_size
        begin = (
            ops.convert_to_tensor(0, "int32"),
            ops.zeros((length, batch, size), dtype=self.compute_dtype),
            self.initial_cache(batch, max_length),
        )
        _, states, cache = ops.while_loop(
            lambda number, *_: ops.less(number, length), next_token, begin
        )
        return ops.swapaxes(states, 0, 1), cache

    def require(self, *capabilities: str) -> None:
        """Raises InputError with the message in `LIMITS` for a capability that it lacks."""
        for capability in capabilities:
            if capability in self.LIMITS:
                raise InputError.naming(self.LIMITS[capability])
            if capability == "recompute" and not self.CAN_RECOMPUTE:
                raise InputError.naming(
                    "{recompute} is for Transformer layers. A {} encoder has none: leave it out.",
                    self.config.model_type,
                )
            if capability == "generate" and type(self).step is Encoder.step:
                raise InputError(
                    f"A {self.config.model_type} encoder cannot generate text: it has no step of "
                    "one token."
                )

    # For subclasses.

    def checked_inputs(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Returns `inputs` if their names and shapes are right; otherwise raises ValueError."""
        names = set(self.input_names)
        packed = (names - {"input_mask"}) | ({"sequence_ids"} & set(self.INPUTS))
        if not isinstance(inputs, dict) or set(inputs) not in (names, packed):
            received = sorted(inputs) if isinstance(inputs, dict) else type(inputs).__name__
            raise ValueError(
                f"The inputs must be a dictionary of {', '.join(self.input_names)}. "
                f"Received: {received}."
            )
        check_ids(inputs, self.config)
        shapes = {name: tuple(x.shape) for name, x in inputs.items()}
        sizes = [set(dims) - {None} for dims in zip(*shapes.values(), strict=False)][:2]
        if len(sizes) < 2 or max(map(len, sizes)) > 1:
            raise ValueError(
                f"The inputs must be (batch, sequence), all of the same sizes. Received: {shapes}."
            )
        return inputs

    def checked_outputs(self, outputs: Collection[str]) -> tuple[str, ...]:
        """Returns `outputs` if they are names of outputs; otherwise raises ValueError.

        Raises InputError for the attention probabilities of an encoder without attention.
        """
        if not isinstance(outputs, list | tuple | set) or not outputs or set(outputs) - {*OUTPUTS}:
            raise ValueError(
                f"`outputs` must be a list of names of outputs: {', '.join(OUTPUTS)}. "
                f"Received: {outputs!r}."
            )
        if "attention_probabilities" in outputs:
            self.require("attention-probabilities")
        return tuple(outputs)

    def compute_output_spec(
        self,
        inputs: dict[str, Tensor],
        outputs: Collection[str] = ("sequence_output",),
        causal: bool | None = None,
        training: bool | None = None,
    ) -> dict[str, Any]:
        # Otherwise Keras would trace all of `call` for it: most of the time to make a task.
        self.checked_inputs(inputs)
        batch, length = inputs["input_ids"].shape
        config = self.config
        states = config.num_hidden_states

        def spec(*shape):
            return keras.KerasTensor(shape, dtype=self.compute_dtype)

        def state():
            return spec(batch, length, config.hidden_size)

        def probabilities():
            return spec(batch, config.num_attention_heads, length, length)

        specs = {
            "sequence_output": state,
            "hidden_states": lambda: tuple(state() for _ in range(states)),
            "first_output": lambda: spec(batch, config.hidden_size),
            "attention_probabilities": lambda: tuple(probabilities() for _ in range(states - 1)),
        }
        return {name: specs[name]() for name in self.checked_outputs(outputs)}

    @property
    def output(self) -> Any:
        """The symbolic outputs of the call with the most outputs.

        Keras takes the number of outputs of every call from here, to check a functional model.
        """
        return max((node.outputs for node in self._inbound_nodes), key=len, default=None)

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.layer_policy),
            "config": self.config.to_dict(),
        }

    # Of a Keras file.

    def save_own_variables(self, store: Any) -> None:
        for weight in () if self.pooler is None else self.pooler.weights:
            store[weight.path.replace("/", ".")] = weight

    def load_own_variables(self, store: Any) -> None:
        if store.keys():
            for weight in (self.pooler or self.new_pooler()).weights:
                weight.assign(store[weight.path.replace("/", ".")])

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Self:
        return cls(**{**config, "config": cls.CONFIG.from_dict(config["config"])})


def copy_weights(source, target):
    """Gives a model the weights of another by their paths, as far as both have them.

    If the target's has more rows, the first rows are copied.
    """
    weights = weights_by_path(source)
    for weight in target.weights:
        original = weights.get(weight.path)
        if original is None:
            continue
        # A copy, since a training step on JAX donates the memory of its weights.
        value = keras.ops.cast(keras.ops.copy(original), weight.dtype)
        if weight.shape != original.shape:
            value = keras.ops.concatenate([value, weight[original.shape[0] :]], axis=0)
        weight.assign(value)


def check_ids(inputs, config):
    """Raises InputError for ids outside the embeddings, and for padding before tokens on a GPU.

    Only arrays are checked, not symbolic inputs: in a graph the lookup ends in TensorFlow's error
    on a CPU, and returns zeros on a GPU.
    """
    for name, count in {"input_ids": config.vocab_size, "segment_ids": config.num_segments}.items():
        ids = inputs.get(name)
        ids = ids.numpy() if hasattr(ids, "numpy") else ids
        if isinstance(ids, np.ndarray) and ids.size and not 0 <= ids.min() <= ids.max() < count:
            wrong = ids.min() if ids.min() < 0 else ids.max()
            raise InputError.naming(
                "{} must be from 0 to {}. Received: {}.", argument(name), count - 1, wrong
            )
    mask = inputs.get("input_mask")
    mask = mask.numpy() if hasattr(mask, "numpy") else mask
    if isinstance(mask, np.ndarray) and mask.ndim and reads_lengths():
        is_token = mask.astype(bool)
        if (is_token[..., 1:] & ~is_token[..., :-1]).any():
            raise InputError.naming(
                "{} must be 1 at the tokens of a row and then 0: on a GPU under JAX, padding comes "
                "after the tokens.",
                argument("input_mask"),
            )
