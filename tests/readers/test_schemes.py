"""Schemes of tags: there and back, told by content, and read as seqeval reads them."""

import itertools
import random
import warnings

import numpy as np
import pytest
from seqeval.scheme import BILOU, IOB2, IOBES, Entities

from keras_bert.readers.schemes import (
    SCHEMES,
    Span,
    canonical_names,
    converted,
    invalid_positions,
    join_tag,
    labels_of,
    scheme_of,
    scheme_of_labels,
    spans_of,
    split_tag,
    strict_spans,
    tags_of,
    transitions,
)
from tests.seeds import shifted

OLDER = ("iob1", "ioe1", "ioe2")
KINDS = ("PER", "creative-work")
EVERY = sorted({*labels_of(KINDS, "bio"), *labels_of(KINDS, "bioes")})


def random_tags(rng, tags=tuple(EVERY)):
    return [rng.choice(tags) for _ in range(rng.randint(0, 9))]


def sequences(count=3000):
    """All short sequences of one kind, and long random ones of several."""
    for length in range(5):
        yield from map(list, itertools.product(["O", "B-X", "I-X", "E-X", "S-X"], repeat=length))
    rng = random.Random(shifted(4))
    yield from (random_tags(rng) for _ in range(count))


def random_spans(rng):
    spans, place = [], 0
    while place < 12:
        place += rng.randint(0, 2)
        end = place + rng.randint(1, 3)
        spans.append(Span(place, end, rng.choice(KINDS)))
        place = end
    return spans, place + rng.randint(0, 2)


def test_spans_become_tags_and_spans_again_in_every_scheme():
    rng = random.Random(shifted(1))
    for _ in range(500):
        spans, length = random_spans(rng)
        for scheme in (*SCHEMES, *OLDER):
            tags = tags_of(spans, length, scheme)
            assert spans_of(tags) == spans and len(tags) == length
            assert invalid_positions(tags, scheme) == []
            for other in (*SCHEMES, *OLDER):
                assert converted(converted(tags, other), scheme) == tags
        for scheme in SCHEMES:
            assert strict_spans(tags_of(spans, length, scheme), scheme) == spans


def test_the_schemes_by_hand():
    spans = [Span(0, 2, "A"), Span(2, 3, "A"), Span(4, 5, "")]
    assert tags_of(spans, 6, "bio") == ["B-A", "I-A", "B-A", "O", "B", "O"]
    assert tags_of(spans, 6, "bioes") == ["B-A", "E-A", "S-A", "O", "S", "O"]
    assert tags_of(spans, 6, "iob1") == ["I-A", "I-A", "B-A", "O", "I", "O"]
    assert tags_of(spans, 6, "ioe1") == ["I-A", "E-A", "I-A", "O", "I", "O"]
    assert tags_of(spans, 6, "ioe2") == ["I-A", "E-A", "E-A", "O", "E", "O"]
    long = [Span(0, 3, "A"), Span(3, 4, "B")]
    assert tags_of(long, 4, "bilou") == ["B-A", "I-A", "L-A", "U-B"]
    assert tags_of(long, 4, "bmes") == ["B-A", "M-A", "E-A", "S-B"]
    assert tags_of(long, 4, "bmewo") == ["B-A", "M-A", "E-A", "W-B"]
    assert [join_tag(*split_tag(tag)) for tag in [*EVERY, "B", "I"]] == [*EVERY, "B", "I"]


def test_spans_are_seqevals_and_so_conllevals():
    from seqeval.metrics.sequence_labeling import get_entities

    for tags in sequences():
        entities = [(kind, start, end + 1) for kind, start, end in get_entities(list(tags))]
        assert [(span.kind, span.start, span.end) for span in spans_of(tags)] == entities, tags


@pytest.mark.parametrize(
    ("scheme", "reference"), [("bio", IOB2), ("bioes", IOBES), ("bilou", BILOU)]
)
def test_strict_spans_are_seqevals(scheme, reference):
    letters = {"bio": "OBI", "bioes": "OBIES", "bilou": "OBIES"}[scheme]
    some = [tags for tags in sequences(6000) if all(tag[0] in letters for tag in tags)]
    if scheme == "bilou":
        other = str.maketrans("ES", "LU")
        some = [[tag[0].translate(other) + tag[1:] for tag in tags] for tags in some]
    assert len(some) > 100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        their_entities = Entities(some, reference).entities
    for tags, expected in zip(some, their_entities, strict=True):
        spans = {(span.kind, span.start, span.end) for span in strict_spans(tags, scheme)}
        assert spans == {(e.tag, e.start, e.end) for e in expected}, tags


