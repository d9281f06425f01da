"""The pictures of words in context: which vectors they show, and where."""

import numpy as np
import pytest

from keras_bert.inference.embed import embed
from keras_bert.pictures.words import (
    draw_contexts,
    draw_similarity,
    words_in_context,
)
from tests.messages import raises_input_error
from tests.small_model import make_encoder, make_tokenizer

PAIRS = [
    ("The Bank of the river.", "bank"),
    ("At long last she went straight to the bank to pay her rent.", "bank"),
    ("rivers and money", "Money"),
]


@pytest.fixture(scope="module")
def model():
    tokenizer = make_tokenizer(["the", "bank", "river"])
    return make_encoder(tokenizer), tokenizer


@pytest.mark.usefixtures("eager")
def test_words_have_the_vectors_of_embed_and_labels_of_their_surroundings(model):
    words = words_in_context(model, PAIRS, layers="last")
    texts = list(embed(model=model, text=[text for text, _ in PAIRS]))
    for one, text, place in zip(words, texts, (1, 8, 2), strict=True):
        np.testing.assert_array_equal(one.vector, text.vectors[place])
    assert [one.label for one in words] == [
        "The BANK of the river.",
        "…straight to the BANK to pay her…",
        "rivers and MONEY",
    ]


@pytest.mark.usefixtures("eager")
def test_both_are_written(model, tmp_path):
    texts = [text for text, word in PAIRS if word == "bank"] + ["bank", "bank !"]
    for path in (
        draw_contexts(
            model=model,
            word="bank",
            texts=texts,
            groups=["a", "b", "a", "b"],
            output=tmp_path / "contexts.png",
        ),
        draw_contexts(model=model, word="bank", texts=texts, output=tmp_path / "plain.png"),
        draw_similarity(model=model, pairs=PAIRS, output=tmp_path / "similarity.png"),
    ):
        assert path.read_bytes().startswith(b"\x89PNG") and 5_000 < path.stat().st_size < 200_000


@pytest.mark.parametrize(
    "texts, groups, sentence",
    [
        (["a bank", "the river"], None, 'Text 2 ... it has no word "bank"; its words are ...river'),
        (["a bank"], None, "needs two texts or more"),
        (["bank", "bank"], ["a"], "2 texts and 1 groups"),
        (["bank"] * 7, list("abcdefg"), "7 groups of 7 names"),
        (["bank", "bank"], None, "All vectors are the same"),
    ],
)
@pytest.mark.usefixtures("eager")
def test_rejects_what_cannot_be_drawn(texts, groups, sentence, model, tmp_path):
    with raises_input_error(sentence):
        draw_contexts(
            model=model, word="bank", texts=texts, groups=groups, output=tmp_path / "a.png"
        )
