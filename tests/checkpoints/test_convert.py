"""Conversion between formats, by the call and by the command."""

import keras
import numpy as np
import pytest

from keras_bert import Pretrainer
from keras_bert.checkpoints import load_task, save_folder
from keras_bert.checkpoints.convert import convert
from keras_bert.cli.main import main
from tests.messages import raises_input_error


@pytest.fixture
def folder(make_encoder, tokenizer, tmp_path, shake):
    task = shake(Pretrainer(make_encoder(hidden_act="gelu_new"), tokenizer))
    save_folder(task, tokenizer, tmp_path / "folder")
    return tmp_path / "folder"


def test_there_and_back_changes_no_byte(folder, tmp_path):
    done = convert(folder, tmp_path / "google", to="google")
    assert done == {"found": "huggingface", "wrote": "BertForPreTraining", "left_out": []}
    convert(tmp_path / "google", tmp_path / "back")
    for name in ("model.safetensors", "config.json", "vocab.txt", "tokenizer_config.json"):
        assert (folder / name).read_bytes() == (tmp_path / "back" / name).read_bytes(), name


def test_keras_nlp_takes_the_encoder_alone(folder, tmp_path):
    pytest.importorskip("keras_nlp")
    keras.backend.clear_session()  # names are counted in a process, and stand in a preset
    done = convert(folder, tmp_path / "preset", to="keras-nlp")
    assert done["left_out"] == ["BertForPreTraining"] and done["wrote"] == "BertModel"
    keras.backend.clear_session()
    told = []
    convert(folder, tmp_path / "preset", to="keras-nlp", report=told.append)
    assert told == [f"{tmp_path / 'preset'} is already complete. Nothing was written."]
    assert convert(tmp_path / "preset", tmp_path / "back")["found"] == "keras-nlp"


def test_a_head_that_the_architecture_does_not_name_is_said(folder, tmp_path):
    config = folder / "config.json"
    config.write_text(config.read_text().replace("BertForPreTraining", "BertForMaskedLM"))
    assert convert(folder, tmp_path / "out")["left_out"] == ["cls.seq_relationship"]


def test_the_output_of_a_run_will_do(folder, tmp_path):
    """Every other command takes it, too; its own model is not written over."""
    run = tmp_path / "run"
    run.mkdir()
    folder.rename(run / "model")
    assert convert(run, tmp_path / "google", to="google")["found"] == "huggingface"
    with raises_input_error("is also the input"):
        convert(run, run / "model", force=True)


@pytest.mark.parametrize("inside", ["new", "new/deeper", "../link/new"])
def test_nothing_is_written_into_the_inputs_own_folder(folder, tmp_path, inside):
    """Files written there made it a folder that is not ours to replace any more."""
    (tmp_path / "link").symlink_to(folder)
    with raises_input_error("is inside the input ...Use another folder"):
        convert(folder, folder / inside, to="google")
    assert not (folder / "new").exists()
    run = tmp_path / "run"
    run.mkdir()
    folder.rename(run / "model")
    convert(run, run / "google", to="google")  # beside the model, in the same run


def test_the_command(folder, tmp_path, capsys):
    google = str(tmp_path / "google")
    assert main(["convert", "--input", str(folder), "--output", google, "--to", "google"]) == 0
    assert "Next: --init_checkpoint" in capsys.readouterr().out
    assert main(["convert", "--input", google, "--output", google]) == 2
    assert "is also the input" in capsys.readouterr().err
    again = ["convert", "--input", str(folder), "--output", google, "--to", "google"]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("google/*")}
    assert main(again) == 0
    assert "google is already complete. Nothing was written." in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("google/*")} == before
    (tmp_path / "google" / "another").touch()
    assert main(again) == 2
    assert "holds something else already (another, " in capsys.readouterr().err
    (tmp_path / "google" / "another").unlink()
    with (tmp_path / "google" / "vocab.txt").open("a") as file:
        file.write("another\n")
    assert main(again) == 2
    assert "give another folder, or --force to replace it" in capsys.readouterr().err
    assert main([*again, "--force"]) == 0
    capsys.readouterr()
    back = str(tmp_path / "back")
    assert main(["convert", "--input", google, "--output", back]) == 0
    said = capsys.readouterr().out
    assert "BertForPreTraining, from a model in the format google" in said
    assert f"Next: keras-bert embed --model {back} " in said
    weights = [load_task(path).trainable_weights for path in (folder, back)]
    for one, other in zip(*weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert main(["convert", "--input", str(tmp_path), "--output", str(tmp_path / "x")]) == 2
    assert "Could not detect the model format of" in capsys.readouterr().err
    a_file = f"{google}/bert_model.ckpt.index"  # as a shell completes the name
    assert main(["convert", "--input", a_file, "--output", str(tmp_path / "x")]) == 2
    assert "is a file. Expected the folder that contains" in capsys.readouterr().err
