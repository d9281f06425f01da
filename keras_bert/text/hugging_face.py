"""Hugging Face's `tokenizer_config.json` and `tokenizer.json`, read and written as dictionaries.

The files themselves are read and written by `keras_bert.text.vocabulary_files`.
"""

import dataclasses

from keras_bert.base.errors import InputError
from keras_bert.text.gpt_vocabularies import (
    GPT_END_OF_WORD,
    ByteLevelVocabulary,
    GptVocabulary,
    class_of_bpe,
)
from keras_bert.text.template import PLAIN_TEMPLATE, Template, bert_template
from keras_bert.text.vocabulary import (
    BERT_TOKENS,
    CONTINUATION_PREFIX,
    END_OF_WORD,
    MAX_WORD_LENGTH,
    TOKENIZER_FILE,
    UNK,
    BpeVocabulary,
    SpecialTokens,
    WordPieceVocabulary,
    tokens_by_id,
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


# Classes that take their steps from BERT's settings, whatever is in `tokenizer.json`.
_BERT_CLASSES = ("BertTokenizer", "BertTokenizerFast")
# Classes that make their steps themselves, and their special tokens where a folder names none.
_GPT2, _ROBERTA, _GPT = "GPT2Tokenizer", "RobertaTokenizer", "OpenAIGPTTokenizer"
_END_OF_TEXT = "<|endoftext|>"
_CLASS_TOKENS = {
    _GPT2: SpecialTokens(unk=_END_OF_TEXT, bos=_END_OF_TEXT, eos=_END_OF_TEXT),
    _ROBERTA: SpecialTokens(
        pad="<pad>", unk="<unk>", cls="<s>", sep="</s>", mask="<mask>", bos="<s>", eos="</s>"
    ),
    _GPT: SpecialTokens(unk="<unk>"),
}


def _class_name(config):
    """The class that a `tokenizer_config.json` names, or None."""
    return str(config.get("tokenizer_class") or "").removesuffix("Fast") or None


def bpe_of(config, tokenizer, ids, merges, *, sources, folder):
    """A vocabulary of byte-pair encoding, and the class of transformers that its folder is for.

    Args:
        config, tokenizer: `tokenizer_config.json` and `tokenizer.json`; {} for no file.
        ids: token -> id, unchecked, with the tokens that the folder adds.
        merges: pairs of tokens.
        sources: the names of the files of the two, for errors.
        folder: the folder in errors.

    Raises `InputError` where they are not a vocabulary, or are for other words than those that the
    vocabulary's class splits a text into.
    """
    name, kind = _class_name(config), class_of_bpe(ids, source=sources[0])
    if kind is BpeVocabulary and sources[0] == sources[1]:
        raise InputError(
            f"{folder} has no {' and no '.join(BpeVocabulary.FILES)}, which the vocabularies of "
            "this library have."
        )
    if name not in _CLASS_TOKENS:
        _check_bpe_steps(kind, tokenizer, source=f"{folder}/{TOKENIZER_FILE}")
    is_own = kind is BpeVocabulary
    if name is None and not is_own:
        is_roberta = kind is ByteLevelVocabulary and {"<s>", "</s>", "<mask>"} <= ids.keys()
        name = _GPT if kind is GptVocabulary else _ROBERTA if is_roberta else _GPT2
    if is_own:
        usual = BERT_TOKENS
    else:
        usual = _CLASS_TOKENS.get(name, SpecialTokens())
        held = {role: token for role, token in usual.to_dict().items() if token in ids}
        usual = SpecialTokens(**held)
    special = special_tokens_of(config, source=folder, usual=usual)
    options = {}
    if kind is ByteLevelVocabulary:
        options["prefix_space"] = prefix_space(tokenizer, config=config)
    tokens = tokens_by_id(ids, source=sources[0], special_tokens=special)
    kind.check_symbols(ids, special, name=sources[0])
    try:
        return kind(tokens, merges, special_tokens=special, **options), name
    except InputError as error:
        raise InputError(f"{sources[1]} does not fit {sources[0]}. {error}") from None


def prefix_space(tokenizer, *, config=None):
    """Whether a byte-level folder asks for a space before a text."""
    splitter = tokenizer.get("pre_tokenizer")
    asked = splitter.get("add_prefix_space") if isinstance(splitter, dict) else None
    if config is not None and _class_name(config) in _CLASS_TOKENS:
        asked = config.get("add_prefix_space")
    return asked is True


def model_of(tokenizer, *, source):
    """The ids and merges of a `tokenizer.json` of byte-pair encoding; None for another model."""
    model = _held(tokenizer, "model", dict, source=source)
    if model.get("type") != "BPE":
        return None
    merges = [
        tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair)
        for pair in _held(model, "merges", list, source=source)
        if isinstance(pair, str | list)
    ]
    for number, pair in enumerate(merges, 1):
        if len(pair) != 2 or not all(isinstance(token, str) and token for token in pair):
            raise InputError(f"{source}: merge {number} must be two tokens. Received: {pair!r}.")
    return _ids(tokenizer, source=source), merges


