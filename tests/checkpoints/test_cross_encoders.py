"""Cross-encoders of sentence-transformers: a score with the activation that their folder names."""

import json

import numpy as np
import pytest
from scipy.special import expit

from keras_bert.checkpoints import load_task
from keras_bert.inference.predict import predict
from keras_bert.tasks.classification.regressor import Regressor
from tests.checkpoints.conftest import change_config
from tests.eagerly import eagerly
from tests.messages import raises_input_error

PAIRS = [("a b", "c"), ("d e f", "g h"), ("i", "j a")]
SIGMOID, IDENTITY = "torch.nn.modules.activation.Sigmoid", "torch.nn.modules.linear.Identity"


@pytest.fixture
def folder(tmp_path, make_encoder, tokenizer, shake):
    """A folder of another program with one label."""
    task = shake(Regressor(make_encoder(), tokenizer, pooling="cls", max_length=8))
    task.scorer.bias.assign([3.0])  # which no sigmoid reaches
    task.save(tmp_path / "ce")
    keys = ("keras_bert", "problem_type", "sentence_transformers")
    change_config(tmp_path / "ce", without(*keys))
    return tmp_path / "ce"


def without(*names, **more):
    def change(config):
        return {name: value for name, value in config.items() if name not in names} | more

    return change


def scores(task):
    with eagerly():
        return np.array([row["score"] for row in predict(model=task, data=PAIRS)])


@pytest.mark.parametrize(
    "in_config, in_file, expected",
    [
        ({}, None, None),
        ({"sentence_transformers": {"activation_fn": SIGMOID, "version": "5.0"}}, None, "sigmoid"),
        ({"sentence_transformers": {"version": "5.0"}}, None, "sigmoid"),
        ({"sbert_ce_default_activation_function": IDENTITY}, None, "identity"),
        ({"sbert_ce_default_activation_function": SIGMOID}, None, "sigmoid"),
        ({}, {"model_type": "CrossEncoder"}, "sigmoid"),
        ({}, {"model_type": "SentenceTransformer"}, None),
        # The newest place counts.
        (
            {"sentence_transformers": {"activation_fn": SIGMOID}},
            {"model_type": "CrossEncoder", "activation_fn": IDENTITY},
            "identity",
        ),
    ],
)
def test_the_activation_of_a_score(folder, tmp_path, in_config, in_file, expected):
    plain = scores(load_task(folder))
    assert abs(plain).max() > 1
    change_config(folder, without(**in_config))
    if in_file is not None:
        (folder / "config_sentence_transformers.json").write_text(json.dumps(in_file))
    task = load_task(folder)
    assert task.activation == expected
    wanted = expit(plain) if expected == "sigmoid" else plain
    np.testing.assert_allclose(scores(task), wanted, atol=1e-5)
    task.save(tmp_path / "saved")
    again = load_task(tmp_path / "saved")
    assert again.activation == expected
    np.testing.assert_allclose(scores(again), wanted, atol=1e-5)
    assert Regressor.from_config(task.get_config()).activation == expected
    # For sentence-transformers, too, whose default is the sigmoid.
    saved = json.loads((tmp_path / "saved" / "config.json").read_text())
    classes = {None: IDENTITY, "sigmoid": SIGMOID, "identity": IDENTITY}
    assert saved["sentence_transformers"]["activation_fn"] == classes[expected]


@pytest.mark.parametrize(
    ("tokenizer_length", "own", "modules", "expected"),
    [(6, None, False, 6), (512, None, False, 8), (1e30, None, False, 8), (6, 5, True, 5)],
)
def test_the_maximum_length(folder, tokenizer_length, own, modules, expected):
    """The tokenizer's length, at most the positions; the module's if there is one."""
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text()) | {"model_max_length": tokenizer_length}
    path.write_text(json.dumps(config))
    if own is not None:
        text = json.dumps({"max_seq_length": own})
        (folder / "sentence_bert_config.json").write_text(text)
    if modules:
        kind = "sentence_transformers.models.Transformer"
        module = {"idx": 0, "name": "0", "path": "", "type": kind}
        (folder / "modules.json").write_text(json.dumps([module]))
        about = {"model_type": "CrossEncoder", "activation_fn": IDENTITY}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(about))
    assert load_task(folder).settings.max_length == expected


def test_a_prompt_is_an_error(folder):
    about = {"model_type": "CrossEncoder", "prompts": {"query": "ask: "}}
    path = folder / "config_sentence_transformers.json"
    path.write_text(json.dumps({**about, "default_prompt_name": None}))
    assert load_task(folder).activation == "sigmoid"
    path.write_text(json.dumps({**about, "default_prompt_name": "query"}))
    with raises_input_error("has the prompt 'ask: ' in front of each first text"):
        load_task(folder)


def test_an_unknown_activation_is_an_error(folder):
    for value in ("torch.nn.modules.activation.Softplus", "other.package.Sigmoid", "x", 1, []):
        change_config(folder, without(sbert_ce_default_activation_function=value))
        with raises_input_error("which is not supported. Expected one of sigmoid, identity"):
            load_task(folder)
    change_config(folder, without(sentence_transformers=[]))
    with raises_input_error("sentence_transformers should be an object"):
        load_task(folder)


def test_a_regression_that_is_trained_here_stays_raw(folder, tmp_path):
    change_config(folder, without(sbert_ce_default_activation_function=SIGMOID))
    encoder = load_task(folder).encoder
    Regressor(encoder, load_task(folder).tokenizer, pooling="cls").save(tmp_path / "trained")
    assert load_task(tmp_path / "trained").activation is None
