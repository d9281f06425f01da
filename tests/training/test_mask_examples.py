"""The places that a run shows at each evaluation, and how they are written for a person."""

from types import SimpleNamespace

import numpy as np

from keras_bert.training.logs import as_table
from keras_bert.training.pretraining_examples import MaskExamples
from tests.pretraining_folder import VOCABULARY

MASK, CLS, SEP = VOCABULARY.mask_id, VOCABULARY.cls_id, VOCABULARY.sep_id
W = {name: VOCABULARY.id(name) for name in ("w0", "w1", "w2", "w3", "w4")}


def predicted(hidden, positions, training):
    """Logits by which w1 is likelier than w2 than all others."""
    logits = np.zeros((*positions.shape, len(VOCABULARY)), np.float32)
    logits[..., W["w1"]], logits[..., W["w2"]] = 9.0, 8.0
    return logits


TASK = SimpleNamespace(
    tokenizer=SimpleNamespace(vocabulary=VOCABULARY),
    encoder=SimpleNamespace(input_names=("input_ids", "input_mask", "segment_ids")),
    encoded=lambda inputs, training: {"sequence_output": None},
    lm_head=predicted,
)


def test_the_first_masked_places_of_the_first_rows_that_count():
    ids = np.full((6, 8), W["w3"], np.int32)
    ids[:, 0], ids[:, 6] = CLS, SEP
    ids[:, 7] = VOCABULARY.pad_id
    ids[:, [1, 3, 4]] = MASK
    ids[0, 2] = W["w4"]  # predicted, but kept or replaced: not shown
    inputs = {
        "input_ids": ids,
        "input_mask": (np.arange(8) < 7).astype(np.int32) * np.ones((6, 1), np.int32),
        "segment_ids": np.zeros_like(ids),
        "masked_lm_positions": np.tile(np.array([1, 2, 3, 4, 0], np.int32), (6, 1)),
    }
    weights = np.tile(np.array([1, 1, 1, 1, 0], np.float32), (6, 1))
    weights[1] = 0  # a row that only fills up the batch
    labels = np.tile(np.array([W["w1"], W["w4"], W["w0"], W["w2"], 0], np.int32), (6, 1))
    shown = MaskExamples(TASK, (inputs, {"masked_lm": labels}, {"masked_lm": weights}))()
    assert len(shown) == 2 * 3  # of four rows one does not count, and of a row two places are shown
    assert [example["expected"] for example in shown] == ["w1", "w0"] * 3
    assert shown[0]["before"] == "[CLS]"
    assert shown[0]["after"] == "w4 [MASK] [MASK] w3 [SEP]"
    assert shown[1]["before"] == "[CLS] [MASK] w4"
    tokens, probabilities = zip(*shown[0]["candidates"], strict=True)
    assert tokens[:2] == ("w1", "w2") and len(tokens) == 5
    expected = np.exp([9, 8]) / (np.exp([9, 8]).sum() + len(VOCABULARY) - 2)
    np.testing.assert_allclose(probabilities[:2], expected, atol=1e-4)


def test_a_table_marks_the_right_token_and_no_token_is_markdown():
    examples = [
        {
            "before": "a | b",
            "after": "*c*",
            "expected": "x_y",
            "candidates": [["##z", 0.5], ["x_y", 0.25]],
        },
        {"before": "", "after": "d", "expected": "e", "candidates": [["f", 1.0]]},
    ]
    _, _, first, second = as_table(examples).splitlines()
    assert first.count("|") == second.count("|") == 3
    assert "a &#124; b **&#91;MASK&#93;** &#42;c&#42;" in first
    assert "&#35;&#35;z 50.0 % · **x&#95;y** 25.0 %" in first and "it was" not in first
    assert second.endswith("f 100.0 %; correct: **e** |")
