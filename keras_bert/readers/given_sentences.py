"""Sentences that come from Python instead of from a file."""

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.readers.tagged_words import TaggedWords, sentence_of_text


class GivenSentences:
    """A sequence of sentences, with the interface of `TaggedFile`.

    A sentence is a string, a list of words, a pair (words, tags), or a dictionary with "words" (and
    "tags"). Each is a document of its own. What a file calls a line is the place in the sequence,
    from 1.

    Raises:
        ValueError: an item is nothing of these.
        InputError: a sentence has other numbers of words and tags, or lacks tags that are needed.
    """

    name = "the given sentences"
    kind = "given"
    description = ""
    columns = None

    def __init__(self, sentences, *, need_tags=True, pretokenized=False):
        self._examples = [
            self._example(place, sentence, pretokenized=pretokenized)
            for place, sentence in enumerate(sentences, start=1)
        ]
        self.labelled = any(example.tags is not None for example in self._examples)
        for example in self._examples:
            if need_tags and example.tags is None:
                raise example.error("no tags; give a pair of the words and their tags.")
            if need_tags and not example.words:
                raise example.error("a sentence without a word.")

    def __iter__(self):
        return iter(self._examples)

    def error(self, line, message):
        """The InputError that says which sentence is meant."""
        return InputError(f"Sentence {line} of those given: {message}")

    def _example(self, place, sentence, *, pretokenized):
        if isinstance(sentence, str):
            return sentence_of_text(sentence, place, place - 1, self, pretokenized=pretokenized)
        words, tags = _words_and_tags(sentence)
        if tags is not None and len(tags) != len(words):
            raise self.error(
                place,
                f"{counted(len(words), 'word')} and {counted(len(tags), 'tag')}; every word needs "
                "one tag.",
            )
        return TaggedWords(place, words, tags, document=place - 1, source=self)


def _words_and_tags(sentence):
    parts = [sentence]
    if isinstance(sentence, dict):
        parts = [sentence[key] for key in ("words", "tags") if key in sentence]
    elif len(sentence) == 2 and not any(isinstance(part, str) for part in sentence):
        parts = list(sentence)
    if not parts or not all(map(_is_strings, parts)):
        raise ValueError(
            "A sentence must be a string, a list of words, a pair of words and tags, or a "
            f'dictionary with "words". Received: {sentence!r}'
        )
    words, *tags = map(tuple, parts)
    return words, tags[0] if tags else None


def _is_strings(values):
    return isinstance(values, list | tuple) and all(
        isinstance(value, str) and value for value in values
    )
