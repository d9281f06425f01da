"""The commands: results on standard output, everything else on standard error, 2 for bad input."""

import io
import json

import pytest

from keras_bert.cli.main import main


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.tsv"
    path.write_text("phrase\tlabel\ngood film\tham\nbuy pills now\tspam\ndull plot\tother\n")
    return str(path)


@pytest.mark.usefixtures("eager")
def test_predict_writes_one_json_line_a_text(model_folder, data, capsys, monkeypatch):
    assert main(["predict", "--model", str(model_folder), "--data", data]) == 0
    out, err = capsys.readouterr()
    sequences = [json.loads(line) for line in out.splitlines()]
    assert [row["text"] for row in sequences] == ["good film", "buy pills now", "dull plot"]
    assert [row["expected"] for row in sequences] == ["ham", "spam", "other"]
    assert (
        'text in "phrase" (the only column left), label in "label"' in err
        and 'First example: text: "good film", label: "ham".' in err
        and "Next: keras-bert" in err
    )
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("good film\n\nß".encode())))
    assert main(["predict", "--model", str(model_folder), "--data", "-"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["good film", "", "ß"]


@pytest.mark.usefixtures("eager")
def test_predict_takes_texts(model_folder, capsys):
    two = ["--text", "good film", "--text", "dull plot"]
    assert main(["predict", "--model", str(model_folder), *two]) == 0
    sequences = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["text"] for row in sequences] == ["good film", "dull plot"]


@pytest.mark.usefixtures("eager")
def test_a_vocabulary_that_does_not_fit_is_told_at_the_end(model_folder, tmp_path, capsys):
    path = tmp_path / "data.tsv"
    path.write_text("text\tlabel\n" + "good film\tham\n" * 9 + "日本 film\tspam\n")
    for command in ("predict", "evaluate"):
        assert main([command, "--model", str(model_folder), "--data", str(path)]) == 0
        said = capsys.readouterr().err
        assert said.count("Note: 9.5 % of the tokens are [UNK]") == 1, said
    assert main(["predict", "--model", str(model_folder), "--text", "good film"]) == 0
    assert "[UNK]" not in capsys.readouterr().err


@pytest.mark.usefixtures("eager")
def test_evaluate_writes_json(model_folder, data, capsys):
    flags = ["--header", "yes", "--text-column", "1", "--label-column", "2"]
    assert main(["evaluate", "--json", "--model", str(model_folder), "--data", data, *flags]) == 0
    out, err = capsys.readouterr()
    metrics = json.loads(out)
    assert metrics["examples"] == 3
    lines = [line.strip().rstrip(",") for line in out.splitlines()]
    assert all(str(row) in lines for row in metrics["confusion"])  # of a table, each on its line
    assert "Next: keras-bert export" in err


def test_export_says_where(model_folder, tmp_path, capsys):
    output = tmp_path / "savedmodels" / "spam"
    assert main(["export", "--model", str(model_folder), "--output", str(output)]) == 0
    assert (output / "1" / "saved_model.pb").is_file()
    assert f"Wrote {output / '1'} (" in capsys.readouterr().out


def test_bad_input_is_one_sentence_and_status_2(model_folder, data, tmp_path, capsys):
    for arguments in (
        ["evaluate", "--model", str(tmp_path), "--data", data],
        ["evaluate", "--model", str(model_folder), "--data", str(tmp_path / "none.tsv")],
        ["evaluate", "--model", str(model_folder), "--data", data, "--max-length", "99"],
        ["export", "--model", str(model_folder), "--output", str(tmp_path)],
        ["finetune", "--model", str(model_folder), "--train", data, "--output", str(tmp_path)],
        ["finetune", "--train", data, "--dev", data, "--output", str(tmp_path / "new")],
        ["finetune", "--settings", data, "--output", str(tmp_path / "new")],
    ):
        try:
            status = main(arguments)
        except SystemExit as stopped:  # argparse's own way to say it
            status = stopped.code
        out, err = capsys.readouterr()
        assert (status, out) == (2, "")
        assert "Traceback" not in err
        assert err.strip().splitlines()[-1].startswith("keras-bert")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["data.tsv"]
