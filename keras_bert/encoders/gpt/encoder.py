"""OpenAI GPT and GPT-2: causal Transformers (Radford et al. 2018, 2019)."""

import functools
import re
from typing import Any, Self

import keras

from keras_bert.base.rename import transposed
from keras_bert.encoders import read_config
from keras_bert.encoders.gpt import GptConfig
from keras_bert.encoders.tensor_names import (
    KEPT,
    ClassNames,
    TensorNames,
    dense,
    embeddings,
    layer_norm,
    sizes_of,
    transformer_layer,
)
from keras_bert.encoders.transformer import TransformerEncoder
from keras_bert.heads.lm_head import LMHead
from keras_bert.layers.elementwise import LayerNorm
from keras_bert.layers.embeddings import Embeddings
from keras_bert.layers.transformer_block import TransformerBlock


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
    WITHOUT_BIAS = ("classifier", "pair-classifier")

    def __init__(
        self,
        config: GptConfig,
        *,
        dtype: Any = None,
        name: str | None = "gpt_encoder",
        **kwargs: Any,
    ):
        super().__init__(config, dtype=dtype, name=name, **kwargs)
        if config.NORM_FIRST:
            self.scale_residual_outputs()

    def make_embeddings(self) -> Embeddings:
        return super().make_embeddings(dropout=self.config.embedding_dropout, layer_norm=None)

    def block(self, number: int) -> TransformerBlock:
        return super().block(number, norm_first=self.config.NORM_FIRST)

    def make_last_norm(self) -> LayerNorm | None:
        return self.norm("last_norm") if self.config.NORM_FIRST else None

    def lm_head(self, *, name: str = "lm_head") -> LMHead:
        """The token embedding, transposed, and nothing else."""
        return self._lm_head(name, use_bias=False)

    @classmethod
    def tensor_names(cls, config: GptConfig) -> TensorNames:
        return _tensor_names(config)

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Self:
        return cls(**{**config, "config": read_config(config["config"], source="the config")})


# `Conv1D` has kernels as ours.
_conv = functools.partial(dense, transposed=False)

_LAYER = transformer_layer(
    query_key_value="h.{i}.attn.c_attn",
    projection="h.{i}.attn.c_proj",
    attention_norm="h.{i}.ln_1",
    dense_in="h.{i}.mlp.c_fc",
    dense_out="h.{i}.mlp.c_proj",
    feed_forward_norm="h.{i}.ln_2",
    dense=_conv,
)


def _tensor_names(config):
    """The `TensorNames` of a `GptConfig`."""
    is_gpt2 = config.model_type == "gpt2"
    tokens, positions = ("wte", "wpe") if is_gpt2 else ("tokens_embed", "positions_embed")
    base = "GPT2" if is_gpt2 else "OpenAIGPT"
    classes = {f"{base}LMHeadModel": ClassNames(task_types=("causal-lm",), heads={"lm_head": ()})}
    classes[f"{base}ForSequenceClassification"] = ClassNames(
        task_types=GptEncoder.WITHOUT_BIAS,
        heads={"classifier": [transposed("classifier.kernel", "score.weight", "D C")]},
        pooling="last",
    )
    if is_gpt2:
        classes["GPT2ForTokenClassification"] = ClassNames(
            task_types=("tagger",), heads={"classifier": dense("classifier", "classifier", "D C")}
        )
        classes["GPT2ForQuestionAnswering"] = ClassNames(
            task_types=("question-answering",),
            heads={"qa_outputs": dense("qa_outputs", "qa_outputs", "D 2")},
        )
    return TensorNames(
        base_class=f"{base}Model",
        encoder=[
            *embeddings(f"{tokens}.weight", positions=f"{positions}.weight"),
            *_LAYER,
            *(layer_norm("last_norm", "ln_f") if is_gpt2 else ()),
        ],
        layers=config.num_hidden_layers,
        sizes=sizes_of(config),
        prefix="transformer.",
        classes=classes,
        head_prefixes=("lm_head.", "classifier.", "qa_outputs.", "score.", KEPT),
        copies={"lm_head.weight": f"{tokens}.weight"},
        plain=_plain_name,
    )


def _plain_name(name):
    """Without the prefix of a class with a head, and without the masks that older files hold."""
    name = name.removeprefix("transformer.")
    return None if re.search(r"\.attn\.(masked_)?bias$|position_ids$", name) else name
