"""How tags name chunks: BIO (IOB2), BIOES, and the older IOB1; pure functions over one sentence.

A tag is O, outside of every chunk, or a letter and the kind of the chunk: B-PER begins one, I-PER
goes on. BIOES has E- for a chunk's last word and S- for one of a single word; BILOU, BMES and BMEWO
are BIOES in other letters. IOB1 has B- only where a chunk follows another of its kind, and I-
everywhere else. (Tjong Kim Sang and Veenstra 1999; Ramshaw and Marcus 1995; Ratinov and Roth 2009.)

Spans are read leniently, as conlleval does: what cannot follow begins a new chunk, so that any
sequence of tags has a reading. `strict_spans` reads whole chunks alone.
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
    """`split_tag`, undone."""
    return f"{letter}-{kind}" if kind else letter


def name_chunks(tags):
    """Whether all tags are such as name chunks."""
    return any(all(map(form.fullmatch, tags)) for form in _FORMS)


def scheme_of(sequences):
    """The scheme of a file's tags, by what is in it; None where they name no chunks.

    A file is IOB1 where no chunk begins with B- but next to another of its kind. One whose tags are
    all O has no scheme, since nothing can be told.

    Args:
        sequences: an iterable of the tags of a sentence each.
    """
    letters, first_b = set(), False
    for tags in sequences:
        if not name_chunks(tags):
            return None
        before = (OUTSIDE, "")
        for tag in tags:
            letter, kind = split_tag(tag)
            letters.add(letter)
            first_b |= letter == "B" and (before[0] == OUTSIDE or before[1] != kind)
            before = (letter, kind)
    letters.discard(OUTSIDE)
    if letters <= {"B", "I"} and not first_b:
        return IOB1 if letters else None
    return _scheme_with(letters)


def scheme_of_labels(labels):
    """The scheme that a model's labels are of, None where they name no chunks."""
    if OUTSIDE not in labels or len(labels) < 2 or not name_chunks(labels):
        return None
    return _scheme_with({split_tag(label)[0] for label in labels} - {OUTSIDE})


def labels_of(kinds, scheme):
    """All tags of a scheme for some kinds of chunks: O, then by the kind."""
    letters = dict.fromkeys(_LETTERS[scheme])
    return [OUTSIDE, *(join_tag(letter, kind) for kind in sorted(kinds) for letter in letters)]


def spans_of(tags):
    """The `Span`s of a sentence's tags in order, by conlleval's rules, whatever the scheme."""
    spans, start = [], None
    before = (OUTSIDE, "")
    for place, tag in enumerate([*tags, OUTSIDE]):
        letter, kind = _role(tag)
        begins = letter != OUTSIDE and (
            letter in "BS" or before[0] in (OUTSIDE, "E", "S") or before[1] != kind
        )
        if start is not None and (begins or letter == OUTSIDE):
            spans.append(Span(start, place, before[1]))
            start = None
        if begins:
            start = place
        before = (letter, kind)
    return spans


def strict_spans(tags, scheme):
    """The `Span`s that are written out as the scheme asks for; anything else is none."""
    spans, start, kind = [], None, None
    for place, tag in enumerate([*tags, OUTSIDE]):
        letter, its_kind = _role(tag)
        goes_on = start is not None and letter in ("I", "E") and its_kind == kind
        if start is not None and not goes_on:
            if scheme == BIO:
                spans.append(Span(start, place, kind))
            start = None
        if letter == "B":
            start, kind = place, its_kind
        elif letter == "S":
            spans.append(Span(place, place + 1, its_kind))
        elif letter == "E" and goes_on:
            spans.append(Span(start, place + 1, kind))
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
    """The same chunks in a scheme; of broken tags, the chunks that conlleval reads."""
    return tags_of(spans_of(tags), len(tags), scheme)


def broken_places(tags, scheme):
    """The numbers of those words whose tag is not the one that its scheme has for the chunks."""
    right = converted(tags, scheme)
    return [place for place, pair in enumerate(zip(tags, right, strict=True)) if pair[0] != pair[1]]


class Transitions(NamedTuple):
    """Which of C labels may follow which: `between` bool (C, C) from row to column, and where a
    sentence may begin and end: `start`, `end` bool (C,)."""

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
        inside = next_ in ("I", "E")
        must_go_on = scheme != BIO and last in ("B", "I")
        if inside:
            return last in ("B", "I") and kind == next_kind
        return not must_go_on

    outside = (OUTSIDE, "")
    tags = [_role(label) for label in labels]
    return Transitions(
        between=np.array([[may_follow(before, after) for after in tags] for before in tags]),
        start=np.array([may_follow(outside, tag) for tag in tags]),
        end=np.array([may_follow(tag, outside) for tag in tags]),
    )


def _scheme_with(letters):
    """The first of `SCHEMES` that has all of some letters; None where there is none."""
    return next((scheme for scheme in SCHEMES if letters <= set(_LETTERS[scheme])), None)


def _role(tag):
    """As `split_tag`, the letter that of BIOES."""
    letter, kind = split_tag(tag)
    return _ROLES.get(letter, letter), kind


class BrokenTags:
    """What the tags of a source come to that its scheme does not have where they stand.

    Args:
        reject: whether the first one is an error.
    """

    def __init__(self, *, reject):
        self._reject = reject
        self._count, self._first, self._scheme = 0, None, None

    def look_at(self, sentence, scheme):
        """Counts those of a `TaggedWords`.

        Raises InputError, with the place, where they are refused.
        """
        places = broken_places(sentence.tags or (), scheme)
        if places and self._reject:
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
