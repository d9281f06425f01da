"""The scores of sentence-transformers' CrossEncoder itself, of folders in both directions."""

import json

import numpy as np
import pytest

import keras_bert as kb
from keras_bert.checkpoints import load_task, save_folder
from keras_bert.search.reranking import Reranker
from tests.messages import raises_input_error
from tests.peers import sentence_transformers, torch
from tests.seeds import shifted
from tests.small_model import make_encoder, make_mpnet_tokenizer, make_tokenizer

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

WORDS = ["w1", "w2", "w3", "query", "zug", "été", "日", "本", "дом"]
PAIRS = [
    *[("w1 w2", "w3"), ("w3", "w1 w2"), ("", "w1"), ("w1", ""), ("W3 Zug, été!", "日本 дом w1")],
    *[("w1", "w2 " * 40), ("w3 " * 40, "w2"), ("w1 " * 40, "w2 " * 40), ("🙂", "w1 w1")],
]
FAMILIES = {
    "bert": {},
    "roberta": {"pad_token_id": 0},
    "xlm-roberta": {"pad_token_id": 0},
    "distilbert": {},
    "electra": {},
    "mpnet": {},
    "albert": {"embedding_size": 4},
    "deberta-v2": {
        **{"relative_attention": True, "share_att_key": True, "norm_rel_ebd": "layer_norm"},
        **{"pos_att_type": ("p2c", "c2p"), "position_buckets": 8},
    },
    "modernbert": {"pad_token_id": 0, "local_attention": 8},
}


def tokenizer_of(family):
    return make_mpnet_tokenizer(WORDS) if family == "mpnet" else make_tokenizer(WORDS)


def encoder_of(family):
    tokenizer = tokenizer_of(family)
    sizes = {"num_hidden_layers": 1, **FAMILIES[family]}
    return make_encoder(tokenizer, model_type=family, **sizes), tokenizer


def opened(folder, **options):
    return sentence_transformers.CrossEncoder(str(folder), device="cpu", **options)


def near(scores, expected):
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def scores(model):
    return Reranker(model).scores(PAIRS)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("activation", ["sigmoid", "identity", None])
def test_what_is_written_here_has_the_same_scores_there(family, activation, tmp_path):
    encoder, tokenizer = encoder_of(family)
    pooling = encoder.tensor_names(encoder.config).names_for("regression").pooling or "cls"
    # An even number of tokens for both texts: of two long ones, theirs gives an odd token to the
    # second, and BERT's own rule, which is ours, to the first.
    length = 18 if family == "mpnet" else 17
    settings = {"activation": activation, "pooling": pooling, "max_length": length}
    task = kb.Regressor(encoder, tokenizer, **settings)
    task.scorer.bias.assign([0.5])
    task.save(tmp_path / "model")
    their_model = opened(tmp_path / "model")
    assert their_model.max_seq_length == length
    expected = their_model.predict(PAIRS)
    near(scores(task), expected)
    assert np.ptp(expected) > 1e-2
    their_model.save(str(tmp_path / "theirs"))
    again = load_task(tmp_path / "theirs")  # in the names of version 6
    assert again.activation == activation or (activation is None and again.activation == "identity")
    assert again.settings.max_length == length
    near(scores(again), expected)


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "electra", "modernbert"])
@pytest.mark.parametrize("kind", ["Sigmoid", "Identity", None])
def test_a_folder_that_was_made_there_opens_here(family, kind, tmp_path):
    save_folder(*encoder_of(family), tmp_path / "encoder")
    torch.manual_seed(shifted(3))
    options = {"num_labels": 1, "max_length": 13}
    if kind is not None:
        options["activation_fn"] = getattr(torch.nn, kind)()
    their_model = opened(tmp_path / "encoder", **options)
    with torch.no_grad():
        for parameter in their_model.model.classifier.parameters():
            parameter.normal_(std=0.2)
    their_model.save(str(tmp_path / "theirs"))
    ours = load_task(tmp_path / "theirs")
    assert ours.activation == (kind or "Sigmoid").lower() and ours.settings.max_length == 13
    near(scores(ours), their_model.predict(PAIRS))
    # As versions before 6 wrote it: without modules, the activation in config.json.
    for name in ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"):
        (tmp_path / "theirs" / name).unlink(missing_ok=True)
    path = tmp_path / "theirs" / "config.json"
    place = f"torch.nn.modules.{'linear' if kind == 'Identity' else 'activation'}"
    named = f"{place}.{kind or 'Sigmoid'}"
    earlier = {"sentence_transformers": {"activation_fn": named, "version": "5.0"}}
    for keys in (earlier, {"sbert_ce_default_activation_function": named}):
        config = json.loads(path.read_text())
        config.pop("sentence_transformers", None)
        path.write_text(json.dumps(config | keys))
        near(scores(load_task(tmp_path / "theirs")), opened(tmp_path / "theirs").predict(PAIRS))


def test_several_labels_do_not_rerank(tmp_path):
    save_folder(*encoder_of("bert"), tmp_path / "encoder")
    their_model = opened(tmp_path / "encoder", num_labels=3)
    their_model.save(str(tmp_path / "theirs"))
    with raises_input_error("with 3 labels, which cannot rerank"):
        Reranker(str(tmp_path / "theirs"))


def test_the_losses_of_lists_are_theirs(tmp_path):
    """Compares a whole batch of texts by their trainer's loss and by ours."""
    encoder, tokenizer = encoder_of("bert")
    task = kb.Regressor(encoder, tokenizer, pooling="cls", max_length=17, loss="listwise")
    rows = [
        {"query": "w1", "passages": ["w1 w2", "w3", "w2"], "grades": [2, 0, 1]},
        {"query": "w3", "passages": ["w2", "w3 w3"], "grades": [0, 1]},
    ]
    task.save(tmp_path / "model")
    their_model = opened(tmp_path / "model")
    losses = sentence_transformers.cross_encoder.losses
    inputs = [[row["query"] for row in rows], [row["passages"] for row in rows]]
    labels = [torch.tensor(row["grades"], dtype=torch.float32) for row in rows]
    for name, loss in (("listnet", losses.ListNetLoss), ("ranknet", losses.RankNetLoss)):
        expected = loss(their_model)(inputs, labels).item()
        task.update_settings(list_loss=name)
        task.compile_defaults("sgd")
        value = task.evaluate(rows, verbose=0, return_dict=True)["loss"]
        assert value == pytest.approx(expected, rel=1e-5), name
