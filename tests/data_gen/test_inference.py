"""Prediction and embedding as a job: a shard for each file, with the bytes of one process."""

import os
import shutil

import pytest
from pyarrow import parquet

import keras_bert as kb
from data_gen import inference
from data_gen.inference import RECORD
from keras_bert.cli.main import main
from keras_bert.records.folder import COMPLETED
from tests.messages import raises_input_error
from tests.small_model import make_encoder, make_tokenizer

TEXTS = {
    "a.csv": "id,message,label\n7,a b,ham\n8,,spam\n9,c d e,spam\n",
    "b.csv": "id,message,label\n1,b,ham\n",
    "c.csv": "id,message,label\n" + "".join(f"{n},a {'b ' * (n % 9)},ham\n" for n in range(40)),
}
NAMES = [f"part-{index:05d}-of-00003" for index in range(3)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer, num_hidden_layers=1)
    task = kb.Classifier(encoder, tokenizer, labels=["ham", "spam"])
    task.columns = {"text": ["message"], "label": ["label"]}
    folder = tmp_path_factory.mktemp("model") / "model"
    task.save(folder)
    return str(folder)


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(autouse=True)
def _no_model_of_another_test(monkeypatch):
    monkeypatch.setattr(inference, "_loaded_model", (None, None))


def predict_files(model, texts, output, **settings):
    return kb.predict_files(model=model, data=f"{texts}/*.csv", output=str(output), **settings)


