"""Laws of masking, each checked on enough random rows that a wrong law would show."""

import numpy as np
import pytest

from keras_bert.records.masking import SPAN_WORDS, UNITS, Masker, example_keys
from keras_bert.text.vocabularies.bpe import END_OF_WORD, BpeVocabulary
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from tests.seeds import make_rng
from tests.unmasked import unmask

PAD, UNK, CLS, SEP, MASK = range(5)
SIZE = 200
SPECIAL = np.array([PAD, UNK, CLS, SEP, MASK, 5, 6], np.int32)  # 5 and 6: [unused…]
FIRST = [*SPECIAL_TOKENS, "[unused0]", "[unused1]"]
# Every third ordinary piece continues a word.
WORDPIECE = WordPieceVocabulary(
    [*FIRST, *(f"##{i}" if i % 3 == 0 else f"w{i}" for i in range(len(FIRST), SIZE))]
)
# Two of three ordinary pieces end a word, one of them the end of a word alone.
BPE = BpeVocabulary(
    [
        *FIRST,
        END_OF_WORD,
        *(f"w{i}" if i % 3 == 0 else f"w{i}{END_OF_WORD}" for i in range(len(FIRST) + 1, SIZE)),
    ],
    merges=[],
)
VOCABULARIES = pytest.mark.parametrize("vocabulary", [WORDPIECE, BPE], ids=["wordpiece", "bpe"])


