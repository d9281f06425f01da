"""The pictures of attention show the encoder's own probabilities, token by token."""

import struct

import numpy as np
import pytest
from matplotlib.figure import Figure

from keras_bert.pictures import tokens as pictures
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

TEXT = "The bank, again."


@pytest.fixture(scope="module")
def model():
    tokenizer = make_tokenizer(["the", "bank", "again"])
    return make_encoder(tokenizer, num_hidden_layers=3, num_attention_heads=4), tokenizer


def test_it_is_the_encoders_own(model):
    encoder, tokenizer = model
    tokens, fractions = pictures.attention_of(encoder, tokenizer, TEXT)
    assert tokens == ["[CLS]", "the", "bank", ",", "again", ".", "[SEP]"]
    row = np.array([[tokenizer.vocabulary.id(token) for token in tokens]], np.int32)
    inputs = {"input_ids": row, "input_mask": np.ones_like(row), "segment_ids": 0 * row}
    expected = encoder(inputs, outputs=("attention_probabilities",))["attention_probabilities"]
    np.testing.assert_allclose(fractions, np.stack([np.asarray(x)[0] for x in expected]), atol=1e-6)
    np.testing.assert_allclose(fractions.sum(axis=-1), 1, atol=1e-5)


def test_the_table_has_a_square_for_each_head_in_its_place():
    fractions = make_rng(1).random((2, 3, 5, 5)).astype("float32")
    figure = Figure()
    pictures._grid(figure, fractions)
    assert len(figure.axes) == 6
    for number, axis in enumerate(figure.axes):
        np.testing.assert_array_equal(
            axis.images[0].get_array(), fractions[number // 3, number % 3]
        )
    assert [axis.get_ylabel() for axis in figure.axes[::3]] == ["layer 1", "layer 2"]
    assert [axis.get_title() for axis in figure.axes[:3]] == ["head 1", "head 2", "head 3"]


def test_one_head_has_its_tokens_at_both_edges():
    fractions = make_rng(1).random((3, 3))
    figure = Figure()
    pictures._one_head(figure, fractions, ["[CLS]", "bank", "[SEP]"], "Layer 1, head 2")
    axis = figure.axes[0]
    np.testing.assert_array_equal(axis.images[0].get_array(), fractions)
    for ticks in (axis.get_xticklabels(), axis.get_yticklabels()):
        assert [tick.get_text() for tick in ticks] == ["[CLS]", "bank", "[SEP]"]


def size_of(path):
    """Width and height of a PNG file, from its header."""
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", data[16:24])


def test_draws_the_head_that_was_asked_for(model, tmp_path, monkeypatch):
    drawn = []
    whole = pictures._one_head

    def one_head(figure, fractions, *rest):
        drawn.append(fractions)
        whole(figure, fractions, *rest)

    monkeypatch.setattr(pictures, "_one_head", one_head)
    path = pictures.draw_attention(
        model=model, text=TEXT, layer=3, head=2, output=tmp_path / "head.png"
    )
    np.testing.assert_array_equal(drawn, pictures.attention_of(*model, TEXT)[1][2:3, 1])
    assert min(size_of(path)) > 200
    (tmp_path / "table.png").write_bytes(path.read_bytes())  # an older one
    table = pictures.draw_attention(model=model, text=TEXT, output=tmp_path / "table.png")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["head.png", "table.png"]
    width, height = size_of(table)
    assert width > height > 200  # four heads, three layers


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"layer": 4, "head": 1}, "no layer 4. The model has layers 1 to 3"),
        ({"layer": 1, "head": 0}, "no head 0. The model has heads 1 to 4"),
        ({"layer": 1}, "Give both `layer` and `head`"),
        ({"text": ""}, "The text has no tokens"),
        ({"text": "the bank " * 30}, "62 tokens ... shows at most 40"),
        ({"output": "head.jpg"}, "should end in .png"),
        ({"output": "nowhere/head.png"}, "no folder nowhere"),
    ],
)
def test_rejects_what_cannot_be_drawn(options, sentence, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with raises_input_error(sentence):
        pictures.draw_attention(**{"model": model, "text": TEXT, "output": "a.png", **options})


def test_without_matplotlib_the_extra_is_named(model, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with raises_input_error("pip install 'keras-bert-toolkit[pictures]'"):
        pictures.draw_attention(model=model, text=TEXT, output=tmp_path / "a.png")
