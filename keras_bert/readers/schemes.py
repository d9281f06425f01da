"""Tagging schemes: BIO (IOB2), BIOES, and the older IOB1, IOE1 and IOE2.

A tag is O, outside of every chunk, or a letter and the kind of the chunk: B-PER begins one, I-PER
continues it. BIOES has E- for a chunk's last word and S- for one of a single word; BILOU, BMES and
BMEWO are BIOES in other letters. IOB1 has B- only for a chunk that follows another of its kind, and
I- everywhere else; IOE1 has E- only for one that is followed so, and IOE2 for every last word.
(Tjong Kim Sang and Veenstra 1999; Ramshaw and Marcus 1995; Ratinov and Roth 2009.)

The scheme of a file is decided by `read_chunks` alone, and that of a model by its labels. Spans are
read leniently, as conlleval does: a tag that cannot follow begins a new chunk, so that any sequence
of tags has a reading. `strict_spans` reads whole chunks alone.
"""

import re
from typing import NamedTuple

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, quoted

BIO, BIOES, IOB1, IOE1, IOE2 = "bio", "bioes", "iob1", "ioe1", "ioe2"
# The letters of a chunk's first word, of those between, of its last word, and of a single word.
_LETTERS = {BIO: "BIIB", BIOES: "BIES", "bilou": "BILU", "bmes": "BMES", "bmewo": "BMEW"}
SCHEMES = tuple(_LETTERS)  # that a model's tags may have
# Schemes of files alone, in which adjacent chunks of a kind have a letter at the border or not.
_OLDER = {IOB1: "IIII", IOE1: "IIII", IOE2: "IIEE"}
OUTSIDE = "O"
# Other ways to write a tag: b-per, B_PER, PER-B.
_SPELLINGS = (
    re.compile(r"(?P<letter>[BIES]|[BIESLUMW](?=[-_]))([-_](?P<kind>.+))?", re.DOTALL | re.I),
    re.compile(r"(?P<kind>.+)[-_](?P<letter>[BIESLUMW])", re.DOTALL | re.I),
)
# A letter alone is a tag of chunks in the commonest schemes only: U and L may be upper and lower.
_FORMS = tuple(re.compile(rf"O|{tag}", re.DOTALL) for tag in ("[BIES](-.+)?", "[BIESLUMW]-.+"))
# A cell of a column of chunks in brackets: (ORG*, *, *), (ORG*) or (ORG).
BRACKETS = re.compile(
    r"(?:\((?P<kind>[^()*\s]+))?\*(?P<end>[^()*\s]*\))?|\((?P<single>[^()*\s]+)\)"
)
# What the letters of other schemes are in BIOES.
_ROLES = {"L": "E", "U": "S", "M": "I", "W": "S"}


class Span(NamedTuple):
    """The words `start` to `end` (not included) of a sentence, and what they are."""

    start: int
    end: int
    kind: str


def split_tag(tag):
    """`B-creative-work` -> (`B`, `creative-work`); `O` -> (`O`, ``)."""
    letter, _, kind = tag.partition("-")
    return letter, kind


def join_tag(letter, kind):
    """The inverse of `split_tag`."""
    return f"{letter}-{kind}" if kind else letter


def name_chunks(tags):
    """Whether all tags are tags of chunks."""
    return any(all(map(form.fullmatch, tags)) for form in _FORMS)


def canonical_names(tags):
    """{tag: as it is written here, such as B-PER} of all tags of a file.

    None if they are not tags of chunks. Other spellings than B-PER are tags only beside an O.
    """
    tags = {*tags}
    if name_chunks(tags):
        return {tag: tag for tag in tags}
    inside = tags - {OUTSIDE, OUTSIDE.lower()}
    for spelling in _SPELLINGS if len(inside) < len(tags) else ():
        matches = {tag: spelling.fullmatch(tag) for tag in inside}
        if all(matches.values()):
            names = {tag: join_tag(m["letter"].upper(), m["kind"]) for tag, m in matches.items()}
            return dict.fromkeys(tags, OUTSIDE) | names
    return None


