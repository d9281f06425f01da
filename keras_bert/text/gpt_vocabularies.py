"""The byte-pair encodings of OpenAI GPT (Radford et al. 2018) and of GPT-2 (Radford et al. 2019).

GPT's has a mark at the end of each word. GPT-2's is over bytes, so that no text is unknown; RoBERTa
and many later models have it too.
"""

import unicodedata
from functools import cached_property

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.text.vocabulary import BERT_TOKENS, END_OF_WORD, BpeVocabulary

GPT_END_OF_WORD = "</w>"  # the end of a token, and never a token alone


class GptVocabulary(BpeVocabulary):
    """The vocabulary of OpenAI GPT: a token that ends with "</w>" ends a word.

    Words are those of lowercased text, split as BERT splits it.

    Args:
        tokens: strings in the order of their ids: single characters, single characters with "</w>",
            and what the merges make. A character without a token of its own is unknown.
        merges, counts: as for `BpeVocabulary`.
        special_tokens: `SpecialTokens`; `unk` is required.
    """

    algorithm = "gpt-bpe"
    lowercase = True
    UNKNOWN = None
    ONE_LINE = False  # the published vocabulary has the token "\n</w>", which no text comes to
    VERSION = "#version: 0.2"
    END_OF_WORD = GPT_END_OF_WORD

    @classmethod
    def check_symbols(cls, tokens, special_tokens, *, name):
        if special_tokens.unk is None:
            raise InputError(f"{name} has no special token `unk` for unknown characters.")

    def symbols(self, word):
        """The characters of a word, the last one with "</w>"; unknown ones as `unk`."""
        symbols = [*word[:-1], word[-1] + GPT_END_OF_WORD]
        return [symbol if symbol in self else self.special_tokens.unk for symbol in symbols]


