"""Segments: the pairs and single stretches of text that rows are made of."""

import random

import numpy as np
import pytest

from data_gen.segments import join, pairs, singles, truncate
from tests.seeds import make_rng, shifted


def corpus(document_sentences, seed=0, longest=1000):
    """`Sentences` of numbered tokens: token k of the corpus is k. Takes sentences a document."""
    rng = make_rng(seed)
    lengths = rng.integers(1, 40, sum(document_sentences))
    tokens = np.arange(lengths.sum(), dtype=np.int32)
    sentences, _ = join(tokens, lengths, document_sentences, longest=longest)
    return sentences


def document_of(sentences, tokens):
    return np.searchsorted(sentences.starts[sentences.documents], tokens, side="right") - 1


def test_join_leaves_out_what_is_empty_and_cuts_what_is_long():
    tokens = np.arange(22)
    sentences, cut = join(tokens, [3, 0, 12, 7, 0, 0], [2, 1, 1, 1, 1], longest=5)
    np.testing.assert_array_equal(sentences.starts, [0, 3, 8, 13, 15, 20, 22])
    # The fourth and fifth documents have no token, and are gone.
    np.testing.assert_array_equal(sentences.documents, [0, 1, 4, 6])
    assert cut == 2


def test_pairs_are_text_of_one_document_each_and_labels_are_true():
    sentences = corpus([30, 1, 2, 60, 8, 1, 25] * 4)
    segments = pairs(sentences, max_tokens=125, short_seq_prob=0.1, rng=make_rng(0))
    bounds = set(sentences.starts.tolist())
    assert (segments.a[:, 0] < segments.a[:, 1]).all()
    assert (segments.b[:, 0] < segments.b[:, 1]).all()
    for (a, a_end), (b, b_end), is_random in zip(
        segments.a, segments.b, segments.labels, strict=True
    ):
        assert {a, a_end, b, b_end} <= bounds
        assert document_of(sentences, a) == document_of(sentences, a_end - 1)
        assert document_of(sentences, b) == document_of(sentences, b_end - 1)
        if is_random:
            assert document_of(sentences, a) != document_of(sentences, b)
        else:
            assert b == a_end and document_of(sentences, a) == document_of(sentences, b)
    assert segments.same_document == segments.dropped == 0


def test_first_segments_and_true_second_ones_cover_every_token_once():
    sentences = corpus([30, 1, 2, 60, 8, 1, 25] * 4)
    segments = pairs(sentences, max_tokens=60, short_seq_prob=0.1, rng=make_rng(1))
    ranges = [*segments.a, *segments.b[segments.labels == 0]]
    covered = np.concatenate([np.arange(*edges) for edges in ranges])
    np.testing.assert_array_equal(np.sort(covered), sentences.tokens)


def reference_pairs(documents, max_tokens, short_seq_prob, rng):
    """google-research/bert, create_instances_from_document, on lists of tokens; a short length is
    drawn for each row, while theirs is drawn for each document."""
    rows = []
    for index, document in enumerate(documents):
        chunk, length, i = [], 0, 0
        target = max_tokens if rng.random() >= short_seq_prob else rng.randint(2, max_tokens)
        while i < len(document):
            chunk.append(document[i])
            length += len(document[i])
            if i == len(document) - 1 or length >= target:
                a_end = 1 if len(chunk) < 2 else rng.randint(1, len(chunk) - 1)
                a = sum(chunk[:a_end], [])
                b = []
                is_random = len(chunk) == 1 or rng.random() < 0.5
                if is_random:
                    other = rng.choice([d for d in range(len(documents)) if d != index])
                    start = rng.randint(0, len(documents[other]) - 1)
                    for sentence in documents[other][start:]:
                        b += sentence
                        if len(b) >= target - len(a):
                            break
                    i -= len(chunk) - a_end
                else:
                    b = sum(chunk[a_end:], [])
                rows.append((a, b, is_random))
                chunk, length = [], 0
                target = (
                    max_tokens if rng.random() >= short_seq_prob else rng.randint(2, max_tokens)
                )
            i += 1
    return rows


def test_pairs_are_distributed_as_berts():
    sizes = random.Random(shifted(0)).choices(range(1, 60), k=80)
    sentences = corpus(sizes, seed=2)
    split = np.split(sentences.tokens, sentences.starts[1:-1])
    documents = [
        [sentence.tolist() for sentence in split[first:last]]
        for first, last in zip(sentences.documents, sentences.documents[1:], strict=False)
    ]
    our_statistics, their_statistics = [], []
    for seed in range(30):
        segments = pairs(sentences, max_tokens=125, short_seq_prob=0.1, rng=make_rng(seed))
        a, b = (np.diff(ranges, axis=1).ravel() for ranges in (segments.a, segments.b))
        our_statistics.append(
            [len(a), a.mean(), b.mean(), segments.labels.mean(), (a + b > 125).mean()]
        )
        rows = reference_pairs(documents, 125, 0.1, random.Random(shifted(seed)))
        a, b = (np.array([len(row[side]) for row in rows]) for side in (0, 1))
        fraction = np.mean([row[2] for row in rows])
        their_statistics.append([len(a), a.mean(), b.mean(), fraction, (a + b > 125).mean()])
    our_statistics, their_statistics = np.array(our_statistics), np.array(their_statistics)
    error = np.sqrt((our_statistics.var(axis=0) + their_statistics.var(axis=0)) / 30)
    assert (np.abs(our_statistics.mean(axis=0) - their_statistics.mean(axis=0)) < 4 * error).all()


