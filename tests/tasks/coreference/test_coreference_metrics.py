"""MUC, B³ and CEAFφ4: cases worked out by hand, and counted in another way on random clusters."""

from itertools import permutations

import numpy as np
import pytest

from keras_bert.tasks.coreference.coreference_resolver import coreference_metrics
from tests.seeds import make_rng


def measured(expected, predicted):
    documents = [[[set(cluster) for cluster in clusters]] for clusters in (expected, predicted)]
    return coreference_metrics(*documents)


def f1(recall, precision):
    return 2 * recall * precision / (recall + precision) if recall + precision else 0


# Expected and predicted clusters, and (recall, precision) of MUC, B³ and CEAF.
CASES = [
    # All is right.
    (["ab", "cde"], ["cde", "ab"], (1, 1), (1, 1), (1, 1)),
    # Nothing is found.
    (["ab", "cde"], [], (0, 0), (0, 0), (0, 0)),
    # A cluster of four in two halves: one of its three links is missing; φ4 of a half is 2·2 / 6.
    (["abcd"], ["ab", "cd"], (2 / 3, 1), (1 / 2, 1), (2 / 3, 1 / 3)),
    # Two clusters joined: all links are right but one.
    (["ab", "cd"], ["abcd"], (1, 2 / 3), (1, 1 / 2), (1 / 3, 2 / 3)),
    # One mention too many, x, which is in no expected cluster.
    (["abc"], ["abcx"], (1, 2 / 3), (1, (3 * 3 / 4) / 4), (6 / 7, 6 / 7)),
    # One mention is missing, and a wrong cluster is found.
    (["abc"], ["ab", "xy"], (1 / 2, 1 / 2), ((2 * 2 / 3) / 3, 2 / 4), (4 / 5, 2 / 5)),
    # Bagga and Baldwin 1998: the second and the third of three clusters are joined.
    (
        ["abcde", "fg", "hijkl"],
        ["abcde", "fghijkl"],
        (1, 9 / 10),
        (1, (5 + 2 * 2 / 7 + 5 * 5 / 7) / 12),
        ((1 + 10 / 12) / 3, (1 + 10 / 12) / 2),
    ),
    # A mention in the wrong one of two clusters.
    (
        ["abc", "de"],
        ["ab", "cde"],
        ((1 + 1) / 3, (1 + 1) / 3),
        ((2 * 2 / 3 + 1 / 3 + 2) / 5, (2 + 1 / 3 + 2 * 2 / 3) / 5),
        (4 / 5, 4 / 5),
    ),
]


@pytest.mark.parametrize("expected, predicted, muc, b_cubed, ceaf", CASES)
def test_by_hand(expected, predicted, muc, b_cubed, ceaf):
    metrics = measured(expected, predicted)
    for name, ratios in (("muc", muc), ("b_cubed", b_cubed), ("ceaf", ceaf)):
        recall_and_precision = metrics[f"{name}_recall"], metrics[f"{name}_precision"]
        assert recall_and_precision == pytest.approx(ratios), name
        assert metrics[f"{name}_f1"] == pytest.approx(f1(*ratios)), name
    mean = np.mean([f1(*ratios) for ratios in (muc, b_cubed, ceaf)])
    assert metrics["f1"] == pytest.approx(mean)


def test_sums_over_documents_are_divided_and_not_ratios_averaged():
    expected = [[set("ab")], [set("abcd"), set("ef")], []]
    predicted = [[set("ab")], [set("ab")], []]
    metrics = coreference_metrics(expected, predicted)
    assert metrics["muc_recall"] == pytest.approx(2 / 5) and metrics["muc_precision"] == 1
    assert metrics["b_cubed_recall"] == pytest.approx((2 + 2 * 2 / 4) / 8)
    assert metrics["ceaf_recall"] == pytest.approx((1 + 4 / 6) / 3)
    assert metrics["mention_recall"] == 4 / 8 and metrics["mention_precision"] == 1
    assert (metrics["examples"], metrics["mentions"], metrics["clusters"]) == (3, 8, 3)


def muc_by_partitions(one, other):
    """Vilain et al. 1995: |S| less the parts into which the other side divides S."""
    links, all_links = 0, 0
    for cluster in one:
        parts = {
            next((n for n, part in enumerate(other) if m in part), f"alone {m}") for m in cluster
        }
        links += len(cluster) - len(parts)
        all_links += len(cluster) - 1
    return links, all_links


def b_cubed_by_mentions(one, other):
    total = 0.0
    for cluster in one:
        for mention in cluster:
            other_cluster = next((match for match in other if mention in match), set())
            total += len(cluster & other_cluster) / len(cluster)
    return total, sum(map(len, one))


def best_match(one, other):
    """The greatest sum over all ways to match clusters one to one."""
    few, many = sorted((one, other), key=len)
    return max(
        sum(2 * len(a & b) / (len(a) + len(b)) for a, b in zip(few, chosen, strict=True))
        for chosen in permutations(many, len(few))
    )


def test_random_clusters_are_counted_alike():
    rng = make_rng(0)

    def clusters():
        numbers = rng.integers(0, 6, 12)  # 0 is in no cluster
        groups = [set(np.flatnonzero(numbers == n).tolist()) for n in range(1, 6)]
        return [cluster for cluster in groups if len(cluster) > 1]

    documents = [(clusters(), clusters()) for _ in range(60)]
    sums = np.zeros((3, 4))
    for expected, predicted in documents:
        for row, metric in ((0, muc_by_partitions), (1, b_cubed_by_mentions)):
            sums[row] += *metric(expected, predicted), *metric(predicted, expected)
        best = best_match(expected, predicted)
        sums[2] += best, len(expected), best, len(predicted)
    metrics = coreference_metrics(*zip(*documents, strict=True))
    for name, (recalled, expected, correct, predicted) in zip(
        ("muc", "b_cubed", "ceaf"), sums, strict=True
    ):
        assert metrics[f"{name}_recall"] == pytest.approx(recalled / expected)
        assert metrics[f"{name}_precision"] == pytest.approx(correct / predicted)
