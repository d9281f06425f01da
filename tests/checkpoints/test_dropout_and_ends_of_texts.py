"""Dropout in RoBERTa's classifier and the end of generated texts are those of transformers."""

import json

import numpy as np
import pytest

import keras_bert as kb
from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.encoders.gpt import Gpt2Config
from keras_bert.encoders.gpt.encoder import GptEncoder
from tests.peers import torch, transformers
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

pytestmark = pytest.mark.peers


@pytest.mark.filterwarnings("ignore:.*has no tokenizer")
@pytest.mark.parametrize("model_type", ["roberta", "bert"])
def test_dropout_is_where_transformers_has_it(model_type, tmp_path):
    """Dropout is replaced by a factor in both, which shows where it applies, and how often."""
    tokenizer = make_tokenizer(["the", "cat", "sat"])
    options = {"model_type": "roberta", "type_vocab_size": 1} if model_type == "roberta" else {}
    encoder = make_encoder(tokenizer, **options)
    task = kb.Classifier(encoder, tokenizer, labels=["good", "bad", "odd"])
    for weight in task.trainable_weights:
        if "classifier" in weight.path or "pooler" in weight.path:
            weight.assign(make_rng(3).normal(size=weight.shape))
    task.save(tmp_path / "model")
    their_model = transformers.AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "model"
    )
    their_model.eval()

    class Tripled(torch.nn.Module):
        def forward(self, x):
            return 3 * x

    (their_model.classifier if model_type == "roberta" else their_model).dropout = Tripled()
    task.dropout.call = lambda x, training=None: 3 * x
    ids = np.array([[2, 5, 6, 3], [2, 7, 7, 3]])
    inputs = {"input_ids": ids, "input_mask": np.ones_like(ids)}
    if model_type == "bert":
        inputs["segment_ids"] = np.zeros_like(ids)
    with torch.no_grad():
        expected = their_model(torch.tensor(ids)).logits.numpy()
    np.testing.assert_allclose(task(inputs)["logits"], expected, atol=1e-4)


def causal_encoder(name, size):
    if name == "gpt2":
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
        return GptEncoder(Gpt2Config(vocab_size=size, max_position_embeddings=32, **sizes))
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=size, intermediate_size=16, is_decoder=True, **sizes)
    return BertEncoder(config)


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_generate_of_transformers_stops_where_a_text_ends(name, tmp_path):
    tokenizer = make_tokenizer(["the", "cat", "sat"])
    end = tokenizer.vocabulary.sep_id
    encoder = causal_encoder(name, len(tokenizer))
    task = kb.CausalLM(encoder, tokenizer)
    bias = np.zeros(len(tokenizer), np.float32)
    if name == "bert":  # every text ends at once
        bias[end] = 100.0
        task.lm_head.bias.assign(bias)
    else:
        table = np.array(encoder.token_embedding.embeddings)
        encoder.last_norm.beta.assign(1000 * table[end])
    task.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert (config["bos_token_id"], config["eos_token_id"]) == (tokenizer.vocabulary.cls_id, end)
    their_model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model").eval()
    ids = torch.tensor([[tokenizer.vocabulary.cls_id, 5]])
    generated = their_model.generate(ids, max_new_tokens=6, do_sample=False, pad_token_id=0)
    assert generated[0].tolist() == [tokenizer.vocabulary.cls_id, 5, end]
