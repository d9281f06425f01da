"""Predictions beside the columns of their input: DataFrames, CSV, Parquet and JSON Lines."""

import csv
import json
import os
import threading

import pandas as pd
import pytest
from pyarrow import parquet

import keras_bert as kb
from keras_bert.base.errors import InputError
from keras_bert.cli.main import main
from keras_bert.cli.model_commands import metrics_text
from tests.small_model import make_encoder, make_tokenizer

TABLE = pd.DataFrame(
    {"id": [7, 8, 9], "message": ["a b", None, "c"], "label": ["ham", "spam", "spam"], "score": 1}
)
COLUMNS = [
    *("id", "message", "input_score", "label", "score", "expected"),
    *("probability_ham", "probability_spam"),
]


@pytest.fixture(scope="module")
def task():
    tokenizer = make_tokenizer()
    task = kb.Classifier(
        make_encoder(tokenizer, num_hidden_layers=1), tokenizer, labels=["ham", "spam"]
    )
    task.columns = {"text": ["message"], "label": ["label"]}
    return task


@pytest.fixture(scope="module")
def folder(task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    task.save(folder)
    return folder


@pytest.mark.filterwarnings("ignore:.*left out")
def test_a_dataframe_has_the_columns_of_the_input(task):
    rows = kb.predict(task, TABLE, as_dataframe=True)
    assert list(rows) == COLUMNS and rows.index.tolist() == [0, 2]
    assert rows["id"].tolist() == [7, 9] and rows["expected"].tolist() == ["ham", "spam"]
    predictions = list(kb.predict(task, TABLE))
    assert rows["label"].tolist() == [p["label"] for p in predictions]
    assert rows["probability_spam"].tolist() == [p["probabilities"]["spam"] for p in predictions]
    texts = kb.predict(task, ["a", "b"], as_dataframe=True)
    assert list(texts) == ["text", "label", "score", "probability_ham", "probability_spam"]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_predict_writes_a_table(folder, tmp_path, ending, capsys):
    data, output = tmp_path / "in.csv", tmp_path / f"out.{ending}"
    TABLE.to_csv(data, index=False)
    command = ["predict", "--model", str(folder), "--data", str(data), "--output", str(output)]
    assert main(command) == 0
    assert f"Wrote {output}: 2 rows." in capsys.readouterr().out
    if ending == "csv":
        with output.open() as file:
            rows = list(csv.DictReader(file))
    elif ending == "jsonl":
        rows = [json.loads(line) for line in output.read_text().splitlines()]
    else:
        rows = parquet.read_table(output).to_pylist()
    assert list(rows[0]) == COLUMNS and [row["id"] for row in rows] == ["7", "9"]
    [expected, _] = kb.predict(folder, data, report=print)
    assert float(rows[0]["probability_ham"]) == expected["probabilities"]["ham"]
    assert main(command) == 2
    assert "--force" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0


def test_an_output_of_another_type_is_an_error(task, tmp_path):
    with pytest.raises(InputError, match="`output` must be a file NAME.csv, NAME.parquet or"):
        kb.predict(task, ["a"], output=tmp_path / "out.txt")
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="did not write"):
        kb.predict(task, ["a"], output=tmp_path / "mine.csv", force=True)
    with pytest.raises(InputError, match="`force` is for `output`"):
        kb.predict(task, ["a"], force=True)
    assert kb.predict(task, ["a"], output=tmp_path / "out.csv") == 1
    mixed = [{"message": "a", "more": 1}, {"message": "b", "more": "x"}]
    with pytest.raises(InputError, match='Parquet cannot hold this table: the column "more" has'):
        kb.predict(task, mixed, output=tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("is_array", [False, True])
@pytest.mark.parametrize("name", ["pipe.jsonl", "-"])
def test_a_pipe_of_json_is_predicted_whole(task, tmp_path, monkeypatch, name, is_array):
    """The names of its keys, which are of all objects, take no row from the predictions."""
    rows = [{"message": f"a b {n}", **{f"more{n}": n for _ in range(n > 2)}} for n in range(5)]
    text = json.dumps(rows) if is_array else "".join(f"{json.dumps(row)}\n" for row in rows)
    (tmp_path / "file.jsonl").write_text(text)
    if name == "-":
        monkeypatch.setattr("sys.stdin", (tmp_path / "file.jsonl").open())
    else:
        name = tmp_path / name
        os.mkfifo(name)
        threading.Thread(target=name.write_text, args=(text,), daemon=True).start()
    for data, output in ((name, "of_pipe.csv"), (tmp_path / "file.jsonl", "of_file.csv")):
        assert kb.predict(task, data, output=tmp_path / output, report=print) == len(rows)
    assert (tmp_path / "of_pipe.csv").read_text() == (tmp_path / "of_file.csv").read_text()


def test_a_tagger_writes_lists_as_json(tmp_path):
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer, num_hidden_layers=1)
    tagger = kb.Tagger(encoder, tokenizer, labels=["X", "Y"])
    kb.predict(tagger, [["a", "b"], ["c"]], output=tmp_path / "tags.csv")
    with (tmp_path / "tags.csv").open() as file:
        first, second = csv.DictReader(file)
    assert json.loads(first["words"]) == ["a", "b"] and len(json.loads(second["tags"])) == 1