def read_chunks(sentences, *, name, need_scheme):
    """Gives the sentences of a file, `TaggedWords`, the tags of chunks as they are written here.

    -> (their scheme or None, a line for the user on other spellings or None).

    Args:
        name: of the file.
        need_scheme: whether tags of chunks that fit no scheme raise InputError.
    """
    names = canonical_names(tag for sentence in sentences for tag in sentence.tags or ()) or {}
    other = sorted(tag for tag, canonical in names.items() if tag not in (canonical, "o"))
    note = None
    if other or "o" in names:
        for sentence in sentences:
            if sentence.tags is not None:
                sentence.tags = tuple(names[tag] for tag in sentence.tags)
        first = other[0] if other else "o"
        note = f'{name}: the tags are written as "{first}", and read as "{names[first]}".'
    scheme = scheme_of(sentence.tags or () for sentence in sentences)
    if need_scheme and scheme is None and {*names.values()} - {OUTSIDE}:
        raise InputError(
            f"{name}: the tags {quoted(sorted(names))} have the letters of chunks, but most are "
            "invalid in every scheme (BIO, IOB1, IOE1, IOE2, BIOES, BILOU, BMES, BMEWO). Correct "
            "them; tags that mark no chunks need other names."
        )
    return scheme, note


def scheme_of(sequences):
    """The scheme of tags such as B-PER, that in which the fewest of them are invalid.

    None if they are not tags of chunks, are all O, or mostly invalid in every scheme.

    Args:
        sequences: an iterable of the tags of each sentence.
    """
    inside, invalid = 0, dict.fromkeys((*SCHEMES, *_OLDER), 0)
    for tags in sequences:
        if not name_chunks(tags):
            return None
        spans = spans_of(tags)
        inside += sum(span.end - span.start for span in spans)
        for scheme in invalid if spans else ():
            pairs = zip(tags, tags_of(spans, len(tags), scheme), strict=True)
            invalid[scheme] += sum(tag != expected for tag, expected in pairs)
    best = min(invalid, key=invalid.get)  # the first of several, the commonest
    return best if inside and 2 * invalid[best] <= inside else None


def scheme_of_labels(labels):
    """The scheme of a model's labels; None if they are not tags of chunks, or none begins one."""
    if OUTSIDE not in labels or len(labels) < 2 or not name_chunks(labels):
        return None
    letters = {split_tag(label)[0] for label in labels} - {OUTSIDE}
    if _LETTERS[BIO][0] not in letters:  # as a model of IOB1 or IOE2 that another program trained
        return None
    return next((scheme for scheme in SCHEMES if letters <= {*_LETTERS[scheme]}), None)


def labels_of(kinds, scheme):
    """All tags of a scheme for some kinds of chunks: O, then those of each kind."""
    letters = dict.fromkeys(_LETTERS[scheme])
    return [OUTSIDE, *(join_tag(letter, kind) for kind in sorted(kinds) for letter in letters)]


def spans_of(tags):
    """The `Span`s of a sentence's tags in order, by conlleval's rules, whatever the scheme."""
    spans, start = [], None
    before = (OUTSIDE, "")
    for position, tag in enumerate([*tags, OUTSIDE]):
        letter, kind = _role(tag)
        begins = letter != OUTSIDE and (
            letter in "BS" or before[0] in (OUTSIDE, "E", "S") or before[1] != kind
        )
        if start is not None and (begins or letter == OUTSIDE):
            spans.append(Span(start, position, before[1]))
            start = None
        if begins:
            start = position
        before = (letter, kind)
    return spans


def strict_spans(tags, scheme):
    """The `Span`s whose tags are exactly those of the scheme."""
    spans, start, kind = [], None, None
    for position, tag in enumerate([*tags, OUTSIDE]):
        letter, its_kind = _role(tag)
        continues = start is not None and letter in ("I", "E") and its_kind == kind
        if start is not None and not continues:
            if scheme == BIO:
                spans.append(Span(start, position, kind))
            start = None
        if letter == "B":
            start, kind = position, its_kind
        elif letter == "S":
            spans.append(Span(position, position + 1, its_kind))
        elif letter == "E" and continues:
            spans.append(Span(start, position + 1, kind))
            start = None
    return spans


def tags_of(spans, length, scheme):
    """The tags of a sentence of `length` words for spans in order that do not overlap."""
    first, inside, last, single = (_LETTERS | _OLDER)[scheme]
    tags = [OUTSIDE] * length
    before = None
    for span in spans:
        between = span.end - span.start - 2
        letters = [single] if between < 0 else [first, *inside * between, last]
        if before is not None and before[1:] == (span.start, span.kind):
            if scheme == IOB1:
                letters[0] = "B"
            if scheme == IOE1:
                tags[span.start - 1] = join_tag("E", span.kind)
        tags[span.start : span.end] = [join_tag(letter, span.kind) for letter in letters]
        before = span
    return tags


