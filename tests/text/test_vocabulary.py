"""Vocabularies: what they tell about pieces, and what they refuse."""

import pickle

import numpy as np
import pytest

from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from keras_bert.text.vocabulary_files import load_vocabulary
from tests.messages import raises_input_error

TOKENS = [*SPECIAL_TOKENS, "[unused0]", "play", "##ing", "##", "#", "well"]


@pytest.fixture
def vocabulary():
    return WordPieceVocabulary(TOKENS)


def test_ids_are_places(vocabulary):
    assert len(vocabulary) == len(TOKENS)
    assert [vocabulary.id(token) for token in TOKENS] == list(range(len(TOKENS)))
    assert [vocabulary.token(i) for i in range(len(TOKENS))] == TOKENS
    special = [vocabulary.pad_id, vocabulary.unk_id, vocabulary.cls_id, vocabulary.sep_id]
    assert [*special, vocabulary.mask_id] == [0, 1, 2, 3, 4]
    assert "play" in vocabulary and "played" not in vocabulary


def test_unknown_tokens_and_ids_are_rejected(vocabulary):
    with pytest.raises(ValueError, match="Received: 'played'"):
        vocabulary.id("played")
    for id in (-1, len(TOKENS)):
        with pytest.raises(ValueError, match=f"Received: {id}"):
            vocabulary.token(id)


def test_special_ids_and_continuations(vocabulary):
    assert vocabulary.special_ids.dtype == np.int32
    assert vocabulary.special_ids.tolist() == [0, 1, 2, 3, 4, 5]
    assert [TOKENS[i] for i in np.flatnonzero(vocabulary.continuations)] == ["##ing"]


def test_word_starts_of_rows_with_words_cut_by_truncation(vocabulary):
    ids = {token: i for i, token in enumerate(TOKENS)}
    row = ["[CLS]", "##ing", "well", "play", "##ing", "[SEP]", "[UNK]", "##ing", "well", "[SEP]"]
    starts = vocabulary.word_starts(np.array([[ids[token] for token in row]]))
    #                   the cut-off word begins at its first piece that is left
    assert starts.tolist() == [[True, True, True, True, False, True, True, False, True, True]]


def test_token_texts(vocabulary):
    texts = [vocabulary.token_text(i) for i in range(len(TOKENS))]
    assert texts[-5:] == ["play", "ing", "##", "#", "well"]


def test_join(vocabulary):
    ids = [vocabulary.id(p) for p in ("play", "##ing", "#", "##", "well")]
    assert vocabulary.join(ids) == "playing # ## well"
    assert vocabulary.join([]) == ""
    assert vocabulary.join([vocabulary.id("##ing")]) == "##ing"


def test_saved_and_read_back_and_pickled(vocabulary, tmp_path):
    path = tmp_path / "vocab.txt"
    vocabulary.save(path)
    assert path.read_bytes() == "".join(f"{token}\n" for token in TOKENS).encode()
    assert [entry.name for entry in tmp_path.iterdir()] == ["vocab.txt"]
    again = load_vocabulary(path)
    assert again == vocabulary and hash(again) == hash(vocabulary)
    assert pickle.loads(pickle.dumps(vocabulary)) == vocabulary
    path.write_text("\n".join(TOKENS))  # without the last line end
    assert load_vocabulary(path) == vocabulary


def test_the_hash_tells_order_and_tokens_apart(vocabulary):
    swapped = [*TOKENS[:-2], TOKENS[-1], TOKENS[-2]]
    assert WordPieceVocabulary(swapped).sha256 != vocabulary.sha256
    assert WordPieceVocabulary(TOKENS, counts=range(len(TOKENS))).sha256 == vocabulary.sha256


def test_tokens_with_unusual_line_breaks_stay_whole(tmp_path):
    tokens = [*SPECIAL_TOKENS, "a\u2028b", "\x85", "\x0c"]
    WordPieceVocabulary(tokens).save(tmp_path / "vocab.txt")
    assert load_vocabulary(tmp_path / "vocab.txt").tokens == tuple(tokens)


def test_white_space_around_a_token_is_dropped_as_in_google_bert(tmp_path):
    """Unless nothing, or the token of another line, would be left."""
    path = tmp_path / "vocab.txt"
    lines = [
        *SPECIAL_TOKENS[:-1],
        f"{SPECIAL_TOKENS[-1]} ",
        "cat \t",
        " dog",
        "a\u00a0",
        " ",
        "cow ",
        "cow",
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    expected = (*SPECIAL_TOKENS, "cat", "dog", "a", " ", "cow ", "cow")
    assert load_vocabulary(path).tokens == expected
    load_vocabulary(path).save(tmp_path / "again.txt")
    assert load_vocabulary(tmp_path / "again.txt").tokens == expected


@pytest.mark.parametrize(
    "content, sentence",
    [
        (b"", "is empty"),
        (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n", "has no [MASK]"),
        (b"a\nb\n", "no [PAD] and no [UNK]"),
        (b"[PAD]\r\n[UNK]\r\n", "line 1 has a Windows line end"),
        (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nx\ny\nx\n", "line 8: the token 'x' is already at"),
        (b"[PAD]\n[UNK]\n\n[CLS]\n[SEP]\n[MASK]\n", "line 3 is empty"),
        (b"[PAD]\n[UNK]\n[CLS]\n\xff\n", "line 4 is not UTF-8"),
        (b"\xef\xbb\xbf[PAD]\n", "byte order mark"),
    ],
)
def test_bad_files_are_rejected_with_their_place(tmp_path, content, sentence):
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    with raises_input_error(f"{path}...{sentence}"):
        load_vocabulary(path)


def test_missing_files_and_folders_are_rejected(tmp_path):
    with raises_input_error("none.txt could not be read"):
        load_vocabulary(tmp_path / "none.txt")
    with raises_input_error("has no supported tokenizer (found: none)...or add its vocab.txt, "):
        load_vocabulary(tmp_path)


def test_counts_must_fit():
    with pytest.raises(ValueError, match="one number per token"):
        WordPieceVocabulary(TOKENS, counts=[1, 2, 3])
