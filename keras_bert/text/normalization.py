"""The original BERT tokenizer's normalization and splitting of texts, in the graph.

google-research/bert, `tokenization.py`, class `BasicTokenizer`: drop control characters, lower the
case and drop accents (uncased models), split words at white space, punctuation and CJK characters.
"""

import functools
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text
from tensorflow_text.core.pybinds import (
    pywrap_fast_wordpiece_tokenizer_model_builder as wordpiece_model_builder,
)

from keras_bert.base.errors import InputError
from keras_bert.text.vocabulary import MAX_TOKEN_BYTES

# Every code point but the surrogates: RE2 compiles this to valid UTF-8 and nothing else.
_VALID = r"[\x00-\x{d7ff}\x{e000}-\x{10ffff}]*"
# What the original drops: NUL, U+FFFD, and the categories Cc (but tab and line ends) and Cf.
_DROPPED = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x{9f}\x{fffd}\p{Cf}]"
_ACCENTS = r"\p{Mn}"
MAX_WORD_BYTES = 1_000_000_000  # where words of any length are wanted


def clean(texts):
    """Drops bytes that are not UTF-8, and the characters that the original drops. (B,) -> (B,)"""
    valid = tf.reduce_all(tf.strings.regex_full_match(texts, _VALID))
    texts = tf.cond(
        valid,
        lambda: texts,
        # As `bytes.decode("utf-8", errors="ignore")` does.
        lambda: tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore"),
    )
    return tf.strings.regex_replace(texts, _DROPPED, "")


def fold(texts):
    """Lowers the case and drops accents of clean texts. (B,) -> (B,)"""
    # First the bytes A to Z alone: the second step follows the machine's locale, and under a
    # Turkish one would make a dotless i of every I.
    texts = tf.strings.lower(texts)
    texts = tf.strings.lower(texts, encoding="utf-8")  # cuts at a NUL: `clean` must come before
    texts = tf_text.normalize_utf8(texts, "NFD")
    return tf.strings.regex_replace(texts, _ACCENTS, "")


def normalize(texts, *, lowercase):
    """The text in which the original looks for words. string (B,) -> string (B,)"""
    texts = clean(texts)
    return fold(texts) if lowercase else texts


class WordSplitter(tf.Module):
    """Splits normalized texts at white space, punctuation and CJK characters.

    It is the tokenizer's own splitting: WordPiece with a vocabulary in which no word is found, so
    that every word is one unknown token with its offsets.
    """

    def __init__(self):
        super().__init__()
        # The builder needs at least one token; `clean` removes every U+0001.
        self._splitter = fast_wordpiece(["[UNK]", "\x01"], max_bytes=MAX_WORD_BYTES)

    def __call__(self, texts):
        """string (B,) -> starts, ends: ragged int64 (B, None), the bytes of each word."""
        _, starts, ends = self._splitter.tokenize_with_offsets(texts)
        return starts, ends

    def words(self, texts):
        """The words of all texts, string (B,), in order: a list of bytes. Eager only."""
        starts, ends = self(texts)
        splits = starts.row_splits.numpy().tolist()
        starts, ends = starts.values.numpy().tolist(), ends.values.numpy().tolist()
        words = []
        # Sliced in Python: TensorFlow would copy a text for each of its words.
        for text, first, last in zip(texts.numpy(), splits, splits[1:], strict=False):
            spans = zip(starts[first:last], ends[first:last], strict=True)
            words.extend([text[start:end] for start, end in spans])
        return words


class Characters(NamedTuple):
    """The characters of texts, and where each begins, counted from the first byte of all."""

    points: tf.Tensor  # int32 (C,) code points
    positions: tf.Tensor  # int64 (C,) rising
    text_positions: tf.Tensor  # int64 (B,) where each text begins


def characters(texts):
    """string (B,) of valid UTF-8 -> `Characters`."""
    # As one string, so that the positions are counted from its start.
    points, positions = tf.strings.unicode_decode_with_offsets(
        tf.strings.reduce_join(texts), "UTF-8"
    )
    text_positions = tf.cumsum(tf.strings.length(texts), exclusive=True)
    return Characters(points, positions, tf.cast(text_positions, tf.int64))


def fast_wordpiece(tokens, *, max_bytes):
    """TensorFlow Text's linear-time WordPiece (Song et al. 2021), its own splitting included."""
    # As a tensor made from an array: its constructor would go over millions of Python integers.
    with tf.init_scope():
        buffer = tf.constant(np.frombuffer(_compiled(tuple(tokens), max_bytes), dtype=np.uint8))
    return tf_text.FastWordpieceTokenizer(token_out_type=tf.int32, model_buffer=buffer)


@functools.lru_cache(maxsize=4)  # 0.1 to 0.2 s each, and many models have the same vocabulary
def _compiled(tokens, max_bytes):
    """The bytes that TensorFlow Text's operation reads, 0.4 MB and more."""
    try:
        return wordpiece_model_builder.build_fast_wordpiece_model(
            list(tokens), max_bytes, "##", "[UNK]", False, False
        )
    except RuntimeError as error:
        raise InputError(f"The vocabulary ({len(tokens)} tokens) {_fault(tokens)}.") from error


def _fault(tokens):
    """Why TensorFlow Text rejects the tokens of an otherwise valid vocabulary."""
    for id, token in enumerate(tokens):
        if "\x00" in token:
            return f"has a NUL in the token with the id {id}, which is in no text"
        size = len(token.removeprefix("##").encode("utf-8"))
        if size > MAX_TOKEN_BYTES:
            return f"has a token of {size} bytes, with the id {id}; {MAX_TOKEN_BYTES} are possible"
    return "has only special tokens; give one that was learned from text"