@pytest.mark.usefixtures("eager")
def test_evaluate_shows_tables(folder, tmp_path, capsys):
    TABLE.dropna().to_csv(tmp_path / "dev.csv", index=False)
    command = ["evaluate", "--model", str(folder), "--data", str(tmp_path / "dev.csv")]
    assert main([*command, "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["accuracy", f"{metrics['accuracy']:.4f}"]
    header = next(number for number, line in enumerate(lines) if line.startswith("labels"))
    assert lines[header].split() == ["labels", "precision", "recall", "f1", "examples"]
    ham = metrics["labels"]["ham"]
    assert lines[header + 1].split()[:2] == ["ham", f"{ham['precision']:.4f}"]
    confusion = next(line for line in lines if line.startswith("expected"))
    assert confusion.split()[-2:] == ["ham", "spam"]


def test_metrics_of_other_tasks_are_lines():
    text = metrics_text({"glue": {"acc": 0.5}, "f1": 0.25, "examples": 1200, "thresholds": [1]})
    assert text.splitlines() == ["glue acc  0.5000", "f1        0.2500", "examples   1,200"]


def test_a_model_in_memory_is_traced_once(task, monkeypatch):
    list(kb.predict(task, ["a text", "another"]))
    traced, call = [], type(task.encoder).call
    monkeypatch.setattr(
        type(task.encoder), "call", lambda *a, **k: traced.append(a) or call(*a, **k)
    )
    for text in ("one", "two words", "three words here"):
        list(kb.predict(task, [text]))
    assert len(vars(task)["_keras_bert_computations"]) == 1 and not traced
    before = list(kb.predict(task, ["a text"]))
    task.classifier.kernel.assign(-task.classifier.kernel)
    after = list(kb.predict(task, ["a text"]))
    assert before[0]["probabilities"] != after[0]["probabilities"]
    task.classifier.kernel.assign(-task.classifier.kernel)


def test_a_folder_of_letters_is_predicted_file_by_file(task, tmp_path):
    folder, output = tmp_path / "letters", tmp_path / "out.csv"
    folder.mkdir()
    for name in ("b", "a"):
        (folder / f"{name}.txt").write_text(f"letter\n{name}\n")
    assert kb.predict(task, folder, output=output, report=print) == 2
    rows = pd.read_csv(output)
    assert rows["file"].tolist() == ["a.txt", "b.txt"] and rows["text"][0] == "letter\na"
    assert {"label", "score"} <= {*rows}
    assert [p["file"] for p in kb.predict(task, folder, report=print)] == ["a.txt", "b.txt"]


def test_the_names_of_columns_are_written_as_they_were(task, tmp_path):
    (tmp_path / "in.csv").write_text("id,Customer message \n7,a b\n")
    output = tmp_path / "out.csv"
    kb.predict(task, tmp_path / "in.csv", text_column="Customer message", output=output)
    assert [*pd.read_csv(output)][:2] == ["id", "Customer message "]


def test_errors_and_notes_of_a_dataframe_name_its_index(task):
    table = TABLE.assign(label=["spam", "ham", "ham"])
    table.index = [50, 51, 52]
    notes = []
    both = [kb.evaluate(task, table, show_errors=3, report=notes.append)["errors"]]
    table["label"] = ["ham", "ham", "spam"]
    both.append(kb.evaluate(task, table, show_errors=3, report=notes.append)["errors"])
    assert {error["row"] for errors in both for error in errors} == {50, 52}
    for error in (error for errors in both for error in errors):
        assert error["text"] == table["message"][error["row"]] and "line" not in error
    assert any("row 51: 1 row without a text" in note for note in notes)


def test_nothing_given_to_predict_is_said(task):
    with pytest.raises(InputError, match="Pass `data`, a file of examples, or `text`"):
        kb.predict(task)
