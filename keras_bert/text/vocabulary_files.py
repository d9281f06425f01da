"""Vocabularies as files and tokenizer folders: the one module that opens and writes them.

A vocabulary is a file `vocab.txt` (WordPiece), or a folder in Hugging Face's form: with a
`vocab.txt`, a `vocab.json` and a `merges.txt` (byte-pair encoding: our own, OpenAI GPT's, or the
byte-level one of GPT-2 and RoBERTa), or a `tokenizer.json` alone (as transformers 5 saves them). A
folder may record whether its vocabulary is cased.

How often each token occurs in the text that a vocabulary was learned from is in
`vocab.counts.tsv` next to `vocab.txt`, or in `counts.tsv` in the folder of a byte-pair encoding.
Each line is a token, a tab and its count, in the order of the ids. Masks whose replacements follow
the frequencies of the tokens are drawn from it.
"""

import json
import os
from os import PathLike
from pathlib import Path

import numpy as np

from keras_bert.base import files
from keras_bert.base.errors import InputError
from keras_bert.base.files import parse_json, possible_path, read_json
from keras_bert.base.formatting import listed
from keras_bert.text import hugging_face
from keras_bert.text.template import BERT_TEMPLATE, bert_template
from keras_bert.text.tokenizer_json import tokenizer_config, tokenizer_json
from keras_bert.text.vocabularies.bpe import BpeVocabulary, parse_merges
from keras_bert.text.vocabularies.unigram import UnigramVocabulary
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import (
    BERT_TOKENS,
    CONFIG_FILE,
    MERGES_FILE,
    SENTENCEPIECE_FILES,
    TOKENIZER_FILE,
    VOCAB_JSON,
    VOCAB_TXT,
    Vocabulary,
    parse_ids,
    write_into,
)

COUNTS_FILE = "counts.tsv"
ADDED_FILE = "added_tokens.json"  # of transformers before 5: token -> id
# The files that a vocabulary of any algorithm is read from.
VOCABULARY_FILES = (*WordPieceVocabulary.FILES, *BpeVocabulary.FILES, TOKENIZER_FILE)


def counts_path(path, *, is_folder):
    """The path of the counts of the vocabulary at `path` (a str, of any file system)."""
    return f"{path}/{COUNTS_FILE}" if is_folder else f"{path.removesuffix('.txt')}.{COUNTS_FILE}"


def counts_text(vocabulary):
    """The content of the file, for a vocabulary with counts."""
    lines = zip(vocabulary.tokens, vocabulary.counts.tolist(), strict=True)
    return "".join(f"{token}\t{count}\n" for token, count in lines)


def read_counts(path, vocabulary):
    """The counts of the vocabulary that was read from `path`: int64 (V,), or None without a file.

    Raises `InputError` if the file is not one of this vocabulary's.
    """
    path = Path(path)
    if (path / VOCAB_TXT).exists():
        path = path / VOCAB_TXT
    file = Path(counts_path(str(path), is_folder=path.is_dir()))
    if not file.exists():
        return None
    text = _decode(_read_bytes(file), file, expected="a token, a tab and its count per line")
    counts = []
    for number, line in enumerate(text.removesuffix("\n").split("\n")):
        token, _, count = line.rpartition("\t")
        expected = vocabulary.tokens[number] if number < len(vocabulary) else "no more tokens"
        if token != expected or not count.isascii() or not count.isdecimal():
            problem = f"is {line!r} where its vocabulary has {expected!r}"
            raise _counts_error(file, number + 1, problem)
        counts.append(int(count))
    if len(counts) != len(vocabulary):
        problem = f"is the last, and its vocabulary has {len(vocabulary)} tokens"
        raise _counts_error(file, len(counts), problem)
    counts = np.array(counts, np.int64)
    if not np.delete(counts, vocabulary.special_ids).any():
        raise _counts_error(file, 1, "begins a file that counts no ordinary token")
    return counts


def _counts_error(file, number, problem):
    return InputError(
        f"{file}, line {number} {problem}: these are not the counts of that vocabulary. Delete the "
        "file, or learn the vocabulary again."
    )


