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
MAX_WORD_BYTES = 1_000_000_000  # if words of any length are wanted


def valid_utf8(texts):
    """Drops bytes that are not UTF-8. string (B,) -> string (B,)"""
    valid = tf.reduce_all(tf.strings.regex_full_match(texts, _VALID))
    return tf.cond(
        valid,
        lambda: texts,
        # As `bytes.decode("utf-8", errors="ignore")` does.
        lambda: tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore"),
    )


def clean(texts):
    """Drops bytes that are not UTF-8, and the characters that the original drops. (B,) -> (B,)"""
    return tf.strings.regex_replace(valid_utf8(texts), _DROPPED, "")


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


def ranges(text):
    """A class of RE2 from code points and ranges of them, in hexadecimal."""
    ranges = [[rf"\x{{{point}}}" for point in ends.split("-")] for ends in text.split()]
    return f"[{''.join('-'.join(ends) for ends in ranges)}]"


# Where the `BertNormalizer` of Hugging Face's tokenizers, whose tables are of Unicode 8, differs:
# accents, format characters and punctuation that are ordinary characters to it,
_NEW_CHARACTERS = ranges(
    "61d 7fd 890-891 898-89f 8ca-8e2 9fd-9fe a76 afa-aff b55 c04 c3c c77 c84 d00 d3b-d3c d81 "
    "eba ece 180f 1885-1886 1abf-1ace 1b4e-1b4f 1b7d-1b7f 1df6-1dfb 2e43-2e4f 2e52-2e5d a82c "
    "a8c5 a8ff a9bd 105c9 105e4 10d24-10d27 10d6e 10eab-10ead 10efd-10eff 10f46-10f50 "
    "10f55-10f59 10f82-10f89 11070 11073-11074 110c2 110cd 111cf 1123e 11241 1133b 11383 "
    "11385 1138e 11391 113c5 113c7-113c8 113d4-113d5 113d7-113d8 11438-1143f 11442-11444 "
    "11446 1144b-1144f 1145a-1145b 1145d-1145e 11660-1166c 116b9 1182f-11837 11839-1183b "
    "11938 1193b-1193c 1193e 11943-11946 119d4-119d7 119da-119db 119e0 119e2 11a01-11a0a "
    "11a33-11a38 11a3b-11a47 11a51-11a56 11a59-11a5b 11a8a-11a96 11a98-11a9c 11a9e-11aa2 "
    "11b00-11b09 11be1 11c30-11c36 11c38-11c3d 11c3f 11c41-11c45 11c70-11c71 11c92-11ca7 "
    "11caa-11cb0 11cb2-11cb3 11cb5-11cb6 11d31-11d36 11d3a 11d3c-11d3d 11d3f-11d45 11d47 "
    "11d90-11d91 11d95 11d97 11ef3-11ef4 11ef7-11ef8 11f00-11f01 11f36-11f3a 11f40 "
    "11f42-11f4f 11fff 12ff1-12ff2 13430-13440 13447-13455 16121-16128 16d68-16d6a "
    "16d6d-16d6f 16e97-16e9a 16f4f 16fe2 16fe4 1cf00-1cf2d 1cf30-1cf46 1e000-1e006 "
    "1e008-1e018 1e01b-1e021 1e023-1e024 1e026-1e02a 1e08f 1e130-1e136 1e2ae 1e2ec-1e2ef "
    "1e4ec-1e4ef 1e5ff 1e944-1e94a 1e95e-1e95f 2b820-2b91f"
)
_NEW_PUNCTUATION = ranges("166d 111c9")  # punctuation marks to it alone,
_NEW_DROPPED = r"[\p{Co}\x{1734}]"  # and what it alone drops.


def normalize_for_gpt(texts):
    """The text in which transformers looks for OpenAI GPT's words. string (B,) -> string (B,)

    It is BERT's, lowercased, but that a sigma is the same at the end of a word, and for characters
    that came into Unicode after 2015. Of these, those that BERT drops or makes a word of become
    U+FFFF, or U+2E2E for a punctuation mark: unknown, as they are to every vocabulary of GPT.
    """
    texts = valid_utf8(texts)
    texts = tf.strings.regex_replace(texts, _NEW_CHARACTERS, "\uffff")
    texts = tf.strings.regex_replace(texts, _NEW_PUNCTUATION, "\u2e2e")
    texts = tf.strings.regex_replace(texts, _NEW_DROPPED, "")
    texts = tf.strings.regex_replace(texts, "\u03a3", "\u03c3")
    return normalize(texts, lowercase=True)


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


def utf8_width(points):
    """How many bytes code points take in UTF-8: int32 (C,) -> int64 (C,)."""
    steps = [tf.cast(points >= least, tf.int64) for least in (0x80, 0x800, 0x10000)]
    return 1 + tf.add_n(steps)


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