@pytest.mark.parametrize(
    "ending",
    [
        ".jsonl",
        pytest.param(".csv", marks=pytest.mark.slow),
        pytest.param(".parquet", marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore:.*left out")
def test_each_shard_has_the_bytes_of_one_process(model, texts, tmp_path, monkeypatch, ending):
    output, lines, loaded = tmp_path / f"labelled{ending}", [], []
    load = inference._Job.load
    monkeypatch.setattr(
        inference._Job, "load", lambda job, folder: loaded.append(folder) or load(job, folder)
    )
    shards = predict_files(model, texts, output, report=lines.append)
    assert len(loaded) == 1 and not os.path.exists(loaded[0])  # the model, by the one worker
    assert sorted(os.listdir(output)) == sorted(
        [COMPLETED, RECORD, *(name + ending for name in NAMES)]
    )
    task = kb.load_task(model)
    for shard, name, source, rows in zip(shards, NAMES, TEXTS, (2, 1, 40), strict=True):
        assert shard["input"] == str(texts / source) and shard["rows"] == rows
        assert shard["output"] == name + ending
        alone = tmp_path / f"alone{ending}"
        kb.predict(task, str(texts / source), output=str(alone), force=True)
        assert (output / shard["output"]).read_bytes() == alone.read_bytes()
        assert shard["bytes"] == alone.stat().st_size
    note = f"Note: {texts}/a.csv, line 3: 1 row without a text, left out."
    assert note in shards[0]["notes"] and note in lines
    assert not any("left out" in note for shard in shards[1:] for note in shard["notes"])


@pytest.mark.slow
def test_several_workers_write_the_same_bytes(model, texts, tmp_path):
    predict_files(model, texts, tmp_path / "one.jsonl")
    predict_files(model, texts, tmp_path / "two.jsonl", beam_options=["--direct_num_workers=2"])
    for name in sorted(os.listdir(tmp_path / "one.jsonl")):
        one, two = tmp_path / "one.jsonl" / name, tmp_path / "two.jsonl" / name
        assert one.read_bytes() == two.read_bytes(), name


@pytest.mark.usefixtures("eager")
@pytest.mark.filterwarnings("ignore:.*left out")
def test_embeddings_are_those_of_one_process(model, texts, tmp_path, capsys):
    output, alone = tmp_path / "vectors.parquet", tmp_path / "alone.parquet"
    command = ["embed", "--model", model, "--data", f"{texts}/*.csv", "--output", str(output)]
    command += ["--text-column", "message", "--tokens", "none", "--runner=FnApiRunner"]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert f"{output}: 43 rows in 3 files." in printed.out
    assert "a.csv, line 3: 1 row without a text, left out." in printed.err
    opened = kb.load(model)
    for name, source in zip(NAMES, TEXTS, strict=True):
        kb.embed_to_file(
            model=opened, data=str(texts / source), output=str(alone), text_column="message",
            tokens="none", force=True,
        )  # fmt: skip
        assert parquet.read_table(output / f"{name}.parquet").equals(parquet.read_table(alone))


def test_bad_input_is_one_sentence_and_leaves_nothing(model, texts, tmp_path):
    (texts / "b.csv").write_bytes(b"id,message,label\n1,\xff\xfe,ham\n")
    with raises_input_error(f"{texts}/b.csv...line 2...UTF-8"):
        predict_files(model, texts, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_the_same_job_again_is_finished_and_another_is_rejected(model, texts, tmp_path):
    output, lines = tmp_path / "out.jsonl", []
    first = predict_files(model, texts, output)
    before = {path.name: path.stat().st_mtime_ns for path in output.iterdir()}
    assert predict_files(model, texts, output, report=lines.append) == first
    assert lines == [f"The output {output} is finished already. Nothing to do."]
    with raises_input_error(
        "finished data of other files, settings or another model. Use another...force"
    ):
        predict_files(model, texts, output, settings={"max_length": 8})
    assert {path.name: path.stat().st_mtime_ns for path in output.iterdir()} == before
    with open(output / f"{NAMES[0]}.jsonl", "a") as shard:
        shard.write("\n")
    predict_files(model, texts, output, report=lines.append)
    assert f"is made again: {NAMES[0]}.jsonl has" in lines[1]
    (texts / "b.csv").write_text(TEXTS["b.csv"].replace("b,", "c,"))
    with raises_input_error("finished data of other files"):
        predict_files(model, texts, output)
    again = predict_files(model, texts, output, force=True)
    for shards in (again, first):  # the notes show the first example as it was read
        for shard in shards:
            del shard["notes"]
    # The score of another text may have more or fewer digits.
    first[1].pop("bytes")
    assert again[1].pop("bytes") == (output / again[1]["output"]).stat().st_size
    assert again == first


@pytest.mark.slow
def test_another_file_system_is_read_and_written(model, texts, other, tmp_path):
    shutil.copytree(texts, other / "in")
    output = "other://a/out.jsonl"
    shards = predict_files(model, "other://a/in", output)
    assert [shard["input"] for shard in shards] == [f"other://a/in/{name}" for name in TEXTS]
    here = tmp_path / "here.jsonl"
    predict_files(model, texts, here)
    for name in NAMES:
        written = (other / "out.jsonl" / f"{name}.jsonl").read_bytes()
        assert written == (here / f"{name}.jsonl").read_bytes()
    (other / "in" / "b.csv").write_bytes(b"id,message,label\n1,\xff\xfe,ham\n")
    with raises_input_error("other://a/in/b.csv...line 2"):
        predict_files(model, "other://a/in", output, force=True)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"data": "nowhere/*.csv"}, "No file matches nowhere/*.csv"),
        ({"output": "labelled"}, "name ends in .jsonl or .csv or .parquet...Received: labelled"),
        ({"settings": {"text_a": ["a"]}}, "text_a"),
        ({"settings": {"text": ["a"]}}, "`text` is not read by a job"),
        ({"settings": {"max_length": 10_000}}, "max_length"),
        ({"model": "nowhere"}, "nowhere"),
    ],
)
def test_what_cannot_run_is_rejected_first(model, texts, tmp_path, changes, message):
    given = {"model": model, "data": f"{texts}/*.csv", "output": str(tmp_path / "out.jsonl")}
    with raises_input_error(message):
        kb.predict_files(**given | changes)
    assert not (tmp_path / "out.jsonl").exists()


def test_the_command_is_a_job_with_a_runner_alone(model, texts, tmp_path, capsys):
    output = tmp_path / "out.jsonl"
    command = ["predict", "--model", model, "--data", f"{texts}/b.csv", "--output", str(output)]
    with pytest.raises(SystemExit):
        main([*command, "--direct_num_workers=2"])
    assert "--direct_num_workers" in capsys.readouterr().err
    assert main([*command[:-2], "--runner=FnApiRunner"]) == 2
    assert "A job needs --output. Pass it." in capsys.readouterr().err
    assert main([*command, "--runner=FnApiRunner", "--direct_num_workers=1"]) == 0
    printed = capsys.readouterr().out
    assert f"{output}: 1 row in 1 file." in printed and "Next: python -c" in printed
