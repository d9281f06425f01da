"""The model card of a text embedder: what the hub needs to know of it."""

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