def _check_bpe_steps(kind, tokenizer, *, source):
    """Rejects byte-pair encoding of words, or with options, that are not those of its class."""
    if not tokenizer or kind is BpeVocabulary:
        return
    model = _held(tokenizer, "model", dict, source=source)
    splitter = _held(tokenizer, "pre_tokenizer", dict, source=source)
    steps = [part.get("type") for part in _normalizers(tokenizer, source=source)]
    steps.append(splitter.get("type"))
    if kind is ByteLevelVocabulary:
        expected, end = ["ByteLevel"], None
        whole = splitter.get("use_regex") is not False
    else:
        expected, end = ["BertNormalizer", "BertPreTokenizer"], GPT_END_OF_WORD
        [normalizer, *_] = [*_normalizers(tokenizer, source=source), {}]
        whole = normalizer.get("lowercase") is True and normalizer.get("strip_accents") in (
            None,
            True,
        )
    if steps != expected or not whole:
        raise InputError(
            f"{source} splits words by {', '.join(map(str, steps))} with other settings than "
            f"{', '.join(expected)}, as OpenAI GPT's and GPT-2's tokenizers have them. This "
            "tokenizer is not supported."
        )
    options = {"continuing_subword_prefix": None, "end_of_word_suffix": end, "dropout": None}
    for name in (*options, "fuse_unk", "byte_fallback", "ignore_merges"):
        if (model.get(name) or None) != options.get(name):
            raise InputError(
                f"{source} asks for {name}={model[name]!r} in its model. Expected "
                f"{options.get(name)!r}: this tokenizer is not supported."
            )


def special_tokens_of(config, *, source, usual=BERT_TOKENS):
    """The `SpecialTokens` that a `tokenizer_config.json` names; `usual` where it names none.

    Raises `InputError` where words are not BERT's, or a token is not a string.
    """
    source = f"{source}/tokenizer_config.json"
    if config.get("tokenizer_class") == "BertJapaneseTokenizer":
        raise InputError(
            f"{source} asks for a BertJapaneseTokenizer, which splits words by a dictionary of "
            "Japanese (MeCab). This library splits them as BERT does."
        )
    is_bert = config.get("tokenizer_class", _BERT_CLASSES[0]) in _BERT_CLASSES
    extra = config.get("extra_special_tokens")
    named = {**(extra if isinstance(extra, dict) else {}), **config}
    tokens = {}
    for field in dataclasses.fields(SpecialTokens):
        default = getattr(usual, field.name)
        token = named.get(f"{field.name}_token", default)
        if token is None and is_bert:
            token = default
        token = token.get("content") if isinstance(token, dict) else token
        if not isinstance(token, str | None):
            raise InputError(f"{source}: {field.name}_token should be a string.")
        tokens[field.name] = token
    return SpecialTokens(**tokens)


