"""The columns of the training data: in the model folder, and in predict and evaluate."""

import json
import warnings

import pytest

import keras_bert as kb
from keras_bert.base.errors import InputWarning
from keras_bert.cli.main import main
from tests.messages import raises_input_error
from tests.small_model import make_encoder, make_tokenizer

pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas")

ROWS = [
    (f"the {word} film {n}", n, label)
    for n in range(4)
    for word, label in (("good", 1), ("bad", 0))
]
TRAIN = pandas.DataFrame(ROWS, columns=["phrase", "row", "verdict"])
pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    tokenizer = make_tokenizer(["good", "bad", "film", "the"])
    tokenizer.vocabulary.save(folder / "vocab.txt")
    config = make_encoder(tokenizer, num_hidden_layers=1).config
    (folder / "config.json").write_text(json.dumps(config.to_dict()))
    return {
        "architecture": folder / "config.json",
        "vocab": folder / "vocab.txt",
        "epochs": 1,
        "batch_size": 4,
    }


def stored(run):
    return json.loads((run / "model" / "config.json").read_text())["keras_bert"].get("columns")


def test_predict_and_evaluate_know_the_columns(given, tmp_path, capsys):
    train, run, lines = tmp_path / "train.csv", tmp_path / "run", []
    TRAIN.drop(columns="row").to_csv(train, index=False)
    columns = {"text_column": "phrase"}
    kb.finetune(**given, **columns, train=train, dev=train, output=run, report=lines.append)
    assert stored(run) == {"text": ["phrase"], "label": ["verdict"]}
    assert lines[0].endswith('text in "phrase", label in "verdict" (the only column left)')
    assert lines[1] == 'First example: text: "the good film 0", label: "1".'
    assert lines[2].endswith('text in "phrase", label in "verdict"')
    # In a file with other texts, other possible labels and the usual names.
    other = TRAIN.assign(
        text="of something else", note=TRAIN["phrase"] + " so", row=TRAIN["row"] % 2
    )
    other.to_csv(tmp_path / "other.csv", index=False)
    for data in (other, tmp_path / "other.csv"):
        predictions = list(kb.predict(model=run, data=data))
        assert [p["text"] for p in predictions] == TRAIN["phrase"].tolist()
        assert [p["expected"] for p in predictions] == [str(y) for y in TRAIN["verdict"]]
        assert {type(p["label"]) for p in predictions} == {str}
        assert kb.evaluate(model=run, data=data)["examples"] == 8
    assert main(["predict", "--model", str(run), "--data", str(tmp_path / "other.csv")]) == 0
    captured = capsys.readouterr()
    assert 'text in "phrase", label in "verdict"' in captured.err
    assert len(captured.out.splitlines()) == 8
    # Another run from this folder, too.
    kb.finetune(model=run, epochs=1, train=other, dev=other, output=tmp_path / "more")
    assert stored(tmp_path / "more") == stored(run)
    task = kb.load_task(run)
    assert task.dataset(other, batch_size=4).element_spec
    task.save(tmp_path / "saved")
    assert kb.load_task(tmp_path / "saved").columns == task.columns


def test_answers_keep_the_index_of_the_rows_that_have_a_text(given, tmp_path):
    run = tmp_path / "run"
    kb.finetune(
        **given, train=TRAIN, dev=TRAIN, output=run, text_column="phrase", label_column="verdict"
    )
    frame = TRAIN.set_index([[f"r{n}" for n in range(8)]])
    frame.loc[["r1", "r6"], "phrase"] = [None, " "]
    notes = []
    answers = kb.predict(model=run, data=frame, as_dataframe=True, report=notes.append)
    assert answers.index.tolist() == ["r0", "r2", "r3", "r4", "r5", "r7"]
    assert answers["phrase"].tolist() == frame["phrase"][answers.index].tolist()
    assert "Note: the given table, rows r1 and r6: 2 rows without a text, left out." in notes
    series_answers = kb.predict(model=run, data=frame["phrase"].dropna(), as_dataframe=True)
    assert series_answers.index.tolist() == ["r0", "r2", "r3", "r4", "r5", "r6", "r7"]
    with pytest.warns(InputWarning, match="rows r1 and r6: 2 rows without a text, left out"):
        list(kb.predict(model=run, data=frame))
    with pytest.warns(InputWarning, match='text in "words" .the only column left'):
        list(kb.predict(model=run, data=frame[["phrase"]].rename(columns={"phrase": "words"})))
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        list(kb.predict(model=run, data=TRAIN))
    with raises_input_error('row r1: a row without a text. Set `missing="skip"`'):
        list(kb.predict(model=run, data=frame, missing="error"))
    assert kb.evaluate(model=run, data=frame.dropna())["examples"] == 6


