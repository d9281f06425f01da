"""Byte-pair encoding of words (Sennrich et al. 2016): tokens, and the merges that make them."""

import json
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.text.tokenizer_json import bert_normalizer, bert_words_tokenizer
from keras_bert.text.vocabulary import (
    BERT_TOKENS,
    MAX_WORD_LENGTH,
    MERGES_FILE,
    UNK,
    VOCAB_JSON,
    SpecialTokens,
    Vocabulary,
    parse_ids,
    tokens_by_id,
)

# Ends every word, as a symbol of its own. A punctuation mark (double low line): the tokenizer makes
# a word of its own of every punctuation mark, so within a word it cannot come from the text; if
# the text has it, it is an unknown character.
END_OF_WORD = "\u2017"
# Ends a token of OpenAI GPT (Radford et al. 2018), and is never a token alone.
GPT_END_OF_WORD = "</w>"

# Where a word ends: before white space, after a punctuation mark, before one. What counts as one
# is BERT's choice: Unicode's, and all of ASCII but letters, digits and spaces.
_PUNCTUATION = r"\p{P}$+<=>^`|~"
_WORD_END = rf"(?<=\S)(?=\s|\z)|(?<=[{_PUNCTUATION}])(?=\S)|(?<=\S)(?=[{_PUNCTUATION}])"

# A capital sigma that ends a word, by Unicode's condition Final_Sigma: after a cased letter and
# before none, whatever accents, apostrophes or full stops are between. A look-behind needs a fixed
# length, so at most two of those.
_CASED = r"[\p{Lu}\p{Ll}\p{Lt}]"
_IGNORED = (
    r"[\p{Mn}\p{Me}\p{Cf}\p{Lm}\p{Sk}'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027"
    r"\ufe13\ufe52\ufe55\uff07\uff0e\uff1a]"
)
_FINAL_SIGMA = (
    rf"(?<={_CASED}|{_CASED}{_IGNORED}|{_CASED}{_IGNORED}{{2}})\u03a3(?!{_IGNORED}*{_CASED})"
)


