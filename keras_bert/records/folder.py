"""The folder that a data job leaves: shards, a dataset card, and COMPLETED, written last."""

import json

import tensorflow as tf

from keras_bert.errors import InputError
from keras_bert.records.specs import spec_of
from keras_bert.text.vocabulary_files import VOCABULARY_FILES, parse_vocabulary

NAME = "pretraining_data"
CARD = "dataset_card.json"
COMPLETED = "COMPLETED"
FORMAT_VERSION = 1
SPLITS = ("train", "eval")

_KEYS = ("objective", "masking", "rows", "max_length", "max_predictions", "vocabulary", "splits")


def shard_name(split, index, count, compression=None):
    """The file name of shard `index` (from 0) of `count`."""
    ending = ".gz" if compression == "gzip" else ""
    return f"{NAME}-{split}.tfrecord-{index:05d}-of-{count:05d}{ending}"


class DataFolder:
    """A finished folder of pre-training rows.

    `path` is the folder, `card` the parsed dataset card (a dict), `spec` the `FeatureSpec` of the
    rows. Use `DataFolder.open`.
    """

    def __init__(self, *, path, card):
        self.path = path
        self.card = card
        self.spec = spec_of(card)

    @classmethod
    def open(cls, path):
        """Opens the folder `path` (local or of any file system that `tf.io.gfile` reads).

        Raises `InputError` where there is no folder, no COMPLETED in it (the job did not finish),
        no card that can be read, or a card of a later format.
        """
        path = str(path)
        if not tf.io.gfile.isdir(path):
            raise InputError(
                f"there is no data folder {path}: make one with keras-bert pretraining-data"
            )
        if not tf.io.gfile.exists(_join(path, COMPLETED)):
            raise InputError(
                f"{path} holds no file {COMPLETED}: its job did not finish, or it is not a folder "
                "that keras-bert pretraining-data wrote; run the job again"
            )
        return cls(path=path, card=_read_card(_join(path, CARD)))

    @property
    def compression(self):
        """The `compression_type` that `tf.data.TFRecordDataset` takes: "" or "GZIP"."""
        return "GZIP" if self.card.get("compression") == "gzip" else ""

    def shards(self, split):
        """The paths of a split's shards ("train" or "eval") in order; [] if it has no rows.

        Raises `InputError` where a shard of the card is not there.
        """
        if split not in SPLITS:
            raise ValueError(f"`split` must be one of {SPLITS}. Received: {split!r}")
        count = self.card["splits"][split]["shards"]
        paths = [
            _join(self.path, shard_name(split, index, count, self.card.get("compression")))
            for index in range(count)
        ]
        for shard in paths:
            if not tf.io.gfile.exists(shard):
                raise InputError(
                    f"{shard} is missing: {_join(self.path, CARD)} counts {count} shards of the "
                    f"{split} split; run keras-bert pretraining-data again"
                )
        return paths

    def vocabulary(self):
        """The `Vocabulary` that made the rows: a copy lies in the folder."""
        contents = {}
        for name in VOCABULARY_FILES:
            path = _join(self.path, name)
            if tf.io.gfile.exists(path):
                with tf.io.gfile.GFile(path, "rb") as file:
                    contents[name] = file.read()
        if not contents:
            raise InputError(
                f"there is no vocabulary in {self.path}: run keras-bert pretraining-data again"
            )
        return parse_vocabulary(contents, folder=self.path)

    def check_vocabulary(self, vocabulary):
        """Raises `InputError` unless these rows were made with this vocabulary."""
        made_with = self.card["vocabulary"]
        if made_with["sha256"] != vocabulary.sha256:
            raise InputError(
                f"the rows of {self.path} were made with another vocabulary ({made_with['size']} "
                f"pieces, sha256 {made_with['sha256'][:12]}…) than the one given "
                f"({len(vocabulary)} pieces, sha256 {vocabulary.sha256[:12]}…): give the "
                "vocabulary that made the rows, or make them again with this one"
            )


def _read_card(path):
    try:
        with tf.io.gfile.GFile(path) as file:
            card = json.load(file)
    except tf.errors.NotFoundError:
        raise InputError(f"there is no {path}: run keras-bert pretraining-data again") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a readable dataset card: {error}") from None
    if not isinstance(card, dict) or "format_version" not in card:
        raise InputError(f"{path} is not a dataset card: it has no format_version")
    if card["format_version"] != FORMAT_VERSION:
        raise InputError(
            f"{path} has format version {card['format_version']}, and this keras-bert reads "
            f"version {FORMAT_VERSION}: make the data again, or use the keras-bert that made it"
        )
    missing = [key for key in _KEYS if key not in card]
    if missing:
        raise InputError(f"{path} is not a whole dataset card: it has no {', '.join(missing)}")
    return card


def _join(folder, name):
    # os.path.join would put a backslash into gs:// paths on Windows.
    return f"{folder.rstrip('/')}/{name}"