def test_several_files_and_a_glob(given, tmp_path, capsys):
    for number in range(2):
        TRAIN[number::2].to_csv(tmp_path / f"part{number}.csv", index=False)
    columns = {"text_column": "phrase", "label_column": "verdict"}
    parts = [tmp_path / "part0.csv", tmp_path / "part1.csv"]
    for number, train in enumerate((parts, str(tmp_path / "part*.csv"))):
        lines, run = [], tmp_path / f"run{number}"
        metrics = kb.finetune(
            **given,
            **columns,
            train=train,
            dev=train,
            output=run,
            report=lines.append,
        )
        assert metrics["train_examples"] == 8 and metrics["labels"] == ["0", "1"]
        assert metrics["dev"]["examples"] == 8
        said = [line.partition(":")[0] for line in lines[:8]]
        assert said[::2] == [*map(str, parts)] * 2 and {*said[1::2]} == {"First example"}
    recorded = json.loads((tmp_path / "run0" / "run.json").read_text())["settings"]
    assert recorded["train"] == recorded["dev"] == [*map(str, parts)]
    command = ["finetune", "--train", *map(str, parts), "--dev", *map(str, parts)]
    command += ["--text-column", "phrase", "--label-column", "verdict", "--epochs", "1"]
    command += ["--architecture", str(given["architecture"]), "--vocab", str(given["vocab"])]
    assert main([*command, "--batch-size", "4", "--output", str(tmp_path / "run0")]) == 0
    assert "is finished already" in capsys.readouterr().err
    pandas.DataFrame({"phrase": ["a"], "verdict": ["new"]}).to_csv(parts[1], index=False)
    with raises_input_error("part1.csv, line 2: unknown label"):
        kb.finetune(
            **given, **columns, unknown_labels="error", train=TRAIN, dev=parts[1], output="o"
        )


def test_a_question_names_the_flag(given, tmp_path, capsys):
    TRAIN.assign(place=["x", "y"] * 4).to_csv(tmp_path / "a.csv", index=False)
    command = ["finetune", "--train", str(tmp_path / "a.csv"), "--dev", str(tmp_path / "a.csv")]
    command += ["--architecture", str(given["architecture"]), "--vocab", str(given["vocab"])]
    assert main([*command, "--output", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert '"verdict" (2 different: "1", "0"), "place" (2 different: "x", "y")' in said
    assert "Give --text-column phrase --label-column place." in said
    assert not (tmp_path / "run").exists()


def test_labels_of_lists_and_of_columns_are_remembered(given, tmp_path, capsys):
    vectors = [[n % 2, int(n % 3 == 0)] for n in range(8)]
    frame = pandas.DataFrame({"text": TRAIN["phrase"], "labels": vectors})
    run = tmp_path / "run"
    metrics = kb.finetune(
        **given, train=frame, dev=frame, output=run, multi_label=True, labels="odd,third"
    )
    assert sorted(metrics["labels"]) == ["odd", "third"]
    assert stored(run)["label_names"] == ["odd", "third"]
    expected = [p["expected"] for p in kb.predict(model=run, data=frame)]
    assert expected == [[n for n, x in zip(("odd", "third"), v, strict=True) if x] for v in vectors]
    table = pandas.DataFrame(vectors, columns=["odd", "third"]).assign(text=frame["text"])
    table.to_csv(tmp_path / "a.csv", index=False)
    columns = tmp_path / "columns"
    command = ["finetune", "--multi-label", "--label-columns", "third,odd", "--epochs", "1"]
    command += ["--train", str(tmp_path / "a.csv"), "--dev", str(tmp_path / "a.csv")]
    command += ["--architecture", str(given["architecture"]), "--vocab", str(given["vocab"])]
    assert main([*command, "--output", str(columns)]) == 0
    assert 'labels in "third" and "odd"' in capsys.readouterr().err
    assert stored(columns)["label"] == ["third", "odd"]
    evaluation = kb.evaluate(model=columns, data=table)
    assert evaluation["examples"] == 8
    with raises_input_error("`labels` requires `multi_label`"):
        kb.finetune(**given, train=frame, dev=frame, output=run, labels="a,b")


def test_the_examples_of_the_readme_on_numbers_with_gaps(given, tmp_path):
    """A CSV whose labels are whole numbers, some of them missing."""
    path = tmp_path / "a.csv"
    TRAIN.assign(text=TRAIN["phrase"], label=TRAIN["verdict"])[["text", "label"]].to_csv(path)
    path.write_text(path.read_text() + ",one more,\n,,1\n")
    frame = pandas.read_csv(path)
    assert frame["label"].dtype == float
    tokenizer = make_tokenizer(["good", "bad", "film", "the"])
    encoder = make_encoder(tokenizer, num_hidden_layers=1)
    for data in (frame, path):
        task = kb.Classifier(encoder, tokenizer, labels=sorted(frame["label"].dropna().unique()))
        assert task.labels == ("0", "1")
        with pytest.warns(InputWarning, match="1 row without a label, left out"):
            batches = task.dataset(data, batch_size=4)
        task.compile_defaults(steps=len(batches))
        with pytest.warns(InputWarning, match="1 row without a text, left out"):
            task.fit(batches, validation_data=task.dataset(data), verbose=0)
        assert {p["label"] for p in kb.predict(model=task, data=data)} <= {"0", "1"}
    assert kb.Classifier(encoder, tokenizer, labels=frame["label"].unique()).labels == ("1", "0")


def test_columns_of_a_folder_that_are_none(given, tmp_path):
    run = tmp_path / "run"
    kb.finetune(
        **given, train=TRAIN, dev=TRAIN, output=run, text_column="phrase", label_column="verdict"
    )
    path = run / "model" / "config.json"
    for columns in (["phrase"], {"text": "phrase"}, {"text": [["phrase"]]}):
        config = json.loads(path.read_text())
        config["keras_bert"]["columns"] = columns
        path.write_text(json.dumps(config))
        with raises_input_error(
            "under keras_bert: `columns` should be an object with a list of columns"
        ):
            kb.load_task(run)