def open_vocabulary(vocabulary, *, lowercase=None):
    """A vocabulary, whether text is lowercased for it, and its `Template`.

    Args:
        vocabulary: a `Vocabulary`, or the path of a `vocab.txt` or of a folder (see `open_folder`).
        lowercase: True or False; None takes what the folder records, and True if nothing does.

    Returns (`Vocabulary`, bool, `Template`); without a folder the template is BERT's. Raises
    `InputError` as `open_folder` does, and for a file that is not a vocabulary.
    """
    if isinstance(vocabulary, Vocabulary):
        if lowercase is None:
            lowercase = vocabulary.lowercase
        return vocabulary, lowercase is not False, bert_template(vocabulary.special_tokens)
    if Path(vocabulary).is_dir():
        return open_folder(vocabulary, lowercase=lowercase)
    return load_vocabulary(vocabulary), lowercase is not False, BERT_TEMPLATE


def open_folder(folder, *, lowercase=None):
    """Opens the vocabulary of a folder, as `open_vocabulary`.

    Raises `InputError` for a folder without a vocabulary, if the folder contradicts `lowercase`,
    if two of its files give a token different ids, and if it asks for ids that this library
    does not give. Also if the case of a vocabulary of byte-pair encoding is unknown: its folders
    record it, so that one which does not is incomplete. (BERT's own `vocab.txt` may be alone.)
    """
    vocabulary, recorded, template = _read_folder(possible_path(folder))
    if None not in (recorded, lowercase) and recorded != lowercase:
        case = {True: "uncased", False: "cased"}
        raise InputError(
            f"The vocabulary in {folder} is {case[recorded]} according to its {CONFIG_FILE}, and "
            f"not {case[lowercase]}. Leave the case out, or give another vocabulary."
        )
    if recorded is None and lowercase is None and vocabulary.RECORDS_CASE:
        raise InputError(
            f"{folder} does not record whether its vocabulary is cased: it has no {CONFIG_FILE}. "
            "Give the folder in which the vocabulary was learned, or learn it again."
        )
    return vocabulary, (recorded if lowercase is None else lowercase) is not False, template


def load_vocabulary(path: str | PathLike[str]) -> Vocabulary:
    """The `Vocabulary` in a `vocab.txt`, or in a folder of either algorithm, cased or not.

    Raises:
        InputError: there is none, or one of an unsupported kind.
    """
    path = possible_path(path)
    if path.is_dir():
        return _read_folder(path)[0]
    if path.suffix == ".json" or path.name == MERGES_FILE:
        raise InputError(
            f"{path} alone is not a vocabulary. Give a {VOCAB_TXT}, or the folder of {path.name}."
        )
    return _parse_wordpiece(_read_bytes(path), path)


def parse_vocabulary(contents, *, folder, special_tokens=BERT_TOKENS):
    """The `Vocabulary` in the files of `folder`, which is named in messages.

    Args:
        contents: name -> bytes, of those `VOCABULARY_FILES` that are there.
        special_tokens: its `SpecialTokens`.
    """
    if VOCAB_TXT in contents:
        return _parse_wordpiece(contents[VOCAB_TXT], f"{folder}/{VOCAB_TXT}", special_tokens)
    if contents.keys() == {TOKENIZER_FILE}:
        source = f"{folder}/{TOKENIZER_FILE}"
        text = _decode(contents[TOKENIZER_FILE], source, expected="a JSON object")
        return UnigramVocabulary.from_tokenizer(
            parse_json(text), source=source, special_tokens=special_tokens
        )
    (vocab, merges), sources = _bpe_texts(contents, folder)
    kind = hugging_face.class_of_bpe(parse_ids(vocab, source=sources[0]), source=sources[0])
    options = {}
    if TOKENIZER_FILE in contents:
        tokenizer = parse_json(contents[TOKENIZER_FILE].decode("utf-8"))
        options = kind.options_of(tokenizer, source=f"{folder}/{TOKENIZER_FILE}")
    return kind.from_texts(vocab, merges, sources=sources, special_tokens=special_tokens, **options)


