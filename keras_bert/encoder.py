"""The encoder: BERT, SpanBERT and RoBERTa are settings of it."""

import functools

import keras
import numpy as np

from keras_bert.config import BertConfig
from keras_bert.errors import InputError
from keras_bert.layers.attention_mask import AttentionMask
from keras_bert.layers.embeddings import Embeddings
from keras_bert.layers.observed_block import ObservedBlock
from keras_bert.layers.packed_rows import PackedRows
from keras_bert.layers.pooler import Pooler
from keras_bert.layers.quantization import with_quantized_parts
from keras_bert.layers.transformer_block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_bert")
class BertEncoder(keras.Model):
    """A bidirectional Transformer encoder (Devlin et al. 2018), a functional `keras.Model`.

    Takes a dictionary (B batch, S tokens in a row, D width, N heads, L blocks):

    - `input_ids` (B, S) int32
    - `input_mask` (B, S) int32 or bool: 1 at tokens, 0 at padding
    - `segment_ids` (B, S) int32; not looked at where the config has one segment, so that pairs of
      texts are of that one, as in RoBERTa

    and with `packed=True`, in place of `input_mask`,

    - `text_numbers` (B, S) int32: which text of the row a token belongs to, from 1; 0 at padding.
      A text sees only itself, and its positions start anew.

    Gives a dictionary:

    - `sequence_output` (B, S, D); what stands at padding means nothing
    - `pooled_output` (B, D), where the config has a pooler (in a packed row it reads the first
      text alone)

    `view` gives every layer's output and attention as well. Called with `reads`, the names of the
    outputs that are wanted, it may leave others out: where they are `pooled_output` alone, the last
    block is computed for the first token only.

    Args:
        config: a `BertConfig`; `config.is_decoder` makes it causal.
        packed: rows hold several texts.
        joined: query, key and value of a block are one layer; see `SelfAttention`.
        dtype: a dtype or policy for all layers, such as "mixed_bfloat16"; None is Keras's own
            setting.

    Raises:
        ValueError: the config is none; or (on a call) the dictionary lacks an input or has one too
            many, `reads` names something else than outputs, or the row is longer than the model has
            positions.
        InputError: (on a call outside of a graph) a number has no row in an embedding.
    """

    def __init__(
        self,
        config,
        *,
        packed=False,
        joined=False,
        dtype=None,
        name="bert_encoder",
        **kwargs,
    ):
        if not isinstance(config, BertConfig):
            raise ValueError(
                "`config` must be a `BertConfig` (`BertConfig.from_dict` makes one of a "
                f"dictionary). Received: a {type(config).__name__}"
            )
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        common = {"initializer_range": config.initializer_range, "dtype": policy}
        self.embeddings = Embeddings(
            vocab_size=config.vocab_size,
            hidden_size=config.hidden_size,
            max_position_embeddings=config.max_position_embeddings,
            position_offset=config.position_offset,
            type_vocab_size=config.type_vocab_size,
            dropout=config.hidden_dropout_prob,
            layer_norm_eps=config.layer_norm_eps,
            name="embeddings",
            **common,
        )
        self.blocks = [
            TransformerBlock(
                hidden_size=config.hidden_size,
                num_heads=config.num_attention_heads,
                intermediate_size=config.intermediate_size,
                hidden_act=config.hidden_act,
                dropout=config.hidden_dropout_prob,
                attention_dropout=config.attention_probs_dropout_prob,
                layer_norm_eps=config.layer_norm_eps,
                joined=joined,
                name=f"block_{index}",
                **common,
            )
            for index in range(config.num_hidden_layers)
        ]
        self.pooler = None
        if config.add_pooling_layer:
            self.pooler = Pooler(hidden_size=config.hidden_size, name="pooler", **common)
        self.config = config
        self.packed = packed
        self.joined = joined
        inputs, outputs, before_last = self._connect(
            packed=packed,
            causal=config.is_decoder,
            hidden_states=False,
            attention_probabilities=False,
        )
        super().__init__(inputs=inputs, outputs=outputs, name=name, **kwargs)
        self._layer_policy = policy
        self._before_last = before_last

    @property
    def layer_policy(self):
        """The dtype policy of its layers, which a head on it takes over (`dtype=`).

        Where layers have been quantized, the map that says which and how.
        """
        return with_quantized_parts(self._layer_policy, self)

    @property
    def token_embedding(self):
        """The `keras.layers.Embedding` (V, D) that a masked-LM head shares."""
        return self.embeddings.token_embedding

    def base(self):
        """The encoder itself: what a `MixedEncoder` stands on.

        No property: Keras would go through it to itself without end when it loads a file.
        """
        return self

    @property
    def states_read(self):
        """The numbers of the hidden states that the outputs are made of; 0 is the embeddings."""
        return [len(self.blocks)]

    def from_states(self, states):
        """The outputs that belong to the hidden states of `states_read`: a list of (B, S, D)."""
        (hidden,) = states
        return self._outputs_of(hidden)

    def view(
        self, *, packed=False, causal=None, hidden_states=False, attention_probabilities=False
    ):
        """A `keras.Model` over the same weights with other inputs, masks or outputs.

        It is for calling; what is saved is the encoder.

        Args:
            packed: rows hold several texts (takes `text_numbers`, as above).
            causal: each position sees only itself and what came before; None is the config's.
            hidden_states: also give `hidden_states`: L + 1 of (B, S, D), first the embeddings.
            attention_probabilities: also give `attention_probabilities`: L of (B, N, S, S), before
                dropout. Asking keeps a backend's fused attention out of use.
        """
        causal = self.config.is_decoder if causal is None else causal
        inputs, outputs, _ = self._connect(
            packed=packed,
            causal=causal,
            hidden_states=hidden_states,
            attention_probabilities=attention_probabilities,
        )
        return _NamedInputs(inputs=inputs, outputs=outputs, name=f"{self.name}_view")

    def _connect(self, *, packed, causal, hidden_states, attention_probabilities):
        """-> the dictionaries of symbolic inputs and outputs, and what the last block reads."""
        names = ("input_ids", "text_numbers" if packed else "input_mask", "segment_ids")
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
        if packed:
            rows = PackedRows(causal=causal, name="packed_rows")
            mask, positions = rows(inputs["text_numbers"])
            x = self.embeddings(inputs["input_ids"], inputs["segment_ids"], positions)
        else:
            mask = AttentionMask(causal=causal, name="attention_mask")(inputs["input_mask"])
            x = self.embeddings(inputs["input_ids"], inputs["segment_ids"])
        states, probabilities = [x], []
        for block in self.blocks:
            if attention_probabilities:
                x, attention = ObservedBlock(block)(x, mask)
                probabilities.append(attention)
            else:
                x = block(x, mask)
            states.append(x)
        outputs = self._outputs_of(x)
        if hidden_states:
            outputs["hidden_states"] = tuple(states)
        if attention_probabilities:
            outputs["attention_probabilities"] = tuple(probabilities)
        return inputs, outputs, (states[-2], mask)

    @functools.cached_property
    def _pooled_alone(self):
        """The way to the pooled output that computes the last block for the first token only."""
        first = self.blocks[-1](*self._before_last, first_only=True)  # (B, 1, D)
        return keras.Function(self.input, {"pooled_output": self.pooler(first)})

    def _outputs_of(self, hidden):
        outputs = {"sequence_output": hidden}
        if self.pooler is not None:
            outputs["pooled_output"] = self.pooler(hidden)
        return outputs

    def call(self, inputs, training=None, mask=None, reads=None):
        inputs = check_names(inputs, self.input)
        check_ids(inputs, self.config)
        check_reads(reads, self.output)
        if self._first_is_enough(reads):
            return self._pooled_alone(inputs)
        return super().call(inputs, training=training, mask=mask)

    def compute_output_spec(self, inputs, training=None, mask=None, reads=None):
        check_reads(reads, self.output)
        if self._first_is_enough(reads):
            return self._pooled_alone.compute_output_spec(inputs)
        return super().compute_output_spec(inputs, training=training, mask=mask)

    def _first_is_enough(self, reads):
        """Whether who `reads` these outputs (names; None: all) reads the first token alone."""
        return reads is not None and "sequence_output" not in reads and self.pooler is not None

    def get_config(self):
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.layer_policy),
            "config": self.config.to_dict(),
            "packed": self.packed,
            "joined": self.joined,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**{**config, "config": BertConfig(**config["config"])})


