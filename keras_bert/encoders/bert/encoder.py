"""The encoder of BERT, SpanBERT and RoBERTa, which differ in their config."""

import dataclasses
import re

import keras

from keras_bert.encoders.bert import tensor_names
from keras_bert.encoders.bert.config import READ_THE_POOLER, BertConfig
from keras_bert.encoders.bert.initialization import initialize_local_attention
from keras_bert.encoders.encoder import TransformerEncoder
from keras_bert.heads.lm_head import LMTransform
from keras_bert.heads.pooling import Pooler
from keras_bert.layers.elementwise import LayerNorm
from keras_bert.layers.embeddings import Embeddings
from keras_bert.layers.layout import Layout
from keras_bert.layers.self_attention import SelfAttention
from keras_bert.layers.transformer_block import FeedForward, TransformerBlock


@keras.saving.register_keras_serializable(package="keras_bert")
class BertEncoder(TransformerEncoder):
    """A Transformer encoder (Devlin et al. 2018); `config.is_decoder` makes it causal.

    It takes `input_ids`, `input_mask` and, if the config has segments, `segment_ids`; a packed
    batch has `sequence_ids` instead of `input_mask`. See `Encoder` for its outputs.

    Args:
        config: a `BertConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: `embeddings`, `blocks` (the Transformer layers), `pooler` (a `Pooler`, or None).
    """

    CONFIG = BertConfig
    INPUTS = ("input_ids", "input_mask", "segment_ids", "sequence_ids")
    OBJECTIVES = ("mlm-nsp", "mlm-sop", "mlm", "span", "causal-lm")

    def __init__(self, config, *, dtype=None, name="bert_encoder", **kwargs):
        super().__init__(config, dtype=dtype, name=name, **kwargs)
        common = {"initializer_range": config.initializer_range, "dtype": self.dtype_policy}
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
        self.blocks = [self._block(f"block_{i}", common) for i in range(config.num_hidden_layers)]
        self.pooler = None
        if config.add_pooling_layer:
            self.pooler = Pooler(hidden_size=config.hidden_size, name="pooler", **common)
        self.embeddings.build()
        for block in self.blocks:
            block.build((None, config.hidden_size))
        if self.pooler is not None:
            self.pooler.build()
        self.built = True

    def _block(self, name, common):
        config, dtype = self.config, self.dtype_policy

        def norm(name):
            return LayerNorm(epsilon=config.layer_norm_eps, name=name, dtype=dtype)

        return TransformerBlock(
            attention=SelfAttention(
                hidden_size=config.hidden_size,
                num_heads=config.num_attention_heads,
                dropout=config.attention_probs_dropout_prob,
                output_dropout=config.hidden_dropout_prob,
                name="attention",
                **common,
            ),
            feed_forward=FeedForward(
                hidden_size=config.hidden_size,
                intermediate_size=config.intermediate_size,
                hidden_act=config.hidden_act,
                dropout=config.hidden_dropout_prob,
                name="feed_forward",
                **common,
            ),
            attention_norm=norm("attention_norm"),
            feed_forward_norm=norm("feed_forward_norm"),
            name=name,
            dtype=dtype,
        )

    def call(self, inputs, outputs=("sequence_output",), causal=None, training=None):
        inputs, outputs = self.checked_inputs(inputs), self.checked_outputs(outputs)
        layout = Layout(
            input_mask=inputs.get("input_mask"),
            sequence_ids=inputs.get("sequence_ids"),
            causal=self.config.is_causal if causal is None else causal,
        )
        x = self.embeddings(
            inputs["input_ids"], inputs.get("segment_ids"), layout.positions, training=training
        )  # (B, S, D)
        keeps_states = "hidden_states" in outputs
        cls_only = outputs == ("first_output",)
        states, probabilities = [x], []
        x = layout.unpad(x)  # (R, D)
        for number, block in enumerate(self.blocks, start=1):
            options = {"cls_only": cls_only and number == len(self.blocks), "training": training}
            if "attention_probabilities" in outputs:
                x, attention = block(x, layout=layout, return_probabilities=True, **options)
                probabilities.append(attention)
            else:
                x = block(x, layout=layout, **options)
            if keeps_states:
                states.append(layout.pad(x))
        results = {"hidden_states": tuple(states), "attention_probabilities": tuple(probabilities)}
        if "sequence_output" in outputs:
            results["sequence_output"] = states[-1] if keeps_states else layout.pad(x)  # (B, S, D)
        if "first_output" in outputs:
            results["first_output"] = x if cls_only else layout.first(x)  # (B, D)
        return {name: results[name] for name in outputs}

    def embed_step(self, ids, index):
        return self.embeddings(ids, None, index, training=False)

    @property
    def layer_groups(self):
        return [[self.embeddings], *([block] for block in self.blocks)]

    @property
    def default_pooling(self):
        """[CLS] if there is a pooler: a masked LM trains neither."""
        if self.config.is_causal:
            return "last"
        return "mean" if self.pooler is None else "cls"

    def head_transform(self, kind):
        """The pooler, for the kinds of task whose class in `transformers` reads it."""
        return self.pooler if kind in READ_THE_POOLER else None

    def lacks_head_transform(self, kind):
        """Whether the kind reads the pooler and the weights have none, as those of a masked LM."""
        return kind in READ_THE_POOLER and self.pooler is None

    def with_head_transform(self, kind):
        return self.rebuilt(add_pooling_layer=True) if self.lacks_head_transform(kind) else self

    def lm_head(self, *, name="lm_head"):
        """BERT's masked-LM head: a dense layer, activation, LayerNorm, and the tied embedding."""
        config = self.config
        transform = LMTransform(
            hidden_size=config.hidden_size,
            hidden_act=config.hidden_act,
            layer_norm_eps=config.layer_norm_eps,
            initializer_range=config.initializer_range,
            dtype=self.layer_policy,
            name="transform",
        )
        return self._lm_head(name, transform=transform)

    @property
    def token_embedding(self):
        return self.embeddings.token_embedding

    @classmethod
    def tensor_names(cls, config):
        return tensor_names.of(config)

    @classmethod
    def completed_config(cls, config, *, given, tensors):
        """Adds `add_pooling_layer`, which Hugging Face's config lacks, from the tensors.

        A class without a pooler may have the key nevertheless: `transformers` keeps it in the
        config, and drops the pooler's tensors.
        """
        has_pooler = any(
            re.search(r"(^|\.)pooler\.|^classifier\.dense\.", name) for name in tensors
        )
        classes = given.get("architectures")
        class_name = str(classes[0]) if isinstance(classes, list) and classes else None
        names = cls.tensor_names(config).classes.get(class_name)
        if "add_pooling_layer" in given and (has_pooler or names is None or names.transform):
            return config
        return dataclasses.replace(config, add_pooling_layer=has_pooler)

    def initialize_local_attention(self):
        initialize_local_attention(self)
