"""Normalizers and added tokens in the graph: the texts of `tokenizers`, and their bytes' origin."""

import numpy as np
import pytest
import tensorflow as tf
from tokenizers import normalizers

from keras_bert.base.errors import InputError
from keras_bert.text.encodings.steps import AddedTokens, normalized
from keras_bert.text.normalizers import NORMALIZERS, AddedToken, steps_in
from tests.text import fuzz

TEXTS = ["", "Ångström e\u0301a\u0323\u0302x", "ΣΊΣΥΦΟΣ İ \x00ﬁ ㎏", *fuzz.WORDS, ""]
CHAINS = [
    *((name,) for name in NORMALIZERS),
    ("nfd", "lowercase", "strip_accents"),
    ("nfkc", "nfd"),
]


@pytest.mark.parametrize("names", CHAINS, ids="-".join)
def test_texts_are_those_of_tokenizers(names):
    their_normalizer = normalizers.Sequence(
        [getattr(normalizers, NORMALIZERS[name])() for name in names]
    )
    step = normalized(tf.constant(TEXTS), names)
    assert [text.decode() for text in step.texts.numpy()] == [
        their_normalizer.normalize_str(text) for text in TEXTS
    ]


@pytest.mark.parametrize("names", CHAINS, ids="-".join)
def test_every_byte_comes_from_the_characters_that_it_was_made_of(names):
    texts = [*TEXTS, *fuzz.texts(200)]
    step = normalized(tf.constant(texts), names)
    first, after = step.first.numpy(), step.after.numpy()
    sizes = [len(text) for text in step.texts.numpy()]
    assert len(first) == len(after) == sum(sizes)
    assert (first < after).all() and (np.diff(first) >= 0).all() and (np.diff(after) >= 0).all()
    source, at = "".join(texts).encode(), 0
    starts = np.cumsum([0, *(len(text.encode()) for text in texts)])
    for number, size in enumerate(sizes):
        if size:
            assert starts[number] <= first[at] and after[at + size - 1] <= starts[number + 1]
        at += size
    # A letter of ASCII that is not changed comes from itself.
    joined = b"".join(step.texts.numpy())
    for byte, begin in zip(joined, first, strict=True):
        if chr(byte) in "xyz":
            assert (
                source[begin : begin + 1] == bytes([byte])
                or source[begin] >= 0x80
                or (chr(source[begin]).lower() == chr(byte))
            )


def test_composed_characters_come_from_all_of_their_parts():
    step = normalized(tf.constant(["ae\u0301b", "a\u0323\u0302"]), ("nfc",))
    assert [text.decode() for text in step.texts.numpy()] == ["aéb", "ậ"]
    assert step.first.numpy().tolist() == [0, 1, 1, 4, 5, 5, 5]
    assert step.after.numpy().tolist() == [1, 4, 4, 5, 10, 10, 10]


def test_what_vanishes_belongs_to_the_character_before_it():
    step = normalized(tf.constant(["a\u0301b", "\u0301c"]), ("strip_accents",))
    assert step.texts.numpy().tolist() == [b"ab", b"c"]
    assert step.first.numpy().tolist() == [0, 3, 6]
    assert step.after.numpy().tolist() == [3, 4, 7]


def test_added_tokens_are_cut_out_the_longest_first():
    added = [
        AddedToken(content="  "),
        AddedToken(content="   "),
        AddedToken(content="<m>", lstrip=True),
        AddedToken(content=".*", rstrip=True),
    ]
    ids = {token.content: number for number, token in enumerate(added)}
    cutter = AddedTokens(added, ids.get)
    pieces, which = cutter.cut(tf.constant(["a     b\t<m>c", "", ".*  x"]))
    assert pieces.to_list() == [
        [b"a", b"   ", b"", b"  ", b"b", b"\t<m>", b"c"],
        pieces.to_list()[1],
        [b"", b".*  ", b"x"],
    ]
    assert [id for id in which.numpy() if id >= 0] == [1, 0, 2, 3]
    assert b"".join(pieces.to_list()[1]) == b""


def test_steps_of_a_tokenizer_json():
    token = {"content": "<a>", "special": True, "lstrip": True, "single_word": False}
    assert steps_in({"added_tokens": [token | {"lstrip": False}]}, source="x") == {}
    assert steps_in({"added_tokens": [token]}, source="x")["added_tokens"][0].lstrip
    steps = steps_in({"added_tokens": [token], "normalizer": {"type": "NFC"}}, source="x")
    assert steps == {
        "normalizers": ("nfc",),
        "added_tokens": (AddedToken(content="<a>", lstrip=True, special=True),),
    }
    for broken, part in [
        ({"normalizer": {"type": "Prepend"}}, "normalizes texts by Prepend"),
        ({"added_tokens": [token | {"single_word": True}]}, "as a whole word only"),
        ({"added_tokens": ["<a>"]}, "should be objects"),
        ({"normalizer": []}, "should be an object"),
    ]:
        with pytest.raises(InputError, match=part):
            steps_in(broken, source="x")
