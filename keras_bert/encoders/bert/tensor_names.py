"""The names of the weights of BERT and RoBERTa in transformers, google-research/bert, keras-nlp."""

import functools
import re

from keras_bert.base.rename import Rename
from keras_bert.encoders.tensor_names import KEPT, ClassNames, TensorNames, dense, layer_norm

_PARTS = ("query", "key", "value")  # of `query_key_value`, in this order


def of(config):
    """The `TensorNames` of a `BertConfig`."""
    is_roberta = config.model_type == "roberta"
    return TensorNames(
        base_class="RobertaModel" if is_roberta else "BertModel",
        encoder=ENCODER,
        layers=config.num_hidden_layers,
        sizes=sizes_of(config),
        transform=dense("pooler.dense", "dense", "D D") if config.add_pooling_layer else (),
        prefix=f"{config.model_type}.",
        classes=_ROBERTA if is_roberta else _BERT,
        foreign_classes=(
            dict.fromkeys(_BERT, "bert") if is_roberta else dict.fromkeys(_ROBERTA, "roberta")
        ),
        head_prefixes=("cls.", "lm_head.", "classifier.", "qa_outputs.", KEPT),
        copies={
            "cls.predictions.decoder.weight": _TOKEN_EMBEDDING,
            "cls.predictions.decoder.bias": "cls.predictions.bias",
            "lm_head.decoder.weight": _TOKEN_EMBEDDING,
            "lm_head.decoder.bias": "lm_head.bias",
        },
        output_embedding=("cls.predictions.decoder.weight", "lm_head.decoder.weight"),
        plain=_plain_name(config.model_type),
    )


def sizes_of(config):
    """The sizes that the letters of the shapes stand for, but for the labels of a task, C."""
    return {
        "V": config.vocab_size,
        "D": config.hidden_size,
        "I": config.intermediate_size,
        "N": config.num_attention_heads,
        "H": config.hidden_size // config.num_attention_heads,
        "P": config.max_position_embeddings,
        "T": config.type_vocab_size,
    }


def _plain_name(model_type):
    """A function from a name in a file to the plain name, without the variants of its writers.

    They are the prefix `bert.` or `roberta.` of the encoder in a model with a head, `gamma` and
    `beta` for a LayerNorm's weight and bias (files converted from TensorFlow in 2018 and 2019), and
    the numbers 0, 1, 2 … that older versions stored as if they were weights.
    """
    buffers = ("embeddings.position_ids", "embeddings.token_type_ids")

    def plain(name):
        name = name.removeprefix(f"{model_type}.")
        name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
        name = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)
        return None if name in buffers else name

    return plain


def _query_key_value(dense, theirs):
    """The lines of the parts of `query_key_value`, whose names begin so in the other format."""
    ours = "blocks.{i}.attention.query_key_value"
    return [
        line
        for k, part in enumerate(_PARTS)
        for line in dense(ours, theirs + part, "D D", part=(k, 3))
    ]


# transformers.

_TOKEN_EMBEDDING = "embeddings.word_embeddings.weight"
_LAYER = "encoder.layer.{i}"

ENCODER = [
    Rename("embeddings.token_embedding.embeddings", _TOKEN_EMBEDDING, "V D"),
    Rename(
        "embeddings.position_embedding.embeddings", "embeddings.position_embeddings.weight", "P D"
    ),
    Rename(
        "embeddings.segment_embedding.embeddings", "embeddings.token_type_embeddings.weight", "T D"
    ),
    *layer_norm("embeddings.layer_norm", "embeddings.LayerNorm"),
    *_query_key_value(dense, f"{_LAYER}.attention.self."),
    *dense("blocks.{i}.attention.projection", f"{_LAYER}.attention.output.dense", "D D"),
    *layer_norm("blocks.{i}.attention_norm", f"{_LAYER}.attention.output.LayerNorm"),
    *dense("blocks.{i}.feed_forward.dense_in", f"{_LAYER}.intermediate.dense", "D I"),
    *dense("blocks.{i}.feed_forward.dense_out", f"{_LAYER}.output.dense", "I D"),
    *layer_norm("blocks.{i}.feed_forward_norm", f"{_LAYER}.output.LayerNorm"),
]


