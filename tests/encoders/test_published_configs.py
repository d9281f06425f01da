"""The config.json of published models, as they are on the hub: each opens without a word.

Written down, since tests have no network. A family's sizes share the keys of its base model.
"""

import warnings

import pytest

from keras_bert.encoders import read_config
from tests.peers import torch, transformers

_BERT = {
    **{"attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1},
    **{"hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072},
    **{"layer_norm_eps": 1e-12, "max_position_embeddings": 512, "num_attention_heads": 12},
    **{"num_hidden_layers": 12, "pad_token_id": 0, "type_vocab_size": 2},
}
_LARGE = {
    **{"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16},
    "num_hidden_layers": 24,
}
_BERT_BASE = {
    **{**_BERT, "model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 30522},
    **{"gradient_checkpointing": False, "position_embedding_type": "absolute", "use_cache": True},
    "transformers_version": "4.6.0.dev0",
}
_ROBERTA = {
    **{**_BERT, "architectures": ["RobertaForMaskedLM"], "bos_token_id": 0, "eos_token_id": 2},
    **{"layer_norm_eps": 1e-05, "max_position_embeddings": 514, "model_type": "roberta"},
    **{"pad_token_id": 1, "type_vocab_size": 1, "vocab_size": 50265},
}
_DISTILBERT = {
    **{"activation": "gelu", "architectures": ["DistilBertForMaskedLM"], "dim": 768},
    **{"attention_dropout": 0.1, "dropout": 0.1, "hidden_dim": 3072, "initializer_range": 0.02},
    **{"max_position_embeddings": 512, "model_type": "distilbert", "n_heads": 12, "n_layers": 6},
    **{"pad_token_id": 0, "qa_dropout": 0.1, "seq_classif_dropout": 0.2, "vocab_size": 30522},
    **{"sinusoidal_pos_embds": False, "tie_weights_": True, "transformers_version": "4.10.0.dev0"},
}
_ELECTRA = {
    **{**_BERT, "architectures": ["ElectraForPreTraining"], "embedding_size": 768},
    **{"model_type": "electra", "position_embedding_type": "absolute", "vocab_size": 30522},
    **{"summary_activation": "gelu", "summary_last_dropout": 0.1, "summary_type": "first"},
    "summary_use_proj": True,
}
_SMALL = {"hidden_size": 256, "intermediate_size": 1024, "num_attention_heads": 4}
_GENERATOR = {**_ELECTRA, **_SMALL, "architectures": ["ElectraForMaskedLM"]}
_ALBERT = {
    **{**_BERT, "architectures": ["AlbertForMaskedLM"], "attention_probs_dropout_prob": 0},
    **{"bos_token_id": 2, "classifier_dropout_prob": 0.1, "down_scale_factor": 1, "gap_size": 0},
    **{"embedding_size": 128, "eos_token_id": 3, "hidden_act": "gelu_new", "inner_group_num": 1},
    **{"hidden_dropout_prob": 0, "model_type": "albert", "net_structure_type": 0},
    **{"num_hidden_groups": 1, "num_memory_blocks": 0, "vocab_size": 30000},
}
_DEBERTA = {
    **{key: value for key, value in _BERT.items() if key != "pad_token_id"},
    **{"layer_norm_eps": 1e-7, "max_relative_positions": -1, "model_type": "deberta-v2"},
    **{"norm_rel_ebd": "layer_norm", "pos_att_type": "p2c|c2p", "position_biased_input": False},
    **{"position_buckets": 256, "relative_attention": True, "share_att_key": True},
    **{"type_vocab_size": 0, "vocab_size": 128100},
}
_MODERNBERT = {
    **{"architectures": ["ModernBertForMaskedLM"], "attention_bias": False},
    **{"attention_dropout": 0.0, "bos_token_id": 50281, "classifier_activation": "gelu"},
    **{"classifier_bias": False, "classifier_dropout": 0.0, "classifier_pooling": "mean"},
    **{"cls_token_id": 50281, "decoder_bias": True, "deterministic_flash_attn": False},
    **{"embedding_dropout": 0.0, "eos_token_id": 50282, "global_attn_every_n_layers": 3},
    **{"global_rope_theta": 160000.0, "gradient_checkpointing": False, "hidden_size": 768},
    **{"hidden_activation": "gelu", "initializer_cutoff_factor": 2.0, "initializer_range": 0.02},
    **{"intermediate_size": 1152, "layer_norm_eps": 1e-05, "local_attention": 128},
    **{"local_rope_theta": 10000.0, "max_position_embeddings": 8192, "mlp_bias": False},
    **{"mlp_dropout": 0.0, "model_type": "modernbert", "norm_bias": False, "norm_eps": 1e-05},
    **{"num_attention_heads": 12, "num_hidden_layers": 22, "pad_token_id": 50283},
    **{"position_embedding_type": "absolute", "sep_token_id": 50282, "tie_word_embeddings": True},
    **{"torch_dtype": "float32", "vocab_size": 50368},
}
_GPT = {
    **{"attn_pdrop": 0.1, "embd_pdrop": 0.1, "initializer_range": 0.02, "n_embd": 768},
    **{"layer_norm_epsilon": 1e-05, "n_head": 12, "n_layer": 12, "resid_pdrop": 0.1},
    **{"summary_activation": None, "summary_first_dropout": 0.1, "summary_proj_to_labels": True},
    **{"summary_type": "cls_index", "summary_use_proj": True},
}
_GPT2 = {
    **{**_GPT, "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"]},
    **{"bos_token_id": 50256, "eos_token_id": 50256, "model_type": "gpt2", "n_ctx": 1024},
    **{"n_positions": 1024, "vocab_size": 50257},
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
}
# By name: the config, and the parameters of the encoder without a pooler.
PUBLISHED = {
    "google-bert/bert-base-uncased": (_BERT_BASE, 108_891_648),
    "google-bert/bert-base-multilingual-cased": (
        {
            **{**_BERT_BASE, "directionality": "bidi", "pooler_fc_size": 768},
            **{"pooler_num_attention_heads": 12, "pooler_num_fc_layers": 3},
            **{"pooler_size_per_head": 128, "pooler_type": "first_token_transform"},
            "vocab_size": 119547,
        },
        177_262_848,
    ),
    "google-bert/bert-large-uncased": ({**_BERT_BASE, **_LARGE}, 334_092_288),
    "FacebookAI/roberta-base": (_ROBERTA, 124_055_040),
    "FacebookAI/roberta-large": ({**_ROBERTA, **_LARGE}, 354_310_144),
    "FacebookAI/xlm-roberta-base": (
        {
            **{**_ROBERTA, "architectures": ["XLMRobertaForMaskedLM"], "output_past": True},
            **{"model_type": "xlm-roberta", "vocab_size": 250002},
        },
        277_453_056,
    ),
    "almanach/camembert-base": (
        {
            **{**_ROBERTA, "architectures": ["CamembertForMaskedLM"], "output_past": True},
            **{"bos_token_id": 5, "eos_token_id": 6, "model_type": "camembert"},
            "vocab_size": 32005,
        },
        110_031_360,
    ),
    "distilbert/distilbert-base-uncased": (_DISTILBERT, 66_362_880),
    "distilbert/distilbert-base-cased": (
        {**_DISTILBERT, "output_past": True, "vocab_size": 28996},
        65_190_912,
    ),
    "distilbert/distilbert-base-multilingual-cased": (
        {**_DISTILBERT, "vocab_size": 119547},
        134_734_080,
    ),
    "google/electra-small-discriminator": (
        {**_ELECTRA, **_SMALL, "embedding_size": 128},
        13_483_008,
    ),
    "google/electra-base-discriminator": (_ELECTRA, 108_891_648),
    "google/electra-large-discriminator": (
        {**_ELECTRA, **_LARGE, "embedding_size": 1024},
        334_092_288,
    ),
    "google/electra-small-generator": ({**_GENERATOR, "embedding_size": 128}, 13_483_008),
    "google/electra-base-generator": (_GENERATOR, 33_511_168),
    "microsoft/mpnet-base": (
        {
            **{key: value for key, value in _ROBERTA.items() if key != "type_vocab_size"},
            **{"architectures": ["MPNetForMaskedLM"], "model_type": "mpnet", "vocab_size": 30527},
            "relative_attention_num_buckets": 32,
        },
        108_895_872,
    ),
    "albert/albert-base-v2": (_ALBERT, 11_092_992),
    "albert/albert-large-v2": ({**_ALBERT, **_LARGE}, 16_634_368),
    "albert/albert-xlarge-v2": (
        {**_ALBERT, **_LARGE, "hidden_size": 2048, "intermediate_size": 8192},
        54_528_512,
    ),
    "albert/albert-xxlarge-v2": (
        {**_ALBERT, "hidden_size": 4096, "intermediate_size": 16384, "num_attention_heads": 64},
        205_814_272,
    ),
    "microsoft/deberta-v3-base": (_DEBERTA, 183_831_552),
    "microsoft/deberta-v3-small": ({**_DEBERTA, "num_hidden_layers": 6}, 141_304_320),
    "microsoft/deberta-v3-large": ({**_DEBERTA, **_LARGE}, 434_012_160),
    "microsoft/mdeberta-v3-base": ({**_DEBERTA, "vocab_size": 251000}, 278_218_752),
    "answerdotai/ModernBERT-base": (_MODERNBERT, 149_014_272),
    "answerdotai/ModernBERT-large": (
        {
            **{**_MODERNBERT, "hidden_size": 1024, "intermediate_size": 2624},
            **{"num_attention_heads": 16, "num_hidden_layers": 28},
        },
        394_781_696,
    ),
    "openai-community/openai-gpt": (
        {
            **{**_GPT, "afn": "gelu", "architectures": ["OpenAIGPTLMHeadModel"], "n_ctx": 512},
            **{"model_type": "openai-gpt", "n_positions": 512, "n_special": 0},
            **{"predict_special_tokens": True, "vocab_size": 40478},
        },
        116_534_784,
    ),
    "openai-community/gpt2": (_GPT2, 124_439_808),
    "openai-community/gpt2-medium": (
        {**_GPT2, "n_embd": 1024, "n_head": 16, "n_layer": 24},
        354_823_168,
    ),
    "openai-community/gpt2-large": (
        {**_GPT2, "n_embd": 1280, "n_head": 20, "n_layer": 36},
        774_030_080,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_config_opens_without_a_word(name):
    fields, parameters = PUBLISHED[name]
    config = read_config(fields, source="config.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config.report_extra_keys(source="config.json")
    assert config.parameter_count() == parameters
    assert read_config(config.to_dict(), source="config.json") == config


@pytest.mark.peers
@pytest.mark.parametrize("name", PUBLISHED)
def test_its_model_has_as_many_parameters_in_transformers(name):
    fields, parameters = PUBLISHED[name]
    kind = transformers.AutoConfig.for_model(fields["model_type"])
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(type(kind).from_dict(fields))
    assert parameters == sum(
        parameter.numel()
        for part, parameter in model.named_parameters()
        if not part.startswith("pooler.")
    )
