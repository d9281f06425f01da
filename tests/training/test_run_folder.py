"""An output folder is begun, gone on with or refused; nothing that a run did not write is lost."""

import dataclasses
import json
import shutil

import pytest

from keras_bert.base.errors import InputError
from keras_bert.base.terminal import escaped
from keras_bert.checkpoints import save_folder
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.training.finetuning_settings import LabelledRunSettings
from keras_bert.training.run_files import read_metrics
from keras_bert.training.run_folder import RunFolder, read_settings
from keras_bert.training.settings import PretrainSettings, RunSettings
from tests.messages import raises_input_error
from tests.small_model import make_encoder, make_tokenizer

SETTINGS = {"steps": 100, "data": "/data", "learning_rate": 1e-4, "eval_steps": None}
INPUTS = {"data": "abc"}


def open_folder(path, force=False, command="pretrain", inputs=INPUTS, **changes):
    return RunFolder(
        path, command=command, settings={**SETTINGS, **changes}, inputs=inputs, force=force
    )


def finish(run, metrics):
    tokenizer = make_tokenizer()
    save_folder(make_encoder(tokenizer), tokenizer, run.model)
    return run.finish(metrics)


def test_a_new_folder_is_begun_and_the_same_command_goes_on_with_it(tmp_path):
    output = tmp_path / "a" / "run"
    assert not open_folder(output).resumed
    again = open_folder(output)
    assert again.resumed and not again.finished
    finish(again, {"loss": 1.5})
    assert open_folder(output).finished
    assert read_metrics(output / "metrics.json") == {"loss": 1.5}


@pytest.mark.parametrize("keeps", [False, True])
def test_a_finished_run_deletes_its_checkpoints_unless_the_last_is_asked_for(tmp_path, keeps):
    settings = RunSettings.of({"output": str(tmp_path / "run"), "keep_last_checkpoint": keeps})
    with RunFolder.of(settings, command="finetune", inputs={}) as run:
        run.checkpoints.mkdir()
        for name in ("step-000000002", "step-000000009", "best"):
            (run.checkpoints / f"{name}.safetensors").touch()
        finish(run, {"loss": 1.5})
    left = [path.name for path in tmp_path.glob("run/checkpoints/*")]
    assert left == (["step-000000009.safetensors"] if keeps else [])
    assert run.checkpoints.exists() == keeps
    without = RunSettings.of({"output": str(tmp_path / "run")})
    with RunFolder.of(without, command="finetune", inputs={}) as run:
        assert run.finished and not run.checkpoints.exists()


@pytest.mark.parametrize("damaged", ["", "{", "[]", "{}", "[" * 100_000])
def test_damaged_results_of_a_finished_run_are_one_sentence(tmp_path, damaged):
    finish(open_folder(tmp_path / "run"), {"loss": 1.5})
    (tmp_path / "run" / "metrics.json").write_text(damaged)
    run = open_folder(tmp_path / "run")
    assert not run.finished and "metrics.json is damaged: it is not " in run.damage


def remove(path):
    path.unlink()


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "name, damaged, message",
    [
        ("model", shutil.rmtree, "the model .../run/model is missing"),
        ("model/model.safetensors", truncate, "model.safetensors is not a whole safetensors file"),
        ("model/model.safetensors", remove, "contains no supported weights"),
        ("model/config.json", remove, "has no config.json"),
        ("model/vocab.txt", remove, "vocab.txt"),
        ("metrics.json", empty, "metrics.json is damaged: it is not JSON"),
    ],
)
def test_a_finished_run_whose_results_are_damaged_is_not_said_to_be_finished(
    tmp_path, name, damaged, message
):
    settings = RunSettings.of({"output": str(tmp_path / "run")})
    with RunFolder.of(settings, command="finetune", inputs={}) as run:
        finish(run, {"loss": 1.5})
    with RunFolder.of(settings, command="finetune", inputs={}) as run:
        assert run.finished
    damaged(tmp_path / "run" / name)
    with raises_input_error(f"is finished, but ...{message}... Restore it from a copy"):
        with RunFolder.of(settings, command="finetune", inputs={}):
            pass
    # Nor can a command that would write the model again from a checkpoint, if there is none.
    with raises_input_error("Restore it from a copy, or use `force=True` to train again."):
        with RunFolder.of(settings, command="finetune", inputs={}, rewrites_model=True):
            pass
    (tmp_path / "run" / "checkpoints").mkdir()
    (tmp_path / "run" / "checkpoints" / "step-000000009.safetensors").touch()
    with RunFolder.of(settings, command="finetune", inputs={}, rewrites_model=True) as run:
        assert not run.finished and run.damage
        run.reopen()
        finish(run, {"loss": 1.5})
        assert run.finished


