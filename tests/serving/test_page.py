"""The page, in a real browser: what a person types, and what is shown."""

import gc
import shutil

import keras
import numpy as np
import pytest
import requests

from keras_bert.checkpoints import save_folder
from keras_bert.serving.ask import connect
from tests.serving.page_models import write_page_models
from tests.serving.running import running
from tests.small_model import make_encoder, make_tokenizer

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_page_models(folder / "models")
    tokenizer = make_tokenizer(["bank", "river"])
    encoder = make_encoder(tokenizer, num_hidden_layers=1)
    save_folder(encoder, tokenizer, folder / "encoder")
    with running(models=[folder / "models"], attention=folder / "encoder") as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    paths = [path for path in map(shutil.which, BROWSERS) if path is not None]
    if not paths:
        pytest.skip(f"NOT TESTED in a browser: there is none here of {', '.join(BROWSERS)}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=paths[0], args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture
def page(browser, server):
    """The page, loaded; at the end it has sent requests to the server only, without errors."""
    context = browser.new_context(viewport={"width": 900, "height": 800})
    page = context.new_page()
    page.set_default_timeout(20_000)
    asked, wrong = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(server.rest)
    page.wait_for_selector("body[data-ready]")
    yield page
    context.close()
    assert wrong == []
    assert [url for url in asked if not url.startswith((server.rest, "data:"))] == []


def ask(page, task, **fields):
    """Fills the fields of a tab, asks, and gives its answer, when it is there.

    The button is disabled until then, so that an earlier answer is not taken for it.
    """
    page.click(f"#tab-{task}")
    for name, value in fields.items():
        page.fill(f"#{task}-{name}", value)
    page.click(f"#panel-{task} button.ask")
    page.wait_for_selector(f"#panel-{task} button.ask[aria-disabled=false]")
    return page.locator(f"#panel-{task} .answer")


def marks(answer):
    return [mark.inner_text() for mark in answer.locator("mark").all()]


def test_words_for_each_mask(page):
    answer = ask(page, "fill-mask", text="A [MASK] and a [MASK].")
    assert answer.locator("h2").all_inner_texts() == ["[MASK] 1 of 2", "[MASK] 2 of 2"]
    assert answer.locator("tr").first.inner_text().split() == ["one", "0.7500"]
    page.fill("#fill-mask-text", "no mask")
    page.click("#panel-fill-mask button.ask")
    assert "has no [MASK]" in page.locator("#panel-fill-mask [role=alert]").inner_text()


def test_the_surprisal_of_each_token(page):
    answer = ask(page, "surprisal", text="ada of rome")
    rows = [row.inner_text().split() for row in answer.locator("tr").all()]
    assert rows == [["ada", "3.0000"], ["of", "2.0000"], ["rome", "4.0000"]]
    assert "mean 3.0000, perplexity 20.1" in answer.locator("h2").inner_text()
    widths = [bar.get_attribute("style") for bar in answer.locator("div.bar").all()]
    assert widths == ["width: 75%;", "width: 50%;", "width: 100%;"]


def test_whether_a_text_follows(page):
    answer = ask(page, "follows", text_a="one", text_b="two")
    rows = [row.inner_text().split() for row in answer.locator("tr").all()]
    assert [row[-1] for row in rows] == ["0.7500", "0.2500"]
    page.fill("#follows-text_b", "one")
    page.click("#panel-follows button.ask")
    page.locator("#panel-follows tr", has_text="text follows").get_by_text("0.2500").wait_for()


def test_all_tabs_are_in_one_row_of_a_thousand_pixels(page):
    page.set_viewport_size({"width": 1000, "height": 800})
    tops = {tab.bounding_box()["y"] for tab in page.locator("[role=tab]").all()}
    assert len(tops) == 1


def test_a_label(page):
    answer = ask(page, "classify", text="<b>win</b>")
    assert answer.locator("h2").inner_text().startswith("1:<b>win</b>")
    assert answer.locator("b").count() == 0, "a text is never HTML"


def test_entities_are_marked_in_their_text(page):
    answer = ask(page, "tag", text="🎉 heute sang Ada Lovelace in Zürich mit")
    assert marks(answer) == ["Ada LovelacePER", "ZürichPER"]
    shown = answer.locator("p.marked").inner_text()
    assert shown == "🎉 heute sang Ada LovelacePER in ZürichPER mit"


def test_the_answer_is_marked_in_its_paragraph(page):
    answer = ask(page, "question", question="what?", context="🎉ünter dem Tisch")
    assert marks(answer) == ["ünter"]
    page.fill("#question-question", "none?")
    page.press("#question-question", "Control+Enter")
    page.locator("#panel-question h2", has_text="No answer").wait_for()
    assert marks(answer) == []


def test_attention_of_each_head(page):
    answer = ask(page, "attention", text="bank river")
    heads = answer.locator("thead th span").all_inner_texts()
    assert heads == ["[CLS]", "bank", "river", "[SEP]"]
    first = answer.get_by_role("gridcell").first
    before = first.get_attribute("aria-label")
    answer.locator("#attention-Head").select_option("2")
    assert answer.get_by_role("gridcell").count() == 16
    assert first.get_attribute("aria-label") != before


def test_each_fraction_is_read_by_keyboard_pointer_and_screen_reader(page):
    answer = ask(page, "attention", text="bank river")
    page.focus("#attention-Head")
    read = answer.get_by_role("status")
    for key, places in (
        ("Tab", "[CLS] to [CLS]: 0."),
        ("ArrowRight", "[CLS] to bank: 0."),
        ("ArrowDown", "bank to bank: 0."),
        ("ArrowLeft", "bank to [CLS]: 0."),
        ("ArrowLeft", "bank to [CLS]: 0."),  # there is no further one
    ):
        page.keyboard.press(key)
        assert read.inner_text().startswith(places)
        assert page.evaluate("document.activeElement.ariaLabel") == read.inner_text()
    answer.get_by_role("gridcell", name="river to [SEP]").hover()
    assert read.inner_text().startswith("river to [SEP]: 0.")


def test_attention_needs_no_new_model_for_each_text(server):
    """Each would stay with its encoder: the page took megabytes more for every text."""
    models = []
    for text in ("bank", "river bank", "bank river"):
        answer = requests.post(f"{server.rest}/try/attention", json={"text": text}, timeout=60)
        assert answer.json()["tokens"] == ["[CLS]", *text.split(), "[SEP]"]
        gc.collect()
        models.append(sum(isinstance(instance, keras.Model) for instance in gc.get_objects()))
    assert models[0] == models[1] == models[2]


@pytest.mark.parametrize("text", ["", " \t", "\0", "\u200b", "bank \ud800", "bank " * 99, None, 3])
def test_an_invalid_text_for_attention_is_rejected(server, text):
    asked = requests.post(f"{server.rest}/try/attention", json={"text": text}, timeout=60)
    assert asked.status_code == 400 and asked.json()["error"].endswith(".")


def test_the_nearest_sentences_of_a_file(page, tmp_path):
    lines = [f"zz yy {'x' * number}" for number in range(1, 40)]
    file = tmp_path / "sentences.txt"
    file.write_text("\n".join([*lines, "abc abc", "", "abc", "cab", "abcd"]))
    page.click("#tab-nearest")
    page.set_input_files("#nearest-file", file)
    answer = ask(page, "nearest", text="bca")
    page.wait_for_selector("ol.nearest")
    items = answer.locator("li").all_inner_texts()
    assert len(items) == 10
    assert {text.rsplit(" ", 1)[0] for text in items[:3]} == {"abc abc", "abc", "cab"}
    assert items[0].endswith("1.000") and items[3].startswith("abcd ")


def test_the_server_ranks_the_nearest_sentences(server):
    texts = [*("ab" * n + "c" * (40 - n) for n in range(40)), "bbba", "abbb"]
    asked = {"model": "vectors", "texts": texts}
    assert requests.post(f"{server.rest}/try/vectors", json=asked, timeout=60).json() == {}
    for text in ("abbb", "c"):  # the second is asked of vectors that are kept
        answer = requests.post(
            f"{server.rest}/try/nearest", json={**asked, "text": text}, timeout=60
        )
        counts = np.array([[each.count(letter) for letter in "abc"] for each in [text, *texts]])
        query, *others = counts / np.linalg.norm(counts, axis=1, keepdims=True)
        cosines = np.array(others) @ query
        found = answer.json()["nearest"]
        assert len(found) == 10 and len({number for number, _ in found}) == 10
        for (number, cosine), expected in zip(found, sorted(cosines)[::-1], strict=False):
            assert abs(cosine - expected) < 2e-5 and abs(cosines[number] - expected) < 2e-5


@pytest.mark.parametrize("wrong", [{"texts": []}, {"texts": "ab"}, {"texts": [1]}, {"text": 3}])
def test_nearest_sentences_that_cannot_be_found_are_rejected(server, wrong):
    asked = {"model": "vectors", "text": "ab", "texts": ["ab"], **wrong}
    answer = requests.post(f"{server.rest}/try/nearest", json=asked, timeout=60)
    assert answer.status_code == 400 and answer.json()["error"].endswith(".")


def test_the_similarity_of_two_texts(page):
    answer = ask(page, "similarity", first="aab", second="ab")
    assert answer.locator("tr").inner_text().split() == ["Cosine", "0.9487"]  # 3 / (√5 √2)
    assert answer.locator("p").inner_text() == "Dot product 3.0000, Euclidean distance 1.0000"
    page.select_option("#similarity-model", label="vectors, query and document")
    page.click("#panel-similarity button.ask")
    answer.locator("td", has_text="0.5477").wait_for()  # of aab and zzab: 3 / (√5 √6)


def test_a_map_of_many_texts(page, tmp_path):
    rows = [("one", "aaaa"), ("two", "bbbb"), ("one", "aaaaaa"), ("two", "bb"), ("", "<b>")]
    file = tmp_path / "texts.tsv"
    file.write_text("".join(f"{label}\t{text}\n" for label, text in rows))
    page.click("#tab-map")
    page.select_option("#map-model", label="vectors")
    page.set_input_files("#map-file", file)
    answer = ask(page, "map")
    page.wait_for_selector("svg.map")
    assert answer.locator("li").all_inner_texts() == ["one (2)", "two (2)", "no label (1)"]
    points = answer.locator("circle")
    assert points.count() == 5 and answer.locator("b").count() == 0
    fills = {}
    for point in points.all():
        label = point.get_attribute("aria-label").partition(": ")[0]
        fills.setdefault(label, set()).add(point.get_attribute("fill"))
    assert len(fills["one"]) == len(fills["two"]) == 1 and fills["one"] != fills["two"]
    first = points.first
    first.focus()
    read = answer.get_by_role("status")
    assert read.inner_text() == first.get_attribute("aria-label")
    page.keyboard.press("ArrowRight")
    assert read.inner_text() == points.nth(1).get_attribute("aria-label")
    points.last.hover()
    assert read.inner_text() == points.last.get_attribute("aria-label")
    file.write_text("one\taaaa\nbbbb\n")
    page.set_input_files("#map-file", file)
    page.click("#panel-map button.ask")
    wrong = page.locator("#panel-map [role=alert]", has_text="Line 2 has no tab after a label.")
    wrong.wait_for()


@pytest.mark.parametrize("texts", [["aa"], ["aa", "aa"], "aa", [1, 2]])
def test_a_map_that_cannot_be_drawn_is_rejected(server, texts):
    asked = {"model": "vectors", "texts": texts}
    answer = requests.post(f"{server.rest}/try/map", json=asked, timeout=60)
    assert answer.status_code == 400 and answer.json()["error"].endswith(".")


def test_the_keyboard_is_enough(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "tab-fill-mask"
    places = tab_places(page)
    steps = [("ArrowLeft", "nearest"), ("Home", "fill-mask")]
    steps += [("ArrowRight", tab) for tab in ("surprisal", "follows", "classify")]
    for key, tab in steps:
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == f"tab-{tab}"
        assert page.locator("[role=tabpanel]:visible").get_attribute("id") == f"panel-{tab}"
        assert tab_places(page) == places, "the tabs move when another is chosen"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "classify-text"
    page.keyboard.press("Control+A")
    page.keyboard.type("typed")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#panel-classify h2")
    assert page.locator("#panel-classify h2").inner_text().startswith("1:typed")
    page.keyboard.type(" more")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator("#panel-classify h2", has_text="1:typed more").wait_for()
    assert page.evaluate("document.activeElement.className") == "ask", "the place is lost"


def tab_places(page):
    return [round(tab.bounding_box()["x"]) for tab in page.locator("[role=tab]").all()]


def test_errors_of_the_server_are_shown(page):
    answer = ask(page, "classify", text="boom")
    assert "No text may be boom" in answer.locator("[role=alert]").inner_text()


def test_a_model_as_it_is_exported(browser, exported):
    """The others are a few operations each, so that what they answer is known."""
    texts = ("win cash", "ada", "london", "the long text")
    with running(models=[exported / "classifier"]) as server:
        with connect(server.rest, timeout=60) as client:
            answers = client.predict("classifier", [{"text": text} for text in texts])
        page = browser.new_page()
        page.goto(server.rest)
        page.wait_for_selector("body[data-ready]")
        for text, expected in zip(texts, answers, strict=True):
            shown = ask(page, "classify", text=text)
            title = f"{expected['label']} {expected['score']:.4f}"
            shown.locator("h2", has_text=title).wait_for()
            assert shown.locator("tr").first.inner_text().split() == title.split()
        page.close()
    assert {answer["label"] for answer in answers} == {"ham", "spam"}


def test_a_missing_model_is_reported(browser, echo_folder):
    with running(models=[echo_folder]) as server:
        page = browser.new_page()
        page.goto(server.rest)
        page.wait_for_selector("body[data-ready]")
        assert page.locator("[role=tab][aria-selected=true]").inner_text() == "Classify"
        page.click("#tab-question")
        assert "a question answerer is not served" in page.inner_text("#panel-question")
        page.close()
