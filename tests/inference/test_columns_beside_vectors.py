"""The columns of a table of texts beside the vectors that `embed` writes."""

import json

import pandas as pd
import pytest
from pyarrow import parquet

import keras_bert as kb

TABLE = pd.DataFrame(
    {
        "Ticket ID": [7, 8, 9],
        "text": ["the bank", "a river", None],
        "vectors": ["x", None, "y"],
        "when": pd.to_datetime(["2026-01-01", "2026-01-02", None]),
        "mixed": [1, "one", [2]],
    }
)
OWN = ["line", "text", "tokens", "starts", "ends", "vectors", "cls", "mean"]


@pytest.fixture
def written(encoder, tokenizer, tmp_path):
    def write(data, **options):
        output = tmp_path / "vectors.parquet"
        model = (encoder, tokenizer)
        kb.embed_to_file(model=model, data=data, output=output, tokens="none", **options)
        return parquet.read_table(output)

    return write


@pytest.mark.filterwarnings("ignore:.*left out")
def test_a_dataframe_keeps_its_columns_and_their_types(written):
    table = written(TABLE)
    assert table.column_names == ["Ticket ID", "input_vectors", "when", "mixed", *OWN]
    rows = table.to_pylist()
    assert [row["Ticket ID"] for row in rows] == [7, 8]
    assert [row["text"] for row in rows] == ["the bank", "a river"]
    assert [row["input_vectors"] for row in rows] == ["x", None]
    assert str(rows[0]["when"]).startswith("2026-01-01")
    assert [row["mixed"] for row in rows] == ["1", "one"]  # of several types: text


def test_a_csv_keeps_its_header_and_a_json_its_numbers(written, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('id,Customer message \n007,"the\nbank"\n8,a\n')
    table = written(path, text_column="Customer message")
    assert table.column_names == ["id", "Customer message ", *OWN]
    assert table["id"].to_pylist() == ["007", "8"]
    assert table["line"].to_pylist() == [2, 4]
    rows = [{"id": 1, "text": "a"}, {"id": 2, "text": "b", "more": {"x": 1}}]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    table = written(path, force=True)
    assert table.column_names == ["id", "more", *OWN]
    assert table["id"].to_pylist() == [1, 2] and table["more"].to_pylist() == [None, {"x": 1}]


def test_a_folder_of_texts_has_the_names_of_the_files(written, tmp_path):
    folder = tmp_path / "letters"
    folder.mkdir()
    for name in ("b", "a"):
        (folder / f"{name}.txt").write_text(f"letter {name}\n")
    table = written(folder, progress=True)
    assert table.column_names == ["file", *OWN]
    assert table["file"].to_pylist() == ["a.txt", "b.txt"]
    assert table["line"].to_pylist() == [1, 2]


def test_plain_lines_have_no_columns_and_rows_are_in_python(written, encoder, tokenizer, tmp_path):
    (tmp_path / "a.txt").write_text("a\nb\n")
    assert written(tmp_path / "a.txt").column_names == OWN
    embeddings = kb.embed(model=(encoder, tokenizer), data=TABLE[:2], tokens="none")
    assert [embedding.row["Ticket ID"] for embedding in embeddings] == [7, 8]
    (one,) = kb.embed(model=(encoder, tokenizer), text="a", tokens="none")
    assert one.row is None


def test_texts_are_in_the_column_that_the_model_was_trained_on(encoder, tokenizer, tmp_path):
    task = kb.Classifier(encoder, tokenizer, labels=["a", "b"])
    task.columns = {"text": ["msg"], "label": ["queue"]}
    task.save(tmp_path / "model")
    path, output = tmp_path / "a.csv", tmp_path / "vectors.parquet"
    path.write_text("id,msg,queue\n7,the bank,a\n")
    assert [e.text for e in kb.embed(model=tmp_path / "model", data=path)] == ["the bank"]
    kb.embed_to_file(model=tmp_path / "model", data=path, output=output)
    assert parquet.read_table(output)["text"].to_pylist() == ["the bank"]
    path.write_text("id,text,queue\n7,a river,a\n")  # another table, with a usual name
    assert [e.text for e in kb.embed(model=tmp_path / "model", data=path)] == ["a river"]
    assert [e.text for e in kb.embed(model=tmp_path / "model", text="one")] == ["one"]