def _letters():
    """The letters that GPT-2's files have for the bytes 0 to 255.

    A printable character of Latin-1 is its own letter; the others have those from U+0100 on.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte if byte in printable else next(others)) for byte in range(256))


LETTERS = _letters()
_LETTER_OF = dict(enumerate(LETTERS))
_BYTE_OF = {letter: byte for byte, letter in enumerate(LETTERS)}
SPACE = LETTERS[ord(" ")]  # "Ġ"
# What Unicode counts as white space, which is less than `str.isspace` does.
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
# UTF-8 has no other bytes.
_IN_UTF8 = [byte for byte in range(256) if byte not in (0xC0, 0xC1) and byte < 0xF5]


def to_letters(word):
    """The letters of the bytes of a word: bytes -> str."""
    return word.decode("latin-1").translate(_LETTER_OF)


class ByteLevelVocabulary(BpeVocabulary):
    """The vocabulary of GPT-2 and RoBERTa: byte-pair encoding of the bytes of UTF-8.

    Every text is a sequence of its tokens, white space included, and no text is unknown. A space
    belongs to the word after it.

    Args:
        tokens: strings in the order of their ids: the special tokens, and tokens of one or more
            bytes, each byte as the letter that GPT-2's files have for it ("Ġ" is a space).
        merges, counts: as for `BpeVocabulary`.
        special_tokens: `SpecialTokens`.
        prefix_space: whether a text that does not begin with a space is read as if it did
            (`add_prefix_space` of transformers).

    Raises `InputError` where a byte has no token.
    """

    algorithm = "byte-level-bpe"
    lowercase = False
    UNKNOWN = None
    HAS_UNKNOWN_TEXT = False
    VERSION = "#version: 0.2"

    def __init__(
        self, tokens, merges, counts=None, special_tokens=BERT_TOKENS, *, prefix_space=False
    ):
        super().__init__(tokens, merges, counts=counts, special_tokens=special_tokens)
        self.prefix_space = prefix_space

    def _options(self):
        return {**super()._options(), "prefix_space": self.prefix_space}

    def _identity(self):
        return [*super()._identity(), *(["prefix_space"] if self.prefix_space else [])]

    @classmethod
    def check_symbols(cls, tokens, special_tokens, *, name):
        missing = [byte for byte in _IN_UTF8 if LETTERS[byte] not in tokens]
        if missing:
            shown = ", ".join(f"0x{byte:02X} ({LETTERS[byte]!r})" for byte in missing[:3])
            raise InputError(
                f"{name} has no token for {len(missing)} of the bytes of UTF-8: {shown}"
                f"{' …' if missing[3:] else ''}. A byte-level vocabulary needs all of them. Learn "
                "it again with every byte in its initial alphabet."
            )

    def symbols(self, word):
        """The letters of the bytes of a word, which may begin with white space."""
        return list(to_letters(word.encode("utf-8")))

    @cached_property
    def _bytes(self):
        """The bytes of each token; None for a special one."""
        special = set(self.special_ids.tolist())
        return [
            None
            if id in special or not all(letter in _BYTE_OF for letter in token)
            else bytes(_BYTE_OF[letter] for letter in token)
            for id, token in enumerate(self.tokens)
        ]

    @cached_property
    def _is_space(self):
        """(V,) bool: True for tokens of white space alone."""
        return np.array(
            [bool(content) and not _text(content).strip(WHITE_SPACE) for content in self._bytes],
            np.bool_,
        )

    @cached_property
    def starts_word(self):
        """A word starts with white space before it or with a punctuation mark, as far as tokens
        tell: letters after digits go on with the word."""
        starts = [bool(content) and _splits(_text(content)[:1]) for content in self._bytes]
        return np.array(starts, np.bool_) & ~self._is_space | self.stands_alone

    @cached_property
    def ends_word(self):
        ends = [bool(content) and _splits(_text(content)[-1:]) for content in self._bytes]
        return np.array(ends, np.bool_) | self.stands_alone

    def word_starts(self, ids):
        starts = super().word_starts(ids)
        starts[..., 1:] &= ~self._is_space[np.asarray(ids)][..., 1:]
        return starts

    def token_text(self, id):
        """The text of the token with this id, without the space before it.

        What is not a whole character in UTF-8 is U+FFFD.
        """
        self.token(id)
        content = self._bytes[id]
        return self.tokens[id] if content is None else _replaced(content).removeprefix(" ")

    def token_name(self, id):
        """The text of the token; its letters where that is not whole characters."""
        token, content = self.token(id), self._bytes[id]
        try:
            return token if content is None else content.decode("utf-8")
        except UnicodeDecodeError:
            return token

    @cached_property
    def joinable(self):
        """The bytes of each token; those of a sequence, one after another, are its text."""
        return [
            token.encode("utf-8") if content is None else content
            for token, content in zip(self.tokens, self._bytes, strict=True)
        ]

    def join(self, ids):
        """The text of a sequence of ids; what is not UTF-8 is U+FFFD."""
        return _replaced(b"".join(self.joinable[id] for id in ids))


def _text(content):
    """The text of bytes, with a letter in the place of what is not a whole character."""
    return _replaced(content).replace("\ufffd", "a")


def _replaced(content):
    return content.decode("utf-8", errors="replace")


def _splits(character):
    """Whether a character is white space or, as BERT splits words, a punctuation mark."""
    if character.isascii():
        return not character.isalnum()
    return character in WHITE_SPACE or unicodedata.category(character).startswith("P")


def class_of_bpe(ids, *, source):
    """The class of the vocabulary of byte-pair encoding with these tokens.

    Args:
        ids: the content of a `vocab.json`, unchecked.
        source: names it in errors.

    Raises `InputError` where its kind is unknown.
    """
    tokens = ids.keys() if isinstance(ids, dict) else ()
    if END_OF_WORD in tokens:
        return BpeVocabulary
    if all(LETTERS[byte] in tokens for byte in _IN_UTF8):
        return ByteLevelVocabulary
    if any(token.endswith(GPT_END_OF_WORD) for token in tokens):
        return GptVocabulary
    if any(SPACE in token for token in tokens):
        return ByteLevelVocabulary
    raise InputError(
        f"{source} holds an unsupported kind of byte-pair encoding: expected the bytes of GPT-2, "
        f"words that end with {GPT_END_OF_WORD!r} as OpenAI GPT's, or with {END_OF_WORD!r} "
        "(U+2017) as those learned here."
    )