def case_of(config, tokenizer, added=(), *, special_tokens, source):
    """Whether a folder's model is uncased; None where that is not recorded.

    Args:
        config, tokenizer: its `tokenizer_config.json` and `tokenizer.json`; {} for no file.
        added: the tokens that its `added_tokens.json` names.
        special_tokens: its `SpecialTokens`.
        source: the folder in errors.

    Raises `InputError` where they ask for ids that this library does not give.
    """
    parts = _normalizers(tokenizer, source=f"{source}/tokenizer.json")
    bert = next((part for part in parts if part.get("type") == "BertNormalizer"), {})
    _check_steps(config, tokenizer, parts, source=source)
    check_added(config, tokenizer, added, special_tokens=special_tokens, source=source)
    for key in ("do_lower_case", "strip_accents", "tokenize_chinese_chars"):
        if not isinstance(config.get(key), bool | None):
            raise InputError(f"{source}: {key} is {config[key]!r}. It should be true or false.")
    recorded = config.get("do_lower_case", bert.get("lowercase"))
    lowercase = recorded is not False
    strip_accents = config.get("strip_accents", bert.get("strip_accents"))
    if strip_accents not in (None, lowercase):
        raise InputError(
            f"{source} asks for strip_accents={strip_accents} with do_lower_case={lowercase}. This "
            "tokenizer drops accents exactly when it lowercases, as the original BERT does."
        )
    if not config.get("tokenize_chinese_chars", bert.get("handle_chinese_chars", True)):
        raise InputError(
            f"{source} asks for tokenize_chinese_chars=false. This tokenizer makes a word of every "
            "CJK character, as the original BERT does."
        )
    return None if recorded is None else bool(recorded)


def check_added(config, tokenizer, added, *, special_tokens, source):
    """Rejects tokens that a folder adds to its vocabulary; the arguments are those of `case_of`."""
    tokens = _added_by(config, tokenizer, source=source).union(added)
    if others := sorted(tokens.difference(special_tokens.tokens)):
        shown = ", ".join(map(repr, others[:3])) + (" …" if others[3:] else "")
        raise InputError(
            f"{source} adds {shown} to its special tokens, to be cut out of a text before it is "
            "split into words. This tokenizer does not support that."
        )


def wordpiece_of(tokenizer, *, special_tokens, source):
    """The vocabulary of a `tokenizer.json` alone, as transformers 5 saves BERT's."""
    model = _held(tokenizer, "model", dict, source=source)
    prefix = model.get("continuing_subword_prefix")
    if model.get("type") != "WordPiece" or prefix != CONTINUATION_PREFIX:
        raise InputError(
            f"{source} holds a tokenizer of type {model.get('type')}, continuing words with "
            f"{prefix!r}. WordPiece with {CONTINUATION_PREFIX!r} was expected."
        )
    ids = _ids(tokenizer, source=source)
    tokens = tokens_by_id(ids, source=source, special_tokens=special_tokens)
    return WordPieceVocabulary(tokens, special_tokens=special_tokens)


def check_tokens(vocabulary, tokenizer, *, source):
    """Rejects a `tokenizer.json`, which transformers reads, with other ids than the vocabulary."""
    file = f"{source}/tokenizer.json"
    if not isinstance(_held(tokenizer, "model", dict, source=file).get("vocab"), dict):
        return  # there is no such file
    theirs = _ids(tokenizer, source=file)
    ours = _vocab(vocabulary)
    for token in [*ours, *theirs]:
        if ours.get(token) != theirs.get(token):
            ids = [f"the id {ids[token]}" if token in ids else "no id" for ids in (ours, theirs)]
            raise InputError(
                f"{source}: {token!r} has {ids[0]} in {vocabulary.FILES[0]} and {ids[1]} in "
                "tokenizer.json. Delete the file that is not this model's."
            )
    if vocabulary.algorithm != "wordpiece":
        _, merges = model_of(tokenizer, source=file)
        if list(vocabulary.merges) != merges:
            raise InputError(
                f"{source}: {vocabulary.FILES[1]} and tokenizer.json have other merges. Delete the "
                "file that is not this model's."
            )


