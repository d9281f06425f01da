"""An index: built, changed, filtered, searched; its folder, and what is wrong with one."""

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas
import pytest

import keras_bert as kb
from keras_bert.search import building, ranking
from keras_bert.search.index import Index, load_index
from keras_bert.search.segments import open_segments
from tests.search.indexes import WORDS, found, table, vectors
from tests.small_model import make_encoder, make_tokenizer


@pytest.fixture(scope="module")
def task():
    tokenizer = make_tokenizer(WORDS)
    encoder = make_encoder(tokenizer)
    prompts = {"query": "old ", "document": "new "}
    return kb.TextEmbedder(encoder, tokenizer, max_length=12, normalize=True, prompts=prompts)


@pytest.fixture
def small_segments(monkeypatch):
    monkeypatch.setattr(building, "_TEXTS", 4)


# Building and searching.


def test_documents_and_queries_have_their_prompts(task, small_segments, tmp_path):
    data = table(11)
    index = Index.build(task, data, output=tmp_path / "index")
    expected = task.encode(list(data["text"]), prompt="document")
    queries = task.encode(["cat ran", "a red dog"], prompt="query")
    scores = queries @ expected.T
    results = index.search(["cat ran", "a red dog"], top_k=11)
    assert [row["rank"] for row in results] == [*range(1, 12)] * 2
    for number, query in enumerate(("cat ran", "a red dog")):
        rows = [row for row in results if row["query"] == query]
        order = [data["id"][n] for n in np.argsort(-scores[number])]
        assert sorted(order) == sorted(row["id"] for row in rows)
        for row in rows:
            place = int(row["id"][1:])
            assert row["score"] == pytest.approx(scores[number, place], abs=1e-6)
            assert row["text"] == data["text"][place] and row["year"] == data["year"][place]
            assert row["source"] == data["source"][place]
        assert [row["score"] for row in rows] == sorted((r["score"] for r in rows), reverse=True)
    assert [*results[0]] == ["query", "rank", "score", "id", "text", "source", "year"]
    assert index.search("cat", as_dataframe=True).shape == (10, 7)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_one_segment_or_several_give_the_same(dtype, monkeypatch, tmp_path):
    data, given, queries = table(50), vectors(50), vectors(5, seed=1)
    results = []
    for size in (3, 50, 1000):
        monkeypatch.setattr(building, "_TEXTS", size)
        index = Index.build(None, data, vectors=given, output=tmp_path / str(size), dtype=dtype)
        results.append(found(index, vectors=queries, top_k=9))
    assert results[0] == results[1] == results[2]
    exact = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    exact = exact @ (given / np.linalg.norm(given, axis=1, keepdims=True)).T
    tolerance = 1e-3 if dtype == "float16" else 1e-6
    for row, results_of_query in zip(exact, results[0], strict=True):
        best = np.sort(row)[::-1][:9]
        np.testing.assert_allclose([score for _, score in results_of_query], best, atol=tolerance)


@pytest.mark.parametrize("by", ["cosine", "dot", "euclidean", "manhattan"])
def test_each_similarity(by):
    given, query = vectors(20), vectors(1, seed=1)
    index = Index.build(None, table(20), vectors=given, similarity=by)
    from keras_bert.tasks.text_embedding.metrics import similarities

    expected = similarities(query, given, by=by)[0]
    (results,) = found(index, vectors=query, top_k=20)
    for id, score in results:
        assert score == pytest.approx(expected[int(id[1:])], abs=1e-5)
    assert [id for id, _ in results] == [f"t{n}" for n in np.argsort(-expected)]


def test_equal_scores_are_ordered_by_id_across_segments(small_segments):
    ids = [f"d{number}" for number in range(12)]  # d10 is before d2
    data = pandas.DataFrame({"id": ids[::-1], "text": "a"})
    index = Index.build(None, data, vectors=np.ones((12, 3)))
    for top_k in (1, 3, 12, 20):
        (results,) = found(index, vectors=np.ones((1, 3)), top_k=top_k)
        assert [id for id, _ in results] == sorted(ids)[:top_k]


def test_filters(small_segments):
    data, query = table(40), vectors(1, seed=1)
    index = Index.build(None, data, vectors=vectors(40))
    every = [id for id, _ in found(index, vectors=query, top_k=40)[0]]

    def ids(**filter):
        results = found(index, vectors=query, top_k=40, filter=filter)
        return [id for id, _ in results[0]] if results else []

    def expected(condition):
        kept = {*data["id"][condition]}
        return [id for id in every if id in kept]

    assert ids(source="mail") == expected(data["source"] == "mail")
    assert ids(year=2001) == ids(year="2001") == expected(data["year"] == 2001)
    assert ids(year=[2001, "2003"]) == expected(data["year"].isin([2001, 2003]))
    assert ids(source="web", year=2002) == expected(
        (data["source"] == "web") & (data["year"] == 2002)
    )
    assert ids(id=["t3", "t5"]) == [id for id in every if id in ("t3", "t5")]
    assert ids(source="nowhere") == []
    with pytest.raises(kb.InputError, match="no column 'colour'. Choose from"):
        ids(colour="red")
    with pytest.raises(kb.InputError, match="'year' has values of the type int64"):
        ids(year="soon")


