"""Arguments by the rules of srl-eval: cases worked out by hand, and another way to count them."""

import re

import numpy as np
import pytest

from keras_bert.readers.schemes import BIO, labels_of, spans_of, tags_of
from keras_bert.tasks.tagging.metrics import arguments_of, role_metrics
from tests.seeds import make_rng


def measured(expected, predicted):
    expected, predicted = ([tags.split() for tags in side] for side in (expected, predicted))
    scores = [[0.5] * len(tags) for tags in predicted]
    return role_metrics(expected, predicted, scores, scheme=BIO)


# Expected and predicted tags of a predicate, and the correct, predicted and expected arguments.
CASES = [
    ("B-A0 B-V B-A1 I-A1", "B-A0 B-V B-A1 I-A1", (2, 2, 2)),
    # The predicate itself does not count, found or not.
    ("B-A0 B-V O O", "B-A0 O B-V O", (1, 1, 1)),
    ("O B-V O O", "O O O O", (0, 0, 0)),
    # The role and both ends must be right.
    ("B-A0 I-A0 B-V O", "B-A1 I-A1 B-V O", (0, 1, 1)),
    ("B-A0 I-A0 B-V O", "O B-A0 B-V O", (0, 1, 1)),
    # C-A1 is a part of A1: wrong without it, and one argument with it.
    ("B-A1 B-V B-C-A1 O", "B-A1 B-V B-C-A1 O", (1, 1, 1)),
    ("B-A1 B-V B-C-A1 O", "B-A1 B-V O O", (0, 1, 1)),
    ("B-A1 B-V B-C-A1 O", "B-A1 B-V B-A1 O", (0, 2, 1)),
    # Without an A1 before it, it is one.
    ("O B-V B-A1 O", "O B-V B-C-A1 O", (1, 1, 1)),
    # It continues the last A1, whatever is between.
    ("B-A1 B-A0 B-A1 B-C-A1", "B-A1 B-A0 B-A1 B-C-A1", (3, 3, 3)),
    # R-A1 is a role of its own, and may be continued, too.
    ("B-A1 B-R-A1 B-V B-C-R-A1", "B-A1 B-R-A1 B-V O", (1, 2, 2)),
]


@pytest.mark.parametrize("expected, predicted, counts", CASES)
def test_by_hand(expected, predicted, counts):
    correct, num_predicted, true = counts
    metrics = measured([expected], [predicted])
    assert metrics["precision"] == (correct / num_predicted if num_predicted else 0)
    assert metrics["recall"] == (correct / true if true else 0)
    assert metrics["f1"] == (2 * correct / (num_predicted + true) if num_predicted + true else 0)
    assert metrics["arguments"] == true
    assert metrics["perfect"] == (correct == num_predicted == true)
    assert "V" not in metrics["labels"] and not any("C-" in role for role in metrics["labels"])


def test_over_several_predicates():
    expected, predicted, counts = zip(*CASES, strict=True)
    metrics = measured(expected, predicted)
    correct, num_predicted, true = (sum(column) for column in zip(*counts, strict=True))
    assert metrics["f1"] == pytest.approx(2 * correct / (num_predicted + true))
    assert metrics["examples"] == len(CASES)
    assert metrics["labels"]["A1"]["examples"] == 8
    assert metrics["labels"]["R-A1"]["recall"] == 0


def column_arguments(tags):
    """Another way to the same: over a column of brackets, argument by argument.

    Returns {(first word, last word): (role, the places of its parts)}.
    """
    cells = ["*"] * len(tags)
    for start, end, kind in spans_of(tags):
        cells[start] = f"({kind}{cells[start]}"
        cells[end - 1] += ")"
    arguments, roles, opened = {}, {}, None
    for word, cell in enumerate(cells):
        if begins := re.match(r"\((.+)\*", cell):
            opened = word, begins[1]
        if cell.endswith(")"):
            start, role = opened
            part = f"{start}-{word}"
            earlier = roles.get(role[2:]) if role.startswith("C-") else None
            if earlier is None:
                role = role[2:] if role.startswith("C-") else role
                roles[role] = start, role, [part]
            else:
                earlier[2].append(part)
                role = role[2:]
            first, name, parts = roles[role]
            arguments = {key: value for key, value in arguments.items() if value[1] is not parts}
            arguments[first, word] = name, parts
    return arguments


def test_random_tags_are_counted_alike():
    rng = make_rng(0)
    roles = ["A0", "A1", "V", "C-A1", "R-A0", "AM-TMP", "C-V"]
    labels = labels_of(roles, BIO)
    expected, predicted = [], []
    for _ in range(400):
        tags = rng.choice(labels, rng.integers(1, 14)).tolist()
        tags = tags_of(spans_of(tags), len(tags), BIO)
        changed = [rng.choice(labels) if rng.random() < 0.2 else tag for tag in tags]
        expected.append(" ".join(tags))
        predicted.append(" ".join(changed))
    counts = np.zeros(3, int)
    for true, predicted_tags in zip(expected, predicted, strict=True):
        both = [column_arguments(side.split()) for side in (true, predicted_tags)]
        their_chunks, our_chunks = (
            {(*place, role, *parts) for place, (role, parts) in arguments.items() if role != "V"}
            for arguments in both
        )
        counts += len(their_chunks & our_chunks), len(our_chunks), len(their_chunks)
    metrics = measured(expected, predicted)
    assert metrics["precision"] == pytest.approx(counts[0] / counts[1])
    assert metrics["recall"] == pytest.approx(counts[0] / counts[2])
    assert 0.2 < metrics["f1"] < 0.8


def test_the_parts_of_an_argument():
    assert arguments_of("B-A1 O B-C-A1 I-C-A1".split()) == {("A1", ((0, 1), (2, 4)))}
