"""The files: what is read back equals what was embedded, and nothing else is touched."""

import json
import os

import numpy as np
import pytest
from pyarrow import parquet

from keras_bert.embeddings.embed_to_file import embed_to_file
from keras_bert.embeddings.npz_file import NpzFile
from keras_bert.embeddings.parquet_file import ParquetFile
from keras_bert.embeddings.text_embedding import TextEmbedding
from keras_bert.errors import InputError

WIDTH = 3
SETTINGS = {"layers": "last", "width": WIDTH}
TEXTS = [
    "the bank of the river",
    "",
    "  Ünïcödé,\tnaïve!  ",
    "x" * 300 + " y",
    "好 bank 好",
    "a\ud800b",
]


def embedding(line, text):
    """Random numbers for every word between blanks."""
    rng = np.random.default_rng(line)
    words = text.split()
    starts = np.array([text.index(word) for word in words], np.int32)
    return TextEmbedding(
        line=line,
        text=text,
        starts=starts,
        ends=starts + np.array([len(word) for word in words], np.int32),
        vectors=rng.normal(size=(len(words), WIDTH)).astype("float32"),
        cls=rng.normal(size=WIDTH).astype("float32"),
        mean=rng.normal(size=WIDTH).astype("float32"),
    )


EXPECTED = [embedding(2 * number, text) for number, text in enumerate(TEXTS)]


def write(make, path):
    file = make(path, width=WIDTH, settings=SETTINGS)
    for one in EXPECTED:
        file.write(one)
    file.close()


@pytest.mark.parametrize("numbers", [1, 20, 10_000])
def test_parquet(numbers, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_bert.embeddings.parquet_file._NUMBERS_IN_A_GROUP", numbers)
    path = tmp_path / "vectors.parquet"
    write(ParquetFile, path)
    file = parquet.ParquetFile(path)
    groups = {1: len(TEXTS), 20: 3, 10_000: 1}
    assert file.num_row_groups == groups[numbers]
    assert json.loads(file.schema_arrow.metadata[b"keras_bert"]) == SETTINGS
    for row, one in zip(file.read().to_pylist(), EXPECTED, strict=True):
        # Half of a surrogate pair has no UTF-8; one character stands for it.
        assert (row["line"], row["text"]) == (one.line, one.text.replace("\ud800", "?"))
        assert row["tokens"] == [token.replace("\ud800", "?") for token in one.tokens]
        assert row["starts"] == one.starts.tolist() and row["ends"] == one.ends.tolist()
        vectors = np.array(row["vectors"], np.float32).reshape(-1, WIDTH)
        np.testing.assert_array_equal(vectors, one.vectors)
        np.testing.assert_array_equal(np.array(row["cls"], np.float32), one.cls)
        np.testing.assert_array_equal(np.array(row["mean"], np.float32), one.mean)


def test_npz(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_bert.embeddings.npz_file._TOKENS_AT_ONCE", 3)
    path = tmp_path / "vectors.npz"
    write(NpzFile, path)
    assert os.listdir(tmp_path) == ["vectors.npz"]
    arrays = np.load(path)
    assert json.loads(str(arrays["settings"])) == SETTINGS
    splits = arrays["row_splits"]
    assert len(splits) == len(TEXTS) + 1
    for number, one in enumerate(EXPECTED):
        own = slice(splits[number], splits[number + 1])
        assert arrays["lines"][number] == one.line
        tokens = [token[:64].replace("\ud800", "?") for token in one.tokens]
        assert arrays["tokens"][own].tolist() == tokens
        for name in ("starts", "ends", "vectors"):
            np.testing.assert_array_equal(arrays[name][own], getattr(one, name))
        for name in ("cls", "mean"):
            np.testing.assert_array_equal(arrays[name][number], getattr(one, name))


@pytest.mark.parametrize("make, ending", [(NpzFile, "npz"), (ParquetFile, "parquet")])
def test_texts_without_any_token(make, ending, tmp_path):
    file = make(tmp_path / f"vectors.{ending}", width=WIDTH, settings=SETTINGS)
    file.write(embedding(1, ""))
    file.close()
    if ending == "npz":
        assert np.load(tmp_path / "vectors.npz")["vectors"].shape == (0, WIDTH)
    else:
        assert parquet.read_table(tmp_path / "vectors.parquet")["tokens"].to_pylist() == [[]]


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_writes_replaces_its_own_file_when_told_and_no_other(ending, encoder, tokenizer, tmp_path):
    path = tmp_path / f"vectors.{ending}"

    def run(**options):
        return embed_to_file(
            model=(encoder, tokenizer), text=["a bank", "b"], output=path, layers="first", **options
        )

    path.write_text("mine", encoding="utf-8")
    for force, sentence in ((False, "is there already"), (True, "is no file of embeddings")):
        with pytest.raises(InputError, match=sentence):
            run(force=force)
    assert path.read_text(encoding="utf-8") == "mine"
    path.unlink()
    assert run() == run(force=True) == {"texts": 2, "tokens": 3, "width": 16}
    assert os.listdir(tmp_path) == [path.name]
    if ending == "npz":
        assert np.load(path)["tokens"].tolist() == ["a", "bank", "b"]
    else:
        assert parquet.read_table(path)["tokens"].to_pylist() == [["a", "bank"], ["b"]]


def test_a_broken_run_leaves_nothing(model_folder, tmp_path):
    data = tmp_path / "texts.txt"
    data.write_bytes(b"good\nbad \xff\n")
    output = tmp_path / "out" / "vectors.parquet"
    with pytest.raises(InputError, match="no folder"):
        embed_to_file(model=model_folder, data=data, output=output)
    output.parent.mkdir()
    with pytest.raises(InputError, match="line 2: byte 5 is not UTF-8"):
        embed_to_file(model=model_folder, data=data, output=output)
    with pytest.raises(InputError, match="should end in .npz or .parquet"):
        embed_to_file(model=model_folder, data=data, output=output.with_suffix(".csv"))
    assert list(output.parent.iterdir()) == []
