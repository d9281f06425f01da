"""The encoder of BERT and SpanBERT (Devlin et al. 2018; Joshi et al. 2019)."""

import dataclasses
import re

import keras

from keras_bert.encoders.bert import tensor_names
from keras_bert.encoders.bert.config import READ_THE_POOLER, BertConfig
from keras_bert.encoders.bert.initialization import initialize_local_attention
from keras_bert.encoders.transformer import TransformerEncoder
from keras_bert.heads.pooling import Pooler


@keras.saving.register_keras_serializable(package="keras_bert")
class BertEncoder(TransformerEncoder):
    """A Transformer encoder (Devlin et al. 2018); `config.is_decoder` makes it causal.

    It takes `input_ids`, `input_mask` and, if the config has segments, `segment_ids`; a packed
    batch has `sequence_ids` instead of `input_mask`. See `Encoder` for its outputs.

    Args:
        config: a `BertConfig`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: those of `TransformerEncoder`, and `pooler` (a `Pooler`, or None).
    """

    CONFIG = BertConfig
    OBJECTIVES = ("mlm-nsp", "mlm-sop", "mlm", "span", "causal-lm")

    def __init__(self, config, *, dtype=None, name="bert_encoder", **kwargs):
        super().__init__(config, dtype=dtype, name=name, **kwargs)
        self.pooler = None
        if config.add_pooling_layer:
            self.pooler = Pooler(name="pooler", **self._common)
            self.pooler.build()

    def make_embeddings(self):
        return super().make_embeddings(
            position_offset=self.config.position_offset,
            type_vocab_size=self.config.type_vocab_size,
        )

    @property
    def default_pooling(self):
        """[CLS] if there is a pooler: a masked LM trains neither."""
        if self.config.is_causal:
            return "last"
        return "mean" if self.pooler is None else "cls"

    def head_transform(self, task_type):
        """The pooler, for the task types whose class in `transformers` reads it."""
        return self.pooler if task_type in READ_THE_POOLER else None

    def lacks_head_transform(self, task_type):
        """Whether the task reads the pooler and the weights have none, as those of a masked LM."""
        return task_type in READ_THE_POOLER and self.pooler is None

    def with_head_transform(self, task_type):
        return (
            self.rebuilt(add_pooling_layer=True) if self.lacks_head_transform(task_type) else self
        )

    def lm_head(self, *, name="lm_head"):
        """BERT's masked-LM head: a dense layer, activation, LayerNorm, and the tied embedding."""
        return self._lm_head(name, transform=self.lm_transform())

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
