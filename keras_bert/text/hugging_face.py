"""Hugging Face's `tokenizer_config.json` and `tokenizer.json` of any program, read and checked.

The files are opened by `keras_bert.text.vocabulary_files`. The library `tokenizers` would open more
than gives the same ids here, so the steps of a tokenizer are read as the JSON that they are.
"""

import dataclasses
import warnings

from keras_bert.base.errors import InputError, InputWarning
from keras_bert.text import sentencepiece_files
from keras_bert.text.normalizers import added_token_objects, json_member, normalizer_steps
from keras_bert.text.sentencepiece_files import (
    CAMEMBERT,
    FAIRSEQ_TOKENS,
    XLM_ROBERTA,
    tokens_of_pieces,
)
from keras_bert.text.template import PLAIN_TEMPLATE, Template, bert_template
from keras_bert.text.vocabularies.bpe import (
    END_OF_WORD,
    GPT_END_OF_WORD,
    BpeVocabulary,
    GptVocabulary,
)
from keras_bert.text.vocabularies.byte_level import (
    BYTES_OF_UTF8,
    LETTERS,
    SPACE,
    ByteLevelVocabulary,
)
from keras_bert.text.vocabularies.unigram import UnigramVocabulary, unigram_ids
from keras_bert.text.vocabularies.wordpiece import CONTINUATION_PREFIX, WordPieceVocabulary
from keras_bert.text.vocabulary import (
    BERT_TOKENS,
    CONFIG_FILE,
    TOKENIZER_FILE,
    UNK,
    SpecialTokens,
    tokens_by_id,
)

# Classes that take their steps from BERT's settings, whatever is in `tokenizer.json`.
_BERT_CLASSES = ("BertTokenizer", "BertTokenizerFast")
# Classes that make their steps themselves, and their special tokens if a folder names none.
_GPT2, _ROBERTA, _GPT = "GPT2Tokenizer", "RobertaTokenizer", "OpenAIGPTTokenizer"
_MPNET = "MPNetTokenizer"  # BERT's words and pieces, between fairseq's special tokens
_END_OF_TEXT = "<|endoftext|>"
_CLASS_TOKENS = {
    _MPNET: dataclasses.replace(FAIRSEQ_TOKENS, unk=UNK),
    _GPT2: SpecialTokens(unk=_END_OF_TEXT, bos=_END_OF_TEXT, eos=_END_OF_TEXT),
    _ROBERTA: FAIRSEQ_TOKENS,
    _GPT: SpecialTokens(unk="<unk>"),
}