def tags_of_brackets(cells):
    """The tags in BIO of a sentence's `(ORG*`, `*`, `*)`, `(ORG*)`, `(ORG)` (CoNLL-2005 and 2012).

    Raises ValueError(the number of a cell, what is wrong there).
    """
    spans, opened = [], None
    for word, cell in enumerate(cells):
        match = BRACKETS.fullmatch(cell)
        kind, ends = (None, None) if match is None else (match["kind"], match["end"])
        if match is not None and match["single"]:
            kind, ends = match["single"], True
        if match is None or (kind and opened) or (ends and not (kind or opened)):
            raise ValueError(
                word,
                f'"{cell}" cannot be read as part of a chunk. Expected (KIND*, *, *) or (KIND*), '
                "of chunks that do not overlap.",
            )
        if kind:
            opened = word, kind
        if ends:
            spans.append(Span(opened[0], word + 1, opened[1]))
            opened = None
    if opened:
        raise ValueError(opened[0], f"the chunk ({opened[1]}* is not closed.")
    return tuple(tags_of(spans, len(cells), BIO))


def converted(tags, scheme):
    """The same chunks in a scheme; of invalid tags, the chunks that conlleval reads."""
    return tags_of(spans_of(tags), len(tags), scheme)


def invalid_positions(tags, scheme):
    """The numbers of the words whose tag is not that of its scheme for the chunks."""
    pairs = enumerate(zip(tags, converted(tags, scheme), strict=True))
    return [position for position, (tag, expected) in pairs if tag != expected]


class Transitions(NamedTuple):
    """Which of C labels may follow which: `between` bool (C, C) from row to column; which may begin
    and end a sentence: `start`, `end` bool (C,)."""

    between: np.ndarray
    start: np.ndarray
    end: np.ndarray


def transitions(labels, scheme):
    """The `Transitions` that a scheme allows; all of them if it is None."""
    count = len(labels)
    if scheme is None:
        every = np.ones(count, np.bool_)
        return Transitions(np.ones((count, count), np.bool_), every, every)

    def may_follow(before, after):
        (last, kind), (next_, next_kind) = before, after
        if next_ in ("I", "E"):
            return last in ("B", "I") and kind == next_kind
        return scheme == BIO or last not in ("B", "I")

    outside = (OUTSIDE, "")
    tags = [_role(label) for label in labels]
    return Transitions(
        between=np.array([[may_follow(before, after) for after in tags] for before in tags]),
        start=np.array([may_follow(outside, tag) for tag in tags]),
        end=np.array([may_follow(tag, outside) for tag in tags]),
    )


def _role(tag):
    """Splits a tag as `split_tag` does, with the letter of BIOES."""
    letter, kind = split_tag(tag)
    return _ROLES.get(letter, letter), kind


class InvalidTags:
    """Counts the tags of a source that are invalid in its scheme.

    Args:
        reject: whether the first one is an error.
    """

    def __init__(self, *, reject):
        self._reject = reject
        self._count, self._first, self._scheme = 0, None, None

    def count(self, sentence, scheme):
        """Counts those of a `TaggedWords`; InputError, with the location, if they are errors."""
        positions = invalid_positions(sentence.tags or (), scheme)
        if positions and self._reject:
            word = positions[0]
            raise sentence.error(
                f'the tag {sentence.tags[word]} of "{sentence.words[word]}" is invalid there in '
                f"the scheme {scheme}.",
                word=word,
            )
        if positions and self._first is None:
            self._first, self._scheme = (sentence, positions[0]), scheme
        self._count += len(positions)

    def notes(self):
        """Lines for the user on those counted so far."""
        if not self._count:
            return []
        sentence, word = self._first
        return [
            f"{sentence.source.name}: {counted(self._count, 'tag')} invalid in the scheme "
            f"{self._scheme}, the first one in line {sentence.line_of(word)} "
            f'({sentence.tags[word]} at "{sentence.words[word]}"); the chunks are read as '
            "conlleval reads them."
        ]