def _lm_head(transform, norm, bias):
    return {
        "lm_head": [
            *dense("lm_head.transform.dense", transform, "D D"),
            *layer_norm("lm_head.transform.layer_norm", norm),
            Rename("lm_head.bias", bias, "V"),
        ]
    }


_NEXT_SENTENCE = {
    "next_sentence_head": dense("next_sentence_head.dense", "cls.seq_relationship", "D 2")
}
_BERT_LM = _lm_head(
    "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"
)
_ROBERTA_LM = _lm_head("lm_head.dense", "lm_head.layer_norm", "lm_head.bias")


def _classes(model, lm_head, *, causal, labels="classifier", transform="pooler"):
    """The classes of BERT and RoBERTa alike.

    `labels` is the name of the linear layer over a whole text: a logit per label, or the score of a
    regression.
    """
    tags = {"classifier": dense("classifier", "classifier", "D C")}
    answer = {"qa_outputs": dense("qa_outputs", "qa_outputs", "D 2")}
    choice = {"classifier": dense("classifier", "classifier", "D 1")}
    label = {
        "classifier": dense("classifier", labels, "D C"),
        "scorer": dense("scorer", labels, "D 1"),
    }
    masked = ("fill-mask", "span-pretrainer", "masked-causal-lm")
    texts = ("classifier", "pair-classifier", "regression")
    return {
        f"{model}ForMaskedLM": ClassNames(task_types=masked, heads=lm_head, transform=None),
        causal: ClassNames(task_types=("causal-lm",), heads=lm_head, transform=None),
        f"{model}ForSequenceClassification": ClassNames(
            task_types=texts,
            heads=label,
            pooling="cls",
            transform=transform,
            drops_before_transform=transform != "pooler",
        ),
        f"{model}ForMultipleChoice": ClassNames(
            task_types=("multiple-choice",), heads=choice, pooling="cls"
        ),
        f"{model}ForTokenClassification": ClassNames(
            task_types=("tagger",), heads=tags, transform=None
        ),
        f"{model}ForQuestionAnswering": ClassNames(
            task_types=("question-answering",), heads=answer, transform=None
        ),
    }


_BERT = {
    "BertForPreTraining": ClassNames(
        task_types=("pretrainer", "sentence-order-pretrainer"), heads=_BERT_LM | _NEXT_SENTENCE
    ),
    **_classes("Bert", _BERT_LM, causal="BertLMHeadModel"),
}
_ROBERTA = _classes(
    "Roberta",
    _ROBERTA_LM,
    causal="RobertaForCausalLM",
    # The pooler and the linear layer over it are both in the head.
    labels="classifier.out_proj",
    transform="classifier",
)

# google-research/bert: the names that its modelling code gives its variables.


_google_dense = functools.partial(dense, ends=("/kernel", "/bias"), transposed=False)
_google_norm = functools.partial(layer_norm, ends=("/LayerNorm/gamma", "/LayerNorm/beta"))
# Its heads multiply by the transpose of their weights.
_google_output = functools.partial(dense, ends=("output_weights", "output_bias"))

_GOOGLE_EMBEDDINGS = "bert/embeddings"
_TABLE = "embeddings.{}_embedding.embeddings"
_GOOGLE_LAYER = "bert/encoder/layer_{i}"

