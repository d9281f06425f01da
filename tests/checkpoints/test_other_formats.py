"""Folders of other formats are models by their paths; archives and names of Kaggle are not."""

import shutil
import subprocess
from pathlib import PurePosixPath

import numpy as np
import pytest

from keras_bert import QuestionAnswerer
from keras_bert.checkpoints import find_model_folder, load, load_task, locations, save_folder
from keras_bert.checkpoints.convert import convert
from keras_bert.cli.main import main
from keras_bert.cli.task_types import task_type_of
from tests.messages import raises_input_error


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def folder(make_encoder, tokenizer, tmp_path):
    """A model folder that every format can express."""
    save_folder(make_encoder(hidden_act="gelu_new"), tokenizer, tmp_path / "model")
    return tmp_path / "model"


def same(source, folder):
    (original, _), (converted, _) = load(source), load(folder)
    for one, other in zip(original.get_weights(), converted.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("to", ["google", "keras-nlp"])
def test_a_folder_in_another_format_is_converted_once(folder, cache, tmp_path, to):
    if to == "keras-nlp":
        pytest.importorskip("keras_nlp")
    other = tmp_path / to
    convert(folder, other, to=to)
    same(other, folder)
    [place] = cache.iterdir()
    written = (place / "model.safetensors").stat().st_mtime_ns
    assert find_model_folder(str(other)) == place
    assert (place / "model.safetensors").stat().st_mtime_ns == written
    shutil.copytree(other, tmp_path / "copy")
    assert find_model_folder(tmp_path / "copy") == place  # the same content
    # A conversion reads the format itself.
    assert convert(other, tmp_path / "back")["found"] == to


def test_a_command_knows_the_task_of_a_checkpoint(make_encoder, tokenizer, tmp_path, shake):
    task = shake(QuestionAnswerer(make_encoder(hidden_act="gelu_new"), tokenizer))
    save_folder(task, tokenizer, tmp_path / "task")
    convert(tmp_path / "task", tmp_path / "google", to="google")
    assert task_type_of(tmp_path / "google") == "question-answering"
    google_task, saved_task = load_task(tmp_path / "google"), load_task(tmp_path / "task")
    for one, other in zip(google_task.get_weights(), saved_task.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_file_beside_a_folder_does_not_make_it_a_checkpoint(folder, tmp_path):
    """`bert.index`, as `keras-bert index` may write it, was taken for that of `bert`."""
    run = tmp_path / "bert"
    run.mkdir()
    shutil.move(folder, run / "model")
    (tmp_path / "bert.index").touch()
    assert find_model_folder(run) == run / "model"
    assert convert(run, tmp_path / "out")["found"] == "huggingface"


def labelled(folder):
    """The flags of labelled files for `finetune`."""
    (folder / "labelled.tsv").write_text("text\tlabel\na text\tham\nanother\tspam\n")
    return ["--train", str(folder / "labelled.tsv"), "--dev", str(folder / "labelled.tsv")]


ARCHIVES = ["a.zip", "a.ZIP", "a.tar", "a.tar.gz", "a.tgz", "a.tar.xz", "a.tar.bz2", "a.7z"]


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_is_unpacked_first(tmp_path, capsys, name):
    path = tmp_path / name
    path.write_bytes(b"the 0.1 0.2\n")  # not even if its content is that of a supported file
    sentence = f"{path} is an archive, which is not opened. Unpack it, and give the folder of"
    for opened in (load, load_task):
        with raises_input_error(sentence):
            opened(path)
    with raises_input_error(sentence):
        convert(path, tmp_path / "out")
    for command in (["convert", "--input"], ["finetune", *labelled(tmp_path), "--model"]):
        assert main([*command, str(path), "--output", str(tmp_path / "out")]) == 2
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_model_of_kaggle_is_downloaded_by_its_own_client(tmp_path, capsys):
    name = "kaggle://keras/bert/keras/bert_tiny_en_uncased"
    sentence = (
        f"{name} was not downloaded, because models of Kaggle are not loaded by name. Run "
        '`kagglehub.model_download("keras/bert/keras/bert_tiny_en_uncased")` in Python (pip '
        "install kagglehub), and give the folder that it returns."
    )
    for opened in (load, load_task):
        with raises_input_error(sentence):
            opened(name)
    train = labelled(tmp_path)
    for command in (
        ["embed", "--data", train[1], "--model"],
        ["convert", "--input"],
        ["finetune", *train, "--model"],
    ):
        assert main([*command, name, "--output", str(tmp_path / "out")]) == 2
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_saved_model_is_not_a_model_folder(tmp_path):
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "saved_model.pb").touch()
    with raises_input_error(
        "It contains a SavedModel, which lacks the sizes of its encoder. Use the folder"
    ):
        load(tmp_path / "export")


def test_a_folder_may_be_nested_deeper_than_pythons_stack(tmp_path):
    deep = tmp_path / "m" / "/".join("d" * 1500)
    subprocess.run(["mkdir", "-p", deep], check=True)
    try:
        (deep / "notes.txt").touch()
        (tmp_path / "m" / "config.json").touch()
        files = locations._files_below(tmp_path)
        assert PurePosixPath("m", "config.json") in files and len(files) == 2
    finally:
        subprocess.run(["rm", "-r", tmp_path / "m"], check=True)  # pytest's own cannot


def test_a_missing_input_of_a_conversion_is_said_to_be_missing(tmp_path):
    with raises_input_error(
        f"There is no file or folder {tmp_path / 'nowhere'}. Give the path of a model."
    ):
        convert(tmp_path / "nowhere", tmp_path / "out")
