"""Kills what a job does with its output folder at each of its system calls.

    python -m tests.data_gen.killed_output_folder {fresh,replacing} FOLDER

Prints how many kills there were. A process of its own, since it forks for each of them, which is
slow and not safe if TensorFlow is loaded.
"""

import json
import os
import shutil
import sys
from pathlib import Path

from data_gen.data_folder import NewDataFolder
from data_gen.files import new_file
from keras_bert.records import DatasetCard
from keras_bert.records.folder import CARD, COMPLETED
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from tests.kill_points import kill_at_every_call

VOCABULARY = WordPieceVocabulary([*SPECIAL_TOKENS])
SHARD = "pretraining_data-train.tfrecord-00000-of-00001"
NAMES = sorted([CARD, COMPLETED, SHARD, "vocab.txt"])


def card(**changes):
    said = {
        "format_version": 1, "objective": "mlm", "masking": "dynamic", "rows": "compact",
        "max_length": 16, "max_predictions": 3, "seed": 5, "lowercase": True, "input": ["a.txt"],
        "vocabulary": {"sha256": VOCABULARY.sha256, "size": len(VOCABULARY)},
        "settings": {"mask_unit": "token", "masked_rate": 0.15},
        "splits": {"train": {"shards": 1, "instances": 3, "bytes": 4}, "eval": {"shards": 0}},
    }  # fmt: skip
    return DatasetCard.parse(json.dumps(said | changes), "card")


def write_all(path, *, force=False, **options):
    """Does with a folder what a job does."""
    with NewDataFolder(path, force=force, **options) as folder:
        if folder.finished:
            return
        for name, text in VOCABULARY.files().items():
            folder.write(name, text)
        with new_file(folder.file(SHARD)) as shard:
            shard.write_text("rows")
        folder.write(CARD, card().to_json())
        folder.finish()


def main(replaces, path):
    def prepare():
        shutil.rmtree(path, ignore_errors=True)
        if replaces:
            write_all(path)

    def check(killed):
        finished = (path / COMPLETED).exists()
        if finished:  # the old or the new, and in either case whole
            assert set(NAMES) <= set(os.listdir(path))
        write_all(path, card=card(), force=not finished and replaces)
        assert sorted(os.listdir(path)) == NAMES, os.listdir(path)

    def job():
        write_all(path, force=replaces)

    return kill_at_every_call(path, prepare=prepare, action=job, check=check)


if __name__ == "__main__":
    os.fsync = lambda descriptor: None  # the machine is not switched off here
    print(main(sys.argv[1] == "replacing", Path(sys.argv[2]) / "data"))