def _bpe_texts(contents, folder):
    """The texts of a `vocab.json` and a `merges.txt`, and their names in errors."""
    expected = {VOCAB_JSON: "a JSON object of token and id", MERGES_FILE: "two tokens per line"}
    sources = [f"{folder}/{name}" for name in expected]
    for name, source in zip(expected, sources, strict=True):
        if name not in contents:
            raise InputError(f"The vocabulary {source} could not be read: it does not exist.")
    texts = [
        _decode(contents[name], source, expected=expected[name])
        for name, source in zip(expected, sources, strict=True)
    ]
    return texts, sources


def has_vocabulary(folder):
    """Whether a folder has the files of a vocabulary."""
    folder = Path(folder)
    names = (VOCAB_TXT, MERGES_FILE, TOKENIZER_FILE, *SENTENCEPIECE_FILES)
    return any((folder / name).exists() for name in names)


def write_vocabulary(path, vocabulary, *, lowercase):
    """Writes a learned vocabulary, whole or not at all, in the place of what is at `path`.

    Raises `InputError` if it cannot be written.
    """
    texts = output_texts(path, vocabulary, lowercase=lowercase)
    texts = {os.path.basename(path_of_file): text for path_of_file, text in texts.items()}
    if not vocabulary.IS_FOLDER:
        files.write_texts(Path(path).parent, texts)
    else:
        with files.new_folder(path) as folder:
            for name, text in texts.items():
                (folder / name).write_text(text, encoding="utf-8", newline="")


def output_texts(path, vocabulary, *, lowercase):
    """The files of a learned vocabulary at `path`, on any file system: path -> text.

    WordPiece is a `vocab.txt`, byte-pair encoding a folder; the counts, if there are any, are next
    to the file or in the folder. The last file must be written last: without it `open_vocabulary`
    takes none of them.
    """
    path = str(path)
    is_folder = vocabulary.IS_FOLDER
    texts = {}
    if vocabulary.counts is not None:
        texts[counts_path(path, is_folder=is_folder)] = counts_text(vocabulary)
    if is_folder:
        inside = folder_texts(vocabulary, lowercase=lowercase)
        return texts | {f"{path}/{name}": text for name, text in inside.items()}
    return texts | {path: vocabulary.files()[VOCAB_TXT]}


def write_folder(folder, vocabulary, *, overwrite=False, **options):
    """Writes a folder that `open_folder` and transformers' AutoTokenizer open.

    Other files in the folder stay. `options` are those of `folder_texts`.

    Raises `InputError` if the folder has files of another tokenizer, unless `overwrite`.
    """
    texts = folder_texts(vocabulary, **options)
    write_into(folder, texts, last=vocabulary.FILES[-1], overwrite=overwrite)


def folder_texts(vocabulary, *, lowercase, template=BERT_TEMPLATE, has_segments=True):
    """The files that `write_folder` writes: name -> text.

    `has_segments`: whether the model takes segment ids.
    """
    texts = {} if TOKENIZER_FILE in vocabulary.FILES else vocabulary.files()
    is_bert = isinstance(vocabulary, WordPieceVocabulary) and (
        (vocabulary.special_tokens, template) == (BERT_TOKENS, BERT_TEMPLATE)
    )
    texts[TOKENIZER_FILE] = tokenizer_json(vocabulary, lowercase=lowercase, template=template)
    config = tokenizer_config(
        vocabulary,
        lowercase=lowercase,
        template=template,
        is_bert=is_bert,
        has_segments=has_segments,
    )
    return {**texts, CONFIG_FILE: json.dumps(config, indent=2) + "\n"}