def change_weight(folder):
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def change_text(name, old, new):
    def change(folder):
        path = folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return change


CHANGES = {
    "a weight": (change_weight, "model.safetensors was changed after the run"),
    "a word": (
        change_text("vocab.txt", "\nthe\n", "\nTHE\n"),
        "'THE' has the id 89 in vocab.txt and",
    ),
    "a word's case": (
        change_text("tokenizer_config.json", '"do_lower_case": true', '"do_lower_case": false'),
        "tokenizer_config.json was changed after the run",
    ),
    "a label": (change_text("config.json", '"0": "good"', '"0": "fine"'), "config.json was"),
    "a setting": (change_text("config.json", '"threshold": 0.5', '"threshold": 0.4'), "config.jso"),
    "no tokenizer": (lambda folder: (folder / "tokenizer_config.json").unlink(), "was deleted aft"),
    "a result": (change_text("../metrics.json", "1.5", "2.5"), "metrics.json was changed after"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_finished_run_does_not_repeat_results_of_what_was_changed_since(tmp_path, change):
    output = tmp_path / "run"
    tokenizer = make_tokenizer(["the"])
    task = Classifier(make_encoder(tokenizer), tokenizer, labels=["good", "bad"])
    run = open_folder(output)
    save_folder(task, tokenizer, run.model)
    run.finish({"loss": 1.5, "epochs": (1, 2)})
    (output / "model" / "README.md").write_text("Edited by a person.")
    assert open_folder(output).finished
    changed, message = CHANGES[change]
    changed(output / "model")
    run = open_folder(output)
    assert not run.finished and message in run.damage


def test_the_results_of_an_earlier_version_are_repeated(tmp_path):
    """Which did not write down what it had published."""
    output = tmp_path / "run"
    finish(open_folder(output), {"loss": 1.5})
    run = json.loads((output / "run.json").read_text())
    assert run.pop("published").keys() == {"metrics", "model"}
    (output / "run.json").write_text(json.dumps(run))
    assert open_folder(output).finished


def test_a_run_that_an_error_ends_before_its_first_step_may_be_given_other_settings(tmp_path):
    settings = PretrainSettings(data="d", vocab="v", output=str(tmp_path / "run"), steps=3)

    def run_with(settings):
        with RunFolder.of(settings, command="pretrain", inputs=INPUTS) as run:
            assert not run.resumed
            raise InputError("`minutes` is 3.")

    for run_settings in (settings, dataclasses.replace(settings, steps=4)):
        with raises_input_error("`minutes` is 3."):
            run_with(run_settings)
    assert not (tmp_path / "run" / "run.json").exists()


def test_results_with_control_characters_are_read_back_and_do_not_control_a_terminal(tmp_path):
    output = tmp_path / "run"
    metrics = {"labels": ["a\x9b31mb", "c\u202ed", "\x1b]0;e\x07", "é中"]}
    finish(open_folder(output), metrics)
    text = (output / "metrics.json").read_text()
    assert escaped(text) == text and "é中" in text
    assert read_metrics(output / "metrics.json") == metrics


def test_a_finished_run_leaves_a_card_beside_its_model(tmp_path):
    run = open_folder(tmp_path / "run")
    run.model.mkdir()
    (run.model / "config.json").write_text('{"architectures": ["BertForMaskedLM"]}')
    run.finish({"eval": {"masked_lm_loss": 5.25}, "steps": 100})
    card = (run.model / "README.md").read_text()
    assert "| steps | 100 |" in card and "| masked_lm_loss | 5.2500 |" in card
    assert "| learning rate | 0.0001 |" in card and "/data" not in card


def test_an_empty_folder_is_begun_also_after_a_kill_during_the_first_write(tmp_path):
    (tmp_path / ".run.json.keras-bert-0123456789ab").mkdir()
    (tmp_path / ".run.json.keras-bert-0123456789ab" / "run.json").write_text('{"comm')
    assert not open_folder(tmp_path).resumed


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"steps": 200, "learning_rate": 0.1, "inputs": {"data": "b"}},
            "learning_rate 1e-4, now 0.1; steps 100, now 200; other content of data. Use the "
            "original",
        ),
        ({"steps": 200}, "different settings: steps 100, now 200. Use"),
        ({"new_one": 1}, "new_one None, now 1"),
        ({"inputs": {"data": "abd"}}, "different settings: other content of data"),
    ],
)
def test_other_settings_are_rejected_with_both_values(tmp_path, changes, message):
    open_folder(tmp_path)
    with raises_input_error(message):
        open_folder(tmp_path, **changes)


