"""Tokenizer folders in Hugging Face's form, read and written without its libraries."""

import json
from pathlib import Path

from keras_bert.errors import InputError
from keras_bert.text.bpe_vocabulary import (
    END_OF_WORD,
    MERGES_FILE,
    VOCAB_FILE,
    BpeVocabulary,
    is_own_kind,
)
from keras_bert.text.vocabulary import (
    CLS,
    CONTINUATION_PREFIX,
    FILE,
    MASK,
    PAD,
    SEP,
    SPECIAL_PIECES,
    UNK,
    Vocabulary,
    index_pieces,
    write_aside,
)

CONFIG_FILE, TOKENIZER_FILE = "tokenizer_config.json", "tokenizer.json"
# Every name that `write_folder` may write.
NAMES = frozenset({FILE, VOCAB_FILE, MERGES_FILE, TOKENIZER_FILE, CONFIG_FILE})

# Where a word ends: before white space, after a punctuation mark, before one. What counts as one
# is BERT's choice: Unicode's, and all of ASCII that is no letter, digit or space.
_PUNCTUATION = r"\p{P}$+<=>^`|~"
_WORD_END = rf"(?<=\S)(?=\s|\z)|(?<=[{_PUNCTUATION}])(?=\S)|(?<=\S)(?=[{_PUNCTUATION}])"


def read_folder(folder):
    """Reads the tokenizer of a model folder.

    A WordPiece vocabulary stands in `vocab.txt` or, as transformers 5 saves it, in
    `tokenizer.json`; one of byte-pair encoding in `vocab.json` and `merges.txt`.

    Returns (`Vocabulary`, lowercase), the latter True or False as the folder says, and None where
    it does not say. Raises `InputError` for a folder that has none of these, and for one that asks
    for ids which this library does not give.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; a folder with a {FILE} was expected.")
    config = _read_json(folder / CONFIG_FILE)
    whole = _read_json(folder / TOKENIZER_FILE)
    if (folder / FILE).exists():
        vocabulary = Vocabulary.from_file(folder / FILE)
    elif (folder / MERGES_FILE).exists():
        vocabulary = BpeVocabulary.from_folder(folder)
    elif whole:
        vocabulary = _from_tokenizer_file(folder / TOKENIZER_FILE, whole)
    else:
        raise InputError(
            f"{folder} has no {FILE} and no other vocabulary that this library reads "
            f"({VOCAB_FILE} with {MERGES_FILE}, or {TOKENIZER_FILE})."
        )
    return vocabulary, _read_lowercase(folder, config, whole)


def holds_own_kind(folder):
    """Whether `read_folder` reads a folder's vocabulary: not RoBERTa's, and not where none is."""
    folder = Path(folder)
    if (folder / FILE).exists():
        return True
    if not all((folder / name).exists() for name in BpeVocabulary.FILES):
        return False
    return is_own_kind((folder / VOCAB_FILE).read_text(encoding="utf-8", errors="replace"))


def open_vocabulary(given, *, lowercase=None):
    """A vocabulary, and whether text is to be lowered for it.

    Args:
        given: a `Vocabulary`, the path of a `vocab.txt`, or that of a folder (see `read_folder`).
        lowercase: True or False where the user says it; None leaves it to the folder, and is True
            where there is none or it does not say.

    Returns (`Vocabulary`, bool). Raises `InputError` as `read_folder` and where the folder says
    something else than `lowercase`.
    """
    if isinstance(given, Vocabulary):
        return given, lowercase is not False
    if not Path(given).is_dir():
        return Vocabulary.from_file(given), lowercase is not False
    vocabulary, said = read_folder(given)
    if None not in (said, lowercase) and said != lowercase:
        case = {True: "uncased", False: "cased"}
        raise InputError(
            f"The vocabulary in {given} is {case[said]}, as its {CONFIG_FILE} says, and "
            f"{'lowercase=True' if lowercase else '--cased'} asks for a {case[lowercase]} one; "
            "leave that out, or give another vocabulary."
        )
    return vocabulary, (said if lowercase is None else lowercase) is not False


def write_folder(folder, vocabulary, *, lowercase):
    """Writes a folder that `read_folder` reads, and that transformers' AutoTokenizer opens."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in folder_files(vocabulary, lowercase=lowercase).items():
        write_aside(folder / name, text)


def folder_files(vocabulary, *, lowercase):
    """What `write_folder` writes: name -> text."""
    config = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": lowercase,
        "strip_accents": None,  # as the case says
        "tokenize_chinese_chars": True,
        "pad_token": PAD,
        "unk_token": UNK,
        "cls_token": CLS,
        "sep_token": SEP,
        "mask_token": MASK,
    }
    files = vocabulary.files()
    if isinstance(vocabulary, BpeVocabulary):
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
        files[TOKENIZER_FILE] = json.dumps(
            _bpe_tokenizer(vocabulary, lowercase), ensure_ascii=False, indent=1
        )
    return {**files, CONFIG_FILE: json.dumps(config, indent=2) + "\n"}


