"""The files: what is read back equals what was embedded, and nothing else is touched."""

import functools
import json
import os
import resource

import numpy as np
import pytest
from pyarrow import parquet

import keras_bert as kb
from keras_bert.base.errors import InputError, InputWarning
from keras_bert.cli.main import main
from keras_bert.inference import embed_to_file as module
from keras_bert.inference.embed import Embedder, TextEmbedding
from keras_bert.inference.embed_to_file import ParquetFile, embed_to_file
from keras_bert.inference.vector_settings import EmbedderSettings
from tests.kill_points import kill_at_every_call
from tests.messages import raises_input_error
from tests.seeds import make_rng

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
    rng = make_rng(line)
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


@pytest.mark.parametrize("numbers", [1, 20, 10_000])
def test_parquet(numbers, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_bert.inference.embed_to_file._NUMBERS_PER_GROUP", numbers)
    path = tmp_path / "vectors.parquet"
    with ParquetFile(path, width=WIDTH, settings=SETTINGS) as file:
        for one in EXPECTED:
            file.write(one)
    file = parquet.ParquetFile(path)
    groups = {1: len(TEXTS), 20: 3, 10_000: 1}
    assert file.num_row_groups == groups[numbers]
    about = json.loads(file.schema_arrow.metadata[b"keras_bert"])
    assert about == {"command": "embed", "version": kb.__version__, **SETTINGS}
    for row, one in zip(file.read().to_pylist(), EXPECTED, strict=True):
        # Half of a surrogate pair has no UTF-8; one character stands for it.
        assert (row["line"], row["text"]) == (one.line, one.text.replace("\ud800", "?"))
        assert row["tokens"] == [token.replace("\ud800", "?") for token in one.tokens]
        assert row["starts"] == one.starts.tolist() and row["ends"] == one.ends.tolist()
        vectors = np.array(row["vectors"], np.float32).reshape(-1, WIDTH)
        np.testing.assert_array_equal(vectors, one.vectors)
        np.testing.assert_array_equal(np.array(row["cls"], np.float32), one.cls)
        np.testing.assert_array_equal(np.array(row["mean"], np.float32), one.mean)


def test_texts_without_any_token(tmp_path):
    with ParquetFile(tmp_path / "vectors.parquet", width=WIDTH, settings=SETTINGS) as file:
        file.write(embedding(1, ""))
    assert parquet.read_table(tmp_path / "vectors.parquet")["tokens"].to_pylist() == [[]]


@pytest.fixture
def embedded(monkeypatch):
    """`embed_to_file` with the vectors at hand instead of a model: what is left is the file."""

    class Embedded:
        width, max_length = WIDTH, 8
        tokens = unknown = 0
        text_embedder = None

        def __call__(self, texts):
            return iter(EXPECTED)

    monkeypatch.setattr(module, "open_embedder", lambda model, **settings: Embedded())
    return functools.partial(embed_to_file, model=None, data=TEXTS)


@pytest.mark.usefixtures("eager")
def test_writes_replaces_its_own_file_when_told_and_no_other(encoder, tokenizer, tmp_path):
    path = tmp_path / "vectors.parquet"

    def run(**options):
        return embed_to_file(
            model=(encoder, tokenizer), data=["a bank", "b"], output=path, layers="first", **options
        )

    path.write_text("mine", encoding="utf-8")
    for force in (False, True):
        with pytest.raises(InputError, match="a file that this command did not write"):
            run(force=force)
    assert path.read_text(encoding="utf-8") == "mine"
    path.unlink()
    assert run() == run(force=True) == {"texts": 2, "tokens": 3, "width": 16}
    with pytest.raises(InputError, match="is there already"):
        run()
    assert os.listdir(tmp_path) == [path.name]
    assert parquet.read_table(path)["tokens"].to_pylist() == [["a", "bank"], ["b"]]


@pytest.mark.usefixtures("eager")
def test_the_same_command_again_is_finished_and_another_is_rejected(model_folder, tmp_path, capsys):
    data, output = tmp_path / "texts.txt", tmp_path / "v.parquet"
    data.write_text("a bank\n\nb\n", encoding="utf-8")
    command = ["embed", f"--model={model_folder}", f"--data={data}", f"--output={output}"]
    assert main(command) == 0
    first, written = capsys.readouterr().out, output.stat().st_mtime_ns
    assert main(command) == 0
    again = capsys.readouterr()
    assert again.out == first and f"{output} is finished already" in again.err
    assert main([*command, "--layers=first"]) == 2
    data.write_text("a bank\n\nc\n", encoding="utf-8")
    assert main(command) == 2
    assert "is there already" in capsys.readouterr().err
    assert output.stat().st_mtime_ns == written


def test_a_broken_run_leaves_nothing(model_folder, tmp_path):
    data = tmp_path / "texts.txt"
    data.write_bytes(b"good\nbad \xff\n")
    output = tmp_path / "out" / "vectors.parquet"
    with pytest.raises(InputError, match="no folder"):
        embed_to_file(model=model_folder, data=data, output=output)
    output.parent.mkdir()
    with pytest.raises(InputError, match="line 2: byte 5 is not UTF-8"):
        embed_to_file(model=model_folder, data=data, output=output)
    with pytest.raises(InputError, match=r"vectors\.csv should end in \.parquet, or in \.npy\."):
        embed_to_file(model=model_folder, data=data, output=output.with_suffix(".csv"))
    with raises_input_error(
        "NumPy archives (.npz) were removed: give `output` a name that ends in .parquet."
    ):
        embed_to_file(model=model_folder, data=data, output=output.with_suffix(".npz"))
    assert list(output.parent.iterdir()) == []


@pytest.mark.slow
def test_a_killed_run_leaves_the_old_file_or_the_new_one(embedded, tmp_path):
    path = tmp_path / "v.parquet"
    foreign = ["v.parquet.part", ".v.parquet.part"]
    for name in foreign:
        (tmp_path / name).write_text("mine")
    embedded(output=path, layers="first")
    old = path.read_bytes()
    embedded(output=path, force=True)
    new = path.read_bytes()
    assert old != new  # the choice of layers is in the file

    def check(killed):
        assert path.read_bytes() in (old, new)
        embedded(output=path, force=True)
        assert path.read_bytes() == new
        assert sorted(os.listdir(tmp_path)) == sorted([path.name, *foreign])
        assert all((tmp_path / name).read_text() == "mine" for name in foreign)

    kills = kill_at_every_call(
        tmp_path,
        prepare=lambda: path.write_bytes(old),
        action=lambda: embedded(output=path, force=True),
        check=check,
    )
    assert kills > 8


@pytest.mark.slow
@pytest.mark.parametrize("name", ["v.parquet", "v.npy"])
def test_a_killed_run_of_text_vectors_leaves_a_whole_file_or_none(monkeypatch, tmp_path, name):
    vectors = make_rng(3).normal(size=(len(TEXTS), 4)).astype("float32")

    class Embedded:
        width, max_length, tokens, unknown = 4, 8, 0, 0
        text_embedder = type("Task", (), {"size_of": staticmethod(lambda size: 4)})

        def text_vectors(self, texts):
            for number, text in enumerate(texts):
                yield [text], vectors[number : number + 1]

    monkeypatch.setattr(module, "open_embedder", lambda model, **settings: Embedded())
    path = tmp_path / name

    def action():
        embed_to_file(model=None, data=TEXTS, tokens="none", output=path)

    action()
    new = path.read_bytes()

    def check(killed):
        if path.exists():
            assert path.read_bytes() == new
        if killed:  # the next run removes what is left
            path.unlink(missing_ok=True)
            action()
        assert path.read_bytes() == new and os.listdir(tmp_path) == [name]

    def prepare():
        path.unlink()

    assert kill_at_every_call(tmp_path, prepare=prepare, action=action, check=check) > 5


@pytest.mark.parametrize("room", [0, 50, 600])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(embedded, tmp_path, room):
    """A limit on the size of files stands in for it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with pytest.raises(InputError, match=r"v\.parquet cannot be written: [A-Z][a-z ]+\.$"):
            embedded(output=tmp_path / "v.parquet")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "lines"), [("", 0), ("a\n", 1), ("a\nb", 2), ("a\n\n", 2), ("a\rb\rc\r\nd", 4)]
)
def test_the_bar_counts_every_line(text, lines, tmp_path):
    (tmp_path / "texts").write_text(text)
    assert module._count_lines(str(tmp_path / "texts")) == lines


def test_what_was_called_text_is_called_data(tmp_path, capsys):
    with raises_input_error(
        "`text` was removed. Use `data`: it takes a file, and in Python also a list"
    ):
        embed_to_file(model="folder", text="texts.txt", output=tmp_path / "v.parquet")
    arguments = ["embed", "--model", "folder", "--output", str(tmp_path / "v.parquet")]
    assert main(arguments) == 2
    assert "Missing required arguments: --data." in capsys.readouterr().err


@pytest.mark.usefixtures("eager")
def test_the_command_writes_what_the_call_writes(model_folder, tmp_path, capsys):
    data = tmp_path / "texts.tsv"
    data.write_text("id\ttext\n1\tthe bank\n2\tof the river\n", encoding="utf-8")
    made = tmp_path / "made.parquet"
    settings = {"text_column": "text", "layers": "first", "header": True}
    embed_to_file(model=model_folder, data=data, output=made, **settings)
    output = tmp_path / "vectors.parquet"
    arguments = [
        "embed",
        "--model",
        str(model_folder),
        "--data",
        str(data),
        "--output",
        str(output),
    ]
    assert main([*arguments, "--text-column", "text", "--layers", "first", "--header", "yes"]) == 0
    assert output.read_bytes() == made.read_bytes()
    said = capsys.readouterr()
    assert "2 texts, 5 tokens, vectors of size 16" in said.out and "TSV with a header" in said.err
    assert "[UNK]" not in said.err
    data.write_text("text\n" + "the bank\n" * 3 + "x" * 300 + "\n", encoding="utf-8")
    assert main([*arguments, "--force"]) == 0
    assert "% of the tokens are [UNK]" in capsys.readouterr().err


@pytest.fixture(scope="module")
def text_embedder(encoder, tokenizer):
    return kb.TextEmbedder(encoder, tokenizer, dense="6:tanh", normalize=True, size=4)


@pytest.mark.usefixtures("eager")
def test_of_a_text_embedder_each_text_has_its_vector(text_embedder, tmp_path):
    texts = ["a bank", "b", ""]
    expected = text_embedder.encode(texts)
    text_embedder.save(tmp_path / "model")
    for model in (text_embedder, tmp_path / "model"):
        with_words = list(kb.embed(model=model, text=texts))
        np.testing.assert_array_equal([one.embedding for one in with_words], expected)
        assert with_words[0].tokens == ["a", "bank"]
    words = tmp_path / "words.parquet"
    assert embed_to_file(model=tmp_path / "model", data=texts, output=words)["texts"] == 3
    table = parquet.read_table(words)
    assert {"vectors", "mean", "embedding"} <= {*table.column_names}
    np.testing.assert_array_equal(np.array(table["embedding"].to_pylist(), np.float32), expected)
    alone = {"model": str(tmp_path / "model"), "data": str(tmp_path / "a.txt"), "tokens": "none"}
    (tmp_path / "a.txt").write_text("a bank\nb\n")
    alone["output"] = tmp_path / "alone.parquet"
    counts = embed_to_file(**alone)
    assert counts == {"texts": 2, "tokens": 0, "width": 4} == embed_to_file(**alone)
    table = parquet.read_table(alone["output"])
    assert table.column_names == ["line", "text", "embedding"]
    np.testing.assert_allclose(table["embedding"].to_pylist(), expected[:2], atol=1e-6)
    array = tmp_path / "vectors.npy"
    embed_to_file(model=text_embedder, data=texts, output=array)
    np.testing.assert_array_equal(np.load(array), expected)
    with pytest.raises(InputError, match="a file that this command did not write"):
        embed_to_file(model=text_embedder, data=texts, output=array, force=True)


@pytest.mark.usefixtures("eager")
def test_an_array_is_for_a_text_embedder_and_a_folder_that_is_not_supported_has_its_words(
    text_embedder, encoder, tokenizer, tmp_path
):
    with pytest.raises(InputError, match="is for the vectors of a text embedder"):
        embed_to_file(model=(encoder, tokenizer), data=["a"], output=tmp_path / "a.npy")
    text_embedder.save(tmp_path / "model")
    modules = tmp_path / "model" / "modules.json"
    modules.write_text(modules.read_text().replace("models.Dense", "models.CNN"))
    with pytest.warns(InputWarning, match="The texts have no vectors as the folder describes them"):
        (one,) = kb.embed(model=tmp_path / "model", text="a bank")
    assert one.embedding is None and one.tokens == ["a", "bank"]


@pytest.mark.usefixtures("eager")
def test_the_command_draws_a_picture_coloured_by_a_column(text_embedder, tmp_path, capsys):
    text_embedder.save(tmp_path / "model")
    data = tmp_path / "data.csv"
    data.write_text("text,kind\nbank,a\nriver bank,b\nriver,\n", encoding="utf-8")
    output, picture = tmp_path / "vectors.parquet", tmp_path / "map.png"
    command = ["embed", "--model", str(tmp_path / "model"), "--data", str(data)]
    command += ["--output", str(output), "--tokens", "none", "--picture", str(picture)]
    assert main([*command, "--colour-by", "kind"]) == 0
    assert f"Wrote {picture}" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    vectors, kinds = module.read_vectors(output, column="kind")
    assert kinds == ["a", "b", None]
    np.testing.assert_array_equal(vectors, text_embedder.encode(["bank", "river bank", "river"]))
    assert main([*command, "--colour-by", "color"]) == 2
    assert "--colour-by may be: kind." in capsys.readouterr().err
    array = tmp_path / "vectors.npy"
    command[command.index(str(output))] = str(array)
    assert main(command) == 0
    np.testing.assert_array_equal(module.read_vectors(array)[0], vectors)
    assert main([*command, "--colour-by", "kind"]) == 2
    assert "ends in .parquet" in capsys.readouterr().err
    picture.unlink()
    command[command.index(str(picture))] = str(tmp_path / "map.jpg")
    assert main(command) == 2 and "must end in .png" in capsys.readouterr().err


def test_a_model_in_memory_is_traced_once(encoder, tokenizer):
    def functions(layers):
        settings = EmbedderSettings(layers=layers)
        one = Embedder(encoder, tokenizer, settings)
        return one._vectors_of, one._inputs_of

    assert functions("last") == functions("last") != functions("first")
