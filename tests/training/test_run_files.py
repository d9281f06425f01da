"""The files of a finished run are checked by hash, and only files of a run are deleted."""

import json

import pytest

from keras_bert.base.files import temporary_name
from keras_bert.base.ownership import OWNER_FILE
from keras_bert.training.run_files import PICTURES, RECORDS, check_own_records, is_of_run
from keras_bert.training.run_folder import RunFolder
from tests.messages import raises_input_error

PROMISED = {
    "adapter/adapter_model.safetensors": "the adapter",
    "adapter/config.json": "the adapter",
    "ensemble/1/saved_model.pb": "the ensemble",
    "ensemble/1/variables/variables.index": "the ensemble",
    "submission/RTE.tsv": "the submission",
    "submission.zip": "the submission",
}


def open_folder(path):
    return RunFolder(path, command="glue", settings={}, inputs={}, has_model=False)


@pytest.fixture
def run(tmp_path):
    """The folder of a finished run."""
    folder = open_folder(tmp_path)
    for name in PROMISED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    folder.finish({"score": 1.0})
    return tmp_path


@pytest.mark.parametrize("name", PROMISED)
def test_what_was_promised_is_there_as_it_was_written(run, name):
    (run / "ensemble" / "2").mkdir()
    (run / "ensemble" / "2" / "saved_model.pb").write_text("a later export")
    (run / "adapter" / "README.md").write_text("Edited by a person.")
    assert open_folder(run).finished
    (run / name).write_text("changed")
    folder = open_folder(run)
    assert not folder.finished
    assert folder.damage == f"{PROMISED[name]} is damaged: {run / name} was changed after the run"
    (run / name).unlink()
    state = f" {run / name} is missing" if name == "submission.zip" else ""
    state = state or f" is damaged: {run / name} was deleted after the run"
    assert open_folder(run).damage == f"{PROMISED[name]}{state}"


def test_a_deleted_folder_is_missing(run):
    (run / "adapter").rename(run.parent / "elsewhere")
    assert open_folder(run).damage == f"the adapter {run / 'adapter'} is missing"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("published", [1], 'run.json is damaged: "published" should be a JSON object'),
        ("resolved", 1, 'run.json is damaged: "resolved" should be a JSON object'),
    ],
)
def test_a_broken_record_is_a_sentence(run, key, value, message):
    content = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**content, key: value}))
    with raises_input_error(message):
        open_folder(run)


def test_broken_hashes_are_damage(run):
    content = json.loads((run / "run.json").read_text())
    content["published"]["adapter"] = [1]
    (run / "run.json").write_text(json.dumps(content))
    assert "the hashes of adapter are not an object" in open_folder(run).damage


RUN_PATHS = [
    *("run.json", "metrics.json", "curves.png", "bad_batch.npz", "submission.zip"),
    *("checkpoints/step-000000012.safetensors", "checkpoints/best.safetensors"),
    *("logs/train/events.out.tfevents.1.host.2.0.v2", "logs/plugins/profile/a/b.pb"),
    *("model/model.safetensors", "model/README.md", "model/vocab.txt", "adapter/config.json"),
    *(f"pictures/{name}" for name in PICTURES),
    *("ensemble/1/saved_model.pb", "ensemble/12/variables/variables.index"),
    *("ensemble/1/assets.extra/tf_serving_warmup_requests", "ensemble/1/batching_params.pbtxt"),
    *("submission/MNLI-m.tsv", "submission/AX.tsv"),
    *("runs/seed-0/model/config.json", "runs/RTE/runs/lr-1e-05/metrics.json"),
]
OTHER_PATHS = [
    *("notes.txt", "model/notes.txt", "model/a/config.json", "pictures/mine.png", "logs/a.txt"),
    *("checkpoints/mine.safetensors", "ensemble/mine/saved_model.pb", "submission/mine.tsv"),
    *("runs/notes.txt", "runs/a/notes.txt", "runs/a/b/run.json", "model", "best.safetensors"),
]


def test_files_of_runs_are_told_by_their_names():
    assert [path for path in RUN_PATHS if not is_of_run(path)] == []
    assert [path for path in OTHER_PATHS if is_of_run(path)] == []
    assert {path.partition("/")[0] for path in RUN_PATHS} == {*RECORDS}


def test_what_an_interrupted_write_left_is_of_the_run(tmp_path):
    for name in (*RUN_PATHS, "runs/seed-0/model"):
        path = tmp_path / name
        unfinished = path.with_name(temporary_name(path.name)) / path.name
        unfinished.parent.mkdir(parents=True)
        unfinished.write_text("")
        (path.parent / OWNER_FILE).write_text("")
    check_own_records(tmp_path, command="finetune")


@pytest.mark.parametrize("command", ["pretrain", "finetune", "sweep", "glue"])
def test_results_of_another_kind_are_a_sentence(tmp_path, command):
    """An earlier version, whose run.json has no hash of them, may have left them."""
    RunFolder(tmp_path, command=command, settings={}, inputs={}, has_model=False)
    for content in ('{"a": 1}', '{"steps": "1", "tasks": []}'):
        (tmp_path / "metrics.json").write_text(content)
        run = RunFolder(tmp_path, command=command, settings={}, inputs={}, has_model=False)
        assert run.finished
        with raises_input_error('metrics.json is damaged: "...is missing or of another type'):
            run.read_metrics()