class _NamedInputs(keras.Model):
    """A functional model that refuses a dictionary with other names than its inputs."""

    def call(self, inputs, training=None, mask=None):
        return super().call(check_names(inputs, self.input), training=training, mask=mask)


def check_names(inputs, expected):
    """Gives `inputs` back if its names are those of `expected`.

    A functional model given one name too many takes its inputs by alphabetical order, so that
    `masked_lm_positions` would pass for `segment_ids` with no more than a warning.

    Raises:
        ValueError: they are not.
    """
    if not isinstance(inputs, dict) or set(inputs) != set(expected):
        received = sorted(inputs) if isinstance(inputs, dict) else type(inputs).__name__
        raise ValueError(
            f"The inputs must be a dictionary of {', '.join(expected)}. Received: {received}"
        )
    return inputs


def check_ids(inputs, config):
    """Refuses numbers without a row in the embeddings of a config's encoder.

    In a graph nobody can look at them: on a CPU the lookup ends in TensorFlow's error, on a GPU it
    gives zeros. So it is done where they are still arrays; what is symbolic is let through.

    Args:
        inputs: arrays or tensors by name.
        config: a `BertConfig`.

    Raises:
        InputError: a number is too high or negative.
    """
    rows = {"input_ids": config.vocab_size}
    if config.type_vocab_size > 1:
        rows["segment_ids"] = config.type_vocab_size
    for name, count in rows.items():
        ids = inputs.get(name)
        ids = ids.numpy() if hasattr(ids, "numpy") else ids
        if isinstance(ids, np.ndarray) and ids.size and not 0 <= ids.min() <= ids.max() < count:
            wrong = ids.min() if ids.min() < 0 else ids.max()
            raise InputError(f"`{name}` must be from 0 to {count - 1}. Received: {wrong}")


def check_reads(reads, outputs):
    """Raises ValueError unless `reads` is None or a collection of names of `outputs`."""
    if reads is None:
        return
    if not isinstance(reads, list | tuple | set) or not reads or not set(reads) <= set(outputs):
        raise ValueError(
            f"`reads` must be a list of names of outputs: {', '.join(outputs)}. Received: {reads!r}"
        )
