"""OpenAI GPT and GPT-2: causal Transformers (Radford et al. 2018, 2019)."""

import keras

from keras_bert.encoders import read_config
from keras_bert.encoders.gpt import tensor_names
from keras_bert.encoders.gpt.config import GptConfig
from keras_bert.encoders.transformer import TransformerEncoder


@keras.saving.register_keras_serializable(package="keras_bert")
class GptEncoder(TransformerEncoder):
    """A causal Transformer; an `OpenAIGptConfig` has the norms after sub-layers, GPT-2's before.

    It takes `input_ids` and `input_mask`, or with `sequence_ids` in place of `input_mask` packed
    sequences. See `Encoder` for its outputs.

    Args:
        config: an `OpenAIGptConfig` or a `Gpt2Config`.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: those of `TransformerEncoder`.
    """

    CONFIG = GptConfig
    OBJECTIVES = ("causal-lm",)
    WITHOUT_BIAS = tensor_names.WITHOUT_BIAS

    def __init__(self, config, *, dtype=None, name="gpt_encoder", **kwargs):
        super().__init__(config, dtype=dtype, name=name, **kwargs)
        if config.NORM_FIRST:
            self.scale_residual_outputs()

    def make_embeddings(self):
        return super().make_embeddings(dropout=self.config.embedding_dropout, layer_norm=None)

    def block(self, number):
        return super().block(number, norm_first=self.config.NORM_FIRST)

    def make_last_norm(self):
        return self.norm("last_norm") if self.config.NORM_FIRST else None

    def lm_head(self, *, name="lm_head"):
        """The token embedding, transposed, and nothing else."""
        return self._lm_head(name, use_bias=False)

    @classmethod
    def tensor_names(cls, config):
        return tensor_names.of(config)

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**{**config, "config": read_config(config["config"], source="the config")})