def _vocab(vocabulary):
    return {token: id for id, token in enumerate(vocabulary.tokens)}


def template_of(config, tokenizer, vocabulary, *, source, name=None):
    """The `Template` of a folder: that of its tokenizer.json, or BERT's where it has none.

    Args:
        config, tokenizer: `tokenizer_config.json` and `tokenizer.json`; {} for no file.
        vocabulary: the folder's `Vocabulary`.
        name: the class of transformers that it is for; RoBERTa's has a template of its own.
        source: the folder in errors.

    Raises `InputError` for an unsupported template, or special tokens that are not those of the
    vocabulary.
    """
    source = f"{source}/tokenizer.json"
    special = vocabulary.special_tokens
    if name == _ROBERTA and special.cls is not None and special.sep is not None:
        return _roberta_template(special.cls, special.sep)
    steps = [_held(tokenizer, "post_processor", dict, source=source)]
    if steps[0].get("type") == "Sequence":
        steps = _held(steps[0], "processors", list, source=source)
    # A step of type ByteLevel only moves offsets.
    steps = [step for step in steps if step and step.get("type") != "ByteLevel"]
    if config.get("tokenizer_class") in _BERT_CLASSES or tokenizer.get("post_processor") is None:
        return bert_template(vocabulary.special_tokens)
    if not steps:
        return PLAIN_TEMPLATE
    try:
        [step] = steps
        template, ids = _template_of_step(step)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{source}: post_processor puts special tokens around texts in an unsupported way "
            f"({error})."
        ) from None
    special = set(vocabulary.special_ids.tolist())
    for token, id in ids.items():
        if token not in vocabulary or vocabulary.id(token) != id or id not in special:
            raise InputError(
                f"{source}: post_processor has the token {token!r} with the id {id}, which is not "
                "a special token of the vocabulary."
            )
    return template


def _roberta_template(cls, sep):
    single = ((cls, 0), (0, 0), (sep, 0))
    return Template(single=single, pair=(*single, (sep, 0), (1, 0), (sep, 0)))


def _template_of_step(step):
    """The `Template` of a post-processor that adds special tokens, and their ids."""
    kind = step["type"]
    if kind in ("BertProcessing", "RobertaProcessing"):
        (cls, cls_id), (sep, sep_id) = step["cls"], step["sep"]
        if kind == "BertProcessing":
            template = bert_template(SpecialTokens(cls=cls, sep=sep))
        else:
            template = _roberta_template(cls, sep)
        return template, {cls: cls_id, sep: sep_id}
    if kind != "TemplateProcessing":
        raise ValueError(kind)
    # An entry may consist of several tokens.
    entries = {name: (each["tokens"], each["ids"]) for name, each in step["special_tokens"].items()}
    written = Template.from_dict(step)
    template = Template(
        *(
            tuple(
                (token, segment)
                for what, segment in parts
                for token in (entries[what][0] if isinstance(what, str) else [what])
            )
            for parts in (written.single, written.pair)
        )
    )
    ids = dict(pair for entry in entries.values() for pair in zip(*entry, strict=True))
    return template, {token: ids[token] for token in template.special_tokens}


