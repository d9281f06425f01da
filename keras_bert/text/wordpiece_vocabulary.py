"""The vocabulary of WordPiece: pieces that say themselves whether they continue a word."""

from functools import cached_property

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.files import write_text
from keras_bert.text.vocabulary import BERT_TOKENS, Vocabulary, index_tokens

CONTINUATION_PREFIX = "##"
FILE = "vocab.txt"


class WordPieceVocabulary(Vocabulary):
    """A vocabulary of WordPiece, as BERT's: a piece that begins with "##" continues a word.

    Args:
        tokens, counts, special_tokens: as for `Vocabulary`.
    """

    algorithm = "wordpiece"
    FILES = (FILE,)

    @classmethod
    def from_text(cls, text, *, source, special_tokens=BERT_TOKENS):
        """From the text of a `vocab.txt`: one piece a line, the line number (from 0) being the id.

        `source` is what errors call the text.
        """
        lines = text.removesuffix("\n").split("\n")
        if "" in lines:
            raise InputError(
                f"{source}, line {lines.index('') + 1} is empty; every line is one piece."
            )
        # So that errors name source and line.
        index_tokens(lines, name=source, unit="line", special_tokens=special_tokens)
        return cls(lines, special_tokens=special_tokens)

    def files(self):
        return {FILE: "".join(f"{token}\n" for token in self.tokens)}

    def save(self, path):
        write_text(path, self.files()[FILE])

    def __reduce__(self):  # into a Beam worker without the derived tables
        return type(self), (self.tokens, self.counts, self.special_tokens)

    @cached_property
    def continuations(self):
        """(V,) bool: True where the piece continues a word ("##ing")."""
        prefix = CONTINUATION_PREFIX
        return np.array([p.startswith(prefix) and p != prefix for p in self.tokens], dtype=np.bool_)

    @property
    def starts_word(self):
        return ~self.continuations

    @property
    def ends_word(self):
        return self.stands_alone

    def token_text(self, id):
        token = self.token(id)
        return token.removeprefix(CONTINUATION_PREFIX) if self.continuations[id] else token

    def join(self, ids):
        words = []
        for id in ids:
            if self.continuations[id] and words:
                words[-1] += self.token_text(id)
            else:
                words.append(self.tokens[id])
        return " ".join(words)

    def _identity(self):
        return self.tokens