class BpeVocabulary(Vocabulary):
    """A vocabulary of byte-pair encoding (Sennrich et al. 2016): tokens and merges.

    Args:
        tokens: strings in the order of their ids, the special ones among them, each once: single
            characters, END_OF_WORD, and what the merges make.
        merges: pairs of tokens in the order of learning. Their concatenation is a token.
        counts, special_tokens: as for `Vocabulary`.
    """

    algorithm = "bpe"
    DESCRIPTION = "byte-pair encoding"
    ENCODING = "keras_bert.text.encodings.bpe:BytePairEncoding"
    RECORDS_CASE = True
    FILES = (VOCAB_JSON, MERGES_FILE)
    VERSION = "#version: 0.1"  # of subword-nmt's format: the mark is a symbol of its own
    END_OF_WORD = END_OF_WORD  # with which tokens end that end a word

    def __init__(
        self,
        tokens: Sequence[str],
        merges: Sequence[tuple[str, str]],
        counts: Any = None,
        special_tokens: SpecialTokens = BERT_TOKENS,
    ):
        super().__init__(tokens, counts=counts, special_tokens=special_tokens)
        self.merges = tuple((left, right) for left, right in merges)
        self.check_symbols(self._ids, special_tokens, name="The vocabulary")
        _check_merges(self.merges, self._ids, special_tokens)
        self._ranks = {pair: rank for rank, pair in enumerate(self.merges)}

    @classmethod
    def from_texts(
        cls,
        vocab: str,
        merges: str,
        *,
        sources: tuple[str, str],
        special_tokens: SpecialTokens = BERT_TOKENS,
        **options: Any,
    ) -> Self:
        """From the texts of a `vocab.json` (token -> id) and a `merges.txt` (one pair per line).

        `sources` name the two in errors; `options` are further arguments of the class.
        """
        vocab_source, merges_source = sources
        ids = parse_ids(vocab, source=vocab_source)
        tokens = tokens_by_id(ids, source=vocab_source, special_tokens=special_tokens)
        cls.check_symbols(ids, special_tokens, name=vocab_source)
        pairs = parse_merges(merges, source=merges_source)
        try:
            return cls(tokens, pairs, special_tokens=special_tokens, **options)
        except InputError as error:
            raise InputError(f"{merges_source} does not fit {VOCAB_JSON}. {error}") from None

    @classmethod
    def check_symbols(
        cls, tokens: Collection[str], special_tokens: SpecialTokens, *, name: str
    ) -> None:
        """Raises `InputError` if the tokens, named `name`, lack what words are made of."""
        if END_OF_WORD not in tokens:
            raise InputError(
                f"{name} has no end-of-word mark {END_OF_WORD!r} (U+2017). A BPE vocabulary of "
                "another kind cannot be used here."
            )

    def files(self) -> dict[str, str]:
        vocab = json.dumps(self._ids, ensure_ascii=False, indent=0)
        merges = "".join(f"{left} {right}\n" for left, right in self.merges)
        return {VOCAB_JSON: f"{vocab}\n", MERGES_FILE: f"{self.VERSION}\n{merges}"}

    def to_tokenizers(self, *, lowercase: bool) -> Any:
        """Returns the tokenizer as `Vocabulary.to_tokenizers`.

        The splitting of `tokenizers` cannot append to a word, so the end-of-word mark is put in
        before: a pattern that matches an empty string is "replaced" by the mark and a space. Its
        lower case has no final sigma, unlike Python's, the original BERT's and this library's.
        """
        from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

        tokenizer = Tokenizer(models.BPE(self.to_ids(), list(self.merges), unk_token=UNK))
        sigma = [normalizers.Replace(Regex(_FINAL_SIGMA), "\u03c2")] if lowercase else []
        tokenizer.normalizer = normalizers.Sequence(
            [
                *sigma,
                bert_normalizer(lowercase),
                # The mark itself, written in a text, is an unknown character and a word.
                normalizers.Replace(END_OF_WORD, " \ufffd "),
                normalizers.Replace(Regex(_WORD_END), f"{END_OF_WORD} "),
            ]
        )
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        tokenizer.decoder = decoders.BPEDecoder(suffix=END_OF_WORD)
        return tokenizer

    def needed_with(self, ids: Iterable[int]) -> set[int]:
        """Also the tokens that are parts of the tokens, since merges make one of the other."""
        needed = super().needed_with(ids)
        special = {*self.special_ids.tolist()}
        tokens = [self.tokens[id] for id in needed - special]
        parts = {
            token[start:end]
            for token in tokens
            for start in range(len(token))
            for end in range(start + 1, len(token) + 1)
        }
        parts.update(self._required_tokens())
        return needed | {self.id(part) for part in parts if part in self}

    def _required_tokens(self):
        """The tokens that no such vocabulary lacks."""
        return (END_OF_WORD,)

    def _options(self, more=0):
        return {"merges": self.merges}

    def _options_of(self, ids):
        kept = {self.tokens[id] for id in ids}
        merges = [pair for pair in self.merges if {*pair, "".join(pair)} <= kept]
        return {**super()._options_of(ids), "merges": merges}

    def token_text(self, id: int) -> str:
        return self.token(id).removesuffix(self.END_OF_WORD)

    def token_name(self, id: int) -> str:
        """Reads tokens as subword-nmt writes them: "low" ends a word, and "low@@" does not."""
        token = self.token(id)
        if token == self.END_OF_WORD:
            return "(end of word)"
        ends = token.endswith(self.END_OF_WORD) or id in self.special_ids
        return token.removesuffix(self.END_OF_WORD) if ends else f"{token}@@"

    @cached_property
    def ends_word(self) -> np.ndarray:
        marked = np.array(
            [token.endswith(self.END_OF_WORD) for token in self.tokens], dtype=np.bool_
        )
        return marked | self.stands_alone

    @cached_property
    def joinable(self) -> list[Any]:
        return [
            self.token_text(id) + (" " if ends else "") for id, ends in enumerate(self.ends_word)
        ]

    def join(self, ids: Sequence[int]) -> str:
        parts = []
        for id in ids:
            token = self.tokens[id]
            if token.endswith(self.END_OF_WORD):
                parts.append(token.removesuffix(self.END_OF_WORD) + " ")
            elif self.ends_word[id]:  # a special token is a word, and so ends one cut off before it
                parts.append(("" if not parts or parts[-1].endswith(" ") else " ") + token + " ")
            else:
                parts.append(token)
        return "".join(parts).removesuffix(" ")

    def _identity(self):
        return [*self.tokens, *map(" ".join, self.merges)]

    def symbols(self, word: str) -> list[str]:
        """Returns the symbols that the encoding of a word begins with, a list of str.

        The word's characters (unknown ones as [UNK]) and END_OF_WORD. A word over 200 characters is
        [UNK] and END_OF_WORD.
        """
        if len(word) > MAX_WORD_LENGTH:
            return [UNK, END_OF_WORD]
        return [*(c if c in self._ids and c != END_OF_WORD else UNK for c in word), END_OF_WORD]

    def encode_word(self, word: str) -> list[str]:
        """The tokens of a word, a list of str: the definition of encoding by merges.

        Of its `symbols`, the pair of neighbours whose merge was learned first, the leftmost of
        several, becomes one symbol, until no merge applies.

        Args:
            word: a str as the tokenizer splits words, without END_OF_WORD.
        """
        symbols = self.symbols(word)
        never = len(self._ranks)
        while len(symbols) > 1:
            pairs = zip(symbols, symbols[1:], strict=False)
            ranks = [self._ranks.get(pair, never) for pair in pairs]
            best = min(ranks)
            if best == never:
                break
            i = ranks.index(best)
            symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
        return symbols


