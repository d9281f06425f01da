"""keras-nlp's BertBackbone, in and out."""

import json

import numpy as np
import pytest

from keras_bert.base import rename
from keras_bert.base.errors import InputError
from keras_bert.checkpoints.keras_nlp import (
    from_keras_nlp,
    is_keras_nlp,
    load_keras_nlp,
    save_keras_nlp,
    to_keras_nlp,
)
from tests.messages import raises_input_error
from tests.small_model import encode

keras_nlp = pytest.importorskip("keras_nlp", reason="NOT TESTED against keras-nlp")


def their_outputs(backbone, inputs):
    return backbone(
        {
            "token_ids": inputs["input_ids"],
            "padding_mask": inputs["input_mask"],
            "segment_ids": inputs["segment_ids"],
        }
    )


def our_outputs(encoder, inputs):
    return encode(encoder, inputs)


def check_equal(encoder, backbone, inputs):
    one, other = our_outputs(encoder, inputs), their_outputs(backbone, inputs)
    mask = inputs["input_mask"][..., None]
    difference = (np.array(one["sequence_output"]) - np.array(other["sequence_output"])) * mask
    assert np.abs(difference).max() < 1e-5
    pooled = np.array(one["pooled_output"]) - np.array(other["pooled_output"])
    assert np.abs(pooled).max() < 1e-5


def test_from_a_backbone(inputs, shake):
    backbone = keras_nlp.models.BertBackbone(
        vocabulary_size=15,
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=12,
        max_sequence_length=9,
        num_segments=2,
    )
    encoder = from_keras_nlp(shake(backbone))
    assert encoder.config.hidden_act == "gelu_new"
    check_equal(encoder, backbone, inputs)


def test_to_a_backbone(inputs, make_encoder):
    encoder = make_encoder(hidden_act="gelu_new")
    backbone = to_keras_nlp(encoder)
    assert backbone.count_params() == encoder.count_params() + encoder.pooler.count_params()
    check_equal(encoder, backbone, inputs)


def test_through_a_preset_folder(inputs, make_encoder, tokenizer, tmp_path):
    encoder = make_encoder(hidden_act="gelu_new")
    save_keras_nlp(encoder, tokenizer, tmp_path / "preset")
    assert is_keras_nlp(tmp_path / "preset")
    check_equal(
        encoder, keras_nlp.models.BertBackbone.from_preset(str(tmp_path / "preset")), inputs
    )
    again, its_tokenizer = load_keras_nlp(tmp_path / "preset")
    assert its_tokenizer.vocabulary.tokens == tokenizer.vocabulary.tokens
    for one, other in zip(again.trainable_weights, encoder.trainable_weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    save_keras_nlp(encoder, tokenizer, tmp_path / "preset", overwrite=True)  # our own
    (tmp_path / "preset" / "model.weights.h5").unlink()
    with raises_input_error("not a whole keras-nlp preset"):
        load_keras_nlp(tmp_path / "preset")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("config.json", lambda content: {**content, "config": "BertBackbone"}),
        ("config.json", lambda content: content["config"].update(num_layers="two") or content),
        ("config.json", lambda content: content["config"].update(num_layers=0) or content),
        ("config.json", lambda content: content["config"].update(num_layers=10**6) or content),
        ("tokenizer.json", lambda content: [content]),
    ],
)
def test_a_preset_of_other_values_is_one_sentence(name, change, make_encoder, tokenizer, tmp_path):
    """They ended in keras-nlp's tracebacks."""
    save_keras_nlp(make_encoder(hidden_act="gelu_new"), tokenizer, tmp_path / "preset")
    path = tmp_path / "preset" / name
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with raises_input_error("not a whole keras-nlp preset"):
        load_keras_nlp(tmp_path / "preset")


@pytest.mark.parametrize("size", ["vocabulary_size", "intermediate_dim", "max_sequence_length"])
def test_no_memory_is_taken_for_more_than_the_weights_are(size, make_encoder, tokenizer, tmp_path):
    save_keras_nlp(make_encoder(hidden_act="gelu_new"), tokenizer, tmp_path / "preset")
    path = tmp_path / "preset" / "config.json"
    content = json.loads(path.read_text())
    content["config"][size] = 10**12
    path.write_text(json.dumps(content))
    with raises_input_error("config.json asks for ... parameters, but the files of weights have"):
        load_keras_nlp(tmp_path / "preset")


@pytest.mark.parametrize("error", [TypeError, AttributeError, KeyError, ValueError])
def test_a_fault_of_the_converter_is_not_the_presets(
    error, make_encoder, tokenizer, tmp_path, monkeypatch
):
    """It was caught together with keras-nlp's own errors, and the preset was called broken."""
    save_keras_nlp(make_encoder(hidden_act="gelu_new"), tokenizer, tmp_path / "preset")

    def broken(*_):
        raise error("a fault of ours")

    monkeypatch.setattr(rename, "assign", broken)
    with pytest.raises(error, match="a fault of ours") as raised:
        load_keras_nlp(tmp_path / "preset")
    assert type(raised.value) is error


def test_weights_of_a_preset_that_are_not_finite_are_named(make_encoder, tokenizer, tmp_path):
    encoder = make_encoder(hidden_act="gelu_new")
    encoder.pooler.dense.bias.assign(np.full(8, np.nan))
    save_keras_nlp(encoder, tokenizer, tmp_path / "preset")
    named = f"^{tmp_path / 'preset'}: the tensor pooled_dense.bias holds NaN"
    with pytest.raises(InputError, match=named):
        load_keras_nlp(tmp_path / "preset")


def test_only_a_preset_that_we_wrote_is_replaced(make_encoder, tokenizer, tmp_path):
    """One that keras-nlp wrote is a user's own, and so is what a user put beside ours."""
    encoder = make_encoder(hidden_act="gelu_new")
    to_keras_nlp(encoder).save_to_preset(str(tmp_path / "theirs"))
    assert is_keras_nlp(tmp_path / "theirs")
    save_keras_nlp(encoder, tokenizer, tmp_path / "ours")
    (tmp_path / "ours" / "notes.txt").write_text("mine")
    for folder in ("theirs", "ours"):
        with raises_input_error("holds something else already"):
            save_keras_nlp(encoder, tokenizer, tmp_path / folder, overwrite=True)


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_act": "gelu"},
        {"layer_norm_eps": 1e-5},
        {"is_decoder": True},
        {"pooler": False},
    ],
)
def test_what_it_cannot_compute_is_rejected(change, make_encoder):
    with raises_input_error("BertBackbone is a bidirectional BERT with a pooler"):
        to_keras_nlp(make_encoder(**{"hidden_act": "gelu_new", **change}))
