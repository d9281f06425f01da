"""Tags that break their scheme: counted for the user, or refused."""

from keras_bert.base.formatting import counted
from keras_bert.readers.schemes import broken_places


class BrokenTags:
    """What the tags of a source come to that its scheme does not have where they stand.

    Args:
        refuse: whether the first one is an error.
    """

    def __init__(self, *, refuse):
        self._refuse = refuse
        self._count, self._first, self._scheme = 0, None, None

    def look_at(self, sentence, scheme):
        """Counts those of a `TaggedWords`.

        Raises InputError, with the place, where they are refused.
        """
        places = broken_places(sentence.tags or (), scheme)
        if places and self._refuse:
            word = places[0]
            raise sentence.error(
                f'the tag {sentence.tags[word]} of "{sentence.words[word]}" cannot stand there in '
                f"the scheme {scheme}.",
                word=word,
            )
        if places and self._first is None:
            self._first, self._scheme = (sentence, places[0]), scheme
        self._count += len(places)

    def notes(self):
        """Lines for the user on those so far."""
        if not self._count:
            return []
        sentence, word = self._first
        return [
            f"{sentence.source.name}: {counted(self._count, 'tag')} that the scheme {self._scheme} "
            f"does not have there, the first one in line {sentence.line_of(word)} "
            f'({sentence.tags[word]} at "{sentence.words[word]}"); the chunks are read as '
            "conlleval reads them."
        ]