def test_what_is_broken_is_read_as_the_nearest_right_thing():
    tags = ["I-X", "O", "B-X", "I-Y"]
    assert invalid_positions(tags, "bio") == [0, 3]
    assert converted(tags, "bio") == ["B-X", "O", "B-X", "B-Y"]
    for tags in sequences(500):
        as_bio = converted(tags, "bio")
        assert spans_of(as_bio) == spans_of(tags) and converted(as_bio, "bio") == as_bio


def test_the_scheme_is_told_by_content():
    assert scheme_of([["O", "B-X", "I-X"], ["O"]]) == "bio"
    assert scheme_of([["B-X", "B-X"], ["I-X"]]) == "bio"
    assert scheme_of([["I-X", "B-X", "I-X"], ["O", "I-Y"]]) == "iob1"
    assert scheme_of([["I-X", "E-X", "I-X"], ["O", "I-Y"]]) == "ioe1"
    assert scheme_of([["I-X", "E-X", "E-X"], ["O", "E-Y"]]) == "ioe2"
    assert scheme_of([["O", "S-X"]]) == "bioes"
    assert scheme_of([["O", "U-X"], ["B-X", "L-X"]]) == "bilou"
    assert scheme_of([["B-X", "M-X", "E-X"], ["S-X"]]) == "bmes"
    assert scheme_of([["B-X", "E-X", "O", "W-X"]]) == "bmewo"
    assert scheme_of([["B-X", "L-X"], ["S-X"], ["U-X"]]) == "bilou"  # and a tag of another scheme
    assert scheme_of([["L-X"], ["E-X"], ["M-Y"], ["I-X"]]) is None  # mostly invalid in each
    assert scheme_of([["O", "U", "L"]]) is None  # words in upper and in lower case
    assert scheme_of([["B", "I", "O"]]) == "bio"
    assert scheme_of([["O", "NOUN"], ["B-X"]]) is None
    assert scheme_of([["O"], []]) is None
    assert scheme_of_labels(["O", "B-X", "I-X"]) == "bio"
    assert scheme_of_labels(["O", "S-X", "B-X"]) == "bioes"
    for scheme in SCHEMES:
        assert scheme_of_labels(labels_of(["X"], scheme)) == scheme
    for labels in (["NOUN", "O"], ["B-X", "I-X"], ["LABEL_0", "LABEL_1"], ["O", "U", "L"]):
        assert scheme_of_labels(labels) is None
    # None begins a chunk: the labels of a model of IOB1 or IOE2.
    for labels in (["O", "I-X", "I-Y"], ["O", "I-X", "E-X"]):
        assert scheme_of_labels(labels) is None


@pytest.mark.parametrize(
    "tags, names",
    [
        (["O", "B-X", "I"], ["O", "B-X", "I"]),
        (["O", "B_X-Y", "i_X-Y"], ["O", "B-X-Y", "I-X-Y"]),
        (["o", "b-X", "i"], ["O", "B-X", "I"]),
        (["O", "X-Y-B", "X_Y-i"], ["O", "B-X-Y", "I-X_Y"]),
        (["B_X", "I_X"], None),  # without an O they may be classes of words
        (["O", "B_X", "NOUN"], None),
        (["O", "U", "L"], None),
        (["_", "O"], None),
    ],
)
def test_other_spellings_of_tags(tags, names):
    canonical = canonical_names(tags)
    assert (None if canonical is None else [canonical[tag] for tag in tags]) == names


def test_a_few_stray_tags_do_not_decide_the_scheme():
    rng = random.Random(shifted(3))
    files = {scheme: [] for scheme in (*SCHEMES, *OLDER)}
    for _ in range(300):
        spans, length = random_spans(rng)
        for scheme, sentences in files.items():
            sentences.append(tags_of(spans, length, scheme))
    stray = [["B-PER", "O", "O"], ["O", "B-PER", "I-PER"], ["E-PER", "O"], ["O", "L-PER"]]
    for scheme, sentences in files.items():
        assert scheme_of([*stray, *sentences]) == scheme


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_may_follow_what_is_exactly_what_a_scheme_writes(scheme):
    labels = labels_of(["X", "Y"], scheme)
    assert labels[0] == "O" and scheme_of_labels(labels) == scheme
    allowed = transitions(labels, scheme)
    numbers = range(len(labels))
    for sequence in itertools.chain(*(itertools.product(numbers, repeat=n) for n in (1, 2, 3))):
        legal = allowed.start[sequence[0]] and allowed.end[sequence[-1]]
        legal &= all(allowed.between[pair] for pair in itertools.pairwise(sequence))
        assert legal == (not invalid_positions([labels[n] for n in sequence], scheme))
    assert np.all(transitions(["A", "B"], None).between)
