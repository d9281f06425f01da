"""Sentences with a tag a word from rows that are dictionaries: JSON Lines and tfds."""

from keras_bert.base.formatting import counted, listed
from keras_bert.readers.tagged_words import TaggedWords, is_text, sentence_of_text

WORD_KEYS = ("words", "tokens")
TAG_KEYS = ("tags", "ner_tags", "pos_tags", "labels", "ner", "upos")
TEXT_KEY, DOCUMENT_KEY = "text", "document"


class TaggedObjects:
    """The `TaggedWords` of rows, each a dictionary with a list of words and one of tags.

    Where there are no words, a text that a tokenizer splits stands under "text". Sentences with the
    same "document" are of one document; one that names none is one of its own.

    Args:
        rows: an iterable of (line number, dictionary).
        first: the first of them, by whose keys words and tags are found.
        source: what the examples are of; its `error` names a line.
        word, tag: keys, or None for the usual ones.
        need_tags, pretokenized: see `TaggedFile`.

    Attributes: `labelled`, whether there are tags; `description`, a part of a line for the user.

    Raises:
        InputError: the keys are not there; or while it is iterated, a row is none of this form.
    """

    def __init__(self, rows, first, source, *, word, tag, need_tags, pretokenized):
        number, keys = first
        word = word or next((key for key in WORD_KEYS if key in keys), WORD_KEYS[0])
        tag = tag or next((key for key in TAG_KEYS if key in keys), TAG_KEYS[0])
        for what, key in (("word", word), ("tag", tag)):
            if need_tags and key not in keys:
                raise source.error(
                    number,
                    f'no "{key}" among the keys ({listed(keys)}); say which key holds the {what}s '
                    f"with `{what}_column`.",
                )
        if word not in keys and TEXT_KEY not in keys:
            raise source.error(
                number,
                f'no "{word}" and no "{TEXT_KEY}" among the keys ({listed(keys)}); give either.',
            )
        self.labelled = tag in keys
        words = f'words in "{word}"' if word in keys else f'text in "{TEXT_KEY}"'
        tags = f'tags in "{tag}"' if self.labelled else "no tags"
        self.description = f"{words}, {tags}"
        self._rows, self._source = rows, source
        self._word, self._tag = word, tag
        self._need_tags, self._pretokenized = need_tags, pretokenized

    def __iter__(self):
        documents = {}
        for number, row in self._rows:
            name = row.get(DOCUMENT_KEY)
            key = (number,) if name is None else str(name)
            document = documents.setdefault(key, len(documents))
            if self._word in row or self._need_tags:
                yield self._of_words(row, number, document)
            else:
                yield self._of_text(row, number, document)

    def _of_text(self, row, number, document):
        text = row.get(TEXT_KEY)
        if not isinstance(text, str):
            raise self._error(
                number, f'no text under "{TEXT_KEY}"; every object needs a string there.'
            )
        if not is_text(text):
            raise self._error(
                number, f'a NUL or half a surrogate pair under "{TEXT_KEY}"; this is not text.'
            )
        return sentence_of_text(
            text, number, document, self._source, pretokenized=self._pretokenized
        )

    def _of_words(self, row, number, document):
        words, tags = self._strings(number, row, self._word), None
        if self._tag in row or self._need_tags:
            tags = self._strings(number, row, self._tag)
            if len(tags) != len(words):
                raise self._error(
                    number,
                    f"{counted(len(words), 'word')} and {counted(len(tags), 'tag')}; every word "
                    "needs one tag.",
                )
        if self._need_tags and not words:
            raise self._error(number, "a sentence without a word.")
        return TaggedWords(number, words, tags, document=document, source=self._source)

    def _strings(self, number, row, key):
        """A list of words or tags as a tuple; numbers are taken as they are written."""
        values = row.get(key)
        if isinstance(values, list) and all(type(value) in (str, int) for value in values):
            values = tuple(map(str, values))
            if all(value and is_text(value) for value in values):
                return values
        raise self._error(
            number,
            f'"{key}" should be a list of strings, none of them empty, without a NUL or half a '
            "surrogate pair.",
        )

    def _error(self, number, message):
        return self._source.error(number, message)
