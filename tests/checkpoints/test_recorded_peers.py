"""Folders of classes of `transformers` compute here what the classes have computed."""

import json

import numpy as np
import pytest

from keras_bert.checkpoints import load, load_task
from keras_bert.inputs.framing import frame
from tests.reference.make_peer_figures import (
    BASE_MODELS,
    MODELS,
    PATH,
    TEXTS,
    figures,
    inputs_of,
    write_model,
)

RECORDED = dict(np.load(PATH))
SHAPES = json.loads(str(RECORDED.pop("shapes")))
# {our output: theirs}
NAMES = {
    "sequence_output": "last_hidden_state",
    "masked_lm": "logits",
    "causal_lm": "logits",
    "next_sentence": "seq_relationship_logits",
}
ATOL = 1e-5


def ours_of(name, folder):
    """{name: array} of what is loaded from a folder."""
    their_inputs = inputs_of(name)
    inputs = {"input_ids": their_inputs["input_ids"], "input_mask": their_inputs["attention_mask"]}
    inputs["segment_ids"] = their_inputs.get("token_type_ids", 0 * their_inputs["input_ids"])
    inputs["masked_lm_positions"] = np.tile(np.arange(9), (3, 1))
    inputs = {key: array.astype("int32") for key, array in inputs.items()}
    if name not in BASE_MODELS:
        task = load_task(folder)
        return task({key: inputs[key] for key in task.input}, training=False)
    encoder, _ = load(folder)
    inputs = {key: inputs[key] for key in encoder.input_names}
    outputs = encoder(inputs, outputs=("sequence_output", "hidden_states", "first_output"))
    first = outputs.pop("first_output")
    outputs["hidden_states"] = np.stack(outputs["hidden_states"])
    if f"{name}/pooler_output" in RECORDED:
        outputs["pooler_output"] = encoder.pooler(first)
    return outputs


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_recorded(name, tmp_path):
    folder = write_model(name, SHAPES[name], tmp_path / "model")
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(36))]
    (folder / "vocab.txt").write_text("\n".join(vocab) + "\n")
    is_token = inputs_of(name)["attention_mask"].astype(bool)
    for key, mine in ours_of(name, folder).items():
        keys = [f"{name}/{other}" for other in (NAMES.get(key, key), "prediction_logits")]
        expected = next(RECORDED[key] for key in keys if key in RECORDED)
        mine, at = np.asarray(mine), is_token
        if key == "causal_lm":  # nothing is predicted after the last token
            expected, at = expected[:, :-1], at[:, :-1]
        assert mine.shape == expected.shape, key
        if key == "hidden_states":
            mine, expected = mine[:, at], expected[:, at]
        elif mine.shape[: at.ndim] == at.shape:
            mine, expected = mine[at], expected[at]
        np.testing.assert_allclose(mine, expected, atol=ATOL, err_msg=key)


@pytest.fixture(scope="module")
def minilm(minilm_folder):
    return load(minilm_folder)


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_ids_and_states_of_minilm_are_those_recorded(number, minilm):
    encoder, tokenizer = minilm
    texts = [text for text in TEXTS[number] if text]
    inputs = frame(
        [tokenizer.tokenize([text]) for text in texts],
        tokenizer=tokenizer,
        names=encoder.input_names,
        max_length=128,
    )
    for name in ("input_ids", "segment_ids"):
        expected = RECORDED[f"minilm/{number}/{name}"]
        np.testing.assert_array_equal(inputs[name][0], expected, err_msg=name)
    states = np.asarray(encoder(inputs)["sequence_output"])[0]
    expected = RECORDED[f"minilm/{number}/states"]
    np.testing.assert_allclose([states[0], states.mean(axis=0)], expected, atol=ATOL)


@pytest.mark.peers
def test_the_living_program_computes_what_is_recorded(minilm_folder, tmp_path):
    arrays = figures(tmp_path, minilm_folder)
    assert json.loads(str(arrays.pop("shapes"))) == SHAPES
    assert arrays.keys() == RECORDED.keys()
    for name, array in arrays.items():
        np.testing.assert_allclose(array, RECORDED[name], atol=ATOL, err_msg=name)
