"""OpenAI GPT and GPT-2: causal Transformers (Radford et al. 2018, 2019)."""

import math

import keras
from keras import ops

from keras_bert.encoders import read_config
from keras_bert.encoders.encoder import TransformerEncoder
from keras_bert.encoders.gpt import tensor_names
from keras_bert.encoders.gpt.config import GptConfig
from keras_bert.heads.lm_head import LMHead
from keras_bert.layers.dense import initializer
from keras_bert.layers.elementwise import Dropout, LayerNorm
from keras_bert.layers.embeddings import embedded, embedding_table
from keras_bert.layers.layout import Layout
from keras_bert.layers.self_attention import SelfAttention
from keras_bert.layers.transformer_block import FeedForward, TransformerBlock


@keras.saving.register_keras_serializable(package="keras_bert")
class GptEncoder(TransformerEncoder):
    """A causal Transformer; an `OpenAIGptConfig` has the norms after sub-layers, GPT-2's before.

    It takes `input_ids` and `input_mask`, or with `sequence_ids` in place of `input_mask` packed
    sequences. See `Encoder` for its outputs.

    Args:
        config: an `OpenAIGptConfig` or a `Gpt2Config`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: `token_embedding`, `position_embedding`, `blocks` (the Transformer layers),
    `last_norm` (the norm after them, or None).
    """

    CONFIG = GptConfig
    INPUTS = ("input_ids", "input_mask", "sequence_ids")
    OBJECTIVES = ("causal-lm",)
    WITHOUT_BIAS = tensor_names.WITHOUT_BIAS

    def __init__(self, config, *, dtype=None, name="gpt_encoder", **kwargs):
        super().__init__(config, dtype=dtype, name=name, **kwargs)
        size = config.hidden_size
        self._token_embedding = self._table(config.vocab_size, "token_embedding")
        self.position_embedding = self._table(config.n_positions, "position_embedding")
        self.dropout = Dropout(rate=config.embd_pdrop, name="dropout", dtype=self.dtype_policy)
        self.blocks = [self._block(f"block_{i}") for i in range(config.n_layer)]
        self.last_norm = self._norm("last_norm") if config.NORM_FIRST else None
        self._token_embedding.build()
        self.position_embedding.build()
        for block in self.blocks:
            block.build((None, size))
        if self.last_norm is not None:
            self.last_norm.build((None, size))
            # What 2 L sub-layers add to the residual stream is to have the size of one.
            scale = 1 / math.sqrt(2 * config.n_layer)
            for block in self.blocks:
                for layer in (block.attention.projection, block.feed_forward.dense_out):
                    layer.kernel.assign(layer.kernel * scale)
        self.built = True

    def _table(self, rows, name):
        config = self.config
        return keras.layers.Embedding(
            rows,
            config.hidden_size,
            embeddings_initializer=initializer(config.initializer_range),
            name=name,
            dtype=self.dtype_policy,
        )

    def _norm(self, name):
        return LayerNorm(epsilon=self.config.layer_norm_epsilon, name=name, dtype=self.dtype_policy)

    def _block(self, name):
        config = self.config
        common = {
            "hidden_size": config.hidden_size,
            "initializer_range": config.initializer_range,
            "dtype": self.dtype_policy,
        }
        return TransformerBlock(
            attention=SelfAttention(
                num_heads=config.n_head,
                dropout=config.attn_pdrop,
                output_dropout=config.resid_pdrop,
                name="attention",
                **common,
            ),
            feed_forward=FeedForward(
                intermediate_size=config.intermediate_size,
                hidden_act=config.activation,
                dropout=config.resid_pdrop,
                name="feed_forward",
                **common,
            ),
            attention_norm=self._norm("attention_norm"),
            feed_forward_norm=self._norm("feed_forward_norm"),
            norm_first=config.NORM_FIRST,
            name=name,
            dtype=self.dtype_policy,
        )

    def call(self, inputs, outputs=("sequence_output",), causal=None, training=None):
        inputs, outputs = self.checked_inputs(inputs), self.checked_outputs(outputs)
        layout = Layout(
            input_mask=inputs.get("input_mask"),
            sequence_ids=inputs.get("sequence_ids"),
            causal=True if causal is None else causal,
        )
        x = self._embed(inputs["input_ids"], layout.positions)
        x = self.dropout(x, training=training)  # (B, S, D)
        states, probabilities = [x], []
        x = layout.unpad(x)  # (R, D)
        for block in self.blocks:
            if "attention_probabilities" in outputs:
                x, attention = block(x, layout=layout, training=training, return_probabilities=True)
                probabilities.append(attention)
            else:
                x = block(x, layout=layout, training=training)
            if self.last_norm is not None and block is self.blocks[-1]:
                x = self.last_norm(x)
            if "hidden_states" in outputs:
                states.append(layout.pad(x))
        results = {"hidden_states": tuple(states), "attention_probabilities": tuple(probabilities)}
        if "sequence_output" in outputs:
            results["sequence_output"] = layout.pad(x)  # (B, S, D)
        if "first_output" in outputs:
            results["first_output"] = layout.first(x)  # (B, D)
        return {name: results[name] for name in outputs}

    def _embed(self, ids, positions):
        """Ids and positions (B, S), or None for 0, 1, … -> the sum of their vectors (B, S, D)."""
        x = embedded(self._token_embedding, ids, dtype=self.compute_dtype)
        if positions is not None:
            return x + embedded(self.position_embedding, positions, dtype=self.compute_dtype)
        length = ids.shape[1]
        if length is not None and length > self.config.n_positions:
            raise ValueError(
                "The sequence is longer than the model has positions. "
                f"Received: length={length}, positions={self.config.n_positions}."
            )
        table = embedding_table(self.position_embedding, dtype=self.compute_dtype)
        return x + table[: ops.shape(ids)[1]]  # (S, D) to each

    def embed_step(self, ids, index):
        return self._embed(ids, index)

    # The contract.

    @property
    def layer_groups(self):
        blocks = [[block] for block in self.blocks]
        if self.last_norm is not None:
            blocks[-1].append(self.last_norm)
        return [[self._token_embedding, self.position_embedding], *blocks]

    @property
    def token_embedding(self):
        return self._token_embedding

    def lm_head(self, *, name="lm_head"):
        """The token embedding, transposed, and nothing else."""
        return LMHead(
            token_embedding=self._token_embedding,
            transform=None,
            use_bias=False,
            dtype=self.layer_policy,
            name=name,
        )

    @classmethod
    def tensor_names(cls, config):
        return tensor_names.of(config)

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**{**config, "config": read_config(config["config"], source="the config")})