class TokenizerFolder:
    """The content of Hugging Face's files in a folder on its vocabulary and tokenizer.

    Methods raise `InputError` if the files contradict each other or the vocabulary, or ask for
    ids that this library does not give.

    Args:
        folder: its path.
        config, tokenizer, added: the objects of its `tokenizer_config.json`, `tokenizer.json` and
            `added_tokens.json`; {} for no file.
    """

    def __init__(self, folder, *, config, tokenizer, added):
        self._folder, self._file = str(folder), f"{folder}/{TOKENIZER_FILE}"
        self._config_file = f"{folder}/{CONFIG_FILE}"
        self._config, self._tokenizer, self.added = config, tokenizer, added
        if config.get("padding_side") == "left":
            warnings.warn(
                f"{self._config_file}: padding_side is 'left'. Sequences are padded on the right "
                "here, so that the predictions for a text do not depend on others in its batch.",
                InputWarning,
                stacklevel=3,
            )

    def bpe(self, ids, merges, *, sources):
        """A vocabulary of byte-pair encoding, and the class of transformers that it is for.

        Args:
            ids: token -> id, unchecked, with the tokens that the folder adds.
            merges: pairs of tokens.
            sources: the names of the files of the two, for errors.
        """
        name, kind = self._class_name, class_of_bpe(ids, source=sources[0])
        if kind is BpeVocabulary and sources[0] == sources[1]:
            raise InputError(
                f"{self._folder} has no {' and no '.join(BpeVocabulary.FILES)}, which the "
                "vocabularies of this library have."
            )
        if name not in _CLASS_TOKENS:
            self._check_bpe_steps(kind)
        is_of_this_library = kind is BpeVocabulary
        if name is None and not is_of_this_library:
            is_roberta = kind is ByteLevelVocabulary and {"<s>", "</s>", "<mask>"} <= ids.keys()
            name = _GPT if kind is GptVocabulary else _ROBERTA if is_roberta else _GPT2
        if is_of_this_library:
            usual = BERT_TOKENS
        else:
            usual = _CLASS_TOKENS.get(name, SpecialTokens())
            known = {role: token for role, token in usual.to_dict().items() if token in ids}
            usual = SpecialTokens(**known)
        special = self.special_tokens(usual)
        options = kind.options_of(self._tokenizer, source=self._file)
        if kind is ByteLevelVocabulary and self._class_name in _CLASS_TOKENS:
            options["prefix_space"] = self._config.get("add_prefix_space") is True
        tokens = tokens_by_id(ids, source=sources[0], special_tokens=special)
        kind.check_symbols(ids, special, name=sources[0])
        try:
            return kind(tokens, merges, special_tokens=special, **options), name
        except InputError as error:
            raise InputError(f"{sources[1]} does not fit {sources[0]}. {error}") from None

    def bpe_model(self):
        """The ids and merges of a byte-pair encoding; None for another model."""
        if self._model.get("type") != "BPE":
            return None
        merges = [
            tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair)
            for pair in json_member(self._model, "merges", list, source=self._file)
            if isinstance(pair, str | list)
        ]
        for number, pair in enumerate(merges, 1):
            if len(pair) != 2 or not all(isinstance(token, str) and token for token in pair):
                raise InputError(
                    f"{self._file}: merge {number} must be two tokens. Received: {pair!r}."
                )
        return self._ids(), merges

    def has_unigram(self):
        """Whether `tokenizer.json` has a unigram model."""
        return self._model.get("type") == "Unigram"

    def unigram(self, files):
        """A unigram vocabulary, and the class of transformers that it is for, or None.

        Args:
            files: the contents of the folder's SentencePiece files by name; a `tokenizer.json` with
                a unigram model comes before them.
        """
        name, usual = self._class_name, BERT_TOKENS
        if self.has_unigram():
            usual = tokens_of_pieces(unigram_ids(self._tokenizer, source=self._file).keys())
        else:
            [(file, data), *_] = files.items()
            source = f"{self._folder}/{file}"
            name = sentencepiece_files.class_of_file(name, source, data)
        special = self.special_tokens(sentencepiece_files.CLASS_TOKENS.get(name, usual))
        if self.has_unigram():
            vocabulary = UnigramVocabulary.from_tokenizer(
                self._tokenizer, source=self._file, special_tokens=special
            )
        else:
            vocabulary = sentencepiece_files.vocabulary_of_model(
                data,
                source=source,
                name=name,
                special_tokens=special,
                normalizers=sentencepiece_files.normalizers_of(name, self._config),
            )
        self.check_added(special, vocabulary.added_tokens)
        return vocabulary, name

    def class_of_wordpiece(self, vocab_txt):
        """The class of transformers that a WordPiece vocabulary is for, or None.

        `vocab_txt` is the content of the folder's `vocab.txt`, None without one. If no class is
        named, MPNet's vocabulary is told by its token for masks, which BERT's does not have.
        """
        if self._class_name is not None:
            return self._class_name
        mask = _CLASS_TOKENS[_MPNET].mask
        tokens = self._ids() if vocab_txt is None else vocab_txt.decode("utf-8", "ignore").split()
        return _MPNET if mask in tokens else None

    def wordpiece(self, special_tokens):
        """The vocabulary of a `tokenizer.json` alone, as transformers 5 saves BERT's."""
        model = self._model
        prefix = model.get("continuing_subword_prefix")
        if model.get("type") != "WordPiece" or prefix != CONTINUATION_PREFIX:
            raise InputError(
                f"{self._file} holds a tokenizer of type {model.get('type')}, continuing words "
                f"with {prefix!r}. WordPiece with {CONTINUATION_PREFIX!r} was expected."
            )
        tokens = tokens_by_id(self._ids(), source=self._file, special_tokens=special_tokens)
        return WordPieceVocabulary(tokens, special_tokens=special_tokens)

    def special_tokens(self, usual=BERT_TOKENS, *, name=None):
        """The `SpecialTokens` that the configuration names.

        If it names none they are those of the class `name`, or `usual`.
        """
        usual = _CLASS_TOKENS.get(name, usual)
        config, source = self._config, self._config_file
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
        # A tokenizer.json alone may have fewer than BERT; a unigram model lists its own.
        if not config and self._model and not self.has_unigram():
            ids = self._ids()
            tokens = {role: token for role, token in tokens.items() if token in ids}
        return SpecialTokens(**tokens)

    def case(self, special_tokens):
        """Whether the folder's model is uncased; None if that is not recorded."""
        config, normalizers = self._config, self._normalizers()
        bert = next((part for part in normalizers if part.get("type") == "BertNormalizer"), {})
        self._check_wordpiece_steps(normalizers)
        self.check_added(special_tokens)
        for key in ("do_lower_case", "strip_accents", "tokenize_chinese_chars"):
            if not isinstance(config.get(key), bool | None):
                raise InputError(
                    f"{self._folder}: {key} is {config[key]!r}. It should be true or false."
                )
        recorded = config.get("do_lower_case", bert.get("lowercase"))
        lowercase = recorded is not False
        strip_accents = config.get("strip_accents", bert.get("strip_accents"))
        if strip_accents not in (None, lowercase):
            raise InputError(
                f"{self._folder} asks for strip_accents={strip_accents} with "
                f"do_lower_case={lowercase}. This tokenizer drops accents exactly when it "
                "lowercases, as the original BERT does."
            )
        if not config.get("tokenize_chinese_chars", bert.get("handle_chinese_chars", True)):
            raise InputError(
                f"{self._folder} asks for tokenize_chinese_chars=false. This tokenizer makes a "
                "word of every CJK character, as the original BERT does."
            )
        return None if recorded is None else bool(recorded)

    def check_added(self, special_tokens, added_tokens=()):
        """Rejects tokens that the folder adds to its vocabulary, but for these."""
        supported = {*special_tokens.tokens, *(token.content for token in added_tokens)}
        if special_tokens == _CLASS_TOKENS[_MPNET]:
            supported.add(FAIRSEQ_TOKENS.unk)  # a token of MPNet's that no text comes to
        if others := sorted(self._every_added().union(self.added) - supported):
            shown = ", ".join(map(repr, others[:3])) + (" …" if others[3:] else "")
            raise InputError(
                f"{self._folder} adds {shown} to its special tokens, to be cut out of a text "
                "before it is split into words. This tokenizer does not support that."
            )

    def check_tokens(self, vocabulary):
        """Rejects a `tokenizer.json`, which transformers reads, with other ids than these."""
        if not isinstance(self._model.get("vocab"), dict):
            return  # there is no such file
        ids_of_json = self._ids()
        ids_of_vocabulary = {token: id for id, token in enumerate(vocabulary.tokens)}
        for token in [*ids_of_vocabulary, *ids_of_json]:
            if ids_of_vocabulary.get(token) != ids_of_json.get(token):
                ids = [
                    f"the id {ids[token]}" if token in ids else "no id"
                    for ids in (ids_of_vocabulary, ids_of_json)
                ]
                raise InputError(
                    f"{self._folder}: {token!r} has {ids[0]} in {vocabulary.FILES[0]} and {ids[1]} "
                    "in tokenizer.json. Delete the file that is not this model's."
                )
        if isinstance(vocabulary, BpeVocabulary):
            _, merges = self.bpe_model() or (None, None)
            if list(vocabulary.merges) != merges:
                raise InputError(
                    f"{self._folder}: {vocabulary.FILES[1]} and tokenizer.json have other merges. "
                    "Delete the file that is not this model's."
                )

    def template(self, vocabulary, *, name=None):
        """The `Template` of the folder's tokenizer.json, or BERT's if it has none.

        `name` is the class of transformers that it is for; RoBERTa's has a template of its own.
        """
        special = vocabulary.special_tokens
        fairseq = (_ROBERTA, XLM_ROBERTA, CAMEMBERT, _MPNET)
        if name in fairseq and special.cls is not None and special.sep is not None:
            return _roberta_template(special.cls, special.sep)
        steps = [json_member(self._tokenizer, "post_processor", dict, source=self._file)]
        if steps[0].get("type") == "Sequence":
            steps = json_member(steps[0], "processors", list, source=self._file)
        # A step of type ByteLevel only moves offsets.
        steps = [step for step in steps if step and step.get("type") != "ByteLevel"]
        if self._has_bert_class() or self._tokenizer.get("post_processor") is None:
            return bert_template(special)
        if not steps:
            return PLAIN_TEMPLATE
        try:
            [step] = steps
            template, ids = _template_of_step(step)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"{self._file}: post_processor puts special tokens around texts in an unsupported "
                f"way ({error})."
            ) from None
        special = set(vocabulary.special_ids.tolist())
        for token, id in ids.items():
            if token not in vocabulary or vocabulary.id(token) != id or id not in special:
                raise InputError(
                    f"{self._file}: post_processor has the token {token!r} with the id {id}, which "
                    "is not a special token of the vocabulary."
                )
        return template

    def added_ids(self):
        """Token -> id of the tokens that `tokenizer.json` adds."""
        return {token["content"]: token.get("id") for token in self._added_tokens()}

    @property
    def _class_name(self):
        """The class that the configuration names, or None."""
        return str(self._config.get("tokenizer_class") or "").removesuffix("Fast") or None

    def _has_bert_class(self):
        return self._config.get("tokenizer_class") in _BERT_CLASSES

    @property
    def _model(self):
        return json_member(self._tokenizer, "model", dict, source=self._file)

    @property
    def _splitter(self):
        return json_member(self._tokenizer, "pre_tokenizer", dict, source=self._file)

    def _normalizers(self):
        return normalizer_steps(self._tokenizer, source=self._file)

    def _check_bpe_steps(self, kind):
        """Rejects byte-pair encoding of words, or with options, that are not those of its class."""
        if not self._tokenizer or kind is BpeVocabulary:
            return
        model, splitter, normalizers = self._model, self._splitter, self._normalizers()
        if kind is ByteLevelVocabulary:
            normalizers = []  # which are steps of the vocabulary
        steps = [part.get("type") for part in (*normalizers, splitter)]
        if kind is ByteLevelVocabulary:
            expected, end = ["ByteLevel"], None
            whole = splitter.get("use_regex") is not False
        else:
            expected, end = ["BertNormalizer", "BertPreTokenizer"], GPT_END_OF_WORD
            [normalizer, *_] = [*normalizers, {}]
            whole = normalizer.get("lowercase") is True and normalizer.get("strip_accents") in (
                None,
                True,
            )
        if steps != expected or not whole:
            raise InputError(
                f"{self._file} splits words by {', '.join(map(str, steps))} with other settings "
                f"than {', '.join(expected)}, as OpenAI GPT's and GPT-2's tokenizers have them. "
                "This tokenizer is not supported."
            )
        options = {"continuing_subword_prefix": None, "end_of_word_suffix": end, "dropout": None}
        for name in (*options, "fuse_unk", "byte_fallback", "ignore_merges"):
            if (model.get(name) or None) != options.get(name):
                raise InputError(
                    f"{self._file} asks for {name}={model[name]!r} in its model. Expected "
                    f"{options.get(name)!r}: this tokenizer is not supported."
                )

    def _check_wordpiece_steps(self, normalizers):
        """Rejects WordPiece over words that are not BERT's, as other programs learn it."""
        if self._model.get("type") != "WordPiece" or self._has_bert_class():
            return
        steps = [part.get("type") for part in (*normalizers, self._splitter)]
        # sentence-transformers puts a step before one that lower-cases, too.
        if steps[:2] == ["Lowercase", "BertNormalizer"] and normalizers[1].get("lowercase"):
            del steps[0]
        if steps != ["BertNormalizer", "BertPreTokenizer"]:
            raise InputError(
                f"{self._file} splits words by {', '.join(map(str, steps))}. This library splits "
                "them as BERT does, by BertNormalizer, BertPreTokenizer."
            )

    def _every_added(self):
        """The tokens that the files add to the vocabulary's, [CLS] and its like among them."""
        config, source = self._config, self._config_file
        extra = config.get("extra_special_tokens")  # a list, or name -> token
        if isinstance(extra, dict):
            config = {**config, "extra_special_tokens": list(extra.values())}
        listed = [
            *json_member(config, "added_tokens_decoder", dict, source=source).values(),
            *json_member(config, "additional_special_tokens", list, source=source),
            *json_member(config, "extra_special_tokens", list, source=source),
            *self._added_tokens(),
        ]
        # Each is an object with its `content`, or a string.
        tokens = (token.get("content") if isinstance(token, dict) else token for token in listed)
        return {str(token) for token in tokens}

    def _ids(self):
        """Token -> id; [CLS] and its like may be among the added tokens alone."""
        return {**json_member(self._model, "vocab", dict, source=self._file), **self.added_ids()}

    def _added_tokens(self):
        return added_token_objects(self._tokenizer, source=self._file)


def class_of_bpe(ids, *, source):
    """The class of the vocabulary of byte-pair encoding with these tokens.

    Args:
        ids: the content of a `vocab.json`, unchecked.
        source: names it in errors.

    Raises `InputError` if its kind is unknown.
    """
    tokens = ids.keys() if isinstance(ids, dict) else ()
    if END_OF_WORD in tokens:
        return BpeVocabulary
    if all(LETTERS[byte] in tokens for byte in BYTES_OF_UTF8):
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
    entries = {
        name: (entry["tokens"], entry["ids"]) for name, entry in step["special_tokens"].items()
    }
    written = Template.from_dict(step)
    template = Template(
        *(
            tuple(
                (token, segment)
                for part, segment in parts
                for token in (entries[part][0] if isinstance(part, str) else [part])
            )
            for parts in (written.single, written.pair)
        )
    )
    ids = dict(pair for entry in entries.values() for pair in zip(*entry, strict=True))
    return template, {token: ids[token] for token in template.special_tokens}
