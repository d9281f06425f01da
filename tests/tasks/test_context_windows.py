"""Which tokens skip-gram and CBOW keep, their contexts and their negatives: laws, not draws."""

import numpy as np
import pytest

from keras_bert.base.errors import InputError
from keras_bert.tasks.pretraining.static_vectors import CHUNK_TOKENS, ContextWindows
from tests.seeds import make_rng

SPECIAL = np.array([0, 1, 2])
COUNTS = np.array([9, 9, 9, 5000, 600, 70, 8, 0])
W = 4


def windows(**options):
    return ContextWindows(COUNTS, SPECIAL, **{"window": W, "subsample": 0.0, **options})


def make_getter(name):
    """A function of the chunks: the values of their own tokens, without padding."""

    def get(chunks):
        is_token = chunks.input_mask[:, W:-W] > 0
        array = getattr(chunks, name)
        return (array[:, W:-W] if name == "input_ids" else array)[is_token]

    return get


OWN = [make_getter(name) for name in ("input_ids", "contexts_before", "contexts_after")]


def batch(rows=200, length=40, seed=0):
    rng = make_rng(seed)
    ids = rng.choice(8, (rows, length), p=COUNTS / COUNTS.sum()).astype(np.int32)
    lengths = rng.integers(0, length + 1, rows)
    segments = (np.arange(length) >= lengths[:, None] // 2).astype(np.int32)
    return ids, segments, lengths


def made(sampler, ids, segments, lengths, *, seed=0, epoch=0):
    return sampler(ids, segments, lengths, seed=seed, epochs=np.full(len(ids), epoch))


def test_without_subsampling_every_ordinary_token_is_there_once_and_in_order():
    ids, segments, lengths = batch()
    chunks = made(windows(), ids, segments, lengths)
    inside = (np.arange(40) < lengths[:, None]) & ~np.isin(ids, SPECIAL)
    np.testing.assert_array_equal(OWN[0](chunks), ids[inside])
    # The tokens around a chunk are its neighbours.
    np.testing.assert_array_equal(chunks.input_ids[1:, :W], chunks.input_ids[:-1, -2 * W : -W])
    np.testing.assert_array_equal(chunks.input_ids[:-1, -W:], chunks.input_ids[1:, W : 2 * W])
    assert chunks.input_ids.shape[1] == CHUNK_TOKENS + 2 * W


def test_contexts_are_near_and_in_the_same_segment_of_the_same_example():
    ids, segments, lengths = batch()
    chunks = made(windows(), ids, segments, lengths)
    is_token = chunks.input_mask[:, W:-W] > 0
    both = np.stack([chunks.contexts_before[is_token], chunks.contexts_after[is_token]])
    assert not chunks.contexts_before[~is_token].any()
    assert not chunks.contexts_after[~is_token].any()
    ordinary = (np.arange(40) < lengths[:, None]) & ~np.isin(ids, SPECIAL)
    sequence = (2 * np.arange(len(ids))[:, None] + segments)[ordinary]
    _, begins, sizes = np.unique(sequence, return_index=True, return_counts=True)
    position = np.arange(len(sequence)) - np.repeat(begins, sizes)
    room = np.stack([position, np.repeat(sizes, sizes) - 1 - position])
    drawn = both.max(axis=0)  # the window, if there is room for it
    assert (both <= room).all()
    np.testing.assert_array_equal(both, np.minimum(room, drawn))
    inside = (room >= W).all(axis=0)
    drawn = np.bincount(drawn[inside], minlength=W + 1)
    np.testing.assert_allclose(drawn / drawn.sum(), [0, *[1 / W] * W], atol=0.03)


def test_tokens_are_kept_with_the_probability_of_the_published_program():
    t = 0.01
    sampler = windows(subsample=t)
    frequency = COUNTS[3:] / COUNTS[3:].sum()
    ratio = t / np.maximum(frequency, 1e-9)
    np.testing.assert_allclose(sampler.keep_probability[3:], np.minimum(1, np.sqrt(ratio) + ratio))
    assert not sampler.keep_probability[SPECIAL].any()
    ids = np.full((500, 40), 3, np.int32)
    # Equal examples have equal draws, so each has a different last token.
    ids[:, -1] = make_rng(0).integers(4, 7, 500)
    draws = [
        made(sampler, ids, ids * 0, np.full(500, 40), epoch=e).input_mask[:, W:-W].sum()
        for e in range(20)
    ]
    assert len(set(draws)) > 1
    assert np.mean(draws) / ids.size == pytest.approx(sampler.keep_probability[3], abs=0.03)


def test_negatives_have_the_unigram_distribution_to_the_power_of_three_quarters():
    ids, segments, lengths = batch(rows=3000)
    sampler = windows()
    drawn = np.bincount(made(sampler, ids, segments, lengths).negatives.ravel(), minlength=8)
    powers = np.where(np.isin(np.arange(8), SPECIAL), 0, COUNTS) ** 0.75
    np.testing.assert_allclose(drawn / drawn.sum(), powers / powers.sum(), atol=0.01)
    assert not drawn[7] and not drawn[SPECIAL].any()


def test_draws_depend_on_content_seed_and_epoch_alone():
    ids, segments, lengths = batch()
    sampler = windows(subsample=0.01)
    first = made(sampler, ids, segments, lengths)
    for one, other in zip(first, made(sampler, ids, segments, lengths), strict=True):
        np.testing.assert_array_equal(one, other)
    for change in ({"seed": 1}, {"epoch": 1}):
        other = made(sampler, ids, segments, lengths, **change)
        assert (
            other.negatives.shape != first.negatives.shape
            or (other.negatives != first.negatives).any()
        )
    # What is kept of an example, and its windows, do not depend on the other examples.
    alone = made(sampler, ids[5:6], segments[5:6], lengths[5:6])
    first_five = [of(made(sampler, ids[:5], segments[:5], lengths[:5])) for of in OWN]
    for of, before in zip(OWN, first_five, strict=True):
        expected = of(alone)
        np.testing.assert_array_equal(of(first)[len(before) :][: len(expected)], expected)


def test_a_batch_without_text_has_chunks_without_weight():
    chunks = made(windows(), *batch(rows=3)[:2], np.zeros(3, int))
    assert len(chunks.input_ids) and not chunks.input_mask.any()
    assert not chunks.contexts_before.any() and not chunks.contexts_after.any()


def test_counts_are_needed():
    with pytest.raises(InputError, match="Static vectors need the number of times"):
        ContextWindows(np.zeros(8), SPECIAL, window=2, subsample=0.0)
