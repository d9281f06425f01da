"""Sentences with a marked predicate and the roles of its arguments: CoNLL or JSON Lines.

A file of CoNLL-2005 has the word in its first column, then columns of any kind, then one with the
base form of each predicate (- for other words) and, for each predicate in order, a column of its
arguments: `(A0*` begins one, `*` goes on or is outside of all, `*)` ends one, and `(V*)` is the
predicate. A file of CoNLL-2012 has twelve columns and more: the word is the fourth, the frame of a
predicate the eighth, and the arguments are those between the eleventh and the last.
(Carreras and Màrquez 2005; Pradhan et al. 2012.)
"""

from dataclasses import dataclass
from itertools import chain

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.readers.conll import DOCUMENT, END, grouped
from keras_bert.readers.examples import ExampleSource
from keras_bert.readers.objects import (
    LabelledSpan,
    check_tag_per_word,
    labelled_span,
    words_of,
)
from keras_bert.readers.schemes import BRACKETS, tags_of_brackets
from keras_bert.readers.sentences import TaggedWords

# The role of the predicate itself.
VERB = "V"
_NONE = "-"
_SHORTEST_2012 = 12


@dataclass(slots=True)
class PredicateWords(TaggedWords):
    """A sentence with one of its predicates; the `tags` are those of the predicate's arguments.

    `predicate` is a `LabelledSpan` in words, or in characters of `text` if `words` is None. A
    sentence with several predicates is several of these.
    """

    predicate: LabelledSpan | None = None


class PredicateSource(ExampleSource):
    """The `PredicateWords` of a source.

    The objects of JSON Lines, and the items of a sequence, have "words" and "predicate", [first
    word, after the last word] from 0, and "tags", one per word in BIO; without tags to predict,
    "text" will do, in which "predicate" counts characters.

    If tags are needed, a predicate in CoNLL without a column of arguments is an error.

    Attributes: `labelled` (whether there are tags) and those of `ExampleSource`.
    """

    ITEM = ROW = "sentence"
    ITEMS = 'A sentence must be a dictionary with "words", "predicate" and "tags"'
    COMMENT = "#begin"

    _width = 0

    def _read_file(self, file):
        self.kind, self.labelled = "conll", True
        number, line = file.first
        cells = line.split()
        is_2012 = len(cells) >= _SHORTEST_2012 and cells[1].isdecimal() and cells[2].isdecimal()
        if len(cells) < 2:
            raise InputError(
                f"Could not read {self.name} as predicates and their arguments: line {number} has "
                "one column. Expected the columns of CoNLL-2005 or CoNLL-2012, or JSON Lines with "
                '"words", "predicate" and "tags".'
            )
        year, read = (2012, self._read_2012) if is_2012 else (2005, self._read_2005)
        self.how = f"CoNLL-{year}, one example per predicate"
        return chain.from_iterable(
            read(list(zip(*(cells for _, cells in rows), strict=True)), begin, document)
            for begin, (document, rows) in grouped(file.lines(), self._cells_of)
        )

    def _cells_of(self, number, line, is_first):
        cells = line.split()
        if cells[:1] == ["#begin"]:
            return DOCUMENT
        if not cells or line.startswith("#end document"):
            return END
        self._width = len(cells) if is_first else self._width
        if len(cells) != self._width:
            raise self.error(
                number,
                f"{counted(len(cells), 'column')}, but the sentence's first word has "
                f"{self._width}; every word needs the same number of columns.",
            )
        return cells

    def _read_2005(self, columns, begin, document):
        # The arguments are the last columns; the one before them has the predicates.
        first = len(columns)
        while first > 2 and all(map(BRACKETS.fullmatch, columns[first - 1])):
            first -= 1
        predicates = [word for word, base in enumerate(columns[first - 1]) if base != _NONE]
        arguments = columns[first:]
        if len(arguments) != len(predicates) and (arguments or self._need_labels):
            raise self.error(
                begin,
                f"the sentence has {counted(len(predicates), 'predicate')} in column {first} and "
                f"{counted(len(arguments), 'column')} of arguments after it; every predicate needs "
                "one, and other words have - in place of a base form.",
            )
        yield from self._read_predicates(columns[0], predicates, arguments, begin, document)

    def _read_2012(self, columns, begin, document):
        if len(columns) < _SHORTEST_2012:
            count = counted(len(columns), "column")
            raise self.error(begin, f"{count}, where CoNLL-2012 has {_SHORTEST_2012} or more.")
        arguments = columns[11:-1]
        predicates = [word for word, frame in enumerate(columns[7]) if frame != _NONE]
        if arguments:  # words without arguments have a frame, too
            verbs = ([c.startswith(f"({VERB}*") for c in cells] for cells in arguments)
            predicates = [verb.index(True) if any(verb) else None for verb in verbs]
        if None in predicates:
            number = 12 + predicates.index(None)
            raise self.error(begin, f"column {number}, of arguments, does not have the verb, (V*).")
        if self._need_labels and not arguments:
            predicates = []
        yield from self._read_predicates(columns[3], predicates, arguments, begin, document)

    def _read_predicates(self, words, predicates, arguments, begin, document):
        lines = tuple(range(begin, begin + len(words)))
        for number, predicate in enumerate(predicates):
            tags = self._tags(arguments[number], begin) if arguments else None
            marked = LabelledSpan(predicate, predicate + 1)
            where = {"lines": lines, "document": document, "source": self, "predicate": marked}
            yield PredicateWords(begin, words, tags, **where)

    def _tags(self, cells, begin):
        try:
            return tags_of_brackets(cells)
        except ValueError as error:
            word, message = error.args
            raise self.error(begin + word, message) from None

    def _read_objects(self, records):
        keys = (records.peek() or (0, {}))[1]
        self.labelled = "tags" in keys
        tags = 'tags in "tags"' if self.labelled else "no tags"
        self.UNIT = f'words in "{"words" if "words" in keys else "text"}", {tags}'
        return super()._read_objects(records)

    def _example(self, line, record):
        more = '. Expected "words", "predicate" ([first word, after the last word]) and "tags"'
        predicate = self.value(line, record, "predicate", "a predicate", more=more)
        tags = record.get("tags")
        if self._need_labels:
            tags = self.value(line, record, "tags", "tags", more=more)
        text, words, starts = words_of(record, line, self)
        predicate = labelled_span(predicate, line, self, text=text, words=words, noun="predicate")
        if tags is not None:
            tags = self._checked_tags(tags, words, line)
        where = {"starts": starts, "document": line - 1, "source": self}
        return PredicateWords(line, words, tags, text=text, predicate=predicate, **where)

    def _checked_tags(self, tags, words, line):
        if words is None:
            raise self.error(line, 'tags need "words", a list; a "text" alone has none.')
        if not isinstance(tags, list | tuple) or not all(isinstance(t, str) and t for t in tags):
            raise self.error(line, '"tags" should be a list of strings, none of them empty.')
        check_tag_per_word(words, tags, line, self)
        return tuple(tags)
