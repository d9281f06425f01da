"""The heads of spans and of the order of sentences: our folder, other classes, other formats."""

import warnings

import numpy as np
import pytest

from keras_bert import FillMask, Pretrainer, SentenceOrderPretrainer, SpanPretrainer
from keras_bert.base.files import read_json
from keras_bert.checkpoints import load_task, save_folder
from keras_bert.checkpoints.google import load_google, save_google
from tests.peers import torch, transformers

KINDS = {
    SpanPretrainer: ("BertForMaskedLM", {"masked_lm": "logits"}),
    SentenceOrderPretrainer: (
        "BertForPreTraining",
        {"masked_lm": "prediction_logits", "sentence_order": "seq_relationship_logits"},
    ),
}


@pytest.fixture(params=KINDS, ids=lambda kind: kind.TASK_TYPE)
def task(request, make_encoder, tokenizer, shake):
    options = {"max_span_length": 3} if request.param is SpanPretrainer else {}
    return shake(request.param(make_encoder(), tokenizer, **options))


@pytest.fixture
def inputs(task, inputs):
    positions = inputs["masked_lm_positions"]
    spans = {"span_left": 0 * positions, "span_right": positions + 1, "span_offset": positions}
    return {name: {**inputs, **spans}[name] for name in task.input}


def test_a_folder_gives_the_same_outputs(task, inputs, tmp_path):
    save_folder(task, task.tokenizer, tmp_path / "model")
    outputs = task(inputs)
    again = load_task(tmp_path / "model")
    assert type(again) is type(task) and again.stored_settings().keys() == {
        name for name in ("max_span_length", "span_boundary_weight") if hasattr(task.settings, name)
    }
    for name, y in again(inputs).items():
        np.testing.assert_array_equal(y, outputs[name])
    (architecture,) = read_json(tmp_path / "model" / "config.json")["architectures"]
    assert architecture == KINDS[type(task)][0]


@pytest.mark.peers
def test_a_folder_gives_transformers_what_it_knows_of_it(task, inputs, tmp_path):
    save_folder(task, task.tokenizer, tmp_path / "model")
    outputs = {name: np.array(y) for name, y in task(inputs).items()}
    architecture, names = KINDS[type(task)]
    reference, info = getattr(transformers, architecture).from_pretrained(
        tmp_path / "model", output_loading_info=True
    )
    assert not info["missing_keys"]
    prefixes = ("keras_bert.span_boundary.", "keras_bert.pooler.")
    assert all(key.startswith(prefixes) for key in info["unexpected_keys"])
    tensors = {
        n: torch.tensor(inputs[n]).long() for n in ("input_ids", "input_mask", "segment_ids")
    }
    with torch.no_grad():
        their_outputs = reference.eval()(
            tensors["input_ids"],
            attention_mask=tensors["input_mask"],
            token_type_ids=tensors["segment_ids"],
        )
    for name, key in names.items():
        expected = their_outputs[key].numpy()
        if name == "masked_lm":
            places = inputs["masked_lm_positions"][..., None]
            expected = np.take_along_axis(expected, places, axis=1)
        np.testing.assert_allclose(outputs[name], expected, atol=1e-5)


def test_from_its_config_comes_the_same_task(task):
    again = type(task).from_config(task.get_config())
    assert again.get_config() == task.get_config()


def test_in_googles_form_what_has_no_place_is_said(task, inputs, tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        save_google(task, task.tokenizer, tmp_path / "google")
    said = " ".join(str(warning.message) for warning in caught)
    again, _ = load_google(tmp_path / "google")
    if isinstance(task, SpanPretrainer):
        assert "no head like span_boundary. It was left out" in said
        assert type(again) is FillMask
    else:
        assert "no head for sentence order. It is written as the next sentence head" in said
        assert type(again) is Pretrainer
    outputs = again({name: inputs[name] for name in again.input})
    expected = task(inputs)
    np.testing.assert_array_equal(outputs["masked_lm"], expected["masked_lm"])
    if "sentence_order" in expected:
        np.testing.assert_array_equal(outputs["next_sentence"], expected["sentence_order"])
