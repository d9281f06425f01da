"""Byte-level byte-pair encoding in the graph."""

import tensorflow as tf

from keras_bert.text.encodings.bpe import Merging
from keras_bert.text.encodings.encoding import TokenEdges
from keras_bert.text.encodings.steps import EDGE, SPACE_CLASS, steps_of
from keras_bert.text.normalization import valid_utf8
from keras_bert.text.ragged import row_ids, select
from keras_bert.text.vocabularies.byte_level import LETTERS

# Letters and numbers with those of Unicode 16, which RE2's tables do not have yet.
_LETTER = (
    r"\p{L}\x{1c89}\x{1c8a}\x{a7cb}-\x{a7cd}\x{a7da}-\x{a7dc}\x{105c0}-\x{105f3}"
    r"\x{10d4a}-\x{10d65}\x{10d6f}-\x{10d85}\x{10ec2}-\x{10ec4}\x{11380}-\x{11389}\x{1138b}"
    r"\x{1138e}\x{11390}-\x{113b5}\x{113b7}\x{113d1}\x{113d3}\x{11bc0}-\x{11be0}"
    r"\x{13460}-\x{143fa}\x{16100}-\x{1611d}\x{16d40}-\x{16d6c}\x{18cff}\x{1e5d0}-\x{1e5ed}"
    r"\x{1e5f0}\x{2ebf0}-\x{2ee5d}"
)
_NUMBER = (
    r"\p{N}\x{10d40}-\x{10d49}\x{116d0}-\x{116e3}\x{11bf0}-\x{11bf9}\x{16130}-\x{16139}"
    r"\x{16d70}-\x{16d79}\x{1ccf0}-\x{1ccf9}\x{1e5f1}-\x{1e5fa}"
)
# GPT-2's pattern has white space as `\s+(?!\S)|\s+`: if something follows, a word is all of it
# but the last character. RE2 has no look-ahead, so an EDGE is put there first.
_BEFORE_LAST_SPACE = rf"([{SPACE_CLASS}])([{SPACE_CLASS}][^{SPACE_CLASS}])"
_WORD = (
    rf"'(?:[sdmt]|ll|ve|re)| ?[{_LETTER}]+| ?[{_NUMBER}]+| ?[^{SPACE_CLASS}{_LETTER}{_NUMBER}]+"
    rf"|[{SPACE_CLASS}]+"
)


def byte_level_words(texts):
    """Splits texts of valid UTF-8 as GPT-2 does: string (B,) -> ragged string (B, None).

    The words of a text, one after another, are the text: contractions, letters, numbers, or other
    characters, each with the space before it, and white space.
    """
    texts = tf.strings.regex_replace(texts, _BEFORE_LAST_SPACE, b"\\1" + EDGE + b"\\2")
    texts = tf.strings.regex_replace(texts, _WORD, b"\\0" + EDGE)
    words = tf.strings.split(texts, EDGE)
    return select(words, words.values != "")


def with_prefix_space(texts):
    """Puts a space before texts that are not empty and do not begin with one. (B,) -> (B,)"""
    return tf.strings.regex_replace(texts, r"^([^ ])", r" \1", replace_global=False)


class ByteLevelEncoding(Merging):
    """The encoding of a `ByteLevelVocabulary`. Each different word of a batch is encoded once."""

    def __init__(self, vocabulary, *, lowercase):
        symbols = {b: letter for b, letter in enumerate(LETTERS) if letter in vocabulary}
        widths = [len(token) for token in vocabulary.tokens]  # a letter is a byte
        super().__init__(vocabulary, symbols=symbols, widths=widths, lowercase=lowercase)
        self._prefix_space = vocabulary.prefix_space
        self._steps = steps_of(vocabulary)
        self._edges = TokenEdges(vocabulary)

    def normalize(self, texts):
        return valid_utf8(texts)

    def _symbols(self, words):
        # Each byte is a character of Latin-1.
        symbols = tf.strings.unicode_decode(words, "ISO-8859-1")
        return symbols, symbols.with_values(tf.ones_like(symbols.values, tf.int64))

    def _call(self, texts):
        ids, starts, ends = self._steps(texts, self._words) if self._steps else self._words(texts)
        return self._edges(texts, ids, starts, ends)

    def _words(self, texts):
        """Texts (P,) -> ids, ragged (P, None), starts and ends (T,), bytes of all texts."""
        given = texts
        if self._prefix_space:
            texts = with_prefix_space(texts)
        words = byte_level_words(texts)
        unique, back = tf.unique(words.values, out_idx=tf.int64)
        ids, widths = self._encode(unique)  # ragged (U, None)
        ids = tf.gather(ids, back)  # ragged (W, None)
        ends = tf.cumsum(tf.gather(widths, back).values)  # (T,) the tokens of a text are the text
        token_splits = tf.gather(ids.row_splits, words.row_splits)
        ids = tf.RaggedTensor.from_row_splits(ids.values, token_splits, validate=False)
        rows = row_ids(ids)
        prefix = tf.cast(tf.strings.length(texts) - tf.strings.length(given), tf.int64)
        # The bytes of earlier texts, without the spaces that were put before them.
        ends -= tf.gather(tf.cumsum(prefix), rows)
        starts = tf.concat([[0], ends[:-1]], axis=0)
        text_starts = tf.cumsum(tf.cast(tf.strings.length(given), tf.int64), exclusive=True)
        starts = tf.maximum(starts[: tf.size(ends)], tf.gather(text_starts, rows))
        return ids, starts, ends
