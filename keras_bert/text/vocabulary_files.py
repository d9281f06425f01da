"""Vocabularies as files and tokenizer folders: the one place that opens and writes either kind.

A vocabulary lies in a file `vocab.txt` (WordPiece), or in a folder in Hugging Face's form: with a
`vocab.txt`, a `vocab.json` and a `merges.txt` (byte-pair encoding), or a `tokenizer.json` alone (as
transformers 5 saves WordPiece). A folder may say whether its vocabulary is cased; a file does not.

How often each piece stands in the text that a vocabulary was learned from is a file, too. It lies
beside the vocabulary: `vocab.counts.tsv` beside `vocab.txt`, `counts.tsv` in the folder of a
byte-pair encoding. Each line is a piece, a tab and its count, in the order of the ids. Masks whose
replacements follow the frequencies of the pieces are drawn from it.
"""

import json
import os
from os import PathLike
from pathlib import Path

import numpy as np

from keras_bert.base import files
from keras_bert.base.errors import InputError
from keras_bert.base.files import read_json
from keras_bert.text import bpe_vocabulary, hugging_face, wordpiece_vocabulary
from keras_bert.text.bpe_vocabulary import BpeVocabulary
from keras_bert.text.template import BERT_TEMPLATE, bert_template
from keras_bert.text.vocabulary import BERT_TOKENS, Vocabulary, write_into
from keras_bert.text.wordpiece_vocabulary import WordPieceVocabulary

NAME = "counts.tsv"


def counts_path(path, *, is_folder):
    """Where the counts of the vocabulary at `path` (a str, of any file system) lie."""
    return f"{path}/{NAME}" if is_folder else f"{path.removesuffix('.txt')}.{NAME}"


def counts_text(vocabulary):
    """The content of the file, for a vocabulary that knows its counts."""
    lines = zip(vocabulary.tokens, vocabulary.counts.tolist(), strict=True)
    return "".join(f"{token}\t{count}\n" for token, count in lines)


def parse_counts(text, vocabulary, *, source):
    """The counts of a vocabulary from the content of the file: int64 (V,).

    Raises `InputError`, which calls the file `source`, where it is not one of this vocabulary's.
    """
    counts = []
    for number, line in enumerate(text.removesuffix("\n").split("\n")):
        token, _, count = line.rpartition("\t")
        wanted = vocabulary.tokens[number] if number < len(vocabulary) else "no more pieces"
        if token != wanted or not count.isascii() or not count.isdecimal():
            raise _refusal(source, number + 1, f"is {line!r} where its vocabulary has {wanted!r}")
        counts.append(int(count))
    if len(counts) != len(vocabulary):
        tokens = f"its vocabulary has {len(vocabulary)} pieces"
        raise _refusal(source, len(counts), f"is the last, and {tokens}")
    counts = np.array(counts, np.int64)
    ordinary = np.delete(counts, vocabulary.special_ids)
    if not ordinary.any():
        raise _refusal(source, 1, "begins a file that counts no ordinary piece")
    return counts


def _refusal(source, number, what):
    return InputError(
        f"{source}, line {number} {what}: these are not the counts of that vocabulary; delete the "
        "file, or learn the vocabulary again"
    )


CONFIG_FILE, TOKENIZER_FILE = "tokenizer_config.json", "tokenizer.json"
ADDED_FILE = "added_tokens.json"  # of transformers before 5: token -> id
# The files of a vocabulary of either kind.
VOCABULARY_FILES = (*WordPieceVocabulary.FILES, *BpeVocabulary.FILES)


def open_vocabulary(given, *, lowercase=None):
    """A vocabulary, whether text is to be lowered for it, and its `Template`.

    Args:
        given: a `Vocabulary`, the path of a `vocab.txt`, or that of a folder (see `open_folder`).
        lowercase: True or False where the user says it; None leaves it to the folder, and is True
            where there is none or it does not say.

    Returns (`Vocabulary`, bool, `Template`); the template is BERT's where there is no folder that
    says otherwise. Raises `InputError` as `open_folder` does, and for a file that is no vocabulary.
    """
    if isinstance(given, Vocabulary):
        return given, lowercase is not False, bert_template(given.special_tokens)
    if Path(given).is_dir():
        return open_folder(given, lowercase=lowercase)
    return load_vocabulary(given), lowercase is not False, BERT_TEMPLATE


