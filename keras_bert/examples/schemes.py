"""How tags name chunks: BIO (IOB2), BIOES, and the older IOB1; pure functions over one sentence.

A tag is O, outside of every chunk, or a letter and the kind of the chunk: B-PER begins one, I-PER
goes on. BIOES has E- for a chunk's last word and S- for one of a single word. IOB1 has B- only
where a chunk follows another of its kind, and I- everywhere else. (Tjong Kim Sang and Veenstra
1999; Ramshaw and Marcus 1995.)

Spans are read leniently, as conlleval does: what cannot follow begins a new chunk, so that any
sequence of tags has a reading. `strict_spans` reads whole chunks alone.
"""

import re
from typing import NamedTuple

import numpy as np

BIO, BIOES, IOB1 = "bio", "bioes", "iob1"
OUTSIDE = "O"
_TAG = re.compile(r"O|[BIES](-.+)?", re.DOTALL)


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
    return all(map(_TAG.fullmatch, tags))


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
    if letters & {"E", "S"}:
        return BIOES
    if first_b:
        return BIO
    return IOB1 if "I" in letters else None


def scheme_of_labels(labels):
    """The scheme that a model's labels are of, None where they name no chunks."""
    if OUTSIDE not in labels or len(labels) < 2 or not name_chunks(labels):
        return None
    return BIOES if {split_tag(label)[0] for label in labels} & {"E", "S"} else BIO


def labels_of(kinds, scheme):
    """All tags of a scheme for some kinds of chunks: O, then by the kind."""
    letters = {BIO: "BI", BIOES: "BIES"}[scheme]
    return [OUTSIDE, *(join_tag(letter, kind) for kind in sorted(kinds) for letter in letters)]


def spans_of(tags):
    """The `Span`s of a sentence's tags in order, by conlleval's rules, whatever the scheme."""
    spans, start = [], None
    before = (OUTSIDE, "")
    for place, tag in enumerate([*tags, OUTSIDE]):
        letter, kind = split_tag(tag)
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
    """The `Span`s that are written out as BIO or BIOES asks for; anything else is none."""
    spans, start, kind = [], None, None
    for place, tag in enumerate([*tags, OUTSIDE]):
        letter, its_kind = split_tag(tag)
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
    tags = [OUTSIDE] * length
    before = None
    for span in spans:
        letters = ["I"] * (span.end - span.start)
        next_to_its_kind = before is not None and before[1:] == (span.start, span.kind)
        if scheme != IOB1 or next_to_its_kind:
            letters[0] = "B"
        if scheme == BIOES:
            letters[-1] = "E" if len(letters) > 1 else "S"
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
        must_go_on = scheme == BIOES and last in ("B", "I")
        if inside:
            return last in ("B", "I") and kind == next_kind
        return not must_go_on

    outside = (OUTSIDE, "")
    tags = [split_tag(label) for label in labels]
    return Transitions(
        between=np.array([[may_follow(before, after) for after in tags] for before in tags]),
        start=np.array([may_follow(outside, tag) for tag in tags]),
        end=np.array([may_follow(tag, outside) for tag in tags]),
    )
