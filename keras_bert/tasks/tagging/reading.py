"""Sentences as a tagger takes them: their tags checked and in one scheme."""

import dataclasses

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, quoted
from keras_bert.readers.schemes import (
    BIO,
    IOB1,
    InvalidTags,
    converted,
    name_chunks,
    scheme_of,
    scheme_of_labels,
)
from keras_bert.readers.settings import ERROR
from keras_bert.tasks.tagging.settings import COUNT


class CheckedSentences:
    """The sentences of a source, their tags in the scheme that the model has.

    A file whose tags are needed is read to its end before the first sentence is given: its scheme,
    which need not be the model's, is told by all of its tags. Tags that break their scheme become
    those of the chunks that conlleval reads.

    Args:
        source: what `TaggedSource` gave.
        labels: those of the model, or None.
        scheme: that of the tags to give, or None for that of the model or the file.
        invalid_tags, unknown_tags: see `TaggerSettings`.
        labelled: whether tags are needed; where they are not, nothing is compared with them, and
            the model need not have them.

    Attributes: those of the source.

    Raises:
        InputError: a tag is refused, or there is another scheme than `scheme`.
    """

    def __init__(self, source, *, labels, scheme, invalid_tags, unknown_tags, labelled):
        self.name, self.kind, self.labelled = source.name, source.kind, source.labelled
        self.columns, self.description = source.columns, source.description
        self._source = source
        self._labels = None if labels is None else frozenset(labels)
        self._scheme = None if labels is None else scheme_of_labels(labels)
        self._broken = InvalidTags(reject=invalid_tags == ERROR)
        rejects = source.labelled and invalid_tags == ERROR
        self._reads_all = labels is None or labelled or rejects
        self._count_unseen = unknown_tags == COUNT
        self._looks_for_unseen = labelled and labels is not None
        self._with_spaces, self._first_with_spaces = 0, None
        if labels is None:
            self._wanted = scheme
        elif scheme is not None and scheme != self._scheme:
            its = "no scheme" if self._scheme is None else f"the scheme {self._scheme}"
            raise InputError(f"The model's tags have {its}; `scheme` is a setting of training.")
        else:
            self._wanted = self._scheme

    def __iter__(self):
        sentences = self._source
        if self._reads_all:
            sentences = list(sentences)
            told = scheme_of(sentence.tags or () for sentence in sentences)
            if self._labels is None or self._scheme is not None:
                self._scheme = told or self._scheme
        if self._labels is None:
            if self._scheme is None and self._wanted is not None:
                raise InputError(
                    f"{self.name}: the tags name no chunks, as B-PER and O do, so that they have "
                    "no `scheme`."
                )
            self._wanted = self._wanted or (BIO if self._scheme == IOB1 else self._scheme)
        return (self._checked(sentence) for sentence in sentences)

    def error(self, line, message):
        """The InputError that names a place in the source."""
        return self._source.error(line, message)

    def notes(self):
        """Lines for the user on the tags so far that broke their scheme, and words with spaces."""
        lines = self._broken.notes()
        if self._with_spaces:
            sentence, word = self._first_with_spaces
            lines.append(
                f"{self.name}: {counted(self._with_spaces, 'word')} with spaces, the first one in "
                f"line {sentence.line_of(word)} ({quoted([sentence.words[word]])}); each has one "
                "tag."
            )
        return lines

    def _checked(self, sentence):
        spaces = [word for word, text in enumerate(sentence.words or ()) if " " in text]
        if spaces and self._first_with_spaces is None:
            self._first_with_spaces = sentence, spaces[0]
        self._with_spaces += len(spaces)
        if sentence.tags is None:
            return dataclasses.replace(sentence, source=self)
        tags = sentence.tags
        if self._scheme is not None and name_chunks(tags):
            self._broken.count(sentence, self._scheme)
            tags = tuple(converted(tags, self._wanted))
        if self._looks_for_unseen:
            self._look_for_unseen(sentence, tags)
        return dataclasses.replace(sentence, tags=tags, source=self)

    def _look_for_unseen(self, sentence, tags):
        may_count = self._scheme is None or name_chunks(tags)
        if self._count_unseen and may_count:
            return
        advice = "those name chunks, and this is a file of other tags"
        if may_count:
            advice = f'`unknown_tags="{COUNT}"` would count it as a mistake'
        for word, tag in enumerate(tags):
            if tag not in self._labels:
                raise sentence.error(
                    f'the tag "{tag}" is none of those that the model is trained with '
                    f"({quoted(sorted(self._labels))}); {advice}.",
                    word=word,
                )
