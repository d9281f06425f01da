"""The metrics of an index on a retrieval folder."""

import json

import pandas
import pytest

import keras_bert as kb
from keras_bert.cli.main import main
from keras_bert.search.index import Index
from tests.search.indexes import WORDS, sentences
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A model, and a retrieval folder of 40 documents, one of which is a query, too."""
    place = tmp_path_factory.mktemp("place")
    tokenizer = make_tokenizer(WORDS)
    prompts = {"query": "old "}
    task = kb.TextEmbedder(make_encoder(tokenizer), tokenizer, max_length=16, prompts=prompts)
    task.save(place / "model")
    (place / "beir" / "qrels").mkdir(parents=True)
    rng, texts = make_rng(4), sentences(52, seed=4)
    lines = [{"_id": f"d{n}", "title": "", "text": text} for n, text in enumerate(texts[:40])]
    queries = [{"_id": f"q{n}", "text": text} for n, text in enumerate(texts[40:])]
    queries.append({"_id": "d3", "text": texts[3]})
    for name, records in (("corpus", lines), ("queries", queries)):
        content = "".join(json.dumps(record) + "\n" for record in records)
        (place / "beir" / f"{name}.jsonl").write_text(content)
    rows = ["query-id\tcorpus-id\tscore", "d3\td4\t1"]
    for number in range(12):
        for document in rng.choice(40, size=rng.integers(1, 4), replace=False):
            rows.append(f"q{number}\td{document}\t{rng.integers(1, 3)}")
    (place / "beir" / "qrels" / "test.tsv").write_text("\n".join(rows) + "\n")
    return place


def test_metrics_by_vectors_are_those_of_the_model(here, tmp_path):
    index = Index.build(str(here / "model"), here / "beir", words=True)
    reports = []
    output = tmp_path / "queries.csv"
    metrics = index.evaluate(here / "beir", output=output, report=reports.append)
    expected = kb.evaluate(model=str(here / "model"), data=str(here / "beir"))
    assert [*metrics["by"]] == ["vectors", "words", "both"]
    assert (metrics["queries"], metrics["documents"]) == (13, 40)
    for name, value in metrics["by"]["vectors"].items():
        if name != "recall@100":
            assert value == pytest.approx(expected[name], abs=1e-6), name
    assert metrics["by"]["vectors"]["recall@100"] == 1
    assert metrics["by"]["both"] != metrics["by"]["words"] != metrics["by"]["vectors"]
    rows = pandas.read_csv(output)
    assert len(rows) == 3 * 13
    for by, rows_of_way in rows.groupby("by"):
        for name in ("ndcg@10", "mrr@10", "map@100", "recall@10", "recall@100"):
            assert rows_of_way[name].mean() == pytest.approx(metrics["by"][by][name], abs=1e-5)
    own = rows[(rows["query"] == "d3") & (rows["by"] == "words")]
    assert "d3" not in json.loads(own["first"].iloc[0])
    index.delete(["d4"])
    index.evaluate(here / "beir", report=reports.append)
    assert reports[-1].startswith("Note: 1 relevant document of the qrels")


def test_the_command(here, monkeypatch, capsys):
    monkeypatch.chdir(here)
    assert main("index --model model --data beir --output i --words".split()) == 0
    assert main("evaluate --index i --data beir --output q.jsonl".split()) == 0
    out = capsys.readouterr().out.splitlines()
    header = next(line.split() for line in out if line.startswith("by "))
    assert {"by", "ndcg@10", "mrr@10", "recall@100"} <= {*header}
    assert [line.split()[0] for line in out[-3:]] == ["vectors", "words", "both"]
    assert main("evaluate --index i --data beir --json".split()) == 0
    assert json.loads(capsys.readouterr().out)["queries"] == 13
    assert main("evaluate --index i --data model".split()) == 2
    assert "is not a retrieval folder" in capsys.readouterr().err
    assert main("evaluate --index i --data beir --output q.jsonl".split()) == 2
