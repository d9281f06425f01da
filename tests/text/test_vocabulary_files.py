"""Vocabularies as files and folders: opened as what they are, written whole, never half taken."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from keras_bert.text.template import BERT_TEMPLATE
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from keras_bert.text.vocabulary_files import (
    load_vocabulary,
    open_folder,
    open_vocabulary,
    output_texts,
    parse_vocabulary,
    write_folder,
    write_vocabulary,
)
from tests.messages import raises_input_error
from tests.text.killed_vocabularies import ALGORITHMS, NEW, OLD, names, opened

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def test_a_learned_wordpiece_vocabulary_is_a_file_with_its_counts_beside_it(tmp_path):
    path = tmp_path / "new" / "v.txt"
    learned = NEW["wordpiece"]
    write_vocabulary(path, learned, lowercase=False)
    assert names(path.parent) == ["v.counts.tsv", "v.txt"]
    assert opened(path) == (learned, learned.counts.tolist(), True)  # a file does not say its case
    assert open_vocabulary(path, lowercase=False)[1] is False
    write_vocabulary(path, WordPieceVocabulary(SPECIAL_TOKENS), lowercase=True)  # without counts
    assert path.read_text() == "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"


@pytest.mark.parametrize("lowercase", [True, False])
def test_a_learned_vocabulary_of_byte_pair_encoding_is_a_folder(tmp_path, lowercase):
    learned = NEW["bpe"]
    path = tmp_path / "v"
    write_vocabulary(path, OLD["bpe"], lowercase=not lowercase)
    (path / "from an earlier version").write_text("")
    write_vocabulary(path, learned, lowercase=lowercase)
    assert names(path) == [
        "counts.tsv",
        "merges.txt",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.json",
    ]
    assert opened(path) == (learned, learned.counts.tolist(), lowercase)
    assert load_vocabulary(path).merges == learned.merges


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_output_texts_are_what_is_written(tmp_path, algorithm):
    """So that a job may write them on any file system."""
    path = tmp_path / "vocab.txt"
    texts = output_texts(path, NEW[algorithm], lowercase=True)
    write_vocabulary(path, NEW[algorithm], lowercase=True)
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {str(file): file.read_bytes().decode() for file in written} == texts
    remote = output_texts("gs://bucket/v.txt", NEW[algorithm], lowercase=True)
    assert len(remote) == len(texts)
    assert all(name.startswith("gs://bucket/v.") for name in remote)


def kills(scenario, place):
    """How often `killed_vocabularies.py` killed what it tests, in a process of its own."""
    command = [sys.executable, "-m", "tests.text.killed_vocabularies", scenario, str(place)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_killed_job_leaves_the_old_vocabulary_or_the_new_one(tmp_path):
    kill_counts = kills("job", tmp_path)
    assert len(kill_counts) == 8 and min(kill_counts) > 8


@pytest.mark.slow
def test_a_killed_save_is_never_read_as_a_mixture(tmp_path):
    kill_counts = kills("save", tmp_path)
    assert len(kill_counts) == 16 and min(kill_counts) > 8


@pytest.mark.parametrize("missing", ["vocab.json", "merges.txt", "tokenizer_config.json"])
def test_a_part_of_a_folder_is_rejected_and_not_taken_for_uncased(tmp_path, missing):
    """A run that was killed between its files once left one."""
    write_folder(tmp_path, NEW["bpe"], lowercase=False)
    (tmp_path / "tokenizer.json").unlink()
    assert open_folder(tmp_path) == (NEW["bpe"], False, BERT_TEMPLATE)
    (tmp_path / missing).unlink()
    for given in (open_folder, open_vocabulary):
        with raises_input_error(missing):
            given(tmp_path)


def test_another_tokenizer_is_replaced_only_if_asked(tmp_path):
    (tmp_path / "config.json").write_text("mine")
    for _ in range(2):
        write_folder(tmp_path, NEW["bpe"], lowercase=False)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for vocabulary, name in ((NEW["wordpiece"], "merges.txt"), (NEW["bpe"], "tokenizer.json")):
        with raises_input_error(f"has another tokenizer already (...{name}...overwrite=True"):
            write_folder(tmp_path, vocabulary, lowercase=True)
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    with raises_input_error("has another tokenizer already"):
        NEW["bpe"].save(tmp_path)  # without its tokenizer.json
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    write_folder(tmp_path, NEW["wordpiece"], overwrite=True, lowercase=True)
    assert open_folder(tmp_path) == (NEW["wordpiece"], True, BERT_TEMPLATE)
    names_of_both = ["config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"]
    assert names(tmp_path) == names_of_both


@pytest.mark.parametrize("algorithm", NEW)
def test_a_vocabulary_replaces_another_file_only_if_asked(algorithm, tmp_path):
    vocabulary, path = NEW[algorithm], tmp_path / "vocabulary"
    for _ in range(2):  # the same file is no other one
        vocabulary.save(path)
    file = path / vocabulary.FILES[-1] if vocabulary.IS_FOLDER else path
    file.write_text("mine")
    with raises_input_error("already...Give another ...overwrite=True"):
        vocabulary.save(path)
    assert file.read_text() == "mine"
    vocabulary.save(path, overwrite=True)
    assert load_vocabulary(path) == vocabulary


def test_a_folder_that_does_not_say_its_case_can_be_told(tmp_path):
    NEW["bpe"].save(tmp_path)
    assert names(tmp_path) == ["merges.txt", "vocab.json"]
    assert load_vocabulary(tmp_path) == NEW["bpe"]
    with raises_input_error("does not record whether its vocabulary is cased"):
        open_vocabulary(tmp_path)
    for lowercase in (True, False):
        assert open_vocabulary(tmp_path, lowercase=lowercase) == (
            NEW["bpe"],
            lowercase,
            BERT_TEMPLATE,
        )
    NEW["wordpiece"].save(tmp_path / "vocab.txt")
    # BERT's own need not say.
    assert open_vocabulary(tmp_path) == (NEW["wordpiece"], True, BERT_TEMPLATE)


def test_who_contradicts_the_folder_is_rejected(tmp_path):
    write_folder(tmp_path, NEW["bpe"], lowercase=False)
    assert open_vocabulary(tmp_path, lowercase=False) == (NEW["bpe"], False, BERT_TEMPLATE)
    with raises_input_error("is cased according to its tokenizer_config.json, and not uncased"):
        open_vocabulary(tmp_path, lowercase=True)


def test_what_another_reader_of_files_has_read_is_parsed(tmp_path):
    for vocabulary in NEW.values():
        contents = {name: text.encode() for name, text in vocabulary.files().items()}
        assert parse_vocabulary(contents, folder="gs://data") == vocabulary
    del contents["vocab.json"]
    with raises_input_error("gs://data/vocab.json could not be read"):
        parse_vocabulary(contents, folder="gs://data")


def test_an_output_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("mine")
    for vocabulary in NEW.values():
        with raises_input_error("cannot be written"):
            write_vocabulary(tmp_path / "file" / "v", vocabulary, lowercase=True)
    assert names(tmp_path) == ["file"]
