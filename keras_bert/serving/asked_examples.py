"""Examples for a model that is served: JSON Lines of its inputs by name."""

from keras_bert.readers.text_file import TextFile


class AskedExamples(TextFile):
    """The objects of a file of JSON Lines, as they stand there; to be gone through once.

    Raises `InputError` where the file cannot be read or a line is no object.
    """

    def __iter__(self):
        with self.closed_on_error():
            for number, line in self._lines():
                if line.strip():
                    yield self._json_object(number, line)
            self._closer.close()
