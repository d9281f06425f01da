"""Byte-level byte-pair encoding (Radford et al. 2019), in which no text is unknown.

GPT-2, RoBERTa and ModernBERT have it, and many later models.
"""

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, Self

from keras_bert.base.errors import InputError
from keras_bert.text.normalizers import AddedToken, normalizers_to_tokenizers, steps_in
from keras_bert.text.vocabularies.bpe import BpeVocabulary
from keras_bert.text.vocabularies.spaced import SpacedVocabulary
from keras_bert.text.vocabulary import BERT_TOKENS, SpecialTokens


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
# UTF-8 has no other bytes.
BYTES_OF_UTF8 = [byte for byte in range(256) if byte not in (0xC0, 0xC1) and byte < 0xF5]


def to_letters(word):
    """The letters of the bytes of a word: bytes -> str."""
    return word.decode("latin-1").translate(_LETTER_OF)


class ByteLevelVocabulary(SpacedVocabulary, BpeVocabulary):
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
        normalizers: names of `keras_bert.text.normalizers.NORMALIZERS`, applied to a text in order.
        added_tokens: `AddedToken`s, which are cut out of a text before it is split into words.

    Raises `InputError` if a byte has no token.
    """

    algorithm = "byte-level-bpe"
    ENCODING = "keras_bert.text.encodings.byte_level:ByteLevelEncoding"
    RECORDS_CASE = False
    lowercase = False
    UNKNOWN = None
    HAS_UNKNOWN_TEXT = False
    VERSION = "#version: 0.2"

    def __init__(
        self,
        tokens: Sequence[str],
        merges: Sequence[tuple[str, str]],
        counts: Any = None,
        special_tokens: SpecialTokens = BERT_TOKENS,
        *,
        prefix_space: bool = False,
        normalizers: Sequence[str] = (),
        added_tokens: Sequence[AddedToken] = (),
    ):
        super().__init__(tokens, merges, counts=counts, special_tokens=special_tokens)
        self.prefix_space = prefix_space
        self.normalizers, self.added_tokens = tuple(normalizers), tuple(added_tokens)

    @classmethod
    def options_of(cls, tokenizer: dict[str, Any], *, source: str) -> dict[str, Any]:
        splitter = tokenizer.get("pre_tokenizer")
        prefix_space = isinstance(splitter, dict) and splitter.get("add_prefix_space") is True
        return {"prefix_space": prefix_space, **steps_in(tokenizer, source=source)}

    def config_options(self, *, lowercase: bool) -> dict[str, Any]:
        return {"add_prefix_space": self.prefix_space}

    def to_tokenizers(self, *, lowercase: bool) -> Any:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers

        tokenizer = Tokenizer(models.BPE(self.to_ids(), list(self.merges)))
        tokenizer.normalizer = normalizers_to_tokenizers(self.normalizers)
        prefix_space = self.prefix_space
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
        tokenizer.decoder = decoders.ByteLevel()
        return tokenizer

    def with_prefix_space(self) -> Self:
        if self.prefix_space:
            return self
        options = {**self._options(), "prefix_space": True}
        return type(self)(
            self.tokens, counts=self.counts, special_tokens=self.special_tokens, **options
        )

    def _required_tokens(self):
        return [LETTERS[byte] for byte in BYTES_OF_UTF8]

    def _options(self, more=0):
        steps = {"normalizers": self.normalizers, "added_tokens": self.added_tokens}
        return {**super()._options(), "prefix_space": self.prefix_space, **steps}

    def _identity(self):
        prefix_space = ["prefix_space"] if self.prefix_space else []
        return [*super()._identity(), *prefix_space, *self._steps_identity()]

    @classmethod
    def check_symbols(
        cls, tokens: Collection[str], special_tokens: SpecialTokens, *, name: str
    ) -> None:
        missing = [byte for byte in BYTES_OF_UTF8 if LETTERS[byte] not in tokens]
        if missing:
            shown = ", ".join(f"0x{byte:02X} ({LETTERS[byte]!r})" for byte in missing[:3])
            raise InputError(
                f"{name} has no token for {len(missing)} of the bytes of UTF-8: {shown}"
                f"{' …' if missing[3:] else ''}. A byte-level vocabulary needs all of them. Learn "
                "it again with every byte in its initial alphabet."
            )

    def symbols(self, word: str) -> list[str]:
        """The letters of the bytes of a word, which may begin with white space."""
        return list(to_letters(word.encode("utf-8")))

    @cached_property
    def contents(self) -> list[bytes | None]:
        contents = [
            bytes(_BYTE_OF[letter] for letter in token)
            if all(letter in _BYTE_OF for letter in token)
            else None
            for token in self.tokens
        ]
        for token in self.added_tokens:  # these are written as they are
            contents[self.id(token.content)] = token.content.encode("utf-8")
        for id in self.special_ids.tolist():
            contents[id] = None
        return contents
