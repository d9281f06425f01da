"""What `transformers` opens a tokenizer of this library by: `tokenizer.json` and its configuration.

The library `tokenizers` writes `tokenizer.json`. It is loaded only here, where a file is written.
"""

from keras_bert.text.gpt_vocabularies import GPT_END_OF_WORD
from keras_bert.text.template import PLAIN_TEMPLATE
from keras_bert.text.vocabulary import (
    BERT_TOKENS,
    CONTINUATION_PREFIX,
    END_OF_WORD,
    MAX_WORD_LENGTH,
    UNK,
)

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


def tokenizer_config(vocabulary, *, lowercase, template, is_bert):
    """The content of `tokenizer_config.json`.

    `is_bert`: BERT's own class gives the same ids with the vocabulary alone.
    """
    missing = dict.fromkeys(BERT_TOKENS.to_dict())  # null: the tokenizer has none
    named = missing | vocabulary.special_tokens.to_dict()
    extra = {}  # roles that transformers has no key for
    for role in ("start", "delimiter", "extract"):
        if role in named:
            extra[f"{role}_token"] = named.pop(role)
    if vocabulary.algorithm == "byte-level-bpe":
        options = {"add_prefix_space": vocabulary.prefix_space}
    else:
        options = {
            "do_lower_case": lowercase,
            "strip_accents": None,  # exactly where it lowercases
            "tokenize_chinese_chars": True,
        }
    if not _has_segments(template):
        # GPT's models would add an embedding for `token_type_ids`.
        options["model_input_names"] = ["input_ids", "attention_mask"]
    return {
        "tokenizer_class": "BertTokenizer" if is_bert else "PreTrainedTokenizerFast",
        **options,
        **{f"{role}_token": token for role, token in named.items()},
        **({"extra_special_tokens": extra} if extra else {}),
    }


def _has_segments(template):
    parts = (*template.single, *template.pair)
    return template != PLAIN_TEMPLATE and any(segment for _, segment in parts)


def tokenizer_json(vocabulary, *, lowercase, template):
    """The text of `tokenizer.json`, by which `tokenizers` gives the same ids."""
    from tokenizers import AddedToken

    tokenizer = _TOKENIZERS[vocabulary.algorithm](vocabulary, lowercase=lowercase)
    tokenizer.add_special_tokens(
        [AddedToken(token, normalized=False) for token in vocabulary.special_tokens.tokens]
    )
    tokenizer.post_processor = _post_processor(vocabulary, template)
    return tokenizer.to_str(pretty=True)


def _post_processor(vocabulary, template):
    """The step that puts special tokens around texts."""
    from tokenizers import processors

    special = {token: vocabulary.id(token) for token in template.special_tokens}
    # A part is written NAME:SEGMENT, and $A and $B are the texts. A name is the token, or its id.
    is_plain = not any(mark in token for token in special for mark in ":$")
    names = {token: token if is_plain else str(id) for token, id in special.items()}

    def written(parts):
        return [
            f"{names[part] if isinstance(part, str) else ('$A', '$B')[part]}:{segment}"
            for part, segment in parts
        ]

    return processors.TemplateProcessing(
        single=written(template.single),
        pair=written(template.pair),
        special_tokens=[
            {"id": names[token], "ids": [id], "tokens": [token]} for token, id in special.items()
        ],
    )


def _of_words(model, decoder, *, lowercase):
    """A tokenizer that normalizes and splits a text as BERT does."""
    from tokenizers import Tokenizer, pre_tokenizers

    tokenizer = Tokenizer(model)
    tokenizer.normalizer = _bert_normalizer(lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoder
    return tokenizer


def _wordpiece(vocabulary, *, lowercase):
    from tokenizers import decoders, models

    model = models.WordPiece(
        _ids(vocabulary),
        unk_token=UNK,
        continuing_subword_prefix=CONTINUATION_PREFIX,
        max_input_chars_per_word=MAX_WORD_LENGTH,
    )
    decoder = decoders.WordPiece(prefix=CONTINUATION_PREFIX)
    return _of_words(model, decoder, lowercase=lowercase)


def _bpe(vocabulary, *, lowercase):
    """This library's own byte-pair encoding.

    The splitting of `tokenizers` cannot append to a word, so the end-of-word mark is put in before:
    a pattern that matches an empty string is "replaced" by the mark and a space. Its lower case has
    no final sigma, unlike Python's, the original BERT's and this library's.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.BPE(_ids(vocabulary), list(vocabulary.merges), unk_token=UNK))
    sigma = [normalizers.Replace(Regex(_FINAL_SIGMA), "\u03c2")] if lowercase else []
    tokenizer.normalizer = normalizers.Sequence(
        [
            *sigma,
            _bert_normalizer(lowercase),
            # The mark itself, written in a text, is an unknown character and a word.
            normalizers.Replace(END_OF_WORD, " \ufffd "),
            normalizers.Replace(Regex(_WORD_END), f"{END_OF_WORD} "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.decoder = decoders.BPEDecoder(suffix=END_OF_WORD)
    return tokenizer


def _gpt(vocabulary, *, lowercase):
    from tokenizers import decoders, models

    model = models.BPE(
        _ids(vocabulary),
        list(vocabulary.merges),
        unk_token=vocabulary.special_tokens.unk,
        end_of_word_suffix=GPT_END_OF_WORD,
    )
    decoder = decoders.BPEDecoder(suffix=GPT_END_OF_WORD)
    return _of_words(model, decoder, lowercase=lowercase)


def _byte_level(vocabulary, *, lowercase):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE(_ids(vocabulary), list(vocabulary.merges)))
    prefix_space = vocabulary.prefix_space
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


_TOKENIZERS = {
    "wordpiece": _wordpiece,
    "bpe": _bpe,
    "gpt-bpe": _gpt,
    "byte-level-bpe": _byte_level,
}


def _ids(vocabulary):
    return {token: id for id, token in enumerate(vocabulary.tokens)}


def _bert_normalizer(lowercase):
    from tokenizers import normalizers

    return normalizers.BertNormalizer(lowercase=lowercase)
