"""Pieces that TensorFlow Text cannot look for: refused if they are read, and never learned."""

import pytest

from keras_bert.text import Tokenizer
from keras_bert.text.learners import learn_bpe, learn_wordpiece
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from tests.messages import raises_input_error


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        ([], "only special tokens"),
        (["a", "##\x00"], "has a NUL in the token with the id 6"),
        (["a", "##" + "é" * 129], "has a token of 258 bytes, with the id 6; 256 are possible"),
    ],
)
def test_tokens_that_cannot_be_looked_for_are_one_sentence(tmp_path, tokens, sentence):
    """They were a RuntimeError of TensorFlow Text's."""
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in [*SPECIAL_TOKENS, *tokens]))
    with raises_input_error(sentence):
        Tokenizer.from_vocab(path)


@pytest.mark.parametrize("learn", [learn_wordpiece, learn_bpe])
def test_no_token_is_learned_that_cannot_be_looked_for(learn):
    """A frequent sentence of a script without spaces is a word: here of 360 bytes."""
    sentence = "".join(chr(0x0E01 + i % 40) for i in range(120))
    vocabulary = learn({sentence: 1000, "a": 3}, size=400)
    assert 128 < max(len(token.encode("utf-8")) for token in vocabulary.tokens) <= 256
    ids = Tokenizer(vocabulary, lowercase=False).tokenize([sentence]).to_list()[0]
    assert vocabulary.join(ids) == sentence
