"""OpenAI GPT's byte-pair encoding (Radford et al. 2018), with a mark at the end of each word."""

from keras_bert.base.errors import InputError
from keras_bert.text.tokenizer_json import of_bert_words
from keras_bert.text.vocabularies.bpe import BpeVocabulary

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
    ENCODING = "keras_bert.text.encodings.bpe:GptEncoding"
    RECORDS_CASE = False
    lowercase = True
    UNKNOWN = None
    ONE_LINE = False  # the published vocabulary has the token "\n</w>", which no text comes to
    VERSION = "#version: 0.2"
    END_OF_WORD = GPT_END_OF_WORD

    @classmethod
    def check_symbols(cls, tokens, special_tokens, *, name):
        if special_tokens.unk is None:
            raise InputError(f"{name} has no special token `unk` for unknown characters.")

    def to_tokenizers(self, *, lowercase):
        from tokenizers import decoders, models

        model = models.BPE(
            self.to_ids(),
            list(self.merges),
            unk_token=self.special_tokens.unk,
            end_of_word_suffix=GPT_END_OF_WORD,
        )
        decoder = decoders.BPEDecoder(suffix=GPT_END_OF_WORD)
        return of_bert_words(model, decoder, lowercase=lowercase)

    def symbols(self, word):
        """The characters of a word, the last one with "</w>"; unknown ones as `unk`."""
        symbols = [*word[:-1], word[-1] + GPT_END_OF_WORD]
        return [symbol if symbol in self else self.special_tokens.unk for symbol in symbols]
