"""`tokenizer.json` and its configuration, by which `transformers` opens a tokenizer.

The library `tokenizers` writes `tokenizer.json`. It is loaded only here, where a file is written.
"""

from keras_bert.text.template import PLAIN_TEMPLATE
from keras_bert.text.vocabulary import BERT_TOKENS


def tokenizer_config(vocabulary, *, lowercase, template, is_bert, has_segments):
    """The content of `tokenizer_config.json`.

    Args:
        vocabulary, lowercase, template: those of the tokenizer.
        is_bert: whether BERT's own class gives the same ids with the vocabulary alone.
        has_segments: whether the model takes segment ids.
    """
    missing = dict.fromkeys(BERT_TOKENS.to_dict())  # null: the tokenizer has none
    named = missing | vocabulary.special_tokens.to_dict()
    extra = {}  # roles that transformers has no key for
    for role in ("start", "delimiter", "extract"):
        if role in named:
            extra[f"{role}_token"] = named.pop(role)
    options = vocabulary.config_options(lowercase=lowercase)
    if not (has_segments and _has_segments(template)):
        # GPT's models would add an embedding for `token_type_ids`, others reject them.
        options["model_input_names"] = ["input_ids", "attention_mask"]
    elif not is_bert:  # whose class has them
        options["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
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

    added = {token.content: token.to_tokenizers() for token in vocabulary.added_tokens}
    tokenizer = vocabulary.to_tokenizers(lowercase=lowercase)
    tokenizer.add_tokens([token for token in added.values() if not token.special])
    tokenizer.add_special_tokens([token for token in added.values() if token.special])
    tokenizer.add_special_tokens(
        [
            AddedToken(token, normalized=False)
            for token in vocabulary.special_tokens.tokens
            if token not in added
        ]
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


def bert_words_tokenizer(model, decoder, *, lowercase):
    """A tokenizer that normalizes and splits a text as BERT does."""
    from tokenizers import Tokenizer, pre_tokenizers

    tokenizer = Tokenizer(model)
    tokenizer.normalizer = bert_normalizer(lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoder
    return tokenizer


def bert_normalizer(lowercase):
    """BERT's normalization, as `tokenizers` has it."""
    from tokenizers import normalizers

    return normalizers.BertNormalizer(lowercase=lowercase)
