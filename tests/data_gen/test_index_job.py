"""An index as a job: that of each file, merged, with any number of workers."""

import os

import pytest

import keras_bert as kb
from data_gen import inference
from keras_bert.cli.main import main
from keras_bert.search.index import load_index
from tests.messages import raises_input_error
from tests.search.indexes import WORDS, found, table
from tests.small_model import make_encoder, make_tokenizer

QUERIES = ["cat ran", "the old dog"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    tokenizer = make_tokenizer(WORDS)
    task = kb.TextEmbedder(make_encoder(tokenizer), tokenizer, max_length=12, normalize=True)
    folder = tmp_path_factory.mktemp("model") / "model"
    task.save(folder)
    return str(folder)


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for number, count in enumerate((5, 1, 9)):
        table(count, seed=number, prefix=f"{number}-").to_csv(folder / f"{number}.csv", index=False)
    return folder


@pytest.fixture(autouse=True)
def _no_model_of_another_test(monkeypatch):
    monkeypatch.setattr(inference, "_loaded_model", (None, None))


def vectors_of(folder):
    paths = sorted(path for path in folder.rglob("*") if path.suffix in (".npy", ".parquet"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_the_parts_are_those_of_each_file(model, texts, tmp_path, capsys):
    command = ["index", "--model", model, "--data", f"{texts}/*.csv", "--words", "--passages"]
    command += ["--output", str(tmp_path / "index"), "--runner=FnApiRunner"]
    assert main(command) == 0
    assert f"{tmp_path / 'index'}: 15 texts." in capsys.readouterr().out
    assert sorted(os.listdir(tmp_path)) == ["index", "texts"]
    index = load_index(tmp_path / "index")
    assert index.ids == [f"{n}-{k}" for n, count in enumerate((5, 1, 9)) for k in range(count)]
    options = {"words": True, "passages": True}
    alone = kb.Index.build(model, texts / "0.csv", **options)
    for name in ("1.csv", "2.csv"):
        alone.add(texts / name)
    for by in ("vectors", "words", "both"):
        assert found(index, QUERIES, by=by) == found(alone, QUERIES, by=by)
    assert vectors_of(index.folder) == vectors_of(alone.folder)
    assert main(command) == 2 and "is there already" in capsys.readouterr().err


@pytest.mark.slow
def test_several_workers_write_the_same_bytes(model, texts, tmp_path):
    options = {"model": model, "data": f"{texts}/*.csv"}
    kb.index_files(output=tmp_path / "one", **options)
    workers = ["--direct_num_workers=2"]
    assert kb.index_files(output=tmp_path / "two", beam_options=workers, **options) == 15
    assert vectors_of(tmp_path / "one") == vectors_of(tmp_path / "two")


def test_an_id_in_two_files(model, texts, tmp_path):
    table(2, prefix="2-").to_csv(texts / "3.csv", index=False)
    with raises_input_error("The id '2-0' is in ...2.csv and in ...3.csv. Name a column"):
        kb.index_files(model=model, data=f"{texts}/*.csv", output=tmp_path / "index")
    assert not (tmp_path / "index").exists()