GOOGLE_ENCODER = [
    Rename(_TABLE.format("token"), f"{_GOOGLE_EMBEDDINGS}/word_embeddings", "V D"),
    Rename(_TABLE.format("position"), f"{_GOOGLE_EMBEDDINGS}/position_embeddings", "P D"),
    Rename(_TABLE.format("segment"), f"{_GOOGLE_EMBEDDINGS}/token_type_embeddings", "T D"),
    *_google_norm("embeddings.layer_norm", _GOOGLE_EMBEDDINGS),
    *_query_key_value(_google_dense, f"{_GOOGLE_LAYER}/attention/self/"),
    *_google_dense(
        "blocks.{i}.attention.projection", f"{_GOOGLE_LAYER}/attention/output/dense", "D D"
    ),
    *_google_norm("blocks.{i}.attention_norm", f"{_GOOGLE_LAYER}/attention/output"),
    *_google_dense(
        "blocks.{i}.feed_forward.dense_in", f"{_GOOGLE_LAYER}/intermediate/dense", "D I"
    ),
    *_google_dense("blocks.{i}.feed_forward.dense_out", f"{_GOOGLE_LAYER}/output/dense", "I D"),
    *_google_norm("blocks.{i}.feed_forward_norm", f"{_GOOGLE_LAYER}/output"),
]

GOOGLE_POOLER = _google_dense("pooler.dense", "bert/pooler/dense", "D D")

# By the attribute of the task.
GOOGLE_HEADS = {
    "lm_head": [
        *_google_dense("lm_head.transform.dense", "cls/predictions/transform/dense", "D D"),
        *_google_norm("lm_head.transform.layer_norm", "cls/predictions/transform"),
        Rename("lm_head.bias", "cls/predictions/output_bias", "V"),
    ],
    "next_sentence_head": _google_output(
        "next_sentence_head.dense", "cls/seq_relationship/", "D 2"
    ),
    "classifier": _google_output("classifier", "", "D C"),
    "qa_outputs": _google_output("qa_outputs", "cls/squad/", "D 2"),
}

# keras-nlp: attributes of its `BertBackbone`, whose variables have no other stable names.

_nlp_dense = functools.partial(dense, ends=(".kernel", ".bias"), transposed=False)
_nlp_norm = functools.partial(layer_norm, ends=(".gamma", ".beta"))

_NLP_LAYER = "transformer_layers.{i}"
_NLP_ATTENTION = f"{_NLP_LAYER}._self_attention_layer"


def _nlp_part(k):
    """A projection to the heads, whose size D is there as N heads of size H."""
    ours, theirs = "blocks.{i}.attention.query_key_value", f"{_NLP_ATTENTION}.{_PARTS[k]}_dense"
    return [
        Rename(f"{ours}.kernel", f"{theirs}.kernel", "D D", folded="D N H", part=(k, 3)),
        Rename(f"{ours}.bias", f"{theirs}.bias", "D", folded="N H", part=(k, 3)),
    ]


KERAS_NLP = [
    Rename("embeddings.token_embedding.embeddings", "token_embedding.embeddings", "V D"),
    Rename(
        "embeddings.position_embedding.embeddings", "position_embedding.position_embeddings", "P D"
    ),
    Rename("embeddings.segment_embedding.embeddings", "segment_embedding.embeddings", "T D"),
    *_nlp_norm("embeddings.layer_norm", "embeddings_layer_norm"),
    *(line for k in range(3) for line in _nlp_part(k)),
    Rename(
        "blocks.{i}.attention.projection.kernel",
        f"{_NLP_ATTENTION}.output_dense.kernel",
        "D D",
        folded="N H D",
    ),
    Rename("blocks.{i}.attention.projection.bias", f"{_NLP_ATTENTION}.output_dense.bias", "D"),
    *_nlp_norm("blocks.{i}.attention_norm", f"{_NLP_LAYER}._self_attention_layer_norm"),
    *_nlp_dense(
        "blocks.{i}.feed_forward.dense_in", f"{_NLP_LAYER}._feedforward_intermediate_dense", "D I"
    ),
    *_nlp_dense(
        "blocks.{i}.feed_forward.dense_out", f"{_NLP_LAYER}._feedforward_output_dense", "I D"
    ),
    *_nlp_norm("blocks.{i}.feed_forward_norm", f"{_NLP_LAYER}._feedforward_layer_norm"),
    *_nlp_dense("pooler.dense", "pooled_dense", "D D"),
]
