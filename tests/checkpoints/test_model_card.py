"""The model card: what a model started from, and what the hub needs to know of it."""

import pytest

from keras_bert.checkpoints.model_card import model_card

CONFIG = {"architectures": ["BertModel"], "keras_bert": {"version": "1", "task": "text-embedding"}}


def test_its_card_names_the_library_and_has_a_snippet_for_both():
    card = model_card(CONFIG, opens_there=True)
    assert 'library_name: "sentence-transformers"' in card
    assert 'pipeline_tag: "sentence-similarity"' in card
    tags = '["sentence-transformers", "sentence-similarity", "feature-extraction", "dense", '
    assert tags in card
    assert 'embedder = kb.load_task("hf://owner/name")' in card
    assert 'model = SentenceTransformer("owner/name")' in card


def test_one_that_opens_here_alone_does_not():
    for config in (CONFIG, {**CONFIG, "architectures": ["BilmEncoder"]}):
        card = model_card(config)
        assert 'library_name: "transformers"' in card and "SentenceTransformer" not in card
        assert ("AutoModel" in card) == (config is CONFIG)


STARTS = [
    ({"model": "runs/spam"}, "spam"),
    ({"student": "runs/small"}, "small"),
    ({"model": None, "architecture": "tiny"}, "random weights (tiny)"),
    ({"model": None, "architecture": "runs/mine.json"}, "random weights (mine.json)"),
    ({"model": None, "architecture": None}, "random weights"),
    ({"keep_layers": [0, 2], "architecture": None, "student": None}, None),
    ({"model": "hf://owner/name"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("settings", "expected"), STARTS)
def test_it_says_what_the_model_started_from(settings, expected):
    rows = [
        line for line in model_card(CONFIG, settings=settings).splitlines() if "starting" in line
    ]
    assert rows == ([] if expected is None else [f"| starting from | {expected} |"])