def make_examples(count, length=128, seed=0, shortest=3):
    """Rows [CLS] … [SEP] … [SEP] of `shortest` to `length` tokens, some of them [UNK]."""
    rng = make_rng(seed)
    lengths = rng.integers(shortest, length + 1, count)
    ids = rng.integers(7, SIZE, (count, length)).astype(np.int32)
    ids[rng.random(ids.shape) < 0.02] = UNK
    ids[:, 0] = CLS
    rows = np.arange(count)
    ids[rows, lengths // 2] = SEP
    ids[rows, lengths - 1] = SEP
    ids[np.arange(length) >= lengths[:, None]] = PAD
    return ids, lengths


def masker(unit="token", rate=0.15, max_predictions=20, vocabulary=WORDPIECE, **kwargs):
    return Masker(
        vocabulary=vocabulary, unit=unit, rate=rate, max_predictions=max_predictions, **kwargs
    )


def run(unit, ids, lengths, seed=0, epoch=0, **kwargs):
    keys = example_keys(ids, lengths, seed=seed, epoch=epoch)
    return masker(unit, **kwargs).mask(ids, lengths, keys)


def by_row(pair):
    flat, counts = pair
    return np.split(flat, np.cumsum(counts)[:-1])


@VOCABULARIES
@pytest.mark.parametrize("unit", UNITS)
def test_laws_that_hold_for_every_row(unit, vocabulary):
    ids, lengths = make_examples(2000)
    before = ids.copy()
    masked = run(unit, ids, lengths, vocabulary=vocabulary)
    np.testing.assert_array_equal(ids, before)
    np.testing.assert_array_equal(unmask(masked.input_ids, masked.positions, masked.ids), ids)
    flat_positions, counts = masked.positions
    assert (counts <= 20).all() and counts.sum() == len(flat_positions)
    for row, positions in enumerate(by_row(masked.positions)):
        assert (np.diff(positions) > 0).all()  # sorted, none twice
        assert (positions < lengths[row]).all()
        assert not np.isin(ids[row, positions], SPECIAL).any()
    changed = masked.input_ids != ids
    assert not (changed & np.isin(ids, SPECIAL)).any()
    # Nothing special but [MASK] is put in.
    put = masked.input_ids[changed]
    assert not np.isin(put[put != MASK], SPECIAL).any()


def test_the_number_of_tokens_is_berts():
    ids, lengths = make_examples(2000)
    _, counts = run("token", ids, lengths).positions
    candidates = (~np.isin(ids, SPECIAL)).sum(axis=1)
    # create_pretraining_data.py: min(max_predictions, max(1, int(round(len(tokens) * prob))))
    expected = [min(20, max(1, int(round(n * 0.15)))) for n in lengths.tolist()]
    np.testing.assert_array_equal(counts, np.minimum(expected, candidates))


def binomial_bound(fraction, draws):
    return 4.5 * np.sqrt(fraction * (1 - fraction) / draws)  # once in 150,000 runs


@VOCABULARIES
@pytest.mark.parametrize("unit", ["token", "whole-word"])
def test_80_10_10(unit, vocabulary):
    ids, lengths = make_examples(6500, shortest=100)
    masked = run(unit, ids, lengths, vocabulary=vocabulary)
    positions, counts = masked.positions
    rows = np.repeat(np.arange(len(ids)), counts)
    assert len(positions) > 100_000
    seen, was = masked.input_ids[rows, positions], ids[rows, positions]
    ordinary = SIZE - len(SPECIAL)
    stays = 0.1 + 0.1 / ordinary  # a random replacement may be the token itself
    for fraction, got in (
        (0.8, (seen == MASK).mean()),
        (stays, (seen == was).mean()),
        (0.9 - stays + 0.1, (seen != was).mean()),
    ):
        assert abs(got - fraction) < binomial_bound(fraction, len(positions)), (fraction, got)


def test_every_token_is_chosen_equally_often_and_independently_of_its_place():
    ids, lengths = make_examples(20_000, length=40, shortest=40)
    ids[(ids == UNK)] = 8
    positions, counts = run("token", ids, lengths).positions
    fraction = np.bincount(positions, minlength=40)[1:-1] / len(ids)
    fraction = np.delete(fraction, 19)  # the [SEP] in the middle
    assert np.abs(fraction - 6 / 37).max() < binomial_bound(6 / 37, len(ids))


def test_uniform_replacements_reach_every_ordinary_token():
    ids, lengths = make_examples(20_000, shortest=100)
    masked = run("token", ids, lengths, rate=1.0, max_predictions=128)
    put = masked.input_ids[(masked.input_ids != ids) & (masked.input_ids != MASK)]
    fraction = np.bincount(put, minlength=SIZE) / len(put)
    ordinary = np.setdiff1d(np.arange(SIZE), SPECIAL)
    assert fraction[SPECIAL].sum() == 0
    # Five standard deviations of a count, relative to it.
    bound = 5 * np.sqrt(len(ordinary) / len(put))
    assert np.abs(fraction[ordinary] * len(ordinary) - 1).max() < bound


def test_unigram_replacements_follow_the_counts():
    counts = np.arange(SIZE) ** 2
    ids, lengths = make_examples(20_000, shortest=100)
    masked = run("token", ids, lengths, rate=1.0, max_predictions=128, unigram_counts=counts)
    put = masked.input_ids[(masked.input_ids != ids) & (masked.input_ids != MASK)]
    expected = np.where(np.isin(np.arange(SIZE), SPECIAL), 0, counts)
    fraction = np.bincount(put, minlength=SIZE) / len(put)
    assert np.abs(fraction - expected / expected.sum()).max() < 0.002


def words_of(row, length, vocabulary):
    """Words of a row as lists of positions, by the definition, token by token.

    Without those that hold an [UNK], which is never chosen.
    """
    words = []
    for position in range(1, length):
        token, before = vocabulary.tokens[row[position]], row[position - 1]
        if row[position] in SPECIAL and row[position] != UNK:
            continue
        if vocabulary is BPE:
            continues = not vocabulary.tokens[before].endswith(END_OF_WORD)
        else:
            continues = token.startswith("##")
        if continues and (before not in SPECIAL or before == UNK):
            words[-1].append(position)
        else:
            words.append([position])
    return [word for word in words if UNK not in row[word]]


@VOCABULARIES
def test_whole_words_are_chosen_whole(vocabulary):
    ids, lengths = make_examples(500)
    masked = run("whole-word", ids, lengths, vocabulary=vocabulary)
    budgets = np.rint(lengths * 0.15).clip(1, 20)
    for row, positions in enumerate(by_row(masked.positions)):
        chosen = set(positions.tolist())
        words = words_of(ids[row], lengths[row], vocabulary)
        assert chosen <= {position for word in words for position in word}
        for word in words:
            assert len(chosen & set(word)) in (0, len(word))
        # A word is left out only if it did not fit.
        rest = budgets[row] - len(chosen)
        assert rest >= 0
        assert all(len(word) > rest for word in words if not chosen & set(word))


def spans_of(row, masked, edges):
    """The spans of a row as (first, last) from the three features, and their positions."""
    part = slice(edges[row], edges[row + 1])
    left, right, offset = (
        pair[0][part] for pair in (masked.span_left, masked.span_right, masked.span_offset)
    )
    positions = masked.positions[0][part]
    np.testing.assert_array_equal(positions - offset, left)
    return sorted({(int(a) + 1, int(b) - 1) for a, b in zip(left, right, strict=True)}), positions


@VOCABULARIES
def test_spans_are_runs_of_whole_words_apart_from_each_other(vocabulary):
    ids, lengths = make_examples(500)
    masked = run("span", ids, lengths, vocabulary=vocabulary)
    edges = np.concatenate([[0], np.cumsum(masked.positions[1])])
    for row in range(len(ids)):
        spans, positions = spans_of(row, masked, edges)
        covered = [p for first, last in spans for p in range(first, last + 1)]
        assert covered == positions.tolist()
        words = words_of(ids[row], lengths[row], vocabulary)
        starts, ends = {word[0] for word in words}, {word[-1] for word in words}
        for first, last in spans:
            assert first in starts and last in ends
            assert sum(first <= word[0] <= last for word in words) <= SPAN_WORDS
            # The boundary tokens are there to be read.
            assert first - 1 not in covered and last + 1 not in covered


@VOCABULARIES
def test_spans_spend_the_budget(vocabulary):
    ids, lengths = make_examples(2000, shortest=64)
    _, counts = run("span", ids, lengths, vocabulary=vocabulary).positions
    budgets = np.rint(lengths * 0.15).clip(1, 20)
    assert counts.sum() / budgets.sum() > 0.97


def test_spans_of_ten_words_are_as_frequent_as_in_spanbert():
    """With a budget of ten words of one token, a row holds a span of ten only if its first draw
    is ten: no other span and no budget has cut it short, and no second one has added to it."""
    count, length = 12_000, 1000
    ids = np.full((500, length), 8, np.int32)
    ids[:, 0], ids[:, -1] = CLS, SEP
    lengths = np.full(500, length)
    single = masker("span", rate=10 / length, max_predictions=10)
    tens = 0
    for start in range(0, count, 500):
        keys = example_keys(ids, lengths, seed=1, epoch=np.arange(start, start + 500))
        masked = single.mask(ids, lengths, keys)
        tens += (masked.span_offset[0] == 10).sum()
    fraction = 0.2 * 0.8**9 / (1 - 0.8**10)
    # A start in the last nine words of the row is cut short.
    fraction *= 1 - 9 / (length - 2)
    assert abs(tens / count - fraction) < binomial_bound(fraction, count)


def test_the_mean_span_is_3_8_words():
    from keras_bert.records.masking import _SPAN_LIMITS

    fractions = np.diff(np.concatenate([[0], _SPAN_LIMITS, [1]]))
    assert fractions @ np.arange(1, 11) == pytest.approx(3.8, abs=0.01)
    assert fractions[1:] / fractions[:-1] == pytest.approx([0.8] * 9)


@VOCABULARIES
def test_a_span_fractions_one_draw(vocabulary):
    ids, lengths = make_examples(3000, shortest=100)
    masked = run("span", ids, lengths, vocabulary=vocabulary)
    edges = np.concatenate([[0], np.cumsum(masked.positions[1])])
    outcomes = []
    for row in range(len(ids)):
        for first, last in spans_of(row, masked, edges)[0]:
            seen = masked.input_ids[row, first : last + 1]
            was = ids[row, first : last + 1]
            if (seen == MASK).any():
                assert (seen == MASK).all()
            if last - first >= 3:  # a random replacement is the token itself once in 193
                outcomes.append(0 if seen[0] == MASK else 1 if (seen == was).all() else 2)
    fractions = np.bincount(outcomes, minlength=3) / len(outcomes)
    for fraction, got in zip((0.8, 0.1, 0.1), fractions, strict=True):
        assert abs(got - fraction) < binomial_bound(fraction, len(outcomes)), (fraction, got)


@VOCABULARIES
@pytest.mark.parametrize("unit", UNITS)
def test_masks_depend_on_row_seed_and_epoch_alone(unit, vocabulary):
    ids, lengths = make_examples(300)
    whole = run(unit, ids, lengths, vocabulary=vocabulary)
    order = make_rng(5).permutation(300)
    # In another batch, in another order, with more padding.
    padded = np.pad(ids[order], ((0, 0), (0, 30)))
    shuffled = run(unit, padded, lengths[order], vocabulary=vocabulary)
    np.testing.assert_array_equal(shuffled.input_ids[:, :128], whole.input_ids[order])
    alone = run(unit, ids[7:8], lengths[7:8], vocabulary=vocabulary)
    np.testing.assert_array_equal(alone.input_ids[0], whole.input_ids[7])
    for change in ({"seed": 1}, {"epoch": 1}):
        other = run(unit, ids, lengths, vocabulary=vocabulary, **change)
        different = (other.input_ids != whole.input_ids).any(axis=1)
        assert different[lengths > 20].mean() > 0.99


@pytest.mark.parametrize("unit", UNITS)
def test_rows_without_a_token_to_choose(unit):
    ids = np.array([[CLS, UNK, SEP, SEP], [CLS, SEP, SEP, PAD]], np.int32)
    masked = run(unit, ids, np.array([4, 3]))
    np.testing.assert_array_equal(masked.input_ids, ids)
    np.testing.assert_array_equal(masked.positions[1], [0, 0])


def test_a_wrong_setting_is_rejected():
    with pytest.raises(ValueError, match="unit"):
        masker("sentence")
    with pytest.raises(ValueError, match="rate"):
        masker(rate=0.0)
    with pytest.raises(ValueError, match="max_predictions"):
        masker(max_predictions=0)
    with pytest.raises(ValueError, match="unigram_counts"):
        masker(unigram_counts=np.zeros(SIZE))
