"""The folder that a data job leaves: shards, a dataset card, and COMPLETED, written last."""

from keras_bert.base.errors import InputError
from keras_bert.records.dataset_card import SPLITS, DatasetCard
from keras_bert.text.vocabulary_files import VOCABULARY_FILES, parse_vocabulary

NAME = "pretraining_data"
CARD = "dataset_card.json"
COMPLETED = "COMPLETED"


def shard_name(split, index, count, compression=None):
    """The file name of shard `index` (from 0) of `count`."""
    ending = ".gz" if compression == "gzip" else ""
    return f"{NAME}-{split}.tfrecord-{index:05d}-of-{count:05d}{ending}"


class DataFolder:
    """A finished folder of pre-training rows.

    `path` is the folder, `card` its `DatasetCard`, `spec` the `FeatureSpec` of the rows. Use
    `DataFolder.open`.
    """

    def __init__(self, *, path, card):
        self.path = path
        self.card = card
        self.spec = card.spec

    def __repr__(self):
        return f"DataFolder({self.path}: {self.card.described})"

    def _repr_html_(self):
        return self.card._repr_html_()

    @classmethod
    def open(cls, path):
        """Opens the folder `path` (local or of any file system that `tf.io.gfile` reads).

        Raises `InputError` where there is no folder, no COMPLETED in it (the job did not finish),
        no card that can be read, or a card of a later format.
        """
        path = str(path)
        if not _gfile().isdir(path):
            raise InputError(
                f"there is no data folder {path}: make one with keras-bert pretraining-data"
            )
        if not _gfile().exists(_join(path, COMPLETED)):
            raise InputError(
                f"{path} holds no file {COMPLETED}: its job did not finish, or it is not a folder "
                "that keras-bert pretraining-data wrote; run the job again"
            )
        card = _join(path, CARD)
        return cls(path=path, card=DatasetCard.parse(_read(card), card))

    @property
    def compression(self):
        """The `compression_type` that `tf.data.TFRecordDataset` takes: "" or "GZIP"."""
        return "GZIP" if self.card.compression == "gzip" else ""

    def shards(self, split):
        """The paths of a split's shards ("train" or "eval") in order; [] if it has no rows.

        Raises `InputError` where a shard of the card is not there.
        """
        if split not in SPLITS:
            raise ValueError(f"`split` must be one of {SPLITS}. Received: {split!r}")
        count = self.card.splits[split].shards
        paths = [
            _join(self.path, shard_name(split, index, count, self.card.compression))
            for index in range(count)
        ]
        for shard in paths:
            if not _gfile().exists(shard):
                raise InputError(
                    f"{shard} is missing: {_join(self.path, CARD)} counts {count} shards of the "
                    f"{split} split; run keras-bert pretraining-data again"
                )
        return paths

    def vocabulary(self):
        """The `Vocabulary` that made the rows: a copy lies in the folder."""
        contents = {
            name: _read(_join(self.path, name))
            for name in VOCABULARY_FILES
            if _gfile().exists(_join(self.path, name))
        }
        if not contents:
            raise InputError(
                f"there is no vocabulary in {self.path}: run keras-bert pretraining-data again"
            )
        return parse_vocabulary(contents, folder=self.path, special_tokens=self.card.special_tokens)

    def check_vocabulary(self, vocabulary):
        """Raises `InputError` unless these rows were made with this vocabulary."""
        expected = self.card.vocabulary
        if expected.sha256 != vocabulary.sha256:
            raise InputError(
                f"the rows of {self.path} were made with another vocabulary ({expected.size} "
                f"pieces, sha256 {expected.sha256[:12]}…) than the one given "
                f"({len(vocabulary)} pieces, sha256 {vocabulary.sha256[:12]}…): give the "
                "vocabulary that made the rows, or make them again with this one"
            )


def _read(path):
    """The bytes of a file of the folder."""
    if not _gfile().exists(path):
        raise InputError(f"there is no {path}: run keras-bert pretraining-data again")
    with _gfile().GFile(path, "rb") as file:
        return file.read()


def _gfile():
    # The jobs name the files of a folder without loading TensorFlow, which reads them.
    import tensorflow as tf

    return tf.io.gfile


def _join(folder, name):
    # os.path.join would put a backslash into gs:// paths on Windows.
    return f"{folder.rstrip('/')}/{name}"
