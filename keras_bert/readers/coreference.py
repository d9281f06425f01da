"""Documents with mentions in clusters: CoNLL-2012, CorefUD, JSON Lines, plain lines or Python.

A document is a `SpannedWords` whose spans are its mentions, each with its cluster as its label.

CoNLL-2012 has the word in the fourth column and mentions in the last: `(7` begins one of cluster 7,
`7)` ends it, `(7)` is one of one word, and several are separated by `|`. CorefUD (Nedoluzhko et
al. 2022) is CoNLL-U with `Entity=(e7-person-1-)` in MISC, whose first field is the cluster, or that
which the line `# global.Entity` calls eid.
"""

import re
from collections import Counter
from itertools import islice

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.readers.conll import conllu_cells, looks_like_conllu
from keras_bert.readers.examples import ExampleSource
from keras_bert.readers.objects import LabelledSpan, joined, labelled_span, words_of
from keras_bert.readers.spans import SpannedWords

_BEGIN, _END = "#begin document", "#end document"
_NOTHING = ("-", "_", "*")
_PART = re.compile(r"(\()?([^()|]+)(\))?")
_ENTITY = re.compile(r"\(([^()]+)(\))?|([^()]+)\)")
_PART_OF = re.compile(r"(.*)\[\d+/(\d+)\]")


class CoreferenceSource(ExampleSource):
    """The documents of a source, `SpannedWords`.

    The objects of JSON Lines, and the dictionaries of a sequence, have "words", or "text", and
    "clusters", lists of mentions [start, end] in words, or in characters. A plain line, or a
    string, is a document without clusters.

    A cluster of one mention refers to nothing else, and is left out, as are mentions without a
    word (of empty nodes), discontinuous ones, and the second of two with the same words.
    """

    ITEM = ROW = "document"
    ITEMS = 'A document must be a string, or a dictionary with "words" or "text", and "clusters"'
    STRINGS, COMMENT = True, "#"

    def __init__(self, data, **common):
        self._skipped = Counter()
        super().__init__(data, **common)

    def _more_notes(self):
        for reason, count in self._skipped.items():
            yield f"{counted(count, 'mention')} left out, {reason}."

    def _read_file(self, file):
        number, line = file.first
        if any(line.startswith(_BEGIN) for line in islice(file.raw_lines(keep=True), number)):
            self.kind, self.how = "conll", "CoNLL-2012"
            return self._read_conll_2012(file.lines())
        if looks_like_conllu(line):
            self.kind, self.how = "conllu", "CoNLL-U with Entity in MISC"
            return self._read_corefud(file.lines())
        if self._need_labels:
            raise InputError(
                f"Could not read {self.name} as documents with coreference: line {number} is not "
                f'JSON or CoNLL-U, and no line "{_BEGIN}" is before it. Expected CoNLL-2012, '
                'CorefUD, or JSON Lines with "words" and "clusters".'
            )
        self.kind, self.how = "lines", "plain lines, one document per line"
        return (
            SpannedWords(number, text, document=number - 1, source=self)
            for number, text in file.lines()
        )

    def _read_conll_2012(self, lines):
        document = None
        for number, line in lines:
            cells = line.split()
            if line.startswith(_BEGIN):
                if document is not None:
                    raise document.unended()
                document = _Document(self, number)
            elif line.startswith(_END) and document is not None:
                yield from document.finish(number)
                document = None
            elif cells and not line.startswith("#"):
                if document is None:
                    raise self.error(number, f'the word is not between "{_BEGIN}" and "{_END}".')
                if len(cells) < 5:
                    raise self.error(
                        number,
                        f"{counted(len(cells), 'column')}. Expected at least 5, the word in the "
                        "fourth and the clusters in the last.",
                    )
                parts = () if cells[-1] in _NOTHING else cells[-1].split("|")
                document.add(cells[3], number)
                # What begins at a word is open before anything ends there.
                mentions = [_PART.fullmatch(part) for part in parts]
                if not all(part and (part[1] or part[3]) for part in mentions):
                    raise self.error(
                        number,
                        f'"{cells[-1]}" cannot be read as mentions. Expected (7, 7) or (7), '
                        "separated by |.",
                    )
                for part in mentions:
                    if part[1]:
                        document.open(part[2].strip(), number, at=-1)
                for part in mentions:
                    if part[3]:
                        document.close(part[2].strip(), number)
        if document is not None:
            raise document.unended()

    def _read_corefud(self, lines):
        document, field, number = None, 0, 0
        for number, line in lines:
            if line.startswith("#"):
                name, _, value = line[1:].partition("=")
                if line[1:].split()[:1] == ["newdoc"] and document is not None:
                    yield from document.finish(number)
                    document = None
                elif name.strip() == "global.Entity":
                    fields = value.strip().split("-")
                    field = fields.index("eid") if "eid" in fields else 0
                continue
            if not line.strip():
                continue
            cells = conllu_cells(line, number, self)
            if "-" in cells[0]:  # of several words, which follow
                continue
            document = document or _Document(self, number)
            if is_word := "." not in cells[0]:
                document.add(cells[1], number)
            entity = next((x[7:] for x in cells[9].split("|") if x.startswith("Entity=")), "")
            if "".join(match[0] for match in _ENTITY.finditer(entity)) != entity:
                raise self.error(number, f'"Entity={entity}" cannot be read as mentions.')
            for match in _ENTITY.finditer(entity):
                opened, whole, closed = match.groups()
                cluster = closed if opened is None else opened.split("-")[field]
                if opened is not None:
                    document.open(cluster, number, at=-1 if is_word else 0)
                if opened is None or whole:
                    document.close(cluster, number)
        if document is not None:
            yield from document.finish(number)

    def _example(self, line, record):
        text, words, starts = words_of(record, line, self)
        clusters, spans = record.get("clusters"), None
        if self._need_labels:
            more = ". Expected a list of clusters, each a list of mentions [start, end]"
            clusters = self.value(line, record, "clusters", "clusters", more=more)
        if clusters is not None:
            if not _is_list(clusters) or not all(map(_is_list, clusters)):
                raise self.error(line, '"clusters" should be a list of lists of mentions.')
            given = {"text": text, "words": words, "noun": "the mention"}
            spans = [
                labelled_span(mention, line, self, **given)._replace(label=str(number))
                for number, cluster in enumerate(clusters)
                for mention in cluster
            ]
            spans = self.clustered(spans)
        return SpannedWords(line, text, words, starts, spans, line - 1, source=self)

    def clustered(self, spans):
        """The mentions in order, without what is left out, each with the number of its cluster."""
        first = {}
        for span in spans:
            if span[:2] in first:
                self.skip("with the words of another one")
            first.setdefault(span[:2], span)
        sizes = Counter(span.label for span in first.values())
        linked = sorted(
            (span for span in first.values() if sizes[span.label] > 1), key=lambda span: span[:2]
        )
        numbers = {label: str(n) for n, label in enumerate(dict.fromkeys(s.label for s in linked))}
        return tuple(span._replace(label=numbers[span.label]) for span in linked)

    def skip(self, reason):
        self._skipped[reason] += 1


