"""Kills what writes a vocabulary at each of its system calls, over what may lie there before.

    python -m tests.text.killed_vocabularies {job,save} FOLDER

Prints how many kills there were in each case. A process of its own, since it forks for each of
them, which is slow if TensorFlow is loaded.
"""

import json
import os
import shutil
import sys
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.text.learners import learn_bpe, learn_byte_level_bpe, learn_wordpiece
from keras_bert.text.unigram_learner import learn_unigram
from keras_bert.text.vocabulary_files import (
    open_vocabulary,
    read_counts,
    write_folder,
    write_vocabulary,
)
from tests.kill_points import kill_at_every_call

WORDS = {"low": 5, "lowest": 2, "newer": 6, "wider": 3, "new": 2}
OLD = {
    "wordpiece": learn_wordpiece(WORDS, size=30),
    "bpe": learn_bpe(WORDS, size=20),
    "unigram": learn_unigram(WORDS, size=20, lowercase=False),
    "byte-level-bpe": learn_byte_level_bpe(WORDS, size=263),
}
NEW = {
    "wordpiece": learn_wordpiece(WORDS, size=33),
    "bpe": learn_bpe(WORDS, size=24),
    "unigram": learn_unigram(WORDS, size=22),
    "byte-level-bpe": learn_byte_level_bpe(WORDS, size=265),  # always cased
}
ALGORITHMS = tuple(NEW)
# What other programs, and people, may call theirs.
FOREIGN = ("v.part", ".v.part", "vocab.txt.part", ".vocab.txt.part")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def opened(path):
    """The result of a reader: the vocabulary, its counts and its case; None for a refusal."""
    try:
        vocabulary, lowercase, _ = open_vocabulary(path)
    except InputError:
        return None
    counts = read_counts(path, vocabulary)
    return vocabulary, None if counts is None else counts.tolist(), lowercase


def kill_job(algorithm, place, *, replaces):
    """Kills the job of learning: the old vocabulary with its counts is left, or the new one."""
    old, new = OLD[algorithm], NEW[algorithm]
    path = place / ("vocab.txt" if algorithm == "wordpiece" else "v")
    own_files = {"vocab.txt", "vocab.counts.tsv"} if algorithm == "wordpiece" else {"v"}
    lowercase = new.lowercase is not False

    def prepare():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for name in FOREIGN:
            (place / name).write_text("mine")
        if replaces:
            write_vocabulary(path, old, lowercase=False)

    def write():
        write_vocabulary(path, new, lowercase=lowercase)

    # A `vocab.txt` does not say that it is cased.
    allowed = [(old, old.counts.tolist(), algorithm == "wordpiece")] if replaces else []
    wanted = (new, new.counts.tolist(), lowercase)

    def check(killed):
        assert opened(path) in [None, wanted, *allowed]
        write()
        assert opened(path) == wanted
        assert set(names(place)) == {*FOREIGN, *own_files}
        assert all((place / name).read_text() == "mine" for name in FOREIGN)

    return kill_at_every_call(place, prepare=prepare, action=write, check=check)


def kill_save(algorithm, folder, *, before):
    """Kills saving into a model's folder: the old tokenizer is left, the new one, or a refusal."""

    def prepare():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        write_folder(folder, OLD[before], lowercase=False)

    new = NEW[algorithm]
    lowercase = new.lowercase is not False

    def write():
        write_folder(folder, new, overwrite=True, lowercase=lowercase)

    wanted = (new, None, lowercase)
    own_files = {*new.FILES, "tokenizer.json"}

    def check(killed):
        assert opened(folder) in [None, wanted, (OLD[before], None, False)]
        write()
        assert opened(folder) == wanted
        assert set(names(folder)) == {"config.json", "tokenizer_config.json", *own_files}

    return kill_at_every_call(folder, prepare=prepare, action=write, check=check)


if __name__ == "__main__":
    os.fsync = lambda descriptor: None  # the machine is not switched off here
    scenario, place = sys.argv[1], Path(sys.argv[2]) / "place"
    if scenario == "job":
        cases = [
            kill_job(a, place, replaces=replaces) for a in ALGORITHMS for replaces in (False, True)
        ]
    else:
        cases = [kill_save(a, place, before=before) for a in ALGORITHMS for before in ALGORITHMS]
    print(json.dumps(cases))