def _bpe_tokenizer(vocabulary, lowercase):
    """The content of `tokenizer.json` (Hugging Face `tokenizers`) for byte-pair encoding.

    Its splitting can append nothing to a word, so the end-of-word mark is put in before: a pattern
    that matches nothing but a place is "replaced" by the mark and a space.
    """
    special = [
        {
            "id": vocabulary.id(piece),
            "content": piece,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for piece in SPECIAL_PIECES
    ]
    cls, sep = ({"SpecialToken": {"id": p, "type_id": 0}} for p in (CLS, SEP))
    pieces = {p: {"id": p, "ids": [vocabulary.id(p)], "tokens": [p]} for p in (CLS, SEP)}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": sorted(special, key=lambda token: token["id"]),
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {
                    "type": "BertNormalizer",
                    "clean_text": True,
                    "handle_chinese_chars": True,
                    "strip_accents": None,
                    "lowercase": lowercase,
                },
                # The mark itself, written in a text, is an unknown character and a word.
                _replace({"String": END_OF_WORD}, " \ufffd "),
                _replace({"Regex": _WORD_END}, f"{END_OF_WORD} "),
            ],
        },
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [cls, {"Sequence": {"id": "A", "type_id": 0}}, sep],
            "pair": [
                cls,
                {"Sequence": {"id": "A", "type_id": 0}},
                sep,
                {"Sequence": {"id": "B", "type_id": 1}},
                {"SpecialToken": {"id": SEP, "type_id": 1}},
            ],
            "special_tokens": pieces,
        },
        "decoder": {"type": "BPEDecoder", "suffix": END_OF_WORD},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": UNK,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {piece: id for id, piece in enumerate(vocabulary.pieces)},
            "merges": [list(pair) for pair in vocabulary.merges],
        },
    }


def _replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def _read_json(path):
    """The object in a JSON file; {} where there is no such file."""
    if not path.exists():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} could not be read as JSON: {error}.") from error
    if not isinstance(value, dict):
        raise InputError(f"{path} must hold a JSON object.")
    return value


def _from_tokenizer_file(path, whole):
    """The vocabulary of a `tokenizer.json` without a `vocab.txt` beside it."""
    model = whole.get("model") or {}
    if "ByteLevel" in json.dumps([whole.get("pre_tokenizer"), whole.get("decoder")]):
        raise InputError(
            f"{path} holds a tokenizer of byte-level BPE, as GPT-2 and RoBERTa have; this library "
            "reads WordPiece (BERT's) and its own byte-pair encoding only."
        )
    prefix = model.get("continuing_subword_prefix")
    if model.get("type") != "WordPiece" or prefix != CONTINUATION_PREFIX:
        raise InputError(
            f"{path} holds a tokenizer of type {model.get('type')}, continuing words with "
            f"{prefix!r}; WordPiece with {CONTINUATION_PREFIX!r} was expected."
        )
    ids = {**model["vocab"], **{t["content"]: t["id"] for t in whole.get("added_tokens", ())}}
    pieces = sorted(ids, key=ids.get)
    if [ids[piece] for piece in pieces] != list(range(len(pieces))):
        raise InputError(f"{path} must give every piece an id, from 0 on and none twice.")
    index_pieces(pieces, name=str(path), unit="id")
    return Vocabulary(pieces)


def _read_lowercase(folder, config, whole):
    """Whether the folder's model is uncased; None where nothing says."""
    normalizer = whole.get("normalizer") or {}
    parts = normalizer.get("normalizers", [normalizer])
    bert = next((part for part in parts if part.get("type") == "BertNormalizer"), {})
    says = {**{key: bert[key] for key in ("strip_accents",) if key in bert}, **config}
    said = config.get("do_lower_case", bert.get("lowercase"))
    lowercase = said is not False
    chinese = config.get("tokenize_chinese_chars", bert.get("handle_chinese_chars", True))
    if says.get("strip_accents") not in (None, lowercase):
        raise InputError(
            f"{folder} asks for strip_accents={says['strip_accents']} with "
            f"do_lower_case={lowercase}; this tokenizer drops accents exactly when it lowers the "
            "case, as the original BERT does."
        )
    if not chinese:
        raise InputError(
            f"{folder} asks for tokenize_chinese_chars=false; this tokenizer makes a word of every "
            "CJK character, as the original BERT does."
        )
    return said if said is None else bool(said)