class _Document:
    """Collects the words and mentions of a document."""

    def __init__(self, source, line):
        self._line, self._source = line, source
        self._words, self._spans, self._open, self._first = [], [], {}, None

    def add(self, word, number):
        self._words.append(word)
        self._first = self._first or number

    def open(self, cluster, number, *, at):
        """Opens a mention at the last word (-1), or before the next one (0)."""
        self._open.setdefault(cluster, []).append((len(self._words) + at, number))

    def close(self, cluster, number):
        if not self._open.get(cluster):
            raise self._source.error(number, f"a mention of {cluster} ends that has not begun.")
        start, _ = self._open[cluster].pop()
        if part := _PART_OF.fullmatch(cluster):
            if part[2] != "1":
                self._source.skip("as they are discontinuous")
                return
            cluster = part[1]
        if start >= len(self._words):
            self._source.skip("as they have no word")
            return
        self._spans.append(LabelledSpan(start, len(self._words), cluster))

    def unended(self):
        """The error for a document of CoNLL-2012 whose end is missing."""
        return self._source.error(self._line, f'the document has no "{_END}".')

    def finish(self, number):
        """Yields the document, if it has words."""
        for cluster, opened in self._open.items():
            for _, begun in opened:
                raise self._source.error(begun, f"a mention of {cluster} begins that does not end.")
        if self._words:
            text, starts = joined(self._words)
            yield SpannedWords(
                self._first,
                text,
                tuple(self._words),
                starts,
                self._source.clustered(self._spans),
                self._first - 1,
                source=self._source,
            )


def _is_list(value):
    return isinstance(value, list | tuple)
