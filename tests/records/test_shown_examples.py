"""Examples as a notebook shows them."""

import re

import pytest

import keras_bert as kb
from keras_bert.records.inspection import Instance, ShownExamples, Token


def token(text, original=None, *, starts=True, segment=0, span=0, boundary=False):
    return Token(text, original, starts, segment, span, boundary)


TOKENS = (
    token("[CLS]", segment=None),
    token("a", boundary=True),
    token("[MASK]", "<cat>", span=1),
    token("s", "s", starts=False, span=1),
    token("sat", boundary=True),
    token("[SEP]", segment=None),
)


def test_an_example_is_shown_as_text_with_its_masked_tokens():
    examples = ShownExamples([Instance(0, "shard", TOKENS, False)], labels=("is next", "random"))
    assert repr(examples) == "ShownExamples(1 example)\n[CLS] a [MASK]{<cat>} s{s} sat [SEP]"
    page = examples._repr_html_()
    assert "<cat>" not in page and "&lt;cat&gt;" in page and "<i>random</i>" in page
    assert re.sub("<[^>]*>", "", page) == "0 random  [CLS] a [MASK] &lt;cat&gt;s s sat [SEP]"
    for tag in ("span", "p", "sub"):
        assert page.count(f"<{tag}") == page.count(f"</{tag}>")
    assert page.count("outline") == 1 and page.count("border-bottom") == 2
    assert examples[0].tokens is TOKENS


def test_bad_input_is_a_sentence(tmp_path):
    with pytest.raises(kb.InputError, match="Invalid `split` 'dev'. Choose from: train, eval"):
        kb.inspect(tmp_path, split="dev")
    with pytest.raises(kb.InputError, match="no data folder"):
        kb.inspect(tmp_path / "none")
