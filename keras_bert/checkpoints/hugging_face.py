"""The names that Hugging Face's `transformers` gives to BERT's and RoBERTa's tensors."""

import re

from keras_bert.checkpoints import rename
from keras_bert.checkpoints.rename import Rename, transposed
from keras_bert.errors import InputError


def _dense(ours, theirs, shape):
    return [
        transposed(f"{ours}.kernel", f"{theirs}.weight", shape),
        Rename(f"{ours}.bias", f"{theirs}.bias", shape.split()[-1]),
    ]


def _norm(ours, theirs):
    return [
        Rename(f"{ours}.gamma", f"{theirs}.weight", "D"),
        Rename(f"{ours}.beta", f"{theirs}.bias", "D"),
    ]


_LAYER = "encoder.layer.{i}"

ENCODER = [
    Rename("embeddings.token_embedding.embeddings", "embeddings.word_embeddings.weight", "V D"),
    Rename(
        "embeddings.position_embedding.embeddings", "embeddings.position_embeddings.weight", "P D"
    ),
    Rename(
        "embeddings.segment_embedding.embeddings", "embeddings.token_type_embeddings.weight", "T D"
    ),
    *_norm("embeddings.layer_norm", "embeddings.LayerNorm"),
    *_dense("blocks.{i}.attention.query", f"{_LAYER}.attention.self.query", "D D"),
    *_dense("blocks.{i}.attention.key", f"{_LAYER}.attention.self.key", "D D"),
    *_dense("blocks.{i}.attention.value", f"{_LAYER}.attention.self.value", "D D"),
    *_dense("blocks.{i}.attention.projection", f"{_LAYER}.attention.output.dense", "D D"),
    *_norm("blocks.{i}.attention_norm", f"{_LAYER}.attention.output.LayerNorm"),
    *_dense("blocks.{i}.feedforward_in", f"{_LAYER}.intermediate.dense", "D I"),
    *_dense("blocks.{i}.feedforward_out", f"{_LAYER}.output.dense", "I D"),
    *_norm("blocks.{i}.feedforward_norm", f"{_LAYER}.output.LayerNorm"),
]

# Before the names of tensors that `transformers` has no place for.
KEPT = "keras_bert."

# Where a class of `transformers` has what is a pooler here: in the encoder; nowhere, so that it is
# kept under a name of ours; or in its head, which is a pooler and a linear layer over it.
POOLERS = {"encoder": "pooler", "none": f"{KEPT}pooler", "head": "classifier"}

# What transformers has no name for, of a `MixedEncoder`; K is its number of layers.
SCALAR_MIX = [
    Rename("scalar_mix.scores", "keras_bert.scalar_mix.scores", "K"),
    Rename("scalar_mix.gamma", "keras_bert.scalar_mix.gamma", "1"),
]

# The heads of tasks, by the attribute that the task has them under; `out_proj` is the `classifier`
# of a class that has its pooler in its head.
HEADS = {
    "bert": {
        "masked_lm_head": [
            *_dense("masked_lm_head.dense", "cls.predictions.transform.dense", "D D"),
            *_norm("masked_lm_head.layer_norm", "cls.predictions.transform.LayerNorm"),
            Rename("masked_lm_head.bias", "cls.predictions.bias", "V"),
        ],
        "next_sentence_head": _dense("next_sentence_head.dense", "cls.seq_relationship", "D 2"),
        "classifier": _dense("classifier", "classifier", "D C"),
        "choice_classifier": _dense("classifier", "classifier", "D 1"),
        "scorer": _dense("scorer", "classifier", "D 1"),
        "qa_outputs": _dense("qa_outputs", "qa_outputs", "D 2"),
    },
    "roberta": {
        "masked_lm_head": [
            *_dense("masked_lm_head.dense", "lm_head.dense", "D D"),
            *_norm("masked_lm_head.layer_norm", "lm_head.layer_norm"),
            Rename("masked_lm_head.bias", "lm_head.bias", "V"),
        ],
        "classifier": _dense("classifier", "classifier", "D C"),
        "out_proj": _dense("classifier", "classifier.out_proj", "D C"),
        "choice_classifier": _dense("classifier", "classifier", "D 1"),
        "scorer_out_proj": _dense("scorer", "classifier.out_proj", "D 1"),
        "qa_outputs": _dense("qa_outputs", "qa_outputs", "D 2"),
    },
}

# Every tensor under these belongs to some head, not to the encoder.
HEAD_PREFIXES = ("cls.", "lm_head.", "classifier.", "qa_outputs.", "keras_bert.")

# Copies of the token embedding and of the output bias that some writers keep.
DECODERS = ("cls.predictions.decoder", "lm_head.decoder")
DECODER_BIAS = {
    "cls.predictions.decoder": "cls.predictions.bias",
    "lm_head.decoder": "lm_head.bias",
}
TOKEN_EMBEDDING = "embeddings.word_embeddings.weight"

# Numbers 0, 1, 2 … that older versions of transformers stored as if they were weights.
_BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")


def plain_names(names, model_type, *, pooler="encoder", source):
    """Maps names without the quirks of their writers to the names in the file.

    Taken away: the `bert.` or `roberta.` that a model with a head puts before its encoder's
    tensors, `gamma` and `beta` for a LayerNorm's weight and bias (files converted from TensorFlow
    in 2018 and 2019), and stored position ids. A pooler that we kept for an architecture without
    one is a pooler again, and so is the one that an architecture has in its head; one that is in
    the encoder as well (files of 2019) was never used.

    Args:
        names: the names in the file.
        model_type: the config's.
        pooler: where the architecture has its pooler (see `POOLERS`).
        source: the folder, for messages.

    Returns:
        a dictionary from the plain name to the file's.

    Raises:
        InputError: two names in the file are one without the quirks.
    """
    plain = {}
    for name in names:
        short = name.removeprefix(f"{model_type}.")
        if pooler == "head":
            if short.startswith("pooler."):
                continue
            short = re.sub(rf"^{POOLERS[pooler]}\.dense\.", "pooler.dense.", short)
        elif short.startswith(f"{KEPT}pooler."):
            short = short.removeprefix(KEPT)
        short = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", short)
        short = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", short)
        if short in _BUFFERS:
            continue
        if short in plain:
            raise InputError(
                f"{source} holds {plain[short]} and {name}, two tensors for one weight; it should "
                "hold one of them."
            )
        plain[short] = name
    return plain


def encoder_prefix(architecture, model_type):
    """What stands before the encoder's names: nothing in a bare model, `bert.` under a head."""
    return "" if architecture.endswith("Model") else f"{model_type}."


def encoder_table(config, *, bare_prefix="", pooler="encoder"):
    """The encoder's lines for every block, and the pooler's where there is one.

    Args:
        config: a `BertConfig`.
        bare_prefix: what stands before the names (see `encoder_prefix`).
        pooler: where the architecture has its pooler (see `POOLERS`).
    """
    table = rename.under(ENCODER, theirs=bare_prefix)
    if config.add_pooling_layer:
        lines = _dense("pooler.dense", f"{POOLERS[pooler]}.dense", "D D")
        table += rename.under(lines, theirs=bare_prefix if pooler == "encoder" else "")
    return rename.expand(table, config.num_hidden_layers)