def test_inputs_may_be_moved_and_run_json_says_where_they_are_now(tmp_path):
    files = {"train": "a/train.tsv", "dev": "a/dev.tsv"}
    begun = LabelledRunSettings.of({"output": str(tmp_path), **files})
    moved = dataclasses.replace(begun, train="b/train.tsv", dev="b/dev.tsv")
    inputs = {"train": "1", "dev": "2"}
    with RunFolder.of(begun, command="finetune", inputs=inputs) as run:
        run.resolve("steps", 7)
    with raises_input_error("train '.../a/train.tsv', now ...other content of dev"):
        with RunFolder.of(moved, command="finetune", inputs={"train": "1", "dev": "3"}):
            pass
    with RunFolder.of(moved, command="finetune", inputs=inputs) as run:
        assert run.resumed and run.resolved("steps") == 7
    recorded = read_settings(tmp_path / "run.json", command="finetune")
    assert recorded == json.loads(json.dumps(moved.recorded()))


def test_a_folder_that_holds_something_else_is_rejected(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with raises_input_error("contains something else (thesis.tex)."):
        open_folder(tmp_path)
    open_folder(tmp_path / "file_parent")
    with raises_input_error("is a file"):
        open_folder(tmp_path / "thesis.tex")
    with raises_input_error("contains something else"):
        open_folder(tmp_path / "file_parent", command="finetune")


def test_force_deletes_what_the_command_wrote_and_nothing_else(tmp_path):
    folder = open_folder(tmp_path)
    folder.checkpoints.mkdir()
    folder.finish({})
    (tmp_path / "notes.txt").write_text("mine")
    fresh = open_folder(tmp_path, force=True, steps=7)
    assert not fresh.resumed and not fresh.finished
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "run.json"]
    assert json.loads((tmp_path / "run.json").read_text())["settings"]["steps"] == 7


@pytest.mark.parametrize("other", ["finetune", None])
def test_force_does_not_delete_what_another_program_wrote(tmp_path, other):
    if other:
        open_folder(tmp_path, command=other)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine").write_text("precious")
    with raises_input_error("contains a model that pretrain did not write"):
        open_folder(tmp_path, force=True)
    assert (tmp_path / "model" / "mine").read_text() == "precious"


def test_settings_are_read_back_for_the_same_command_only(tmp_path):
    open_folder(tmp_path)
    assert read_settings(tmp_path / "run.json", command="pretrain") == SETTINGS
    with raises_input_error("settings of pretrain. Expected the run.json of a fine"):
        read_settings(tmp_path / "run.json", command="finetune")
    with raises_input_error("There is no settings file"):
        read_settings(tmp_path / "nowhere.json", command="pretrain")


def test_what_a_run_reads_is_not_deleted(tmp_path):
    settings = {"steps": 1, "data": str(tmp_path / "run" / "data"), "vocab": "v.txt"}
    (tmp_path / "run" / "data").mkdir(parents=True)
    forced = PretrainSettings.of({**settings, "output": str(tmp_path / "run"), "force": True})
    with raises_input_error("is also the input, or holds it"):
        with RunFolder.of(forced, command="pretrain", inputs={}):
            pass
    assert (tmp_path / "run" / "data").exists()


def test_a_run_of_an_earlier_version_resumes_where_its_removed_settings_changed_nothing(tmp_path):
    given = {"steps": 1, "data": "d", "vocab": "v.txt", "output": str(tmp_path / "run")}
    settings = PretrainSettings.of(given)
    with RunFolder.of(settings, command="pretrain", inputs={}):
        pass
    path = tmp_path / "run" / "run.json"
    run = json.loads(path.read_text())
    for bad_records in ("error", "skip"):
        recorded = {**run["settings"], "bad_records": bad_records}
        path.write_text(json.dumps({**run, "settings": recorded}))
        resumed = RunFolder.of(settings, command="pretrain", inputs={})
        if bad_records == "error":
            with resumed as folder:
                assert folder.resumed
            continue
        with raises_input_error("different settings: bad_records 'skip', now 'error'."), resumed:
            pass


@pytest.mark.parametrize("text", ["{", "[]", '{"command": "pretrain", "settings": 3}'])
def test_a_broken_settings_file_is_said_to_be_one(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with raises_input_error("is not a settings file of a run"):
        read_settings(tmp_path / "run.json", command="pretrain")
    with raises_input_error("is not a settings file of a run"):
        open_folder(tmp_path)
