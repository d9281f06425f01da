"""A folder with documents, queries, and which are relevant."""

import json

import pytest

from keras_bert.readers.retrieval_folder import RetrievalSource, is_retrieval_folder
from tests.messages import raises_input_error

CORPUS = [
    {"_id": "d1", "title": "Oslo", "text": "a city", "metadata": {}},
    {"_id": "d2", "title": "", "text": "a river"},
    {"_id": 3, "text": "a lake"},
]
QUERIES = [{"_id": "q1", "text": "which city?"}, {"_id": "q2", "text": "what?"}]
HEADER = "query-id\tcorpus-id\tscore\n"


@pytest.fixture
def folder(tmp_path):
    for name, rows in (("corpus", CORPUS), ("queries", QUERIES)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text(f"{HEADER}q1\td1\t2\nq1\td2\t0\nq1\td9\t1\n")
    return tmp_path


def test_queries_with_their_grades_and_all_documents(folder):
    assert is_retrieval_folder(folder) and not is_retrieval_folder(folder / "qrels")
    source = RetrievalSource(folder)
    expected = [("q1", "which city?", {"d1": 2.0, "d9": 1.0}), ("d1", "Oslo a city", None)]
    expected += [("d2", "a river", None), ("3", "a lake", None)]
    assert [(e.id, e.text, e.relevant) for e in source] == expected
    one, other = source.notes()
    assert "1 of the queries have no relevant document" in one
    assert "1 document of the qrels are not in corpus.jsonl" in other


def test_trec_and_several_files_of_qrels(folder):
    (folder / "qrels" / "dev.trec").write_text("q2 0 d2 1\nq1 0 d1 0\n")
    with raises_input_error("should have one file...Found: dev, test. Name one as `qrels`"):
        RetrievalSource(folder)
    first, *_ = RetrievalSource(folder, qrels="dev")
    assert (first.id, first.relevant) == ("q2", {"d2": 1.0})
    assert next(iter(RetrievalSource(folder, qrels="test.tsv"))).id == "q1"
    with raises_input_error("has no `qrels` 'x'. Choose from: dev, test"):
        RetrievalSource(folder, qrels="x")


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        (
            "corpus.jsonl",
            '{"_id": "d1", "text": "b"}',
            "line 4: the \"_id\" 'd1' comes a",
        ),
        ("corpus.jsonl", '{"text": "b"}', 'line 4: an object needs the strings "_id" and "text"'),
        ("queries.jsonl", "no json", "line 3: not JSON"),
        ("qrels/test.tsv", "q1\td1\tgood", "line 5: expected a query, a document and a grade"),
        ("qrels/test.tsv", "q1 d1", "line 5: expected a query"),
    ],
)
def test_a_bad_line_is_named(folder, name, line, message):
    path = folder / name
    path.write_text(path.read_text() + line + "\n")
    with raises_input_error(f"{path}, {message}"):
        list(RetrievalSource(folder))