def open_folder(folder, *, lowercase=None):
    """As `open_vocabulary`, for a folder.

    Raises `InputError` for what is no folder with a vocabulary, where the folder says something
    else than `lowercase`, where two of its files give a piece different ids, and where it asks for
    ids which this library does not give. Also where nobody says the case of a vocabulary of
    byte-pair encoding: its folders say it, so one that does not is only a part of one. (BERT's own
    `vocab.txt` may lie in a folder alone.)
    """
    vocabulary, said, template = _read_folder(Path(folder))
    if None not in (said, lowercase) and said != lowercase:
        case = {True: "uncased", False: "cased"}
        raise InputError(
            f"The vocabulary in {folder} is {case[said]}, as its {CONFIG_FILE} says, and not "
            f"{case[lowercase]}; leave the case out, or give another vocabulary."
        )
    if said is None and lowercase is None and vocabulary.algorithm == "bpe":
        raise InputError(
            f"{folder} does not say whether its vocabulary is cased: it has no {CONFIG_FILE}. Give "
            "the folder in which the vocabulary was learned, or learn it again."
        )
    return vocabulary, (said if lowercase is None else lowercase) is not False, template


def load_vocabulary(path: str | PathLike[str]) -> Vocabulary:
    """The `Vocabulary` of a `vocab.txt`, or of either kind in a folder, whatever its case.

    Raises:
        InputError: there is none that this library reads.
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path)[0]
    if path.suffix == ".json" or path.name == bpe_vocabulary.MERGES_FILE:
        raise InputError(
            f"{path} alone is no vocabulary; give a {wordpiece_vocabulary.FILE}, or the folder "
            f"that {path.name} lies in."
        )
    return _parse_wordpiece(_read_bytes(path), path)


def parse_vocabulary(contents, *, folder, special_tokens=BERT_TOKENS):
    """The `Vocabulary` of the files of either kind, as they lie in `folder` (for messages).

    Args:
        contents: name -> bytes, of `VOCABULARY_FILES` those that are there.
        special_tokens: its `SpecialTokens`.
    """
    if wordpiece_vocabulary.FILE in contents:
        name = wordpiece_vocabulary.FILE
        return _parse_wordpiece(contents[name], f"{folder}/{name}", special_tokens)
    expected = ("a JSON object of piece and id", "a pair of pieces a line")
    sources = [f"{folder}/{name}" for name in BpeVocabulary.FILES]
    texts = []
    for name, source, what in zip(BpeVocabulary.FILES, sources, expected, strict=True):
        if name not in contents:
            raise InputError(f"The vocabulary {source} could not be read: there is no such file.")
        texts.append(_decode(contents[name], source, what=what))
    return BpeVocabulary.from_texts(*texts, sources=sources, special_tokens=special_tokens)


def holds_own_kind(folder):
    """Whether a folder's vocabulary is one that is read here: not RoBERTa's, and not none."""
    folder = Path(folder)
    if (folder / wordpiece_vocabulary.FILE).exists():
        return True
    if not all((folder / name).exists() for name in BpeVocabulary.FILES):
        return False
    vocab = _read_bytes(folder / bpe_vocabulary.VOCAB_FILE)
    return bpe_vocabulary.is_own_kind(vocab.decode("utf-8", errors="replace"))


def write_vocabulary(path, vocabulary, *, lowercase):
    """Writes what was learned: `output_texts`, whole or not at all, in the place of what is there.

    Raises `InputError` where it cannot be written.
    """
    texts = output_texts(path, vocabulary, lowercase=lowercase)
    texts = {os.path.basename(each): text for each, text in texts.items()}
    if vocabulary.algorithm == "wordpiece":
        files.write_texts(Path(path).parent, texts)
    else:
        with files.new_folder(path) as folder:
            for name, text in texts.items():
                _write(folder / name, text)


def output_texts(path, vocabulary, *, lowercase):
    """What a learned vocabulary is written as at `path`, on any file system: path -> text.

    WordPiece is a `vocab.txt`, byte-pair encoding a folder; the counts of the pieces are beside
    the file or in the folder, where the vocabulary knows them. The last file is to be written last:
    without it there is nothing that `open_vocabulary` takes.
    """
    path = str(path)
    is_folder = vocabulary.algorithm == "bpe"
    texts = {}
    if vocabulary.counts is not None:
        beside = counts_path(path, is_folder=is_folder)
        texts[beside] = counts_text(vocabulary)
    if is_folder:
        own = folder_texts(vocabulary, lowercase=lowercase)
        return texts | {f"{path}/{name}": text for name, text in own.items()}
    return texts | {path: vocabulary.files()[wordpiece_vocabulary.FILE]}


def write_folder(folder, vocabulary, *, lowercase, template=BERT_TEMPLATE):
    """Writes a folder that `open_folder` opens, and transformers' AutoTokenizer too.

    What else lies in the folder stays there.
    """
    texts = folder_texts(vocabulary, lowercase=lowercase, template=template)
    write_into(Path(folder), texts, last=vocabulary.FILES[-1])


def folder_texts(vocabulary, *, lowercase, template=BERT_TEMPLATE):
    """What `write_folder` writes: name -> text."""
    texts = vocabulary.files()
    is_bert = (vocabulary.algorithm, vocabulary.special_tokens, template) == (
        "wordpiece",
        BERT_TOKENS,
        BERT_TEMPLATE,
    )
    if not is_bert:  # which needs no tokenizer.json beside its vocab.txt
        tokenizer = hugging_face.tokenizer(vocabulary, lowercase=lowercase, template=template)
        texts[TOKENIZER_FILE] = json.dumps(tokenizer, ensure_ascii=False, indent=1)
    config = hugging_face.tokenizer_config(vocabulary, lowercase=lowercase, is_bert=is_bert)
    return {**texts, CONFIG_FILE: json.dumps(config, indent=2) + "\n"}


def read_counts(path, vocabulary):
    """The counts of the vocabulary that was read from `path`: int64 (V,), or None without a file.

    Raises `InputError` where the file is not one of this vocabulary's.
    """
    path = Path(path)
    if (path / wordpiece_vocabulary.FILE).exists():
        path = path / wordpiece_vocabulary.FILE
    file = Path(counts_path(str(path), is_folder=path.is_dir()))
    if not file.exists():
        return None
    text = _decode(_read_bytes(file), file, what="a piece, a tab and its count a line")
    return parse_counts(text, vocabulary, source=file)


def _read_folder(folder):
    """-> (`Vocabulary`, whether it is uncased, None where the folder does not say, `Template`)."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder; a folder with a {wordpiece_vocabulary.FILE} was expected."
        )
    config = _read_json(folder / CONFIG_FILE)
    tokenizer = _read_json(folder / TOKENIZER_FILE)
    special = hugging_face.special_tokens_of(config, source=str(folder))
    contents = {n: _read_bytes(folder / n) for n in VOCABULARY_FILES if (folder / n).exists()}
    if contents.keys() & {wordpiece_vocabulary.FILE, bpe_vocabulary.MERGES_FILE}:
        vocabulary = parse_vocabulary(contents, folder=folder, special_tokens=special)
    elif tokenizer:
        vocabulary = hugging_face.wordpiece_of(
            tokenizer, special_tokens=special, source=str(folder / TOKENIZER_FILE)
        )
    else:
        raise InputError(
            f"{folder} has no {wordpiece_vocabulary.FILE} and no other vocabulary that this "
            f"library reads ({' with '.join(BpeVocabulary.FILES)}, or {TOKENIZER_FILE})."
        )
    added = _read_json(folder / ADDED_FILE)
    case = hugging_face.case_of(
        config, tokenizer, added, special_tokens=special, source=str(folder)
    )
    hugging_face.check_tokens(vocabulary, tokenizer, source=str(folder))
    template = hugging_face.template_of(config, tokenizer, vocabulary, source=str(folder))
    return vocabulary, case, template


