"""Folders that an earlier version wrote load, and compute what they computed there."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from keras_bert.checkpoints import load_task
from keras_bert.inference.predict import predict
from tests.eagerly import eagerly

FOLDERS = Path(__file__).parents[1] / "reference" / "earlier_folders"
NAMES = sorted(folder.name for folder in FOLDERS.iterdir())


def near(actual, expected):
    """The same JSON-like values; numbers up to the digits that are stored."""
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys()
        actual, expected = list(actual.values()), list(expected.values())
    if isinstance(expected, list):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            near(one, other)
    elif isinstance(expected, float):
        assert actual == pytest.approx(expected, abs=3e-5, rel=1e-5)
    else:
        assert actual == expected


@pytest.mark.parametrize("name", NAMES)
def test_an_earlier_folder_computes_what_it_did(name, tmp_path):
    saved = json.loads((FOLDERS / name / "outputs.json").read_text(encoding="utf-8"))
    task = load_task(FOLDERS / name)
    task.save(tmp_path / "saved")
    for of in (task, load_task(tmp_path / "saved")):
        inputs = {n: np.array(x, "int32") for n, x in saved["inputs"].items() if n in of.input}
        outputs = of(inputs)
        assert outputs.keys() == saved["outputs"].keys()
        for output, expected in saved["outputs"].items():
            for row, tokens in enumerate(inputs["input_mask"].sum(axis=1)):
                one, other = np.asarray(outputs[output])[row], np.array(expected[row])
                assert one.shape == other.shape
                if len(one) >= inputs["input_mask"].shape[1] - 1:  # of tokens: not of padding
                    one, other = one[:tokens], other[:tokens]
                np.testing.assert_allclose(one, other, atol=2e-5, rtol=1e-5)
    if "data" in saved:
        data = [tuple(x) if isinstance(x, list) else x for x in saved["data"]]
        with eagerly():
            near(list(predict(model=task, data=data)), saved["answers"])


def test_what_was_kept_apart_is_kept():
    task = load_task(FOLDERS / "tagger")
    assert task.reader.mix == {"layer_norm_eps": 1e-6, "l2": 0.01}
    settings = task.settings
    assert (settings.bilstm, settings.crf, settings.max_length) == (2, True, 8)
    task = load_task(FOLDERS / "multi-label")
    settings = task.settings
    assert (settings.threshold, settings.pooling, settings.max_length) == (0.3, "cls", 8)
    task = load_task(FOLDERS / "question-answering")
    settings = task.settings
    assert (settings.stride, settings.n_best, settings.null_threshold) == (2, 3, 0.5)
    assert load_task(FOLDERS / "fill-mask").encoder.pooler is not None


def test_settings_of_earlier_names_are_read_and_saved_under_the_new_ones(tmp_path):
    for name, earlier_settings, now in (
        ("tagger", {"label_pieces": "last", "combine_pieces": "last"}, ("label_subwords", "last")),
        ("tagger", {"label_pieces": "last", "combine_pieces": "last"}, ("aggregation", "last")),
        ("span-classifier", {"combine_pieces": "last"}, ("aggregation", "last")),
        ("span-classifier", {"tune_for": "precision"}, ("threshold_metric", "precision")),
    ):
        folder = tmp_path / f"{name}-{now[0]}"
        shutil.copytree(FOLDERS / name, folder)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config["keras_bert"] |= earlier_settings
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        task = load_task(folder)
        assert getattr(task.settings, now[0]) == now[1]
        task.save(folder / "saved")
        saved = json.loads((folder / "saved" / "config.json").read_text(encoding="utf-8"))
        assert (
            saved["keras_bert"][now[0]] == now[1]
            and not earlier_settings.keys() & saved["keras_bert"].keys()
        )
