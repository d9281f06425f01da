"""The commands index and search, and files for vector databases."""

import json
import shutil

import numpy as np
import pandas
import pytest

import keras_bert as kb
from keras_bert.cli.main import main
from keras_bert.search import building
from keras_bert.search.index import Index, load_index
from tests.peers import qdrant_client
from tests.search.indexes import WORDS, found, table, vectors
from tests.small_model import make_encoder, make_tokenizer


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a model, texts, and an index of them."""
    folder = tmp_path_factory.mktemp("made")
    tokenizer = make_tokenizer(WORDS)
    task = kb.TextEmbedder(make_encoder(tokenizer), tokenizer, max_length=12, normalize=True)
    task.save(folder / "model")
    table(12).to_csv(folder / "texts.csv", index=False)
    table(3, prefix="n").to_csv(folder / "more.csv", index=False)
    options = {"model": folder / "model", "data": folder / "texts.csv"}
    flags = [f"--{name}={value}" for name, value in options.items()]
    assert main(["index", *flags, f"--output={folder / 'my.index'}", "--words"]) == 0
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A working folder with a copy of these."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_a_folder_of_texts_to_a_result_in_two_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tokenizer = make_tokenizer(WORDS)
    kb.TextEmbedder(make_encoder(tokenizer), tokenizer, max_length=12).save("model")
    (tmp_path / "texts").mkdir()
    for name in ("cats", "dogs"):
        (tmp_path / "texts" / f"{name}.txt").write_text(f"the old {name[:3]} ran")
    assert main("index --model model --data texts --output my.index --words".split()) == 0
    out, err = capsys.readouterr()
    assert "my.index: 2 texts, vectors of size 16.\nNext: keras-bert search my.index" in out
    assert main(["search", "my.index", "old cat", "--top-k", "1", "--by", "words"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split() == ["rank", "score", "id", "text"]
    assert out.splitlines()[1].split() == ["1", "0.3502", "cats.txt", "the", "old", "cat", "ran"]
    assert "Next: keras-bert" in err


def test_changes(here, capsys):
    capsys.readouterr()

    def run(line):
        status = main(line.split())
        return status, *capsys.readouterr()

    assert run("index --index my.index --add more.csv")[:2] == (
        0,
        'my.index: 3 texts added, 15 in all.\nNext: keras-bert search my.index "…"\n',
    )
    table(3, seed=4, prefix="n").to_csv("more.csv", index=False)
    status, _, err = run("index --index my.index --add more.csv")
    assert status == 2 and '3 ids are in the index already: "n0", "n1", "n2"' in err
    assert "--duplicates replace" in err
    assert run("index --index my.index --add more.csv --duplicates replace")[0] == 0
    assert "1 text deleted, 14 left" in run("index --index my.index --delete t1")[1]
    assert "compacted, 14 texts" in run("index --index my.index --compact")[1]
    assert len(load_index("my.index")) == 14


def test_results_as_lines_and_as_a_table(here, capsys):
    capsys.readouterr()
    assert main("search my.index cat --json --filter source=web --filter year=2000".split()) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    index = load_index("my.index")
    assert rows == index.search("cat", filter={"source": "web", "year": "2000"}) and rows
    (here / "queries.txt").write_text("cat\nred dog\n")
    command = "search my.index --data queries.txt --top-k 2 --output results.csv"
    assert main(command.split()) == 0
    results = pandas.read_csv("results.csv")
    assert list(results["query"]) == ["cat", "cat", "red dog", "red dog"]
    assert list(results["id"]) == [r["id"] for r in index.search(["cat", "red dog"], top_k=2)]
    assert main(command.split()) == 2 and main([*command.split(), "--force"]) == 0
    assert "is there already" in capsys.readouterr().err
    nothing = "search my.index cat --filter source=nowhere --output none.csv"
    assert main(nothing.split()) == 0
    assert capsys.readouterr().out.startswith("Wrote none.csv: 0 results.")
    none = index.search("cat", filter={"source": "nowhere"}, as_dataframe=True)
    assert list(pandas.read_csv("none.csv")) == list(results) == list(none)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("index --data texts.csv --output x", "Missing required arguments: --model. To change an"),
        ("index --index my.index", "Give one of --add, --delete, --compact and --format with"),
        ("index --index my.index --compact --add more.csv", "Received: --add and --compact"),
        ("index --compact", "--compact is for an --index. Give it."),
        ("index --index my.index --format qdrant", "--output and --format belong together"),
        ("index --index nowhere --compact", "The index nowhere does not exist."),
        ("index --model model --data more.csv --output my.index", "is there already"),
        ("index --model model --data more.csv --output model --force", "also the input"),
        ("search my.index", "Pass either the text to find, or --data"),
        ("search my.index cat --filter year", "--filter is 'year'. Expected COLUMN=VALUE"),
        ("search my.index cat --filter colour=red", "the index has no column 'colour'"),
        ("search texts.csv cat", "is not an index"),
    ],
)
def test_bad_input(here, capsys, line, message):
    capsys.readouterr()
    assert main(line.split()) == 2
    assert message in capsys.readouterr().err


# Vector databases.


@pytest.fixture
def index(monkeypatch):
    monkeypatch.setattr(building, "_TEXTS", 7)
    index = Index.build(None, table(20), vectors=vectors(20))
    index.delete(["t4", "t9"])
    return index


def test_the_lines_of_opensearch_are_actions_and_sources(index, tmp_path):
    path = tmp_path / "bulk.jsonl"
    assert index.export(path, format="opensearch") == 18
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    actions, sources = lines[::2], lines[1::2]
    assert [action["index"]["_id"] for action in actions] == index.ids
    for id, source in zip(index.ids, sources, strict=True):
        (expected,) = index.search(vectors=vectors(1), filter={"id": id})
        assert source["text"] == expected["text"] and source["year"] == expected["year"]
        given = vectors(20)[int(id[1:])]
        np.testing.assert_allclose(source["vector"], given / np.linalg.norm(given), atol=1e-6)
    with pytest.raises(kb.InputError, match="is there already"):
        index.export(path, format="opensearch")
    assert index.export(path, format="opensearch", force=True) == 18
    (tmp_path / "mine.jsonl").write_text('{"text": "mine"}\n')
    with pytest.raises(kb.InputError, match="did not write"):
        index.export(tmp_path / "mine.jsonl", format="qdrant", force=True)


@pytest.mark.peers
def test_qdrant_finds_the_same(index, tmp_path):
    path = tmp_path / "points.jsonl"
    assert index.export(path, format="qdrant") == 18
    client, models = qdrant_client.QdrantClient(":memory:"), qdrant_client.models
    cosine = models.VectorParams(size=6, distance=models.Distance.COSINE)
    client.create_collection("texts", vectors_config=cosine)
    points = [models.PointStruct(**json.loads(line)) for line in path.read_text().splitlines()]
    client.upsert("texts", points=points)
    for query in vectors(4, seed=1):
        (expected,) = found(index, vectors=query, top_k=5)
        points = client.query_points("texts", query=query.tolist(), limit=5).points
        assert [point.payload["id"] for point in points] == [id for id, _ in expected]
        scores = [point.score for point in points]
        np.testing.assert_allclose(scores, [score for _, score in expected], atol=1e-5)


def test_pairs(index):
    given = vectors(20)
    given /= np.linalg.norm(given, axis=1, keepdims=True)
    left = [number for number in range(20) if number not in (4, 9)]
    scores = given @ given.T
    expected = {
        tuple(sorted((f"t{a}", f"t{b}"))): scores[a, b]
        for a in left
        for b in left
        if a < b and scores[a, b] >= 0.5
    }
    pairs = index.pairs(above=0.5)
    assert {(pair["id_a"], pair["id_b"]) for pair in pairs} == expected.keys()
    for pair in pairs:
        assert pair["score"] == pytest.approx(expected[pair["id_a"], pair["id_b"]], abs=1e-6)
    assert [p["score"] for p in pairs] == sorted((p["score"] for p in pairs), reverse=True)
    assert list(index.pairs(above=0.99999, as_dataframe=True)) == ["id_a", "id_b", "score"]