def tokenizer_config(vocabulary, *, lowercase, template, is_bert):
    """The content of `tokenizer_config.json`.

    `is_bert`: BERT's own class gives the same ids with the vocabulary alone.
    """
    missing = dict.fromkeys(BERT_TOKENS.to_dict())  # null: the tokenizer has none
    tokens = missing | vocabulary.special_tokens.to_dict()
    own = ("start", "delimiter", "extract")  # roles that transformers has no key for
    named, extra = (
        {f"{role}_token": token for role, token in tokens.items() if (role in own) is is_own}
        for is_own in (False, True)
    )
    return {
        "tokenizer_class": "BertTokenizer" if is_bert else "PreTrainedTokenizerFast",
        **(
            {"add_prefix_space": vocabulary.prefix_space}
            if vocabulary.algorithm == "byte-level-bpe"
            else {
                "do_lower_case": lowercase,
                "strip_accents": None,  # exactly where it lowercases
                "tokenize_chinese_chars": True,
            }
        ),
        # GPT's models would add an embedding for `token_type_ids`.
        **(
            {}
            if _has_segments(template)
            else {"model_input_names": ["input_ids", "attention_mask"]}
        ),
        **named,
        **({"extra_special_tokens": extra} if extra else {}),
    }


def _has_segments(template):
    parts = (*template.single, *template.pair)
    return template != PLAIN_TEMPLATE and any(segment for _, segment in parts)


def tokenizer(vocabulary, *, lowercase, template):
    """The content of `tokenizer.json` (Hugging Face `tokenizers`).

    For our own byte-pair encoding: their splitting cannot append to a word, so the end-of-word mark
    is put in before: a pattern that matches an empty string is "replaced" by the mark and a space.
    Their lower case has no final sigma, unlike Python's, the original BERT's and this library's.
    """
    special = [
        {
            "id": vocabulary.id(token),
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for token in vocabulary.special_tokens.tokens
    ]
    used = {
        token: {"id": token, "ids": [vocabulary.id(token)], "tokens": [token]}
        for token in template.special_tokens
    }
    parts = _PARTS[vocabulary.algorithm](vocabulary, lowercase=lowercase)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": sorted(special, key=lambda token: token["id"]),
        "normalizer": parts["normalizer"],
        "pre_tokenizer": parts["pre_tokenizer"],
        "post_processor": {
            "type": "TemplateProcessing",
            **template.to_dict(),
            "special_tokens": used,
        },
        "decoder": parts["decoder"],
        "model": parts["model"],
    }


def _wordpiece_parts(vocabulary, *, lowercase):
    return {
        "normalizer": _bert_normalizer(lowercase),
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": CONTINUATION_PREFIX, "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": UNK,
            "continuing_subword_prefix": CONTINUATION_PREFIX,
            "max_input_chars_per_word": MAX_WORD_LENGTH,
            "vocab": _vocab(vocabulary),
        },
    }


def _bpe_parts(vocabulary, *, lowercase):
    sigma = [_replace({"Regex": _FINAL_SIGMA}, "\u03c2")] if lowercase else []
    return {
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                *sigma,
                _bert_normalizer(lowercase),
                # The mark itself, written in a text, is an unknown character and a word.
                _replace({"String": END_OF_WORD}, " \ufffd "),
                _replace({"Regex": _WORD_END}, f"{END_OF_WORD} "),
            ],
        },
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "decoder": {"type": "BPEDecoder", "suffix": END_OF_WORD},
        "model": _bpe_model(vocabulary, unk_token=UNK),
    }


def _gpt_parts(vocabulary, *, lowercase):
    unknown = vocabulary.special_tokens.unk
    return {
        "normalizer": _bert_normalizer(lowercase),
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "BPEDecoder", "suffix": GPT_END_OF_WORD},
        "model": _bpe_model(vocabulary, unk_token=unknown, end_of_word_suffix=GPT_END_OF_WORD),
    }


def _byte_level_parts(vocabulary, *, lowercase):
    step = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
    return {
        "normalizer": None,
        "pre_tokenizer": {**step, "add_prefix_space": vocabulary.prefix_space},
        "decoder": {**step, "add_prefix_space": True},
        "model": _bpe_model(vocabulary, unk_token=None),
    }


