"""The one stack of Transformer layers: what all Transformer encoders build, call and cache."""

import math
from collections.abc import Collection
from typing import Any

import keras
from keras import ops

from keras_bert.encoders.encoder import Encoder
from keras_bert.heads.lm_head import LMHead, LMTransform
from keras_bert.layers import Tensor
from keras_bert.layers.elementwise import LayerNorm
from keras_bert.layers.embeddings import Embeddings
from keras_bert.layers.layout import Layout, StepLayout
from keras_bert.layers.recomputing import recomputed
from keras_bert.layers.self_attention import SelfAttention
from keras_bert.layers.transformer_block import FeedForward, TransformerBlock


class TransformerEncoder(Encoder):
    """Embeddings and Transformer layers.

    A subclass says what differs: it overrides `make_positions`, `make_embeddings`, `block` and
    `norm` with other options of their layers, `make_blocks` and `make_last_norm`.

    Attributes: `positions` (a `Positions`, or None), `embeddings`, `blocks` (the Transformer
    layers), `last_norm` (the norm after them, or None).
    """

    INPUTS = ("input_ids", "input_mask", "segment_ids", "sequence_ids")
    CAN_RECOMPUTE = True

    def __init__(
        self,
        config: Any,
        *,
        dtype: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(config, dtype=dtype, name=name, **kwargs)
        self.positions = self.make_positions()
        self.embeddings = self.make_embeddings()
        self.blocks = self.make_blocks()
        self.last_norm = self.make_last_norm()
        self.embeddings.build()
        for layer in dict.fromkeys((self.positions, *self.blocks, self.last_norm)):
            if layer is not None:
                layer.build((None, config.hidden_size))
        self.built = True

    # The layers.

    @property
    def _common(self):
        """Arguments of every layer with weights."""
        return {
            "hidden_size": self.config.hidden_size,
            "initializer_range": self.config.initializer_range,
            "dtype": self.dtype_policy,
        }

    def make_positions(self) -> keras.layers.Layer | None:
        """The `Positions` of all layers; None if the embeddings alone have positions."""
        return None

    def make_embeddings(self, **options: Any) -> Embeddings:
        """The `Embeddings`; `options` are those of its arguments that differ from BERT's."""
        config = self.config
        usual = {
            "vocab_size": config.vocab_size,
            "max_position_embeddings": config.max_position_embeddings,
            "dropout": config.hidden_dropout_prob,
            "layer_norm": self.norm("layer_norm"),
        }
        return Embeddings(**{**usual, **self._common, **options}, name="embeddings")

    def make_blocks(self) -> list[TransformerBlock]:
        """The Transformer layers in their order, of which several may be one layer."""
        return [self.block(number) for number in range(self.config.num_hidden_layers)]

    def block(
        self,
        number: int,
        *,
        attention: dict[str, Any] | None = None,
        feed_forward: dict[str, Any] | None = None,
        **options: Any,
    ) -> TransformerBlock:
        """The Transformer layer of that number, from 0.

        Args:
            attention, feed_forward: arguments of `SelfAttention` and `FeedForward` that differ
                from BERT's, by name.
            **options: those of `TransformerBlock`.
        """
        config = self.config
        usual_attention = {
            "num_heads": config.num_attention_heads,
            "dropout": config.attention_probs_dropout_prob,
            "output_dropout": config.hidden_dropout_prob,
            "positions": self.positions,
            **self._common,
        }
        usual_feed_forward = {
            "intermediate_size": config.intermediate_size,
            "hidden_act": config.hidden_act,
            "dropout": config.hidden_dropout_prob,
            **self._common,
        }
        parts = {
            "attention": SelfAttention(
                **{**usual_attention, **(attention or {})}, name="attention"
            ),
            "feed_forward": FeedForward(
                **{**usual_feed_forward, **(feed_forward or {})}, name="feed_forward"
            ),
            "attention_norm": self.norm("attention_norm"),
            "feed_forward_norm": self.norm("feed_forward_norm"),
        }
        return TransformerBlock(
            **{**parts, **options}, name=f"block_{number}", dtype=self.dtype_policy
        )

    def norm(self, name: str, **options: Any) -> LayerNorm:
        """A new norm; `options` are those of its arguments that differ from BERT's."""
        epsilon = self.config.layer_norm_eps
        return LayerNorm(epsilon=epsilon, name=name, dtype=self.dtype_policy, **options)

    def make_last_norm(self) -> LayerNorm | None:
        """The norm after the last layer, or None."""
        return None

    def lm_transform(self, **options: Any) -> LMTransform:
        """A new `LMTransform`: BERT's layers before the output embedding of a masked LM.

        `options` are those of its arguments that differ from BERT's.
        """
        config = self.config
        usual = {
            "hidden_size": config.hidden_size,
            "output_size": self.token_embedding.output_dim,
            "hidden_act": config.hidden_act,
            "layer_norm_eps": config.layer_norm_eps,
            "initializer_range": config.initializer_range,
            "dtype": self.layer_policy,
            "name": "transform",
        }
        return LMTransform(**{**usual, **options})

    def lm_head(self, *, name: str = "lm_head") -> LMHead:
        """BERT's masked-LM head: a dense layer, activation, LayerNorm, and the tied embedding."""
        return self._lm_head(name, transform=self.lm_transform())

    def scale_residual_outputs(self) -> None:
        """Scales what 2 L sub-layers add to the residual stream to the size of one."""
        scale = 1 / math.sqrt(2 * self.config.num_hidden_layers)
        for block in self.blocks:
            for layer in (block.attention.projection, block.feed_forward.dense_out):
                layer.kernel.assign(layer.kernel * scale)

    @property
    def layer_groups(self) -> list[list[keras.layers.Layer]]:
        first = [layer for layer in (self.embeddings, self.positions) if layer is not None]
        groups = [first, *([block] for block in dict.fromkeys(self.blocks))]
        if self.last_norm is not None:
            groups[-1].append(self.last_norm)
        return groups

    @property
    def default_lora_layers(self) -> tuple[str, ...]:
        kernel, parts = "blocks.{i}.attention.query_key_value.kernel", (None, (0, 3), (2, 3))
        lines = self.tensor_names(self.config).encoder
        lines = [line for line in lines if line.ours == kernel and line.part in parts]
        return tuple(line.theirs.split(".")[-2] for line in lines)

    @property
    def token_embedding(self) -> keras.layers.Embedding:
        return self.embeddings.token_embedding

    # Whole sequences.

    def call(
        self,
        inputs: dict[str, Tensor],
        outputs: Collection[str] = ("sequence_output",),
        causal: bool | None = None,
        training: bool | None = None,
    ) -> dict[str, Tensor]:
        inputs, outputs = self.checked_inputs(inputs), self.checked_outputs(outputs)
        layout = Layout(
            input_mask=inputs.get("input_mask"),
            sequence_ids=inputs.get("sequence_ids"),
            causal=self.config.is_causal if causal is None else causal,
        )
        x = self.embeddings(
            inputs["input_ids"],
            inputs.get("segment_ids"),
            layout.positions if layout.is_packed else None,
            training=training,
        )  # (B, S, D)
        has_states = "hidden_states" in outputs
        cls_only = outputs == ("first_output",)
        states, probabilities = [x], []
        shared = () if self.positions is None else (self.positions,)
        x = layout.unpad(x)  # (R, D)
        for number, block in enumerate(self.blocks, start=1):
            is_last = number == len(self.blocks)
            options = {"cls_only": cls_only and is_last, "training": training}
            if self.recomputes and training:
                block = recomputed(block, *shared)
            if "attention_probabilities" in outputs:
                x, attention = block(x, layout=layout, return_probabilities=True, **options)
                probabilities.append(attention)
            else:
                x = block(x, layout=layout, **options)
            if is_last and self.last_norm is not None:
                x = self.last_norm(x)
            if has_states:
                states.append(layout.pad(x))
        computed = {"hidden_states": tuple(states), "attention_probabilities": tuple(probabilities)}
        if "sequence_output" in outputs:
            computed["sequence_output"] = states[-1] if has_states else layout.pad(x)  # (B, S, D)
        if "first_output" in outputs:
            computed["first_output"] = x if cls_only else layout.first(x)  # (B, D)
        return {name: computed[name] for name in outputs}

    # One token at a time. The cache is the keys and values of each block.

    def initial_cache(self, batch_size: int, max_length: int) -> Any:
        return [block.initial_cache(batch_size, max_length) for block in self.blocks]

    def prefill(self, inputs: dict[str, Tensor], max_length: int) -> tuple[Tensor, Any]:
        # All positions at once; keys and values are computed a second time, from their inputs.
        states = self(inputs, outputs=("hidden_states",), causal=True)["hidden_states"]
        is_token = ops.cast(inputs["input_mask"], "bool")
        blocks = zip(self.blocks, states, strict=False)
        return states[-1], [block.cache_of(x, is_token, max_length) for block, x in blocks]

    def step(self, ids: Tensor, cache: Any, index: Tensor) -> tuple[Tensor, Any]:
        x = self.embeddings(ids[:, None], None, index[:, None], training=False)[:, 0]  # (B, D)
        keys, _ = cache[0]
        layout = StepLayout(index, keys)
        caches = []
        for block, block_cache in zip(self.blocks, cache, strict=True):
            x, block_cache = block.step(x, block_cache, layout)
            caches.append(block_cache)
        return (x if self.last_norm is None else self.last_norm(x)), caches
