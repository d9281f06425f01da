"""What `transformers` calls the weights of OpenAI GPT and GPT-2."""

import functools
import re

from keras_bert.base.rename import transposed
from keras_bert.encoders.tensor_names import (
    KEPT,
    ClassNames,
    TensorNames,
    dense,
    embeddings,
    layer_norm,
    transformer_layer,
)

# Task types whose last linear layer has no bias in `transformers`.
WITHOUT_BIAS = ("classifier", "pair-classifier")


def of(config):
    """The `TensorNames` of a `GptConfig`."""
    is_gpt2 = config.model_type == "gpt2"
    tokens, positions = ("wte", "wpe") if is_gpt2 else ("tokens_embed", "positions_embed")
    base = "GPT2" if is_gpt2 else "OpenAIGPT"
    classes = {f"{base}LMHeadModel": ClassNames(task_types=("causal-lm",), heads={"lm_head": ()})}
    classes[f"{base}ForSequenceClassification"] = ClassNames(
        task_types=WITHOUT_BIAS,
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
        sizes={
            "V": config.vocab_size,
            "D": config.hidden_size,
            "E": 3 * config.hidden_size,
            "I": config.intermediate_size,
            "P": config.max_position_embeddings,
        },
        prefix="transformer.",
        classes=classes,
        head_prefixes=("lm_head.", "classifier.", "qa_outputs.", "score.", KEPT),
        copies={"lm_head.weight": f"{tokens}.weight"},
        output_embedding=("lm_head.weight",),
        plain=_plain_name,
    )


def _plain_name(name):
    """Without the prefix of a class with a head, and without the masks that older files hold."""
    name = name.removeprefix("transformer.")
    return None if re.search(r"\.attn\.(masked_)?bias$|position_ids$", name) else name


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
