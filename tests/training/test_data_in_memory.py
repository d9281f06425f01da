"""DataFrames and other tables in memory wherever a file may be given."""

import json
import sys

import numpy as np
import pytest
import tensorflow as tf

import keras_bert as kb
from keras_bert.tasks import finetuned_task_types, task_class
from keras_bert.training.finetuning_settings import finetune_settings
from tests.messages import raises_input_error
from tests.small_model import make_encoder, make_tokenizer

pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas")
datasets = pytest.importorskip("datasets", reason="NOT TESTED with datasets")

ROWS = [{"text": f"{label} {rest}", "label": label} for label in ("good", "bad") for rest in "abcd"]
DEV = [{"text": "a good film, and", "label": "good"}, {"text": "bad", "label": "bad"}] * 2
TEXT = "ada lives in rome"
SPAN = {"text": TEXT, "spans": [{"start": 13, "end": 17, "label": "LOC"}]}
PAIR = {"text": TEXT, "head": [0, 3], "tail": [13, 17]}
# The examples of each task type, as the rows of a table.
TABLES = {
    "classifier": ROWS,
    "pair-classifier": [{"text_a": "a", "text_b": "b", "label": label} for label in "xyx"],
    "regression": [{"text_a": "a", "text_b": "b", "score": score} for score in (0.5, 2.0)],
    "multiple-choice": [{"context": "he", "choices": ["sits", "runs"], "label": 1}] * 2,
    "tagger": [{"words": ["in", "rome"], "tags": ["O", "B-LOC"]}, {"words": ["a"], "tags": ["O"]}],
    "semantic-roles": [
        {"words": ["it", "fell"], "predicate": [1, 2], "tags": ["B-A1", "B-V"]},
        {"words": ["go"], "predicate": [0, 1], "tags": ["B-V"]},
    ],
    "question-answering": [
        {"question": "who?", "context": "by ann", "answers": [{"text": "ann", "answer_start": 3}]}
    ],
    "span-classifier": [SPAN, {"text": "nothing", "spans": []}],
    "coreference": [
        {"words": ["ada", "knows", "her"], "clusters": [[[0, 1], [2, 3]]]},
        {"words": ["ada"], "clusters": []},
    ],
    "text-embedding": [{"query": text, "answer": TEXT} for text in ("who?", "where?")],
    "relation-classifier": [{**PAIR, "label": "in"}, {**PAIR, "label": "of"}],
}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    tokenizer = make_tokenizer(["good", "bad", "film"])
    tokenizer.vocabulary.save(folder / "vocab.txt")
    config = make_encoder(tokenizer, num_hidden_layers=1).config
    (folder / "config.json").write_text(json.dumps(config.to_dict()))
    pandas.DataFrame(ROWS).to_csv(folder / "train.csv", index=False)
    return {
        "architecture": folder / "config.json",
        "vocab": folder / "vocab.txt",
        "epochs": 1,
        "batch_size": 4,
    }


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_reads_tables_of_every_library(kind):
    rows = TABLES[kind]
    read = task_class(kind).read
    expected = list(read(rows))
    assert expected and all(example.line for example in expected)
    for table in (
        pandas.DataFrame(rows, index=range(7, 7 + len(rows))),
        datasets.Dataset.from_list(rows),
        datasets.Dataset.from_list(rows).to_pandas(),  # whose lists are arrays
    ):
        assert list(read(table)) == expected, type(table)


def test_every_kind_is_looked_at():
    assert set(TABLES) == set(finetuned_task_types())


@pytest.mark.usefixtures("eager")
def test_a_run_on_a_table_is_that_on_a_file_and_resumes_with_the_same_data_only(given, tmp_path):
    frame, lines = pandas.DataFrame(ROWS), []
    run = {**given, "output": tmp_path / "run"}
    metrics = kb.finetune(**run, train=frame, dev=DEV, report=lines.append)
    assert lines[0] == 'the given table: 8 rows in memory, text in "text", label in "label"'
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["settings"]["train"] == "DataFrame in memory"
    assert record["settings"]["dev"] == "list in memory"
    assert "trained on DataFrame in memory" in (tmp_path / "run/model/README.md").read_text()
    train = given["vocab"].parent / "train.csv"
    for same in (frame, frame.to_dict("records"), datasets.Dataset.from_pandas(frame), train):
        dev = tf.data.Dataset.from_tensor_slices(pandas.DataFrame(DEV).to_dict("list"))
        again = kb.finetune(**run, train=same, dev=dev, report=lines.append)
        assert again == metrics and "is finished already" in lines[-1]
    with raises_input_error("different settings: ...other content of train"):
        kb.finetune(**run, train=frame[::-1], dev=DEV)
    file_metrics = kb.finetune(**given, train=train, dev=DEV, output=tmp_path / "of_file")
    assert file_metrics["dev"] == metrics["dev"]

    evaluation = kb.evaluate(model=tmp_path / "run", data=pandas.DataFrame(DEV), show_errors=4)
    errors = pandas.DataFrame(
        evaluation.pop("errors"), columns=["line", "text", "expected", "score"]
    )
    assert evaluation == metrics["dev"]
    assert len(errors) == round(4 * (1 - evaluation["accuracy"]))
    shuffled = pandas.DataFrame(DEV, index=[9, 3, 3, 1])
    answers = kb.predict(model=tmp_path / "run", data=shuffled, as_dataframe=True)
    assert answers.index.tolist() == [9, 3, 3, 1]
    assert answers["label"].tolist() == [
        p["label"] for p in kb.predict(model=tmp_path / "run", data=[row["text"] for row in DEV])
    ]
    assert np.all(answers["expected"] == shuffled["label"])
    (answer,) = kb.predict(model=tmp_path / "run", text="good", as_dataframe=True)["label"]
    assert answer in ("good", "bad")


@pytest.mark.usefixtures("eager")
def test_a_sweep_on_a_table(given, tmp_path):
    sizes = {"learning_rate": 1e-3, "batch_size": [4, 8], "epochs": 1}
    run = {**given, **sizes, "output": tmp_path / "sweep"}
    results = kb.sweep(**run, train=pandas.DataFrame(ROWS), dev=DEV)
    assert len(results["runs"]) == 2
    assert kb.sweep(**run, train=ROWS, dev=pandas.DataFrame(DEV)) == results


def test_without_pandas_it_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with raises_input_error("`as_dataframe` needs pandas. Install it: pip install"):
        kb.predict(model=tmp_path, text="x", as_dataframe=True)


def test_bad_data(given, tmp_path):
    with raises_input_error("Expected a file, a table in memory or a ...Received: int"):
        kb.finetune(**given, train=5, dev=DEV, output=tmp_path / "run")
    settings = finetune_settings("classifier").of({"train": ROWS, "dev": "-", "output": "o"})
    assert settings.paths() == ["-"] and settings.recorded()["dev"] == "-"
    with raises_input_error("`train` and `dev` are both standard input"):
        finetune_settings("classifier").of({"train": "-", "dev": "-", "output": "o"})
