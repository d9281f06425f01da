"""Indexes on the server: REST, changes while it runs, and the page's Search tab in a browser."""

import time

import numpy as np
import pytest
import requests

import keras_bert as kb
from keras_bert.cli.main import main
from keras_bert.search.index import Index, load_index
from tests.search.indexes import WORDS, table, vectors
from tests.serving.running import running
from tests.serving.test_page import ask, browser  # noqa: F401  (a fixture)
from tests.small_model import make_encoder, make_tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    tokenizer = make_tokenizer(WORDS)
    task = kb.TextEmbedder(make_encoder(tokenizer), tokenizer, max_length=12, normalize=True)
    task.save(folder / "model")
    texts = table(12)
    texts.loc[5, "text"] = "the red bird flew " * 6 + "and a cat ran"
    options = {"words": True, "passages": True}
    Index.build(str(folder / "model"), texts, output=folder / "all" / "texts", **options)
    given = {"vectors": vectors(5)}
    Index.build(None, table(5), output=folder / "all" / "own", **given)
    reranker = kb.Regressor(make_encoder(tokenizer), tokenizer, activation="sigmoid", max_length=40)
    reranker.save(folder / "reranker")
    return folder


@pytest.fixture(scope="module")
def server(folder):
    with running(models=[folder / "all"]) as server:
        yield server


@pytest.fixture(scope="module")
def reranking(folder):
    with running(index=folder / "all" / "texts", rerank=folder / "reranker") as server:
        yield server


def search(server, name="texts", **asked):
    return requests.post(f"{server.rest}/v1/indexes/{name}:search", json=asked, timeout=60)


def test_results_are_those_of_the_index(server, folder):
    index = load_index(folder / "all" / "texts")
    asked = {"top_k": 4, "by": "both", "filter": {"source": "mail", "year": [2000, 2001]}}
    answer = search(server, texts=["cat ran", "red"], **asked).json()
    assert answer == {"results": index.search_each(["cat ran", "red"], **asked)}
    answer = search(server, text="cat").json()
    assert answer == {"results": index.search_each(["cat"])}
    own = load_index(folder / "all" / "own")
    answer = search(server, "own", vectors=vectors(1, seed=1).tolist()).json()
    assert answer == {"results": own.search_each(None, vectors=vectors(1, seed=1))}
    about = requests.get(f"{server.rest}/v1/indexes/texts", timeout=60).json()
    assert about["by"] == ["both", "vectors", "words"] and about["texts"] == 12


def test_results_are_reranked(reranking, folder):
    index, rerank = load_index(folder / "all" / "texts"), str(folder / "reranker")
    answer = search(reranking, texts=["cat ran", "red"], top_k=4).json()
    assert answer == {"results": index.search_each(["cat ran", "red"], top_k=4, rerank=rerank)}
    answer = search(reranking, text="cat ran", top_k=2, rerank_top=3).json()
    options = {"top_k": 2, "rerank": rerank, "rerank_top": 3}
    assert answer == {"results": index.search_each(["cat ran"], **options)}
    answer = search(reranking, text="cat ran", rerank=False).json()
    assert answer == {"results": index.search_each(["cat ran"])}
    about = requests.get(f"{reranking.rest}/v1/indexes/texts", timeout=60).json()
    assert about["rerank"] is True
    for asked, message in (
        ({"rerank": "yes"}, "'rerank' must be true or false"),
        ({"rerank_top": 0}, "'rerank_top' must be from 1 to 1000"),
        ({"rerank": False, "rerank_top": 5}, "'rerank_top' is for a search with 'rerank'"),
    ):
        answer = search(reranking, text="cat", **asked)
        assert answer.status_code == 400 and message in answer.json()["error"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"text": "a", "rerank": True}, "The server has no reranker. Start it with --rerank"),
        ({}, "Pass from 1 to 128 texts. Received: 0."),
        ({"text": 3}, "Pass 'text', a string"),
        ({"texts": ["a"] * 129}, "Received: 129"),
        ({"text": "a", "top_k": 0}, "'top_k' must be from 1 to 1000"),
        ({"text": "a", "by": "magic"}, "`by`"),
        ({"text": "a", "filter": {"colour": 1}}, "no column 'colour'"),
        ({"text": "a", "filter": ["x"]}, "'filter' must be an object"),
        ({"text": "a", "question": "b"}, "Unknown key 'question'"),
        ({"text": "a", "texts": ["b"]}, "not both"),
    ],
)
def test_invalid_requests(server, asked, message):
    answer = search(server, **asked)
    assert answer.status_code == 400 and message in answer.json()["error"]


def test_an_index_that_is_not_there(server):
    assert search(server, "other", text="a").status_code == 404


def test_a_change_is_served(tmp_path):
    index = Index.build(None, table(3), vectors=vectors(3), output=tmp_path / "index")
    query = vectors(1, seed=1).tolist()
    with running(index=tmp_path / "index") as server:
        index.add(table(2, prefix="n"), vectors=np.array(query * 2))
        until = time.monotonic() + 30
        while time.monotonic() < until:
            rows = search(server, "index", vectors=query).json()["results"][0]
            if len(rows) == 5:
                break
            time.sleep(0.05)
        assert [row["id"] for row in rows[:2]] == ["n0", "n1"]


def test_what_cannot_be_served(tmp_path, capsys):
    assert main(["serve"]) == 2 and "Pass --models, or an index" in capsys.readouterr().err
    assert main(["serve", str(tmp_path)]) == 2
    assert "is not an index" in capsys.readouterr().err


def test_the_page_reranks(browser, reranking, folder):  # noqa: F811
    page = browser.new_context(viewport={"width": 900, "height": 800}).new_page()
    page.set_default_timeout(20_000)
    page.goto(reranking.rest)
    page.wait_for_selector("body[data-ready]")
    page.click("#tab-search")
    index, rerank = load_index(folder / "all" / "texts"), str(folder / "reranker")
    orders = {}
    for order, options in (("reranked", {"rerank": rerank}), ("as found", {})):
        page.select_option("#search-order", order)
        items = ask(page, "search", text="cat ran").locator("li").all()
        orders[order] = [item.locator("p.id").inner_text().split()[0] for item in items]
        assert orders[order] == [row["id"] for row in index.search("cat ran", **options)]
    assert orders["reranked"] != orders["as found"]
    page.context.close()


def test_the_page_searches(browser, server):  # noqa: F811
    page = browser.new_context(viewport={"width": 900, "height": 800}).new_page()
    page.set_default_timeout(20_000)
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(server.rest)
    page.wait_for_selector("body[data-ready]")
    page.select_option("#search-model", "texts") if page.query_selector("#search-model") else None
    page.click("#tab-search")
    page.select_option("#search-by", "words")
    answer = ask(page, "search", text="cat ran", filter="id=t5")
    items = answer.locator("li").all()
    assert len(items) == 1 and items[0].locator("p.id").inner_text().startswith("t5 ")
    assert "cat ran" in items[0].locator("mark").inner_text()
    page.fill("#search-filter", "colour=red")
    page.click("#panel-search button.ask")
    page.wait_for_selector("#panel-search [role=alert]")
    assert "no column 'colour'" in page.locator("#panel-search [role=alert]").inner_text()
    page.fill("#search-filter", "")
    page.select_option("#search-by", "both")
    page.click("#panel-search button.ask")
    page.wait_for_selector("#panel-search li:nth-child(9)")
    page.context.close()
    assert wrong == []
