"""Sentences with a tag a word from a prepared TensorFlow Dataset."""

from keras_bert.readers.tagged_objects import TaggedObjects
from keras_bert.readers.tfds import TfdsTable


class TaggedTfds(TfdsTable):
    """The `TaggedWords` of `tfds:NAME/CONFIG:SPLIT`, with the interface of `TaggedFile`.

    Args:
        name: see `TfdsTable`.
        word_column, tag_column: the names of features, or None for "tokens" and "ner" or other
            usual ones.
        need_tags, pretokenized: see `TaggedFile`.

    Raises InputError: see `TfdsTable` and `TaggedObjects`.
    """

    columns = None

    def __init__(
        self, name, *, word_column=None, tag_column=None, need_tags=True, pretokenized=False
    ):
        super().__init__(name)
        self._objects = self._open(
            super().__iter__(),
            word=word_column,
            tag=tag_column,
            need_tags=need_tags,
            pretokenized=pretokenized,
        )
        self.labelled = self._objects.labelled
        self.description = f"{name}: a prepared dataset, {self._objects.description}"

    def __iter__(self):
        """Yields the sentences; may be called once."""
        return iter(self._objects)

    def _open(self, rows, **options):
        return TaggedObjects(rows, self.sample[0], self, **options)
