"""Tagging schemes: BIO (IOB2), BIOES, and the older IOB1; pure functions over one sentence.

A tag is O, outside of every chunk, or a letter and the kind of the chunk: B-PER begins one, I-PER
continues it. BIOES has E- for a chunk's last word and S- for one of a single word; BILOU, BMES and
BMEWO are BIOES in other letters. IOB1 has B- only where a chunk follows another of its kind, and I-
everywhere else. (Tjong Kim Sang and Veenstra 1999; Ramshaw and Marcus 1995; Ratinov and Roth 2009.)

Spans are read leniently, as conlleval does: a tag that cannot follow begins a new chunk, so that
any sequence of tags has a reading. `strict_spans` reads whole chunks alone.
"""

import re
from typing import NamedTuple

import numpy as np

from keras_bert.base.formatting import counted

BIO, BIOES, IOB1 = "bio", "bioes", "iob1"
# The letters of a chunk's first word, of those between, of its last word, and of a single word.
_LETTERS = {BIO: "BIIB", BIOES: "BIES", "bilou": "BILU", "bmes": "BMES", "bmewo": "BMEW"}
SCHEMES = tuple(_LETTERS)  # that a model's tags may have
OUTSIDE = "O"
# A letter alone is a tag of chunks in the commonest schemes only: U and L may be upper and lower.
_FORMS = tuple(re.compile(rf"O|{tag}", re.DOTALL) for tag in ("[BIES](-.+)?", "[BIESLUMW]-.+"))
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


def scheme_of(sequences):
    """The scheme of a file's tags, that in which the fewest of them are invalid.

    None where they are not tags of chunks, are all O, or mostly invalid in every scheme.

    Args:
        sequences: an iterable of the tags of each sentence.
    """
    inside, invalid = 0, dict.fromkeys((*SCHEMES, IOB1), 0)
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
    """The scheme of a model's labels; None where they are not tags of chunks."""
    if OUTSIDE not in labels or len(labels) < 2 or not name_chunks(labels):
        return None
    letters = {split_tag(label)[0] for label in labels} - {OUTSIDE}
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
    first, inside, last, single = "IIII" if scheme == IOB1 else _LETTERS[scheme]
    tags = [OUTSIDE] * length
    before = None
    for span in spans:
        between = span.end - span.start - 2
        letters = [single] if between < 0 else [first, *inside * between, last]
        if scheme == IOB1 and before is not None and before[1:] == (span.start, span.kind):
            letters[0] = "B"
        tags[span.start : span.end] = [join_tag(letter, span.kind) for letter in letters]
        before = span
    return tags


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
    """The `Transitions` that a scheme allows; all of them where it is None."""
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
    """As `split_tag`, with the letter of BIOES."""
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
        """Counts those of a `TaggedWords`; InputError, with the location, where they are errors."""
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
