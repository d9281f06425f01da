"""The counts beside a vocabulary: written and read back, and refused if they are of another."""

import numpy as np
import pytest

from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from keras_bert.text.vocabulary_files import counts_path, counts_text, read_counts
from tests.messages import raises_input_error

VOCABULARY = WordPieceVocabulary(
    [*SPECIAL_TOKENS, "the", "a\tb", "##s"], counts=[0, 7, 0, 0, 0, 2**40, 3, 0]
)


@pytest.fixture
def path(tmp_path):
    VOCABULARY.save(tmp_path / "vocab.txt")
    (tmp_path / "vocab.counts.tsv").write_text(counts_text(VOCABULARY))
    return tmp_path / "vocab.txt"


def test_they_are_read_back(path):
    counts = read_counts(path, VOCABULARY)
    assert counts.tolist() == VOCABULARY.counts.tolist() and counts.dtype == np.int64
    assert read_counts(path.parent, VOCABULARY).tolist() == counts.tolist()  # of a folder
    path.with_name("vocab.counts.tsv").unlink()
    assert read_counts(path, VOCABULARY) is None


def test_they_lie_beside_a_file_and_in_a_folder():
    assert counts_path("a/vocab.txt", is_folder=False) == "a/vocab.counts.tsv"
    assert counts_path("gs://b/v", is_folder=False) == "gs://b/v.counts.tsv"
    assert counts_path("a/bpe", is_folder=True) == "a/bpe/counts.tsv"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("the\t", "that\t", "line 6 is 'that... has 'the'"),
        ("##s\t0\n", "", "line 7 is the last"),
        ("##s\t0\n", "##s\t0\n##t\t1\n", "line 9 is '##t...'no more tokens'"),
        ("[UNK]\t7", "[UNK]\t-7", "line 2 is"),
        ("[UNK]\t7", "[UNK] 7", "line 2 is"),
        ("[UNK]\t7", "[UNK]\t", "line 2 is"),
        ("the\t1099511627776\na\tb\t3", "the\t0\na\tb\t0", "counts no ordinary token"),
        (counts_text(VOCABULARY), "", "is empty"),
        ("\n", "\r\n", "Windows line end"),
    ],
)
def test_what_does_not_fit_is_rejected_with_its_place(path, old, new, message):
    file = path.with_name("vocab.counts.tsv")
    text = file.read_text()
    assert old in text
    file.write_bytes(text.replace(old, new).encode())
    with raises_input_error(f"{file}...{message}"):
        read_counts(path, VOCABULARY)
