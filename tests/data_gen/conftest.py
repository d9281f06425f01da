"""A corpus in which every token stands once, so that a row tells where its tokens come from."""

import random

import pytest

from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from tests.data_gen.other_file_system import OtherFileSystem
from tests.seeds import shifted


class NumberedCorpus:
    """Documents of sentences of words "w0", "w1", …: word k is the k-th of the corpus.

    `vocabulary` has each word as a piece; `first` is the id of word 0. `documents` are lists of
    sentences, which are lists of ids.
    """

    def __init__(self, document_sizes, seed=0):
        rng = random.Random(shifted(seed))
        self.first = len(SPECIAL_TOKENS)
        self.documents, number = [], self.first
        for size in document_sizes:
            sentences = []
            for _ in range(size):
                length = rng.randint(2, 25)
                sentences.append(list(range(number, number + length)))
                number += length
            self.documents.append(sentences)
        self.vocabulary = WordPieceVocabulary(
            [*SPECIAL_TOKENS, *(f"w{k}" for k in range(number - self.first))]
        )
        # By id: the document of each token.
        self.document_of = [-1] * self.first
        for index, sentences in enumerate(self.documents):
            self.document_of += [index] * sum(map(len, sentences))

    def text(self, index):
        """A document, one sentence a line."""
        return "\n".join(
            " ".join(self.vocabulary.token(token) for token in sentence)
            for sentence in self.documents[index]
        )

    def write(self, folder, order=None, names="abcdefgh"):
        """Writes the documents into files in turn; returns the glob of them."""
        folder.mkdir(exist_ok=True)
        for number, name in enumerate(names):
            mine = range(number, len(self.documents), len(names))
            text = "\n\n".join(self.text(index) for index in mine)
            (folder / f"{name}.txt").write_text(text + "\n")
        return str(folder / "*.txt")


@pytest.fixture(scope="session")
def corpus():
    sizes = random.Random(shifted(7)).choices([1, 2, 5, 12, 20, 30], k=160)
    return NumberedCorpus(sizes)


@pytest.fixture(scope="session")
def corpus_files(corpus, tmp_path_factory):
    return corpus.write(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def other(tmp_path, monkeypatch):
    """The folder that `other://a` is."""
    monkeypatch.setattr(OtherFileSystem, "root", tmp_path)
    (tmp_path / "a").mkdir()
    return tmp_path / "a"