def _bpe_model(vocabulary, *, unk_token, end_of_word_suffix=None):
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unk_token,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": end_of_word_suffix,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": _vocab(vocabulary),
        "merges": [list(pair) for pair in vocabulary.merges],
    }


_PARTS = {
    "wordpiece": _wordpiece_parts,
    "bpe": _bpe_parts,
    "gpt-bpe": _gpt_parts,
    "byte-level-bpe": _byte_level_parts,
}


def _bert_normalizer(lowercase):
    return {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": lowercase,
    }


def _replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def _normalizers(tokenizer, *, source):
    """The normalization steps of a `tokenizer.json`, a list of objects."""
    normalizer = _held(tokenizer, "normalizer", dict, source=source)
    parts = [normalizer] if normalizer else []
    if "normalizers" in normalizer:
        parts = _held(normalizer, "normalizers", list, source=source)
    if not all(isinstance(part, dict) for part in parts):
        raise InputError(f"{source}: normalizers should be a list of objects.")
    return parts


def _check_steps(config, tokenizer, normalizers, *, source):
    """Rejects WordPiece over words that are not BERT's, as other programs learn it."""
    source_file = f"{source}/tokenizer.json"
    model = _held(tokenizer, "model", dict, source=source_file)
    if model.get("type") != "WordPiece" or config.get("tokenizer_class") in _BERT_CLASSES:
        return
    splitter = _held(tokenizer, "pre_tokenizer", dict, source=source_file).get("type")
    steps = [*(part.get("type") for part in normalizers), splitter]
    if steps != ["BertNormalizer", "BertPreTokenizer"]:
        raise InputError(
            f"{source_file} splits words by {', '.join(map(str, steps))}. This library splits them "
            "as BERT does, by BertNormalizer, BertPreTokenizer."
        )


def _added_by(config, tokenizer, *, source):
    """The tokens that a folder's files add to its vocabulary's, [CLS] and its like among them."""
    config_file = f"{source}/tokenizer_config.json"
    decoder = _held(config, "added_tokens_decoder", dict, source=config_file)
    extra = config.get("extra_special_tokens")  # a list, or name -> token
    if isinstance(extra, dict):
        config = {**config, "extra_special_tokens": list(extra.values())}
    listed = [
        *decoder.values(),
        *_held(config, "additional_special_tokens", list, source=config_file),
        *_held(config, "extra_special_tokens", list, source=config_file),
        *_added_tokens(tokenizer, source=f"{source}/tokenizer.json"),
    ]
    # Each is an object with its `content`, or a string.
    tokens = (token.get("content") if isinstance(token, dict) else token for token in listed)
    return {str(token) for token in tokens}


def _ids(tokenizer, *, source):
    """Token -> id of a `tokenizer.json`; [CLS] and its like may be among the added tokens alone."""
    model = _held(tokenizer, "model", dict, source=source)
    return {
        **_held(model, "vocab", dict, source=source),
        **added_ids(tokenizer, source=source),
    }


def added_ids(tokenizer, *, source):
    """Token -> id of the tokens that a `tokenizer.json` adds."""
    added = _added_tokens(tokenizer, source=source)
    return {token["content"]: token.get("id") for token in added}


def _added_tokens(tokenizer, *, source):
    """The `added_tokens` of a `tokenizer.json`: objects, each with its `content`."""
    tokens = _held(tokenizer, "added_tokens", list, source=source)
    for token in tokens:
        if not (isinstance(token, dict) and isinstance(token.get("content"), str)):
            raise InputError(f"{source}: added_tokens should be objects, each with its content.")
    return tokens


def _held(values, key, kind, *, source):
    """The object or list under a key, empty where there is none."""
    value = values.get(key)
    if value is None:
        return kind()
    if not isinstance(value, kind):
        what = {dict: "an object", list: "a list"}[kind]
        raise InputError(f"{source}: {key} should be {what}.")
    return value