def _check_merges(merges, ids, special_tokens):
    seen = set()
    for number, (left, right) in enumerate(merges, 1):
        for token in (left, right, left + right):
            if token not in ids or token in special_tokens.tokens:
                raise InputError(
                    f"Merge {number}, {left!r} and {right!r}, needs the token {token!r}, which the "
                    "vocabulary does not have."
                )
        if (left, right) in seen:
            raise InputError(f"Merge {number}, {left!r} and {right!r}, is there twice.")
        seen.add((left, right))


def parse_merges(text, *, source):
    """The pairs of a `merges.txt`."""
    merges = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if (number == 1 and line.startswith("#version")) or (number == len(lines) and not line):
            continue
        pair = line.split(" ")
        if len(pair) != 2 or not all(pair):
            raise InputError(f"{source}, line {number} must be two tokens and one space: {line!r}.")
        merges.append(tuple(pair))
    return merges


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
    ENCODING = "keras_bert.text.encodings.bpe:GptEncoding"
    RECORDS_CASE = False
    lowercase = True
    UNKNOWN = None
    ONE_LINE = False  # the published vocabulary has the token "\n</w>", which no text comes to
    VERSION = "#version: 0.2"
    END_OF_WORD = GPT_END_OF_WORD

    @classmethod
    def check_symbols(
        cls, tokens: Collection[str], special_tokens: SpecialTokens, *, name: str
    ) -> None:
        if special_tokens.unk is None:
            raise InputError(f"{name} has no special token `unk` for unknown characters.")

    def to_tokenizers(self, *, lowercase: bool) -> Any:
        from tokenizers import decoders, models

        model = models.BPE(
            self.to_ids(),
            list(self.merges),
            unk_token=self.special_tokens.unk,
            end_of_word_suffix=GPT_END_OF_WORD,
        )
        decoder = decoders.BPEDecoder(suffix=GPT_END_OF_WORD)
        return bert_words_tokenizer(model, decoder, lowercase=lowercase)

    def symbols(self, word: str) -> list[str]:
        """The characters of a word, the last one with "</w>"; unknown ones as `unk`."""
        symbols = [*word[:-1], word[-1] + GPT_END_OF_WORD]
        return [symbol if symbol in self else self.special_tokens.unk for symbol in symbols]  # type: ignore[misc]