# Files.


def test_a_file_and_a_table_give_the_same(task, tmp_path):
    data = table(9)
    data.to_csv(tmp_path / "t.csv", index=False)
    data.to_parquet(tmp_path / "t.parquet")
    data.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    expected = found(Index.build(task, data), "cat")
    for name in ("t.csv", "t.parquet", "t.jsonl"):
        assert found(Index.build(task, tmp_path / name), "cat") == expected, name
    assert Index.build(task, tmp_path / "t.csv").search("cat")[0]["year"] in map(str, data["year"])


def test_the_ids_of_each_kind_of_data(task, tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("b.txt", "a.txt"):
        (folder / name).write_text(f"the cat of {name}")
    assert Index.build(task, folder).ids == ["a.txt", "b.txt"]
    assert Index.build(task, ["a cat", "a dog"]).ids == ["1", "2"]
    (tmp_path / "lines.txt").write_text("a cat\na dog\n")
    assert Index.build(task, tmp_path / "lines.txt").ids == ["1", "2"]
    numbers = pandas.DataFrame({"key": [30, 4], "text": ["a cat", "a dog"]})
    assert Index.build(task, numbers).ids == ["1", "2"]
    assert Index.build(task, numbers, id_column="key").ids == ["30", "4"]
    beir = tmp_path / "beir"
    beir.mkdir()
    (beir / "corpus.jsonl").write_text('{"_id": "x", "title": "The", "text": "cat"}\n')
    (beir / "queries.jsonl").write_text('{"_id": "q", "text": "cat"}\n')
    index = Index.build(task, beir)
    assert index.search("cat", top_k=1)[0] | {"score": 0} == {
        **{"query": "cat", "rank": 1, "score": 0, "id": "x", "text": "The cat"}
    }


# Changes.


def test_add_replace_delete_and_compact_are_as_if_built_at_once(task, small_segments, tmp_path):
    data, more = table(10), table(7, seed=1, prefix="n")
    new = table(10, seed=2)[3:6]  # t3, t4, t5 with other texts
    index = Index.build(task, data, output=tmp_path / "index", words=True)
    assert index.add(more) == 7 and len(index) == 17
    assert index.add(new, duplicates="replace") == 3 and len(index) == 17
    assert index.delete(["t0", "n6"]) == 2 and len(index) == 15
    whole = pandas.concat([data.drop([0, 3, 4, 5]), more.drop(6), new])
    expected = Index.build(task, whole, words=True)
    assert sorted(index.ids) == sorted(expected.ids)
    queries = ["cat ran", "the old dog", "red"]

    def same():
        for by in ("vectors", "words", "both"):
            one, two = (found(i, queries, by=by, top_k=20) for i in (index, expected))
            for first_hits, second_hits in zip(one, two, strict=True):
                assert [id for id, _ in first_hits] == [id for id, _ in second_hits]
                scores = ([score for _, score in side] for side in (first_hits, second_hits))
                np.testing.assert_allclose(*scores, atol=1e-6)

    same()
    index.compact()
    same()
    assert len(open_segments(tmp_path / "index")[1]) == 1 and len(index) == 15
    assert sorted(os.listdir(tmp_path / "index")) == ["segment-000007", "segments.json"]
    before = (tmp_path / "index" / "segments.json").read_bytes()
    index.compact()
    assert (tmp_path / "index" / "segments.json").read_bytes() == before
    assert index.add(pandas.DataFrame({"id": ["t0"], "text": ["cat"]})) == 1
    assert index.search("cat", filter={"id": "t0"})[0]["year"] is None


def test_compacting_divides_large_indexes(small_segments, monkeypatch):
    monkeypatch.setattr(ranking, "COMPACTED", 10)
    index = Index.build(None, table(33), vectors=vectors(33), dtype="int8")
    index.delete([f"t{number}" for number in range(0, 33, 5)])
    before = found(index, vectors=vectors(3, seed=1), top_k=30)
    index.compact()
    assert found(index, vectors=vectors(3, seed=1), top_k=30) == before
    counts = [segment.count for segment in open_segments(index.folder)[1]]
    assert sum(counts) == 26 and max(counts) <= 10 and len(counts) < 9


def test_columns_of_other_types_are_kept(small_segments):
    index = Index.build(None, table(3), vectors=vectors(3))
    other = [{"id": "x", "text": "a", "year": "last", "colour": "red"}]
    index.add(other, vectors=vectors(1, seed=1))
    query = vectors(1, seed=1)
    assert index.search(vectors=query)[0]["year"] == "last"
    index.compact()
    first = index.search(vectors=query)[0]
    assert (first["year"], first["colour"], first["source"]) == ("last", "red", None)
    assert {row["year"] for row in index.search(vectors=query)} == {"2000", "2001", "2002", "last"}


def test_what_is_finished_is_not_done_again(task, tmp_path):
    data, reports = tmp_path / "t.csv", []
    table(6).to_csv(data, index=False)
    folder = tmp_path / "index"
    Index.build(task, data, output=folder)
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    Index.build(task, data, output=folder, report=reports.append)
    assert reports == [f"{folder} is finished already; nothing is done."]
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*.npy")}.items() <= before.items()
    more = tmp_path / "m.csv"
    table(2, prefix="n").to_csv(more, index=False)
    index = load_index(folder, embedder=task)
    assert index.add(more) == 2 and index.add(more, report=reports.append) == 0
    assert "was added already" in reports[-1] and len(index) == 8
    with pytest.raises(kb.InputError, match="is there already"):
        Index.build(task, table(3), output=folder)
    assert len(Index.build(task, table(3), output=folder, force=True)) == 3


def test_a_model_folder_is_found_again_and_another_one_is_not_taken(task, tmp_path):
    task.save(tmp_path / "model")
    index = Index.build(str(tmp_path / "model"), table(5), output=tmp_path / "index")
    again = load_index(tmp_path / "index")
    assert found(again, "cat") == found(index, "cat")
    assert found(load_index(tmp_path / "index", embedder=task), "cat") == found(index, "cat")
    tokenizer = make_tokenizer(WORDS)
    other = kb.TextEmbedder(make_encoder(tokenizer), tokenizer, max_length=12)  # no norm
    with pytest.raises(kb.InputError, match="was built with another model"):
        load_index(tmp_path / "index", embedder=other).search("cat")
    in_memory = Index.build(task, table(5), output=tmp_path / "other")
    assert found(in_memory, "cat") == found(index, "cat")
    with pytest.raises(kb.InputError, match="built with a model in memory. Pass it as `embedder`"):
        load_index(tmp_path / "other").search("cat")


# One writer, and readers meanwhile.

WRITER = """
import sys, time
from keras_bert.search.segments import changing
with changing(sys.argv[1], made_of=None):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_second_writer_is_told(tmp_path):
    index = Index.build(None, table(4), vectors=vectors(4), output=tmp_path / "index")
    command = [sys.executable, "-c", WRITER, str(tmp_path / "index")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as other:
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(kb.InputError, match=f"in use by process {other.pid}"):
            index.delete(["t1"])
        assert len(load_index(tmp_path / "index")) == 4
        other.stdin.close()
    assert index.delete(["t1"]) == 1


def test_a_reader_has_its_index_to_the_end(small_segments, tmp_path):
    writer = Index.build(None, table(20), vectors=vectors(20), output=tmp_path / "index")
    reader, query = load_index(tmp_path / "index"), vectors(2, seed=1)
    before = reader.search(vectors=query, top_k=20)
    writer.delete(["t1", "t2"])
    writer.compact()
    assert reader.search(vectors=query, top_k=20) == before
    reader.reload()
    assert len(reader) == 18


def test_opening_while_another_process_compacts(tmp_path, monkeypatch):
    """Segments that are gone between the reading of segments.json and theirs are read again."""
    writer = Index.build(None, table(8), vectors=vectors(8), output=tmp_path / "index")
    from keras_bert.search import segments

    real, calls = segments.read_info, []

    def read_info(folder):
        info = real(folder)
        if not calls:
            calls.append(1)
            monkeypatch.setattr(segments, "read_info", real)
            writer.delete(["t0"])
            writer.compact()
        return info

    monkeypatch.setattr(segments, "read_info", read_info)
    assert len(load_index(tmp_path / "index")) == 7 and calls


# What is wrong.


@pytest.fixture
def folder(tmp_path, small_segments):
    Index.build(None, table(9), vectors=vectors(9), output=tmp_path / "index")
    return tmp_path / "index"


def test_a_folder_that_is_damaged(folder):
    path = folder / "segment-000002" / "vectors.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-10])
    with pytest.raises(kb.InputError, match="vectors.npy has 214 bytes of 224: it was cut short"):
        load_index(folder)
    path.unlink()
    with pytest.raises(kb.InputError, match="lacks a file: .*vectors.npy"):
        load_index(folder)
    path.write_bytes(b"x" * len(content))
    with pytest.raises(kb.InputError, match="is damaged"):
        load_index(folder)
    path.write_bytes(content)
    assert len(load_index(folder)) == 9
    info = json.loads((folder / "segments.json").read_text())
    (folder / "segments.json").write_text(json.dumps({**info, "format": 9}))
    with pytest.raises(kb.InputError, match="of a later version"):
        load_index(folder)
    (folder / "segments.json").write_text(json.dumps({"format": 1}))
    with pytest.raises(kb.InputError, match="segments.json is damaged"):
        load_index(folder)
    with pytest.raises(kb.InputError, match="is not an index: it has no segments.json"):
        load_index(folder.parent)


def test_bad_data(task, folder):
    index = load_index(folder)

    def rejected(message, call, *given, **options):
        with pytest.raises(kb.InputError, match=message):
            call(*given, **options)

    twice = [{"id": "a", "text": "x"}, {"id": "b", "text": "y"}, {"id": "a", "text": "z"}]
    rejected("row 3: the id 'a' comes a second time, after row 1", Index.build, task, twice)
    rejected('the id in "id" is None', Index.build, task, [{"id": None, "text": "x"}])
    rejected('the id in "id" is 1.5', Index.build, task, [{"id": 1.5, "text": "x"}])
    both = [{"id": "a", "_id": "b", "text": "x"}]
    rejected('several columns that could be the ids: "id", "_id"', Index.build, task, both)
    rejected("has no texts", Index.build, task, [{"id": "a", "text": ""}])
    rejected("Pass either `embedder` or `vectors`", Index.build, None, ["x"])
    rejected("`vectors` has 3 rows, and .* has 2 texts", Index.build, None, ["x", "y"],
             vectors=vectors(3))  # fmt: skip
    rejected("`vectors` has 1 row, and .* has 2 texts", Index.build, None, ["x", "y"],
             vectors=vectors(1))  # fmt: skip
    rejected("not finite, in row 1", Index.build, None, ["x", "y"],
             vectors=np.array([[1.0], [np.nan]]))  # fmt: skip
    rejected("float16 cannot hold", Index.build, None, ["x"], vectors=[[1e6]], dtype="float16",
             similarity="dot")  # fmt: skip
    rejected("`vectors` must be of shape", index.add, ["x"], vectors=vectors(1, width=3))
    rejected("built from vectors and has no model", index.add, ["x"])
    rejected("built from vectors and has no model", index.search, "x")
    rejected("1 id is in the index already: \"t3\". Replace", index.add, table(4)[3:],
             vectors=vectors(1))  # fmt: skip
    rejected('has no text with the id "no"', index.delete, ["t1", "no"])
    rejected("has no words", index.search, "x", by="words")
    rejected("must be of shape", index.search, vectors=vectors(1, width=2))
    rejected("`stop_words` is for `words`", Index.build, task, ["x"], stop_words="english")
    assert len(load_index(folder)) == 9 and len(index) == 9
    assert "unfinished.json" not in os.listdir(folder)


def test_an_output_that_is_something_else(task, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine").write_text("x")
    with pytest.raises(kb.InputError, match="holds something else already"):
        Index.build(task, ["a"], output=other, force=True)
    assert (other / "mine").read_text() == "x"


def test_readers_meanwhile_see_whole_changes(small_segments, tmp_path):
    """While texts are added, replaced, deleted and compacted, each opening has one whole state."""
    folder = tmp_path / "index"
    writer = Index.build(None, table(10), vectors=vectors(10), output=folder)
    more, query, stop, states = table(10, prefix="n"), vectors(1, seed=1), threading.Event(), []

    def read():
        while not stop.is_set():
            reader = load_index(folder)
            ids = sorted(reader.ids)
            results = reader.search(vectors=query, top_k=50)
            assert sorted(row["id"] for row in results) == ids
            states.append(tuple(ids))

    def all_of(*prefixes):
        return tuple(sorted(f"{prefix}{n}" for prefix in prefixes for n in range(10)))

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for _ in range(6):
                writer.add(more, vectors=vectors(10, seed=2))
                writer.add(more, vectors=vectors(10, seed=3), duplicates="replace")
                writer.delete(list(more["id"]))
                writer.compact()
        finally:
            stop.set()
        for reader in readers:
            reader.result()
    assert {*states} <= {all_of("t"), all_of("t", "n")} and len(states) > 2


def test_without_pandas_a_dataframe_is_one_sentence(monkeypatch):
    index = Index.build(None, ["a", "b"], vectors=vectors(2))
    monkeypatch.setitem(sys.modules, "pandas", None)
    for ask in (
        lambda: index.pairs(above=0.9, as_dataframe=True),
        lambda: index.search(vectors=vectors(1), as_dataframe=True),
    ):
        with pytest.raises(kb.InputError, match="`as_dataframe` needs pandas. Install it"):
            ask()
    assert len(index.search(vectors=vectors(1))) == 2