def test_about_half_of_the_pairs_are_random():
    sentences = corpus([200] * 50)
    segments = pairs(sentences, max_tokens=300, short_seq_prob=0.0, rng=make_rng(0))
    assert abs(segments.labels.mean() - 0.5) < 4.5 * np.sqrt(0.25 / len(segments.labels))


def test_one_document_gives_random_segments_from_a_distant_part():
    sentences = corpus([400])
    segments = pairs(sentences, max_tokens=60, short_seq_prob=0.1, rng=make_rng(0))
    is_random = segments.labels == 1
    assert segments.same_document == is_random.sum() > 50
    a, b = segments.a[is_random], segments.b[is_random]
    between = np.where(b[:, 0] > a[:, 0], b[:, 0] - a[:, 1], a[:, 0] - b[:, 1])
    assert between.min() >= 60
    assert (b[:, 0] > a[:, 0]).any() and (b[:, 0] < a[:, 0]).any()
    # Without enough text for that, segments follow each other.
    short = pairs(corpus([5]), max_tokens=60, short_seq_prob=0.1, rng=make_rng(0))
    assert len(short.a) and not short.labels.any()


def test_text_without_a_second_part():
    one_sentence, _ = join(np.arange(9), [9], [1], longest=60)
    segments = pairs(one_sentence, max_tokens=60, short_seq_prob=0.0, rng=make_rng(0))
    np.testing.assert_array_equal(segments.a, [[0, 4]])
    np.testing.assert_array_equal(segments.b, [[4, 9]])
    one_word, _ = join(np.arange(1), [1], [1], longest=60)
    segments = pairs(one_word, max_tokens=60, short_seq_prob=0.0, rng=make_rng(0))
    assert len(segments.a) == 0 and segments.dropped == 1
    nothing, _ = join(np.arange(0), [0], [1], longest=60)
    assert len(pairs(nothing, max_tokens=60, short_seq_prob=0.0, rng=make_rng(0)).a) == 0
    assert len(singles(nothing, max_tokens=9, short_seq_prob=0.0, rng=make_rng(0))) == 0


def test_one_word_documents_pair_with_each_other():
    sentences, _ = join(np.arange(10), [1] * 10, [1] * 10, longest=60)
    segments = pairs(sentences, max_tokens=60, short_seq_prob=0.1, rng=make_rng(0))
    assert len(segments.a) == 10 and segments.labels.all()


def reference_truncate(a, b, limit, rng):
    """google-research/bert, truncate_seq_pair."""
    a, b = list(a), list(b)
    while len(a) + len(b) > limit:
        longer = a if len(a) > len(b) else b
        if rng.random() < 0.5:
            del longer[0]
        else:
            longer.pop()
    return a, b


def test_truncation_is_berts():
    rng = make_rng(0)
    sizes = rng.integers(1, 90, (3000, 2))
    a = np.stack([np.zeros(3000, int), sizes[:, 0]], axis=1) + 1000
    b = np.stack([np.zeros(3000, int), sizes[:, 1]], axis=1) + 2000
    short_a, short_b, cut = truncate(a, b, max_tokens=61, rng=rng)
    assert cut == (sizes.sum(axis=1) > 61).sum()
    fronts = [[], []]
    for row in range(3000):
        ranges = (np.arange(*a[row]), np.arange(*b[row]))
        expected = reference_truncate(*ranges, 61, random.Random(shifted(row)))
        for side, (our_range, their_range) in enumerate(
            zip((short_a[row], short_b[row]), expected, strict=True)
        ):
            # How much is cut is not a matter of chance.
            assert our_range[1] - our_range[0] == len(their_range)
            assert ranges[side][0] <= our_range[0] and our_range[1] <= ranges[side][-1] + 1
            fronts[side].append((our_range[0] - ranges[side][0], their_range[0] - ranges[side][0]))
    for pairs_of_fronts in fronts:
        our_fronts, their_fronts = np.array(pairs_of_fronts, float).T
        assert abs(our_fronts.mean() - their_fronts.mean()) < 4 * np.sqrt(
            (our_fronts.var() + their_fronts.var()) / 3000
        )
        assert our_fronts.std() == pytest.approx(their_fronts.std(), rel=0.05)


def test_single_segments_are_whole_sentences_packed_to_the_length():
    sentences = corpus([30, 1, 2, 60, 8, 1, 25] * 4, longest=60)
    segments = singles(sentences, max_tokens=60, short_seq_prob=0.0, rng=make_rng(0))
    starts = sentences.starts.tolist()
    ends_of_documents = set(sentences.starts[sentences.documents].tolist())
    previous = 0
    for first, end in segments.tolist():
        assert first == previous and first in starts and end in starts  # every token once
        assert end - first <= 60
        # The next sentence would not have fitted, or there is none.
        assert end in ends_of_documents or starts[starts.index(end) + 1] - first > 60
        assert document_of(sentences, first) == document_of(sentences, end - 1)
        previous = end
    assert previous == len(sentences.tokens)


def test_short_single_segments():
    sentences = corpus([3000], longest=60)
    segments = singles(sentences, max_tokens=400, short_seq_prob=0.1, rng=make_rng(0))
    sizes = np.diff(segments, axis=1)
    fraction = (sizes < 330).mean()  # a long one lacks less than a sentence; most short ones more
    assert 0.04 < fraction < 0.14