def _write(path, text):
    path.write_text(text, encoding="utf-8", newline="")


def _parse_wordpiece(data, path, special_tokens=BERT_TOKENS):
    text = _decode(data, path, what="one piece a line")
    return WordPieceVocabulary.from_text(text, source=str(path), special_tokens=special_tokens)


def _read_json(path):
    """The object in a JSON file; {} where there is no such file."""
    return read_json(path) if path.exists() else {}


def _read_bytes(path):
    """The content of a vocabulary's file."""
    try:
        return files.read_small(path)
    except OSError as error:
        raise InputError(
            f"The vocabulary {path} could not be read: {error.strerror}; give a "
            f"{wordpiece_vocabulary.FILE}, or a folder with a vocabulary."
        ) from error


def _decode(data, path, *, what):
    """The text of a vocabulary's file; `InputError` names file and line (`what` was expected)."""
    if not data:
        raise InputError(f"The vocabulary {path} is empty; {what} was expected.")
    if data.startswith(b"\xef\xbb\xbf"):
        raise InputError(
            f"{path}, line 1 begins with a byte order mark; save the file as UTF-8 without one."
        )
    if b"\r\n" in data:
        number = data[: data.index(b"\r\n")].count(b"\n") + 1
        raise InputError(
            f"{path}, line {number} has a Windows line end; "
            "save the file with Unix line ends (a newline only)."
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = data[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {number} is not UTF-8.") from error
