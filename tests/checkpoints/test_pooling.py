"""The pooling that a folder gives: the file of sentence-transformers, and what is stored of it."""

import json
import warnings

import pytest

from keras_bert import Classifier, Tagger
from keras_bert.base.errors import InputWarning
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.checkpoints.convert import convert
from keras_bert.training.finetune import finetune
from tests.checkpoints.conftest import change_config
from tests.messages import raises_input_error

LABELS = ["x", "y"]


def give(folder, **config):
    path = folder / "1_Pooling" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"word_embedding_dimension": 8, **config}))
    return folder


def modes(*names):
    without_mean = {"pooling_mode_mean_tokens": False}
    return {**without_mean, **{f"pooling_mode_{name}": True for name in names}}


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        (modes("mean_tokens"), "mean"),
        (modes("cls_token"), "cls"),
        (modes("max_tokens"), "max"),
        (modes("lasttoken"), "last"),
        (modes("cls_token", "mean_tokens"), "both"),
        (modes("lasttoken", "max_tokens", "mean_tokens"), "last+max+mean"),
        ({"pooling_mode_max_tokens": False}, "mean"),  # as if all are false
        (modes(), "mean"),
        ({"pooling_mode_cls_token": True}, "cls"),  # those that are missing are false
        ({"pooling_mode": "lasttoken"}, "last"),
        ({"pooling_mode": ["cls", "mean"]}, "both"),
    ],
)
def test_the_modes_of_the_file_are_the_default_pooling(folder, config, pooling):
    encoder, tokenizer = load(give(folder, **config))
    assert encoder.default_pooling == encoder.rebuilt().default_pooling == pooling
    assert Classifier(encoder, tokenizer, labels=LABELS).settings.pooling == pooling
    task = Classifier(encoder, tokenizer, labels=LABELS, pooling="cls")
    assert task.settings.pooling == "cls" and task.is_standard()


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (modes("weightedmean_tokens"), "weightedmean"),
        (modes("mean_sqrt_len_tokens", "mean_tokens"), "mean with mean_sqrt_len"),
        ({"pooling_mode": "attention"}, "attention"),
    ],
)
def test_another_mode_is_said_and_ignored(folder, config, named):
    with pytest.warns(InputWarning, match=f"asks for the pooling {named}, .*--pooling"):
        encoder, _ = load(give(folder, **config))
    assert encoder.default_pooling == "cls"


def test_files_and_names_that_cannot_be_read(folder):
    change_config(folder, lambda config: {**config, "keras_bert": {"default_pooling": "sum"}})
    with raises_input_error("invalid default_pooling 'sum'. Choose from: cls, mean,"):
        load(folder)
    give(folder)
    (folder / "1_Pooling" / "config.json").write_text("[]")
    with raises_input_error("1_Pooling/config.json should hold a JSON object"):
        load(folder)


def test_it_is_stored_with_every_model_and_tasks_keep_their_own(folder, tmp_path):
    encoder, tokenizer = load(give(folder, **modes("max_tokens")))
    save_folder(encoder, tokenizer, tmp_path / "encoder")
    convert(input=folder, to="huggingface", output=tmp_path / "converted")
    save_folder(Tagger(encoder, tokenizer, labels=["B", "O"]), tokenizer, tmp_path / "tagger")
    for name in ("encoder", "converted", "tagger"):
        assert load(tmp_path / name)[0].default_pooling == "max"
    for pooling in ("cls", None):
        task = Classifier(encoder, tokenizer, labels=LABELS, pooling=pooling)
        task.save(tmp_path / f"task-{pooling}")
        loaded = load_task(tmp_path / f"task-{pooling}")
        assert loaded.settings.pooling == (pooling or "max")
        assert loaded.encoder.default_pooling == "max"
        assert loaded.is_standard() == (pooling == "cls")


def test_without_the_file_folders_are_as_before(folder, tmp_path):
    encoder, tokenizer = load(folder)
    assert encoder.came_with_pooling is None and encoder.default_pooling == "cls"
    save_folder(encoder, tokenizer, tmp_path / "again")
    config = json.loads((tmp_path / "again" / "config.json").read_text())
    assert config["keras_bert"].keys() == {"version"}


@pytest.mark.usefixtures("eager")
def test_a_run_says_it_records_it_and_resumes_with_it_alone(folder, tmp_path):
    give(folder, **modes("mean_tokens"))
    options = {
        "model": str(folder),
        "train": [("a b", "x"), ("c", "y")],
        "dev": [("a", "x"), ("b c", "y")],
        "epochs": 1,
        "freeze_encoder": True,
        "output": tmp_path / "run",
    }
    told = []
    finetune(**options, report=told.append)
    (line,) = (line for line in told if line.startswith("The pooling is mean"))
    assert "with its head" in line and "(--pooling cls)" in line
    assert json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["pooling"] == "mean"
    with raises_input_error("pooling 'mean', now 'cls'"):
        finetune(**options, pooling="cls")
    # One that an earlier version began, with [CLS] and no word of it, is not resumed as another.
    record = tmp_path / "run" / "run.json"
    run = json.loads(record.read_text())
    record.write_text(json.dumps({**run, "settings": {**run["settings"], "pooling": None}}))
    with raises_input_error("pooling None, now 'mean'"):
        finetune(**options)
    record.write_text(json.dumps(run))
    with warnings.catch_warnings(action="error", category=InputWarning):
        assert load_task(tmp_path / "run" / "model").settings.pooling == "mean"
    # A run that goes on with that model keeps the task's pooling, and says nothing of it.
    told = []
    more = {**options, "model": str(tmp_path / "run"), "output": tmp_path / "more"}
    finetune(**more, report=told.append)
    assert not any(line.startswith("The pooling is") for line in told)
    assert load_task(tmp_path / "more").settings.pooling == "mean"