def _read_folder(folder):
    """-> (`Vocabulary`, whether it is uncased, None if that is unknown, `Template`)."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder. A folder with a {VOCAB_TXT} was expected.")
    tokenizer = _read_json(folder / TOKENIZER_FILE)
    tokenizer_folder = hugging_face.TokenizerFolder(
        folder,
        config=_read_json(folder / CONFIG_FILE),
        tokenizer=tokenizer,
        added=_read_json(folder / ADDED_FILE),
    )
    names = set(VOCABULARY_FILES) - {TOKENIZER_FILE}
    contents = {name: _read_bytes(folder / name) for name in names if (folder / name).exists()}
    models = [folder / name for name in SENTENCEPIECE_FILES if (folder / name).exists()]
    if not contents and (tokenizer_folder.has_unigram() or models):
        vocabulary, name = tokenizer_folder.unigram(
            {path.name: _read_bytes(path) for path in models}
        )
        return vocabulary, vocabulary.lowercase, tokenizer_folder.template(vocabulary, name=name)
    if VOCAB_TXT not in contents:
        model = tokenizer_folder.bpe_model()
        if contents or model is not None:
            return _read_bpe(folder, contents, tokenizer_folder, model)
    name = tokenizer_folder.class_of_wordpiece(contents.get(VOCAB_TXT))
    special = tokenizer_folder.special_tokens(name=name)
    if VOCAB_TXT in contents:
        vocabulary = parse_vocabulary(contents, folder=folder, special_tokens=special)
    elif tokenizer:
        vocabulary = tokenizer_folder.wordpiece(special)
    else:
        names = sorted(path.name for path in folder.iterdir())
        others = [name for name in names if name.startswith(("tokenizer", "vocab", "merges"))]
        raise InputError(
            f"{str(folder)!r} has no supported tokenizer (found: {listed(others) or 'none'}). Pass "
            f"token ids instead, or add its {VOCAB_TXT}, {' with '.join(BpeVocabulary.FILES)}, or "
            f"{TOKENIZER_FILE}."
        )
    case = tokenizer_folder.case(special)
    tokenizer_folder.check_tokens(vocabulary)
    return vocabulary, case, tokenizer_folder.template(vocabulary, name=name)


def _read_bpe(folder, contents, tokenizer_folder, model):
    """Reads a folder of byte-pair encoding, as `_read_folder`.

    `contents` are the bytes of the folder's files by name, `theirs` its `TokenizerFolder`, and
    `model` the ids and merges of its tokenizer.json, or None.
    """
    if contents:
        (vocab, merges), sources = _bpe_texts(contents, folder)
        ids = parse_ids(vocab, source=sources[0])
        merges = parse_merges(merges, source=sources[1])
        if isinstance(ids, dict):  # special tokens may be added in the other files
            ids |= tokenizer_folder.added | tokenizer_folder.added_ids()
    else:
        (ids, merges), sources = model, [str(folder / TOKENIZER_FILE)] * 2
    vocabulary, name = tokenizer_folder.bpe(ids, merges, sources=sources)
    if vocabulary.lowercase is None:
        case = tokenizer_folder.case(vocabulary.special_tokens)
    else:
        tokenizer_folder.check_added(vocabulary.special_tokens, vocabulary.added_tokens)
        case = vocabulary.lowercase
    tokenizer_folder.check_tokens(vocabulary)
    return vocabulary, case, tokenizer_folder.template(vocabulary, name=name)


def _parse_wordpiece(data, path, special_tokens=BERT_TOKENS):
    text = _decode(data, path, expected="one token per line")
    return WordPieceVocabulary.from_text(text, source=str(path), special_tokens=special_tokens)


def _read_json(path):
    """The object in a JSON file; {} if there is no such file."""
    return read_json(path) if path.exists() else {}


def _read_bytes(path):
    """The content of a vocabulary's file."""
    try:
        return files.read_small(path)
    except OSError as error:
        raise InputError(
            f"The vocabulary {path} could not be read: {error.strerror}. Give a "
            f"{VOCAB_TXT}, or a folder with a vocabulary."
        ) from error


def _decode(data, path, *, expected):
    """The text of a vocabulary's file; `InputError` names file and line."""
    if not data:
        raise InputError(f"The vocabulary {path} is empty. Expected {expected}.")
    if data.startswith(b"\xef\xbb\xbf"):
        raise InputError(
            f"{path}, line 1 begins with a byte order mark. Save the file as UTF-8 without one."
        )
    if b"\r\n" in data:
        number = data[: data.index(b"\r\n")].count(b"\n") + 1
        raise InputError(
            f"{path}, line {number} has a Windows line end. "
            "Save the file with Unix line ends (a newline only)."
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = data[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {number} is not UTF-8.") from error
